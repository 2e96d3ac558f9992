"""Tables at the widths of terminals: no number is cut, broken or left out, by any command that prints tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spicegraph_service.output import tables
from table_width import check_table_width, table_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["table_folder"]

COMMANDS = {
    "score": ("score", "a.jsonl", "--metrics", "all", "--confidence"),
    "score of systems": ("score", "a.jsonl", "long-name-of-a-system=b.jsonl", "c=a.jsonl", "--metrics", "all"),
    "score of many": ("score", *(f"s{n}={'ab'[n % 2]}.jsonl" for n in range(9)), "--metrics", "coco", "--confidence"),
    "compare": ("compare", "a.jsonl", "long-name-of-a-system=b.jsonl", "--metrics", "all", "--draws", "9"),
    "parse": ("parse", "captions.txt", "--format", "table"),
    "config": ("config", "score"),
}


@pytest.mark.model
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut_at_60_or_80_columns(
    command: str, table_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_table_width(COMMANDS[command], table_folder, capsys, monkeypatch)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_columns_that_do_not_fit_stand_below(width: int) -> None:
    table = Table(title="t", pad_edge=False)
    table.add_column("A name")
    for number in range(9):
        table.add_column(f"n{number}", justify="right")
    table.add_row(Text("a system with a long name"), *(f"0.{number}23456" for number in range(9)))
    console = Console(width=width)
    parts = list(tables.fitted(table, console))
    assert [part.title for part in parts] == ["t", *[None] * (len(parts) - 1)]
    assert (len(parts) == 1) == (width == 200)
    assert [c.header for part in parts for c in part.columns[1:]] == [f"n{number}" for number in range(9)]
    for part in parts:
        with console.capture() as capture:
            console.print(part)
        text = capture.get()
        assert max(map(len, text.splitlines())) <= width
        assert text.count("23456") == len(part.columns) - 1
