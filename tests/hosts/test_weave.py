"""W&B Weave: the scorer in an evaluation, without an account or a network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import weave
from spicegraph_weave import CaptionScorer

from conftest import ROWS
from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_an_evaluation(expected: list[dict[str, float]]) -> None:
    captions = [caption for caption, _ in ROWS]
    rows = [{"image": number, "references": list(references)} for number, (_, references) in enumerate(ROWS)]

    @weave.op
    def model(image: int) -> str:
        return captions[image]

    evaluation = weave.Evaluation(dataset=rows, scorers=[CaptionScorer(metrics="spice,rouge")])
    summary = asyncio.run(evaluation.evaluate(model))["CaptionScorer"]
    for name in expected[0]:
        assert summary[name]["mean"] == pytest.approx(sum(row[name] for row in expected) / len(expected))


def test_one_row(expected: list[dict[str, float]]) -> None:
    caption, references = ROWS[0]
    assert CaptionScorer(metrics="spice,rouge").score(output=caption, references=list(references)) == expected[0]
    assert CaptionScorer(metrics="rouge").score(output="a dog", references="a dog") == {"rouge_l": 1.0}


def test_cider_needs_frequencies(frequencies: Path) -> None:
    with pytest.raises(InputError, match="document frequencies"):
        CaptionScorer(metrics="cider")
    scorer = CaptionScorer(metrics="cider", idf=str(frequencies))
    assert scorer.score(output=ROWS[0][0], references=list(ROWS[0][1]))["cider"] > 1
