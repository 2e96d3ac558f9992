"""``--vectors``, ``--idf`` and ``--categories``: taken by every command that computes metrics, refused if unused."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from metric_data import (
    UNUSED,
    Captured,
    check_other_files_are_refused,
    check_unused_is_refused,
    check_vectors_are_used,
    metric_data_folder,
    run,
)
from spicegraph_scorer.core.data import MetricData
from spicegraph_service.cli import options
from spicegraph_service.cli.options import METRIC_DATA, MetricOptions

__all__ = ["metric_data_folder"]

pytestmark = pytest.mark.model

COMMANDS = {
    "score": ("score", "{}/items.jsonl"),
    "compare": ("compare", "{}/items.jsonl", "B={}/items.jsonl", "--draws", "5"),
    "report": ("report", "{}/items.jsonl", "--draws", "5"),
}
REFUSED = [
    *((COMMANDS[name], option) for name in ("score", "compare") for option in UNUSED),
    *((COMMANDS["report"], option) for option in ("--vectors", "--idf")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_computes_with_the_given_vectors_and_says_so(
    command: str, metric_data_folder: Path, capsys: Captured
) -> None:
    check_vectors_are_used(COMMANDS[command], metric_data_folder, capsys, differs=command != "compare")


@pytest.mark.parametrize(("command", "option"), REFUSED)
def test_a_file_that_no_metric_uses_is_refused(
    command: tuple[str, ...], option: str, metric_data_folder: Path, capsys: Captured
) -> None:
    check_unused_is_refused(command, option, metric_data_folder, capsys)


@pytest.mark.parametrize("command", COMMANDS.values())
def test_a_file_that_is_no_table_is_one_error(
    command: tuple[str, ...], metric_data_folder: Path, capsys: Captured
) -> None:
    check_other_files_are_refused(command, metric_data_folder, capsys)


def test_a_file_is_taken_where_the_command_uses_it_by_itself(metric_data_folder: Path, capsys: Captured) -> None:
    """The best candidate is chosen by SPIDEr, which has a CIDEr in it, and a report always counts SPICE's categories."""
    two = metric_data_folder / "two.jsonl"
    two.write_text('{"id": 1, "candidates": ["a dog", "a cat"], "references": ["a dog runs"]}\n')
    best = ("score", str(two), "--candidates", "best", "--metrics", "rouge")
    assert run(metric_data_folder, *best, "--idf", UNUSED["--idf"]) == 0
    assert (
        run(metric_data_folder, *COMMANDS["report"], "--metrics", "rouge", "--categories", UNUSED["--categories"]) == 0
    )
    assert "Pet" in capsys.readouterr().out


def test_no_command_names_what_metrics_take() -> None:
    """A new datum is a field of MetricOptions: the commands have it then, without a change."""
    data = {field.name for field in fields(MetricData)}
    assert set(METRIC_DATA) == data
    assert data <= {field.name for field in fields(MetricOptions)}
    modules = Path(options.__file__).parent.glob("*.py")
    named = {
        f"{path.name}: {name}"
        for path in modules
        # view says how its results were made, elsewhere; parse has no metrics, and a language all the same
        if path.name not in {"options.py", "serve.py", "view.py", "parse.py"}
        for name in data
        if re.search(rf"^    {name}: Annotated", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert not named
