"""The notebooks run from beginning to end, and are stored without output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

RUN = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
assert all(cell.execution_count for cell in cells)
assert any(cell.outputs for cell in cells)
"""


def test_there_is_one_for_each_main_use() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["compare_systems", "graphs_and_rewards", "score_and_explain"]


@pytest.mark.model
@pytest.mark.full("pages")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", RUN, str(path), str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_output(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert not [cell for cell in cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]
