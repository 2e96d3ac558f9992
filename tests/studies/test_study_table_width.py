"""Tables of studies at the widths of terminals: no number is cut, broken or left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from table_width import check_table_width, table_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["table_folder"]

COMMANDS = {
    "bounds": ("bounds", "a.jsonl", "b.jsonl", "--metrics", "spice,bleu,spice-g", "--draws", "9"),
    "agree captions": ("agree", "captions", "rated.jsonl", "--metrics", "spice,rouge,bleu", "--draws", "9"),
    "agree pairs": ("agree", "pairs", "pairs.jsonl", "--metrics", "spice,rouge", "--draws", "9", "--curve", "1,2"),
    "agree hallucinations": ("agree", "hallucinations", "pairs.jsonl", "--metrics", "chair,rouge", "--draws", "9"),
    "agree systems": ("agree", "systems", "human.csv", "scores.csv", "--draws", "9"),
    "agree protocols": ("agree", "protocols"),
}


@pytest.mark.model
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut_at_60_or_80_columns(
    command: str, table_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_table_width(COMMANDS[command], table_folder, capsys, monkeypatch)
