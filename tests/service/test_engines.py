"""An engine takes two files: its module, here this one, and a line in the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spicegraph_scorer import Item, score
from spicegraph_service.cli import main
from spicegraph_service.engines import Engine, Task
from spicegraph_service.engines.table import ENGINES


def score_words(task: Task):
    """Score every word of a file against itself, with the task's metrics."""
    words = Path(task.source).read_text(encoding="utf-8").split()
    return score([Item(number, word, (word,)) for number, word in enumerate(words)], task.metrics)


TOY = Engine(score=score_words, unsupported={"partial": "--partial", "candidates": "--candidates"})


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES, "toy", TOY)
    path = tmp_path / "words.txt"
    path.write_text("dog cat")
    return str(path)


def test_an_engine_of_one_s_own_scores(words, tmp_path):
    output = tmp_path / "scores.json"
    assert main(["score", words, "--engine", "toy", "--metrics", "rouge", "-o", str(output)]) == 0
    written = json.loads(output.read_text())
    assert written["corpus"] == {"ROUGE_L": 1.0}
    assert [item["image_id"] for item in written["items"]] == [0, 1]


def test_what_an_engine_does_not_support_is_refused(words, capsys):
    assert main(["score", words, "--engine", "toy", "--partial", "--candidates", "best"]) == 2
    assert "--engine toy does not support --partial, --candidates" in capsys.readouterr().err


def test_an_engine_of_one_system_refuses_two(words, capsys):
    assert main(["score", words, words, "--engine", "toy", "--metrics", "rouge"]) == 2
    assert "--engine toy scores one INPUT at a time, and 2 are given" in capsys.readouterr().err


def test_an_engine_that_holds_all_items_writes_no_folder_of_parts(words, tmp_path, capsys):
    assert main(["score", words, "--engine", "toy", "-o", f"{tmp_path}/parts/"]) == 2
    assert "name a file" in capsys.readouterr().err


def test_an_unknown_engine_is_one_clear_error(capsys):
    assert main(["score", "captions.json", "--engine", "spark"]) == 2
    assert capsys.readouterr().err.startswith("error: --engine 'spark': there is no such engine; there are local")
