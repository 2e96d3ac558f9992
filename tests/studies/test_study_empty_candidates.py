"""``--empty`` in studies: an empty candidate is refused, or scored as zero."""

from __future__ import annotations

import json

import pytest

from empty_candidates import ITEMS, check_empty_candidates, files
from spicegraph_service.cli import main

__all__ = ["files"]

pytestmark = pytest.mark.model

JUDGED = {
    "captions": [
        {"candidate": text, "references": refs, "ratings": [4 - 3 * i]}
        for i, (text, refs) in enumerate([*ITEMS, ITEMS[0]])
    ],
    "pairs": [
        {"captions": [text or " ", ""], "label": 0, "references": refs, "category": "HM"} for text, refs in ITEMS
    ],
}


@pytest.mark.parametrize(("command", "count"), [("captions", 1), ("pairs", 3)])
def test_agreement_refuses_or_scores_empty_captions(command, count, files, capsys):
    (files / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JUDGED[command]))
    arguments = ["agree", command, "judged.jsonl", "--metrics", "rouge,spice", "--draws", "10", "-o", "out.json"]
    assert main(arguments) == 2
    assert "is empty" in capsys.readouterr().err
    assert not (files / "out.json").exists()
    assert main([*arguments, "--empty", "zero"]) == 0
    plural = "s" if count > 1 else ""
    assert f"judged.jsonl: {count} empty candidate{plural} scored as zero" in capsys.readouterr().err
    found = json.loads((files / "out.json").read_text())
    assert found["signature"]["empty"] == {"candidates": count, "scored": "zero"}


def test_references_of_agreement_may_not_be_empty(files, capsys):
    row = {"candidate": "a dog", "references": [""], "ratings": [1]}
    (files / "judged.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["agree", "captions", "judged.jsonl", "--empty", "zero"]) == 2
    assert "references[0]: is empty" in capsys.readouterr().err


def test_bounds_refuse_or_score_empty_candidates(files, capsys):
    command = ("bounds", "results.json", "--references", "annotations.json", "--draws", "10", "-o", "out.json")
    check_empty_candidates(command, files, capsys)
