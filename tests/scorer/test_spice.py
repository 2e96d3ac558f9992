"""SPICE as a metric: matching, counting, means, and what is undefined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.spice.graph import SceneTuple, merge, merge_concepts
from spicegraph_parser.spice.index import Concept
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.categories import ALL, Category, Counts, category_means
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, CategoryDefinition, make_categories
from spicegraph_scorer.metrics.spice.match import count_concepts, count_match, match_tuples
from spicegraph_scorer.metrics.spice.metric import Spice, score_graphs, score_tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_WORDS = st.sampled_from(
    [
        "man",
        "person",
        "sofa",
        "couch",
        "dog",
        "street",
        "road",
        "ride",
        "sit",
        "grey",
        "gray",
        "red",
        "two",
        "large",
        "on",
        "zzz",
    ]
)
_TUPLES = st.lists(st.lists(_WORDS, min_size=1, max_size=3), max_size=8)
_REFERENCES = st.lists(_TUPLES, min_size=1, max_size=3)

_Tuples = list[list[str]]


def _shares(one: Concept, other: Concept) -> bool:
    return bool(set(one.strings) & set(other.strings) or one.synsets & other.synsets)


def _naive(mine: SceneTuple, theirs: SceneTuple) -> bool:
    """Say whether two tuples match, word for word from the definition."""
    return len(mine.concepts) == len(theirs.concepts) and all(
        _shares(one, other) for one, other in zip(mine.concepts, theirs.concepts, strict=True)
    )


@given(_TUPLES, _REFERENCES, st.booleans())
def test_the_matcher_is_the_naive_one(candidate: _Tuples, references: list[_Tuples], exact: bool) -> None:
    """Every pair that the definition matches is found, and no other; both sides tell the same."""
    match = score_tuples(candidate, references, exact=exact).statistic.match
    pairs = {
        (i, j)
        for i, mine in enumerate(match.candidate)
        for j, theirs in enumerate(match.reference)
        if _naive(mine, theirs)
    }
    assert {(i, j) for i, partners in enumerate(match.candidate_partners) for j in partners} == pairs
    assert {(i, j) for j, partners in enumerate(match.reference_partners) for i in partners} == pairs
    assert all(list(partners) == sorted(partners) for partners in match.candidate_partners)
    assert len(match.pairs) + len(match.invented) == len(match.candidate)
    assert all(not any(_naive(mine, theirs) for mine in match.candidate) for theirs in match.missed)


@given(_TUPLES, _REFERENCES, st.booleans())
def test_counts_add_up(candidate: _Tuples, references: list[_Tuples], exact: bool) -> None:
    """Objects, attributes and relations are the total; a category is a part of the attributes."""
    result = score_tuples(candidate, references, exact=exact)
    counts = result.statistic.counts
    assert counts["Object"] + counts["Attribute"] + counts["Relation"] == counts[ALL]
    for name in ("Cardinality", "Color", "Size"):
        assert counts[name].candidate <= counts["Attribute"].candidate
        assert counts[name].reference <= counts["Attribute"].reference
    for name, scores in result.scores.items():
        assert 0 <= counts[name].matched <= counts[name].candidate
        assert 0 <= counts[name].precision <= 1
        assert (scores["f"] is None) == (name != ALL and not counts[name].reference)


_OWN_CATEGORIES = make_categories(
    [
        CategoryDefinition("Animal", subtree=("animal",)),
        CategoryDefinition("Way", words=("street",), synonyms=True),
        CategoryDefinition("Grey", kind="attribute", words=("grey", "red")),
        CategoryDefinition("Doing", kind="relation", words=("ride", "sit")),
    ]
)


@given(_TUPLES, _REFERENCES, st.booleans())
def test_counts_without_evidence_are_the_same(candidate: _Tuples, references: list[_Tuples], exact: bool) -> None:
    """Counting merged concepts gives what listing every match gives, in every category."""
    expected = score_tuples(candidate, references, exact, categories=_OWN_CATEGORIES).statistic.counts
    captions = [[Fact(tuple(words), "test", ()) for words in tuples] for tuples in (candidate, *references)]
    mine, theirs = (merge_concepts(some, load_lexicon(), exact=exact) for some in (captions[:1], captions[1:]))
    assert count_concepts(mine, theirs, categories=_OWN_CATEGORIES) == expected


@given(_TUPLES.filter(bool), st.booleans())
def test_a_caption_against_itself_is_perfect(tuples: _Tuples, exact: bool) -> None:
    """Every defined score of a candidate that is its own reference is 1."""
    scores = score_tuples(tuples, [tuples], exact=exact).scores
    assert all(score["f"] in (None, 1.0) for score in scores.values())
    assert scores[ALL]["f"] == 1.0


@given(_TUPLES, _REFERENCES)
def test_exact_scores_are_set_overlap(candidate: _Tuples, references: list[_Tuples]) -> None:
    """Without synonyms the total counts the common tuples of two sets, so that F1 is within [0, 1]."""
    result = score_tuples(candidate, references, exact=True)
    mine = {t.strings for t in result.statistic.match.candidate}
    theirs = {t.strings for t in result.statistic.match.reference}
    assert result.statistic.counts[ALL] == Counts(len(mine & theirs), len(mine), len(theirs))
    assert 0 <= result.statistic.counts[ALL].f1 <= 1


def test_many_to_one_matches_lift_recall_over_one() -> None:
    """A known fault of SPICE 1.0 that is kept: two candidate tuples may share one reference tuple.

    "a" and "c" have nothing in common, but the reference's "b" has something of both.
    """
    concepts = [Concept.of((w,), frozenset(s)) for w, s in (("a", {1}), ("c", {2}), ("b", {1, 2}))]
    a, c, b = (SceneTuple((concept,), ()) for concept in concepts)
    counts = count_match(match_tuples([a, c], [b]))[ALL]
    assert (counts.precision, counts.recall) == (1.0, 2.0)
    assert counts.f1 == pytest.approx(4 / 3)


def test_merged_colours_leave_their_category() -> None:
    """A known fault of SPICE 1.0 that is kept: "gray/grey" is in no word list."""
    reference = [["cat", "gray"], ["cat", "grey"]]
    scores = score_tuples([["cat", "grey"]], [reference]).scores
    assert scores["Attribute"]["f"] == 1.0
    assert scores["Color"] == {"f": None, "pr": None, "re": None, "tp": 0, "fp": 1, "fn": 0}


def test_no_tuples() -> None:
    """The total of nothing is 0; categories are undefined."""
    scores = score_tuples([], [[]]).scores
    assert scores[ALL] == {"f": 0.0, "pr": 0.0, "re": 0.0, "tp": 0, "fp": 0, "fn": 0}
    assert all(scores[name]["f"] is None for name in CATEGORIES)


@dataclass(frozen=True)
class _Table:
    """Ready facts for known captions; it counts nothing and knows no other caption."""

    tuples: dict[str, _Tuples]
    signature: str = "table"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        asked = list(texts)
        assert len(asked) == len(set(asked)), "a caption is parsed twice"
        return (tuple(Fact(tuple(words), "test", ()) for words in self.tuples[text]) for text in asked)


_SOURCE = _Table(
    {
        "a red dog": [["dog", "red"]],
        "two dogs": [["dog", "two"]],
        "a dog": [["dog"]],
        "a couch": [["couch"]],
        "a sofa": [["sofa"]],
        "": [],
    }
)


def _corpus(*items: tuple[str, Sequence[str]]) -> Corpus:
    return Corpus(tuple(Item(i, candidate, tuple(references)) for i, (candidate, references) in enumerate(items)))


def test_scores_are_means_over_the_items_that_have_the_category() -> None:
    """SPICE's means: an item whose references have no colour is left out of the colour score."""
    metric = Spice(_SOURCE)
    corpus = _corpus(("a red dog", ["a red dog"]), ("a red dog", ["a dog", "two dogs"]), ("a couch", ["a sofa"]))
    scores = {score.name: score for score in metric.total(metric.collect(corpus))}
    assert list(scores) == ["SPICE", *(f"SPICE_{name}" for name in CATEGORIES)]
    assert scores["SPICE"].each == (1.0, 0.5, 1.0)
    assert scores["SPICE"].value == pytest.approx(2.5 / 3)
    assert (scores["SPICE_Color"].value, scores["SPICE_Color"].each) == (1.0, (1.0, None, None))
    assert (scores["SPICE_Cardinality"].value, scores["SPICE_Cardinality"].each) == (0.0, (None, 0.0, None))
    assert (scores["SPICE_Size"].value, scores["SPICE_Size"].each) == (None, (None, None, None))


def test_exact_mode_knows_no_synonyms() -> None:
    """SPICE-exact has its own names, and no lexicon in its signature."""
    metric = Spice(_SOURCE, exact=True)
    (score, *_) = metric.total(metric.collect(_corpus(("a couch", ["a sofa"]))))
    assert (metric.name, score.name, score.value) == ("spice-exact", "SPICE-exact", 0.0)
    assert metric.signature() == {"metric": "spice-exact", "pipeline": "table", "text": "as written", "lexicon": "none"}
    assert Spice(_SOURCE).signature()["lexicon"] == load_lexicon().signature


def test_micro_counts_see_invented_colours() -> None:
    """The reference's mean hides a colour that no reference has; the summed counts don't."""
    metric = Spice(_SOURCE)
    statistics = metric.collect(_corpus(("a red dog", ["a red dog"]), ("a red dog", ["a dog"])))
    colour = category_means(map(Spice.by_category, statistics))["Color"]
    assert (colour.f, colour.pr, colour.re, colour.items) == (1.0, 1.0, 1.0, 1)
    assert colour.micro == Counts(1, 2, 1)
    assert category_means([]) == {}


def test_empty_candidate_scores_zero() -> None:
    """A candidate without tuples is wrong, not undefined; a corpus without items has no value."""
    metric = Spice(_SOURCE)
    assert metric.total(metric.collect(_corpus(("", ["a dog"]))))[0].each == (0.0,)
    assert metric.total([])[0].value is None


def test_a_category_is_a_line_in_a_table() -> None:
    """A category of relations by their label needs no other change."""
    categories = {"Spatial": Category(3, frozenset({"on", "under"}))}
    facts = [[Fact(("cat", "mat", "on"), "test", ()), Fact(("cat", "mouse", "eat"), "test", ())]]
    graph = merge(facts, load_lexicon())
    counts = score_graphs(graph, graph, categories=categories).counts
    assert counts == {ALL: Counts(5, 5, 5), "Spatial": Counts(1, 1, 1)}
