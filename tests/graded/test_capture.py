"""CAPTURE: stages and weights by hand, on ready facts; both graph styles; and what it says of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.detail.capture import EXACT, SOFT, SYNONYM, Capture, elements_of
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, Resampling, score

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = st.sampled_from(["man", "sofa", "couch", "dog", "puppy", "red", "ride", "sit on", "zzz", "image"])
_TUPLES = st.lists(st.lists(_WORDS, min_size=1, max_size=3), max_size=6)


class NoFacts:
    signature = "none"

    def facts(self, texts: Sequence[str]) -> None:
        raise AssertionError


CAPTURE = Capture(NoFacts(), load_vectors())  # type: ignore[arg-type]


def _elements(tuples):
    return elements_of([Fact(tuple(words), "ready", ()) for words in tuples])


def _compared(candidate, *references):
    return CAPTURE.compare(_elements(candidate), list(map(_elements, references)))


def test_the_weights_are_the_published_ones():
    """Objects: both, F1 1; attributes: one of one against one of two, F1 2/3; no relation: 0, as published."""
    found = _compared([["dog"], ["sofa"], ["dog", "brown"]], [["dog"], ["couch"], ["dog", "brown"], ["sofa", "brown"]])
    scores = {kind: one.f for kind, one in found.scores.items()}
    assert scores == pytest.approx({"All": (0.5 + 0.5 * 2 / 3) / 1.2, "Object": 1, "Attribute": 2 / 3, "Relation": 0})
    assert found.scores["Attribute"][:3] == pytest.approx((2 / 3, 1, 0.5))


def test_each_element_goes_through_the_stages_and_is_used_once():
    found = _compared(
        [["dogs"], ["sofa"], ["cat"], ["dog", "sofa", "sit on"]],
        [["couch"], ["dog"], ["kitten"], ["dog", "couch", "sit"]],
    )
    ((mine, theirs),) = found.evidence.references
    assert [(m.words, m.stage, m.partner) for m in mine] == [
        (("dog",), EXACT, ("dog",)),
        (("sofa",), SYNONYM, ("couch",)),
        (("cat",), SOFT, ("kitten",)),
        (("dog", "sit on", "sofa"), SYNONYM, ("dog", "sit", "couch")),
    ]
    likeness = mine[2].similarity
    assert 0.3 < likeness < 1
    assert [m.similarity for m in theirs if m.words == ("kitten",)] == [likeness]
    assert found.scores["Object"].f == pytest.approx((2 + likeness) / 3)


def test_what_has_nothing_left_to_be_like_counts_nothing():
    """The second dog of "two" finds its equal used, and nothing else to be like."""
    found = _compared([["dog"], ["cat"]], [["dog"]])
    assert found.scores["Object"][:3] == pytest.approx((2 / 3, 0.5, 1))
    assert found.evidence.references[0][0][1].stage is None


def test_attributes_are_compared_without_their_objects():
    assert _compared([["dog", "red"]], [["cat", "red"]]).scores["Attribute"].f == 1


def test_nouns_of_no_thing_are_no_objects():
    assert _elements([["image"], ["sense"], ["atmosphere"], ["dogs"]])["Object"] == [("dog",)]


def test_several_references_count_by_their_mean():
    one, other = [["dog"]], [["street"]]
    both = _compared([["dog"]], one, other)
    each = [_compared([["dog"]], reference).scores["All"].f for reference in (one, other)]
    assert both.scores["All"].f == pytest.approx(sum(each) / 2)


@given(_TUPLES, _TUPLES)
def test_scores_are_shares_and_symmetric_sides_swap(candidate, reference):
    found, back = _compared(candidate, reference), _compared(reference, candidate)
    for kind, one in found.scores.items():
        assert all(0 <= value <= 1 + 1e-12 for value in one[:3])
        if kind != "All" and not any(m.stage == SYNONYM for m in found.evidence.references[0][0]):
            assert (one.pr, one.re) == pytest.approx((back.scores[kind].re, back.scores[kind].pr))
    same = _compared(candidate, candidate).scores
    assert all(same[kind].f in {0.0, 1.0} for kind in ("Object", "Attribute", "Relation"))


ITEMS = [
    Item(
        1, "The image shows a red car and a white truck on a city road.", ("A red car drives on a busy city street.",)
    ),
    Item(2, "A dog lies on a bed. It is brown.", ("a brown dog lying on a sofa", "a cat")),
    Item(3, "", ("a dog",)),
]


@pytest.mark.model
@pytest.mark.parametrize("pipeline", ["en_caption", "scene"])
def test_it_is_a_metric_like_the_others_in_both_graph_styles(pipeline):
    result = score(ITEMS, ["capture"], pipeline=pipeline, explain=True, confidence=Resampling(draws=50), empty="zero")
    scores = {s.name: s for s in result.runs[0].scores}
    assert list(scores) == ["CAPTURE", "CAPTURE_Object", "CAPTURE_Attribute", "CAPTURE_Relation"]
    assert scores["CAPTURE"].each[2] == 0
    assert scores["CAPTURE"].value == pytest.approx(sum(scores["CAPTURE"].each) / 3)
    printed = result.to_dict()
    assert printed["confidence"]["CAPTURE"]["low"] <= printed["corpus"]["CAPTURE"]
    assert len(printed["items"][1]["explanation"]["CAPTURE"]["references"]) == 2
    assert result.runs[0].signature["pipeline"].startswith(pipeline)
    alone = score(ITEMS, ["capture"], pipeline=pipeline, evidence=False, empty="zero")
    assert alone.runs[0].scores == result.runs[0].scores
