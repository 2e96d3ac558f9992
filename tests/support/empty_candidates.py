"""Files with an empty candidate, and what every command does with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ITEMS = [("a brown dog runs", ["A brown dog runs.", "The dog is brown."]), ("", ["A cat.", "A grey cat sits."])]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = [{"id": i, "candidate": text, "references": refs} for i, (text, refs) in enumerate(ITEMS)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    full = [record | {"candidate": record["candidate"] or "a cat"} for record in records]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(record) + "\n" for record in full))
    results = [{"image_id": i, "caption": text} for i, (text, _) in enumerate(ITEMS)]
    (tmp_path / "results.json").write_text(json.dumps(results))
    annotations = [
        {"id": 10 * i + j, "image_id": i, "caption": text}
        for i, (_, refs) in enumerate(ITEMS)
        for j, text in enumerate(refs)
    ]
    (tmp_path / "annotations.json").write_text(
        json.dumps({"images": [{"id": 0}, {"id": 1}], "annotations": annotations})
    )
    for name in ("ref", "res"):
        (tmp_path / name).mkdir()
    (tmp_path / "ref" / "r.json").write_text((tmp_path / "annotations.json").read_text())
    (tmp_path / "res" / "r.json").write_text((tmp_path / "results.json").read_text())
    return tmp_path


def check_empty_candidates(command: Sequence[str], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command refuses an empty candidate, or scores it as zero and says how many there were."""
    assert main(list(command)) == 2
    assert "is empty" in capsys.readouterr().err
    assert not (files / "out.json").exists()
    assert main([*command, "--empty", "zero"]) == 0
    assert "1 empty candidate scored as zero" in capsys.readouterr().err
    assert (files / "out.json").exists() or (files / "out" / "scores.json").exists()
