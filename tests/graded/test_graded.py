"""SPICE-G: what makes tuples alike, what they weigh, and what is undefined."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spicegraph_graded.spice_g.facts import FAMILIES, deny, values_of
from spicegraph_graded.spice_g.metric import SpiceG
from spicegraph_graded.spice_g.texts import load_meaning
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.categories import ALL, category_means
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_graded.spice_g.metric import GradedStatistic

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
        "blue",
        "two",
        "three",
        "large",
        "on",
        "zzz",
        "qqq",
    ]
)
_NUMBERS = {"two", "three"}  # not objects
_TUPLES = st.lists(
    st.lists(_WORDS, min_size=1, max_size=3).filter(
        lambda words: _NUMBERS.isdisjoint({words[0], words[len(words) // 2]})
    ),
    max_size=8,
)
_REFERENCES = st.lists(_TUPLES, min_size=1, max_size=3)


@dataclass(frozen=True)
class Written:
    """A source of facts: captions such as ``dog; dog red; dog cat chase`` (subject, object, relation)."""

    signature: str = "written"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            yield facts([part.split() for part in text.split(";") if part.strip()])


METRIC = SpiceG(Written(), texts=False)  # lists of words are not captions
METRIC.vectors.rows([("zzz",)])  # WordNet is read here, not in the first example of a test


def facts(tuples: Iterable[Sequence[str]]) -> tuple[Fact, ...]:
    return tuple(Fact(tuple(words), "written", ()) for words in tuples)


def compared(candidate: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> GradedStatistic:
    return METRIC.compare(METRIC.graph([facts(candidate)]), METRIC.graph(map(facts, references)))


def f1(candidate: str, *references: str) -> float:
    statistic = METRIC.collect(Corpus((Item(1, candidate, references),)))[0]
    return statistic.weights[ALL].f1


@given(_TUPLES.filter(bool))
def test_a_graph_is_wholly_supported_by_itself(tuples: list[list[str]]) -> None:
    assert compared(tuples, [tuples]).weights[ALL].f1 == pytest.approx(1, abs=1e-6)


@given(_TUPLES, _REFERENCES)
def test_scores_lie_between_nothing_and_all(candidate: list[list[str]], references: list[list[list[str]]]) -> None:
    statistic = compared(candidate, references)
    for weighed in statistic.weights.values():
        assert 0 <= weighed.supported <= weighed.candidate + 1e-6
        assert 0 <= weighed.found <= weighed.reference + 1e-6
        assert 0 <= weighed.f1 <= 1 + 1e-6


@given(_TUPLES, _REFERENCES, st.integers(2, 4))
def test_saying_the_same_again_changes_nothing(
    candidate: list[list[str]], references: list[list[list[str]]], times: int
) -> None:
    again = compared(candidate * times, references)
    assert again.weights == compared(candidate, references).weights


@given(_TUPLES, _REFERENCES)
def test_without_evidence_weights_are_the_same(candidate: list[list[str]], references: list[list[list[str]]]) -> None:
    def said(tuples: list[list[str]]) -> str:
        return "; ".join(map(" ".join, tuples))

    corpus = Corpus((Item(1, said(candidate), tuple(map(said, references))),))
    (kept,), (bare,) = METRIC.collect(corpus), replace(METRIC, evidence=False).collect(corpus)
    assert bare.weights == kept.weights
    assert kept.match is not None
    assert bare.match is None


@given(_TUPLES, _TUPLES)
def test_the_same_reference_again_changes_no_score(candidate: list[list[str]], reference: list[list[str]]) -> None:
    once, thrice = compared(candidate, [reference]), compared(candidate, [reference] * 3)
    assert thrice.weights[ALL].f1 == pytest.approx(once.weights[ALL].f1, abs=1e-9)


@given(_TUPLES, _REFERENCES)
@example([["grey"]], [[["man"], ["red"]]])
def test_gibberish_beside_a_caption_never_raises_its_score(
    candidate: list[list[str]], references: list[list[list[str]]]
) -> None:
    """An attribute only beside others: the first makes colours deny by what has them, in place of by the words alone."""
    has_attributes = any(len(words) > 1 for words in itertools.chain(candidate, *references))
    gibberish = [["xyzzy"], ["xyzzy", "plugh"]] if has_attributes else [["xyzzy"]]
    more = compared([*candidate, *gibberish], references)
    assert more.weights[ALL].f1 <= compared(candidate, references).weights[ALL].f1 + 1e-9


@given(st.lists(st.tuples(_TUPLES, _REFERENCES), min_size=1, max_size=4))
def test_an_item_scores_the_same_alone_and_among_others(
    rows: list[tuple[list[list[str]], list[list[list[str]]]]],
) -> None:
    def text(tuples: list[list[str]]) -> str:
        return ";".join(" ".join(words) for words in tuples)

    items = [Item(n, text(mine), tuple(map(text, theirs))) for n, (mine, theirs) in enumerate(rows)]
    together = METRIC.collect(Corpus(tuple(items)))
    alone = [METRIC.collect(Corpus((item,)))[0] for item in items]
    assert [s.weights for s in together] == [s.weights for s in alone]


@pytest.mark.parametrize(
    ("nearer", "further", "reference"),
    [
        pytest.param("couch", "dog", "sofa", id="words for the same things are alike"),
        pytest.param("dog red", "dog blue", "dog red", id="another colour is not"),
        pytest.param("dog", "dog three", "dog two", id="a wrong count is worse than none"),
        pytest.param("dog", "dog blue", "dog red", id="a wrong colour is worse than none"),
        pytest.param("dog couple", "dog three", "dog two", id="a couple are two"),
        pytest.param("dog man chase", "man dog chase", "dog man chase", id="who does it to whom matters"),
        pytest.param(
            "shirt red; hat blue", "shirt blue; hat red", "shirt red; hat blue", id="whose colour it is matters"
        ),
        pytest.param("dog cat chase", "dog ball chase", "dog cat chase", id="what is done to matters"),
        pytest.param("giraffe", "man", "giraffe; man", id="rare words weigh more"),
        pytest.param("dog; frisbee", "dog; frisbee; umbrella", "dog; frisbee", id="what is invented costs"),
        pytest.param("dog; frisbee", "dog", "dog; frisbee", id="what is missed costs"),
    ],
)
def test_one_candidate_is_better_than_another(nearer: str, further: str, reference: str) -> None:
    assert f1(nearer, reference) > f1(further, reference) + 0.01


def test_what_more_references_say_weighs_more() -> None:
    references = ("dog; frisbee", "dog; frisbee", "dog; tree")
    assert f1("dog; frisbee", *references) > f1("dog; tree", *references) + 0.05


def test_an_attribute_that_says_nothing_is_no_tuple() -> None:
    assert f1("dog; dog a", "dog") == 1


def test_an_unknown_word_is_like_itself_alone() -> None:
    assert f1("blorf", "blorf") == 1
    assert f1("blorf", "snark") == 0


def test_merged_words_exclude_only_what_neither_is() -> None:
    assert not deny(values_of(("gray", "grey")), values_of(("grey",)))
    assert deny(values_of(("gray", "grey")), values_of(("green",)))
    assert not deny(values_of(("red",)), values_of(("two",)))
    assert not deny(values_of(("wooden",)), values_of(("red",)))


@pytest.mark.parametrize(("family", "words"), FAMILIES.items())
def test_every_word_of_a_family_has_one_value(family: str, words: str) -> None:
    groups = [group.split("/") for group in words.split()]
    for one, other in itertools.combinations(range(len(groups)), 2):
        assert deny(values_of(groups[one]), values_of(groups[other]))
    assert all([name for name, _ in values_of((word,))] == [family] for group in groups for word in group)


def test_a_category_without_reference_tuples_is_undefined() -> None:
    items = (Item(1, "dog red", ("dog",)), Item(2, "dog red", ("dog red",)))
    statistics = METRIC.collect(Corpus(items))
    scores = {found.name: found for found in METRIC.total(statistics)}
    assert scores["SPICE-G_Color"].each == (None, 1.0)
    assert scores["SPICE-G_Color"].value == 1
    assert scores["SPICE-G_Relation"].value is None
    means = category_means(map(SpiceG.by_category, statistics))
    assert means["Color"].items == 1
    assert means["Color"].micro is None
    assert means["Relation"].f is None


def test_a_candidate_without_tuples_scores_nothing() -> None:
    assert f1("", "dog") == 0
    assert f1("dog", "") == 0
    assert f1("", "") == 0


def test_the_result_names_the_table_and_has_categories_without_counts() -> None:
    items = [Item(1, "dog red; cat", ("dog red; cat",)), Item(2, "cat", ("dog; cat",))]
    result = score(items, ("spice-g",), pipeline=Written(), confidence=Resampling(draws=50))
    metrics = result.signature["metrics"]
    assert metrics == {
        "spice-g": {
            "metric": "spice-g",
            "formula": "5",
            "meaning": load_meaning().signature,
            "meaning share": "0.4",
            "pipeline": "written",
            "lexicon": METRIC.lexicon.signature,
            "vectors": "coco-train2014-0f67e52e",
            "counts": "words and digits",
        }
    }
    assert set(result.corpus) == {"SPICE-G", "SPICE-G_categories"}
    assert set(result.corpus["SPICE-G_categories"]["All"]) == {"f", "pr", "re", "items"}  # type: ignore[arg-type, index, call-overload]
    rows = result.item_scores()
    assert rows[0]["SPICE-G_categories"]["Color"] == {"f": 1.0, "pr": 1.0, "re": 1.0}  # type: ignore[index, call-overload]
    assert rows[1]["SPICE-G_categories"]["Color"] == {"f": None, "pr": None, "re": None}  # type: ignore[index, call-overload]
    assert set(result.confidence) == {"SPICE-G", *(f"SPICE-G_{name}" for name in METRIC.categories)}


@pytest.mark.model
@pytest.mark.parametrize(
    ("candidate", "references", "expected"),
    [
        ("2 dogs on a sofa", ("two dogs", "2 dogs"), 1.0),
        ("two dogs on a sofa", ("2 dogs",), 1.0),
        ("3 dogs on a sofa", ("2 dogs",), 0.0),
        ("dogs on a sofa", ("2 dogs",), 0.0),
        ("2 dogs on a sofa", ("dogs",), None),
    ],
)
def test_counts_in_digits_are_counts(candidate: str, references: tuple[str, ...], expected: float | None) -> None:
    result = score([Item(1, candidate, references)], ["spice-g"])
    assert result["SPICE-G_Cardinality"] == expected


def test_categories_of_your_own_are_scored_and_named_in_the_signature() -> None:
    categories = make_categories((CategoryDefinition("Animal", "object", subtree=("animal.n.01",)),))
    metric = SpiceG(Written(), categories)
    statistic = metric.collect(Corpus((Item(1, "dog; car", ("puppy; bus",)),)))[0]
    weighed = statistic.weights["Animal"]
    assert 0 < weighed.f1 < 1
    assert weighed.candidate < statistic.weights[ALL].candidate
    assert metric.signature()["categories"]


def test_the_bundled_vectors_stay_one_object_in_another_process() -> None:
    assert pickle.loads(pickle.dumps(load_vectors())) is load_vectors()
