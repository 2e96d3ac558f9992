"""``--empty``: an empty candidate is refused, or scored as the original programs score it, by every command."""

from __future__ import annotations

import json

import pytest

from spicegraph_scorer import Item, score
from spicegraph_service.cli import main
from spicegraph_service.engines import Task
from spicegraph_service.engines.table import score_here

pytestmark = pytest.mark.model

ITEMS = [("a brown dog runs", ["A brown dog runs.", "The dog is brown."]), ("", ["A cat.", "A grey cat sits."])]
METRICS = "spice,bleu,rouge,cider,spice-g"


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


COMMANDS = {
    "score": ("score", "a.jsonl", "--metrics", METRICS, "-o", "out.json"),
    "compare": ("compare", "a.jsonl", "b.jsonl", "--metrics", METRICS, "--draws", "10", "-o", "out.json"),
    "report": ("report", "a.jsonl", "b.jsonl", "--draws", "10", "--format", "json", "-o", "out.json"),
    "bounds": ("bounds", "results.json", "--references", "annotations.json", "--draws", "10", "-o", "out.json"),
    "codabench": ("platform", "codabench", ".", "out"),
    "capevalkit": (
        *("platform", "capevalkit", "--predictions", "results.json", "--references", "annotations.json"),
        *("-o", "out.json"),
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_or_scores_empty_candidates(command, files, capsys):
    assert main(COMMANDS[command]) == 2
    assert "is empty" in capsys.readouterr().err
    assert not (files / "out.json").exists()
    assert main([*COMMANDS[command], "--empty", "zero"]) == 0
    assert "1 empty candidate scored as zero" in capsys.readouterr().err
    assert (files / "out.json").exists() or (files / "out" / "scores.json").exists()


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


def test_the_scores_are_those_of_the_library(files):
    names = tuple(METRICS.split(","))
    items = [Item(i, text, tuple(refs)) for i, (text, refs) in enumerate(ITEMS)]
    expected = score(items, names, empty="zero")
    with pytest.warns(UserWarning, match=r"a\.jsonl: 1 empty candidate scored as zero"):
        result = score_here(Task("a.jsonl", names, empty="zero"))
    assert result.signature["empty"] == {"candidates": 1, "scored": "zero"}
    assert result.corpus == expected.corpus
    assert result.item_scores()[1]["SPICE"] == 0.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")
def test_ray_scores_them_too(files, capsys):
    arguments = ("score", "a.jsonl", "--metrics", "bleu,spice", "--engine", "ray", "-o")
    assert main([*arguments, "out.json"]) == 2
    assert "is empty" in capsys.readouterr().err
    assert main([*arguments, "out.json", "--empty", "zero"]) == 0
    assert "1 empty candidate scored as zero" in capsys.readouterr().err
    assert main(["score", "a.jsonl", "--metrics", "bleu,spice", "-o", "local.json", "--empty", "zero"]) == 0
    assert json.loads((files / "out.json").read_text()) == json.loads((files / "local.json").read_text())
