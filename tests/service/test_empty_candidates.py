"""``--empty``: an empty candidate is refused, or scored as the original programs score it, by every command."""

from __future__ import annotations

import json

import pytest

from empty_candidates import ITEMS, check_empty_candidates, files
from spicegraph_scorer import Item, score
from spicegraph_service.cli import main
from spicegraph_service.engines import Task
from spicegraph_service.engines.table import score_here

__all__ = ["files"]

pytestmark = pytest.mark.model

METRICS = "spice,bleu,rouge,cider"


COMMANDS = {
    "score": ("score", "a.jsonl", "--metrics", METRICS, "-o", "out.json"),
    "compare": ("compare", "a.jsonl", "b.jsonl", "--metrics", METRICS, "--draws", "10", "-o", "out.json"),
    "report": ("report", "a.jsonl", "b.jsonl", "--draws", "10", "--format", "json", "-o", "out.json"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_or_scores_empty_candidates(command, files, capsys):
    check_empty_candidates(COMMANDS[command], files, capsys)


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
@pytest.mark.full("ray")
def test_ray_scores_them_too(files, capsys):
    pytest.importorskip("spicegraph_scale")
    arguments = ("score", "a.jsonl", "--metrics", "bleu,spice", "--engine", "ray", "-o")
    assert main([*arguments, "out.json"]) == 2
    assert "is empty" in capsys.readouterr().err
    assert main([*arguments, "out.json", "--empty", "zero"]) == 0
    assert "1 empty candidate scored as zero" in capsys.readouterr().err
    assert main(["score", "a.jsonl", "--metrics", "bleu,spice", "-o", "local.json", "--empty", "zero"]) == 0
    assert json.loads((files / "out.json").read_text()) == json.loads((files / "local.json").read_text())
