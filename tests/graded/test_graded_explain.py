"""Explanations of SPICE-G: best partners, slot by slot, and what would raise the score."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_graded.spice_g.explain import facts_of
from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_graded.spice_g.explain import GradedExplanation

_WORDS = st.sampled_from(
    ["man", "person", "sofa", "couch", "dog", "ride", "sit", "gray", "red", "blue", "two", "three", "on", "zzz"]
)
_CAPTIONS = st.lists(st.lists(_WORDS, min_size=1, max_size=3).map(" ".join), max_size=6).map(";".join)


@dataclass(frozen=True)
class Written:
    """A source of facts: captions such as ``dog; dog red; dog cat chase`` (subject, object, relation)."""

    signature: str = "written"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            yield tuple(Fact(tuple(part.split()), "", ()) for part in text.split(";") if part.strip())


METRIC = SpiceG(Written(), texts=False)  # lists of words are not captions


def explained(candidate: str, *references: str, changes: int = 20) -> tuple[float, GradedExplanation]:
    statistic = METRIC.collect(Corpus((Item(1, candidate, references),)))[0]
    return statistic.weights[ALL].f1, METRIC.explain(statistic, changes=changes)


def test_every_tuple_names_its_partner_and_the_likeness_of_each_slot() -> None:
    _, found = explained("dog; dog cat chase", "puppy; puppy cat chase; tree")
    chase = found.candidate[2]
    partner = chase.partner
    assert chase.words == ("dog", "chase", "cat")
    assert partner is not None
    assert found.reference[partner].words == ("puppy", "chase", "cat")
    subject, relation, target = chase.slots
    assert subject is not None
    assert 0.2 < subject < 1
    assert (relation, target) == (1, 1)
    assert sum(one.share for one in found.candidate) == pytest.approx(1)
    assert sum(one.share for one in found.reference) == pytest.approx(1)


def test_what_nothing_supports_has_no_partner() -> None:
    _, found = explained("blorf; dog", "dog")
    assert [(one.words, one.partner, one.support) for one in found.candidate] == [
        (("blorf",), None, 0.0),
        (("dog",), 0, 1.0),
    ]


def test_a_denied_attribute_points_at_what_denies_it() -> None:
    _, found = explained("dog two; cat three", "cat two; dog three")
    for one in found.candidate:
        if len(one.words) == 2:
            assert one.denied_by is not None
            owner, value = found.reference[one.denied_by].words
            assert owner == one.words[0]
            assert value != one.words[1]


def test_the_best_change_of_a_wrong_colour_is_the_right_one() -> None:
    _, found = explained("dog red; dog cat chase", "dog blue; dog cat chase")
    best = found.changes[0]
    assert (best.action, best.words, best.by) == ("replace", ("dog", "red"), ("dog", "blue"))
    assert best.score == pytest.approx(1)


def test_what_is_missed_is_to_be_added_and_what_is_invented_dropped() -> None:
    _, missed = explained("dog", "dog; frisbee")
    assert [(c.action, c.words) for c in missed.changes] == [("add", ("frisbee",))]
    _, invented = explained("dog; oven; oven black", "dog")
    best = invented.changes[0]
    assert (best.action, best.words) == ("drop", ("oven",))
    assert best.score == pytest.approx(1)


def test_added_tuples_speak_of_objects_as_the_candidate_does() -> None:
    _, found = explained("couch", "sofa; sofa red")
    assert ("add", ("couch", "red")) in [(c.action, c.words) for c in found.changes]


def test_a_perfect_caption_has_nothing_to_change() -> None:
    now, found = explained("dog; dog red", "dog; dog red")
    assert now == pytest.approx(1)
    assert found.changes == ()


@given(_CAPTIONS, st.lists(_CAPTIONS, min_size=1, max_size=3))
def test_changes_gain_what_they_say_best_first(candidate: str, references: list[str]) -> None:
    now, found = explained(candidate, *references)
    gains = [change.gain for change in found.changes]
    assert gains == sorted(gains, reverse=True)
    for change in found.changes:
        assert change.gain > 0
        assert 0 <= change.score <= 1 + 1e-6
        assert change.score - change.gain == pytest.approx(now, abs=0.25)  # merging may depend on the order of facts


@given(_CAPTIONS, st.lists(_CAPTIONS, min_size=1, max_size=3))
def test_support_is_no_more_than_the_word_and_partners_are_on_the_other_side(
    candidate: str, references: list[str]
) -> None:
    _, found = explained(candidate, *references)
    for side, other in ((found.candidate, found.reference), (found.reference, found.candidate)):
        for one in side:
            assert 0 <= one.support <= 1 + 1e-6
            assert (one.partner is None) == (one.support == 0)
            assert one.partner is None or one.partner < len(other)
            assert len(one.slots) == len(one.words)


def test_an_explanation_is_json_beside_the_scores_of_its_item() -> None:
    items = [Item(1, "dog red", ("dog blue",)), Item(2, "dog", ("dog",))]
    result = score(items, ("spice-g", "spice"), pipeline=Written(), explain=True)
    rows = json.loads(json.dumps(result.to_dict()))["items"]
    assert list(rows[0]["explanation"]) == ["SPICE-G"]
    assert set(rows[0]["explanation"]["SPICE-G"]) == {
        "candidate",
        "reference",
        "changes",
        "verdicts",
        "order",
        "meaning",
    }
    assert rows[0]["explanation"]["SPICE-G"]["changes"][0]["by"] == ["dog", "blue"]
    assert "explanation" not in score(items, ("spice-g",), pipeline=Written()).item_rows()[0]


def test_a_statistic_that_was_sent_off_cannot_be_explained() -> None:
    statistic = METRIC.collect(Corpus((Item(1, "dog", ("dog",)),)))[0]
    with pytest.raises(ValueError, match="no match"):
        METRIC.explain(replace(statistic, match=None))


def test_facts_of_a_graph_give_the_graph_again() -> None:
    graph = METRIC.graph(Written().facts(["dog; dog red; dog cat chase; cat couch on"]))
    again = METRIC.graph([facts_of(graph.tuples())])
    assert [t.strings for t in again.tuples()] == [t.strings for t in graph.tuples()]


def test_very_long_texts_have_fewer_changes_tried() -> None:
    """Each costs as much as a score: with hundreds of tuples on each side a worker would be held for long."""

    def text(count: int, kind: str) -> str:
        return "; ".join(["dog", *(f"{kind}{number}" for number in range(count))])

    short, long = (explained(text(count, "x"), text(count, "z"))[1] for count in (10, 400))
    assert [len([one for one in short.changes if one.action == action]) for action in ("add", "drop")] == [6, 6]
    assert [len([one for one in long.changes if one.action == action]) for action in ("add", "drop")] == [1, 1]
