"""Tables at the widths of terminals: no number is cut, broken or left out, by any command that prints tables."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spicegraph_service.cli import main
from spicegraph_service.output import tables

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "score": ("score", "a.jsonl", "--metrics", "all", "--confidence"),
    "score of systems": ("score", "a.jsonl", "long-name-of-a-system=b.jsonl", "c=a.jsonl", "--metrics", "all"),
    "score of many": ("score", *(f"s{n}={'ab'[n % 2]}.jsonl" for n in range(9)), "--metrics", "coco", "--confidence"),
    "compare": ("compare", "a.jsonl", "long-name-of-a-system=b.jsonl", "--metrics", "all", "--draws", "9"),
    "bounds": ("bounds", "a.jsonl", "b.jsonl", "--metrics", "spice,bleu,spice-g", "--draws", "9"),
    "agree captions": ("agree", "captions", "rated.jsonl", "--metrics", "spice,rouge,bleu", "--draws", "9"),
    "agree pairs": ("agree", "pairs", "pairs.jsonl", "--metrics", "spice,rouge", "--draws", "9", "--curve", "1,2"),
    "agree hallucinations": ("agree", "hallucinations", "pairs.jsonl", "--metrics", "chair,rouge", "--draws", "9"),
    "agree systems": ("agree", "systems", "human.csv", "scores.csv", "--draws", "9"),
    "agree words": ("agree", "words", "a.jsonl", "--words", "5", "--draws", "9"),
    "platform codabench": ("platform", "codabench", ".", "out", "--metrics", "coco"),
}
NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w.])")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = [
        ("a brown dog runs on the grass", ["A brown dog runs.", "The two dogs are brown."]),
        ("a cat", ["A cat on a red sofa.", "A grey cat sits."]),
        ("three men ride horses", ["Men on horses.", "Three riders near a large lake."]),
    ]
    items = [{"id": n, "candidate": text, "references": refs} for n, (text, refs) in enumerate(texts)]
    rows = {
        "a": items,
        "b": [item | {"candidate": "a big dog"} for item in items],
        "rated": [item | {"ratings": [item["id"], item["id"] + 1]} for item in items],
        "pairs": [
            {"image_id": n, "captions": [text, "a bus"], "label": 0, "references": refs, "category": "HC"}
            for n, (text, refs) in enumerate(texts)
        ],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "human.csv").write_text(
        "system,M1,M2,M3\n" + "".join(f"s{n},0.{n}1,0.{9 - n}2,{n}\n" for n in range(5))
    )
    (tmp_path / "scores.csv").write_text("system,SPICE,CIDEr\n" + "".join(f"s{n},0.{n}5,0.{n}1\n" for n in range(5)))
    for name, content in {"ref": {n: refs for n, (_, refs) in enumerate(texts)}, "res": dict(enumerate("abc"))}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "r.json").write_text(json.dumps(content))
    return tmp_path


def _numbers(text: str) -> list[str]:
    return sorted(NUMBER.findall(text))


@pytest.mark.model
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut_at_60_or_80_columns(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {}
    for width in (400, 80, 60):
        monkeypatch.setattr(tables, "_width", lambda width=width: width)
        assert main(COMMANDS[command]) == 0
        printed[width] = capsys.readouterr().out
        if (folder / "out").exists():
            for file in (folder / "out").iterdir():
                file.unlink()
    wanted = set(_numbers(printed[400]))
    assert len(wanted) > 3
    for width in (80, 60):
        assert set(_numbers(printed[width])) >= wanted
        assert "…" not in printed[width]
        rows = [line for line in printed[width].splitlines() if NUMBER.search(line) and "|" not in line]
        assert sum(len(line) <= width for line in rows) > 0


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
