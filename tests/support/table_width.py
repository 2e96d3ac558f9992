"""Tables of commands at the widths of terminals: no number is cut, broken or left out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main
from spicegraph_service.output import tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w.])")


@pytest.fixture
def table_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    (tmp_path / "captions.txt").write_text("A bus with number 12345 and 3 dogs\n" + "word " * 30 + "2026\n")
    for name, content in {"ref": {n: refs for n, (_, refs) in enumerate(texts)}, "res": dict(enumerate("abc"))}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "r.json").write_text(json.dumps(content))
    return tmp_path


def numbers(text: str) -> list[str]:
    return sorted(NUMBER.findall(text))


def check_table_width(
    command: Sequence[str], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a command at 400, 80 and 60 columns: each number of the widest stands whole in the others."""
    printed = {}
    for width in (400, 80, 60):
        monkeypatch.setattr(tables, "console_width", lambda width=width: width)
        assert main(command) == 0
        printed[width] = capsys.readouterr().out
        if (folder / "out").exists():
            for file in (folder / "out").iterdir():
                file.unlink()
    wanted = set(numbers(printed[400]))
    assert len(wanted) > 1
    for width in (80, 60):
        assert set(numbers(printed[width])) >= wanted
        assert "…" not in printed[width]
        rows = [line for line in printed[width].splitlines() if NUMBER.search(line) and "|" not in line]
        assert sum(len(line) <= width for line in rows) > 0
