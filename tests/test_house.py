"""The figures of the code's size and structure."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from house import count_rooms, find_excess, measure_code, measure_structure, read_modules

CORE = '''
"""A module."""
from spicegraph_parser.b.c import run

def _of_none(a):
    """What is there."""
    return [x for x in a if x or run]
'''


def test_figures_of_a_small_house(tmp_path: Path) -> None:
    write(tmp_path, "parser/spicegraph_parser/__init__.py", "")
    write(tmp_path, "parser/spicegraph_parser/a/x.py", CORE)
    write(
        tmp_path,
        "parser/spicegraph_parser/b/c.py",
        "def run():\n    from spicegraph_parser.a import x  # noqa: PLC0415\n",
    )
    write(tmp_path, "parser/spicegraph_parser/b/c_pb2.py", "x = 1\n")
    write(tmp_path, "wings/spicegraph_w/y.py", "from spicegraph_parser.a.x import _of_none\n")
    modules = read_modules(tmp_path)
    assert count_rooms(modules) == {"parser": 5, "spicegraph_w": 1}
    code = measure_code(modules)
    assert (code["statements"], code["core statements"], code["modules"], code["inner imports"]) == (6, 5, 4, 1)
    assert (code["names without a verb or noun"], code["first lines with what"], code["complexity over 10"]) == (
        1,
        1,
        0,
    )
    structure = measure_structure(modules)
    assert structure == {"public modules": 1, "core imports of wings": 0, "circles of folders": 1}
    assert find_excess({"a": 2, "b": 1}, {"a": 1, "b": 1}) == ["a: 2, the limit is 1"]


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.lstrip("\n"), "utf-8")
