"""``spicegraph reward``: a mixture beside the metrics, in the formats of ``score``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spicegraph_service.cli import main

pytestmark = pytest.mark.model

COCO = Path(__file__).parents[2] / "examples" / "coco"
INPUT = (str(COCO / "retrieval.json"), "--references", str(COCO / "captions.json"))
TERMS = "spice-g=1,cider=.1,length=-.01"


def test_a_reward_is_scored_beside_the_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reward", *INPUT, "--terms", TERMS, "--format", "jsonl", "--metrics", "spice-g,cider", "--credit"]
    assert main(command) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 200
    for row in rows:
        scores = row["scores"]
        expected = scores["SPICE-G"] + 0.1 * scores["CIDEr"] - 0.01 * scores["Reward_length"]
        assert scores["Reward"] == pytest.approx(expected)
    assert main(["reward", *INPUT, "--terms", "spice-g"]) == 2
    assert "reward: term 1: spice-g has no weight" in capsys.readouterr().err
