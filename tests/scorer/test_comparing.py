"""Two systems on the same items, end to end on ready facts."""

from __future__ import annotations

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.scoring import compare_systems, score


class Words:
    """Facts without a parser: every word is an object."""

    signature = "words-1"

    def facts(self, texts):
        return (tuple(Fact((word,), "objects", ((0,),)) for word in text.split()) for text in texts)


REFERENCES = ("dog grass", "dog ball")
GOOD = [Item(number, "dog grass", REFERENCES) for number in range(30)]
BAD = [Item(number, "cat grass" if number % 3 else "cat", REFERENCES) for number in range(30)]


def test_the_scores_are_those_of_score_and_a_clear_difference_is_significant():
    found = compare_systems(BAD, GOOD[::-1], ("spice", "bleu"), pipeline=Words(), resampling=Resampling(draws=200))
    first, second = (score(items, ("spice", "bleu"), pipeline=Words()).corpus for items in (BAD, GOOD))
    scores = found.to_dict()["scores"]
    assert scores["SPICE"]["first"] == pytest.approx(first["SPICE"], abs=1e-12)
    assert scores["SPICE"]["second"] == pytest.approx(second["SPICE"], abs=1e-12)
    assert scores["Bleu_1"]["second"] == pytest.approx(second["Bleu_1"], abs=1e-12)
    assert scores["SPICE"]["p_bootstrap"] == scores["SPICE"]["p_randomization"] == 1 / 201
    assert scores["SPICE_Color"]["difference"] is None
    assert found.signature["resampling"] == {"draws": 200, "seed": 12345, "interval": 0.95, "correction": "holm"}
    assert set(found.signature["metrics"]) == {"spice", "bleu"}


def test_intervals_of_score_hold_the_score_and_stand_in_its_json():
    result = score(BAD, ("spice", "bleu"), pipeline=Words(), confidence=Resampling(draws=100)).to_dict()
    interval = result["confidence"]["SPICE"]
    assert interval["low"] < result["corpus"]["SPICE"] < interval["high"]
    assert result["confidence"]["SPICE_Color"] == {"low": None, "high": None}
    assert result["signature"]["confidence"]["draws"] == 100
    assert "confidence" not in score(BAD, pipeline=Words()).to_dict()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (GOOD[:-1], "item 29 is only in the first"),
        ([*GOOD, Item("x", "dog", REFERENCES)], "item 'x' is only in the second"),
        ([Item(item.id, item.candidate, ("a cow",)) for item in GOOD], "item 0 has other references.*25 more"),
    ],
)
def test_systems_that_can_t_be_compared_are_refused_with_the_items(second, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        compare_systems(GOOD, second, pipeline=Words())
