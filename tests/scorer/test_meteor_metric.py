"""METEOR as a metric: what users see of it."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import LimitError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.meteor import (
    Meteor,
    MeteorData,
    MeteorStatistic,
    Module,
    WordMatch,
    coco_texts,
    load_data,
    score_texts,
)
from spicegraph_scorer.metrics.meteor.metric import NO_ALIGNMENT, add_counts, score

if TYPE_CHECKING:
    from spicegraph_scorer.core.metric import Metric

pytestmark = pytest.mark.slow

CORPUS = Corpus(
    (
        Item(7, "A man rides a brown horse.", ("A man on a horse.", "A man rides a brown horse")),
        Item("x", "Two dogs", ("Cats sleeping", "Three people")),
        Item(3, "", ("Nothing to see",)),
    )
)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> MeteorData:
    return load_data(cache=tmp_path_factory.getbasetemp().parent / "meteor")


# METEOR 1.5


def test_meteor_is_a_metric(data: MeteorData) -> None:
    metric: Metric[MeteorStatistic] = Meteor(data)
    assert metric.name == "meteor"
    statistics = metric.collect(CORPUS)
    (result,) = metric.total(statistics)
    assert result.name == "METEOR"
    assert result.each == (1.0, 0.0, 0.0)
    assert [statistic.reference for statistic in statistics] == [1, 0, 0]
    assert result.value == score(add_counts(statistic.counts for statistic in statistics))


def test_no_items_have_no_score(data: MeteorData) -> None:
    assert Meteor(data).total([])[0].value is None


def test_the_corpus_score_is_not_the_mean(data: MeteorData) -> None:
    (result,) = Meteor(data).total(score_texts([("a dog", ["a dog"]), ("a cat sits", ["dogs"])], data=data))
    # lengths 2.75 and 1.75, matched 1 on each side, no chunk counted: P = 1/2.75, R = 1/1.75
    assert result.value == pytest.approx(1 / (0.15 * 2.75 + 0.85 * 1.75))
    assert result.each == (1.0, 0.0)


def test_summed_columns_give_the_corpus_score(data: MeteorData) -> None:
    metric = Meteor(data)
    statistics = metric.collect(CORPUS)
    sums = metric.columns(statistics).sum(axis=0, keepdims=True)
    assert metric.from_sums(sums)["METEOR"].tolist() == [metric.total(statistics)[0].value]


def test_without_evidence_there_are_the_numbers_only(data: MeteorData) -> None:
    full, bare = (Meteor(data, evidence=evidence).collect(CORPUS) for evidence in (True, False))
    assert [(one.counts, one.score, one.reference) for one in bare] == [(o.counts, o.score, o.reference) for o in full]
    assert any(one.alignment.matches for one in full)
    assert bare == list(map(Meteor().compact, full))
    assert all(one.alignment is NO_ALIGNMENT for one in bare)


def test_an_item_that_would_take_minutes_is_refused_by_its_id(data: MeteorData) -> None:
    sound = Item("sound", "a dog", ("a dog",))
    endless = Item("endless", "(" * 1990, ("(" * 1990 + " x",))
    with pytest.raises(LimitError, match=r"^item 'endless': METEOR finds 3,960,100 matches .* limit is 60,000$"):
        Meteor(data).collect(Corpus((sound, endless)))
    with pytest.raises(LimitError, match="1,600,000 matches or more"):  # all references of an item count
        Meteor(data).collect(Corpus((Item("many", "a " * 400, ("a " * 400 + "x",) * 10),)))


def test_matches_of_phrases_count_too(data: MeteorData) -> None:
    text = "a group of " * 140  # fewer matches of words than the limit
    with pytest.raises(LimitError, match=r"^item 'phrases': METEOR finds"):
        Meteor(data).collect(Corpus((Item("phrases", text, (f"{text} x",)),)))


def test_long_texts_of_ordinary_words_are_not_refused(data: MeteorData) -> None:
    text = " ".join(f"word{n} the of" for n in range(160))
    (statistic,) = Meteor(data).collect(Corpus((Item("long", text, (f"{text} end",)),)))
    assert 0.5 < statistic.score < 1


def test_the_signature_names_the_data(data: MeteorData) -> None:
    signature = Meteor(data).signature()
    assert signature["variant"] == "1.5"
    assert signature["data"] == data.sources.fingerprint
    assert signature["lexicon"].startswith("wordnet3.0-")


def test_an_alignment_says_what_matched_and_why(data: MeteorData) -> None:
    candidate = "two giraffe standing next to each other on a grassy field"
    reference = "two giraffes standing near trees in a grassy area"
    alignment = score_texts([(candidate, [reference])], data=data)[0].alignment
    found = [
        (module, alignment.candidate[other : other + other_length], alignment.reference[start : start + length])
        for start, length, other, other_length, module in alignment.matches
    ]
    assert found == [
        (Module.EXACT, ("two",), ("two",)),
        (Module.STEM, ("giraffe",), ("giraffes",)),
        (Module.EXACT, ("standing",), ("standing",)),
        (Module.PARAPHRASE, ("next", "to"), ("near",)),
        (Module.EXACT, ("a",), ("a",)),
        (Module.EXACT, ("grassy",), ("grassy",)),
        (Module.SYNONYM, ("field",), ("area",)),
    ]


def test_the_first_of_equal_references_is_kept(data: MeteorData) -> None:
    (statistic,) = score_texts([("a dog", ["two cats", "the dog", "one dog"])], data=data)
    assert statistic.reference == 1


def test_the_candidate_alone_is_edited_as_the_coco_evaluation_does() -> None:
    assert coco_texts(["a", "|||", "b"], [["c"]]) == ("a b", ["c"])
    assert coco_texts(["a"], [["b", "|||", "c"], ["d"]]) == ("a", ["b", "c", "d"])
    assert coco_texts([], [[]]) == ("", [""])


def test_items_score_the_same_alone_and_together(data: MeteorData) -> None:
    items = [("a man with a dog", ["a man and his dogs", "the puppy"])] * 3 + [("two cats", ["kitty"])] * 1200
    together = score_texts(items, data=data)
    assert together[0] == score_texts(items[:1], data=data)[0]
    assert together[-1] == score_texts(items[-1:], data=data)[0]


SMALL = "a the one man men person dog dogs puppy is next to beside of"
WORDS = st.lists(st.sampled_from(SMALL.split()), max_size=9)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_scores_lie_between_0_and_1(data: MeteorData, candidate: list[str], references: list[list[str]]) -> None:
    (statistic,) = score_texts([(" ".join(candidate), list(map(" ".join, references)))], data=data)
    assert 0 <= statistic.score <= 1
    covered = [place for match in statistic.alignment.matches for place in range(match[2], match[2] + match[3])]
    assert len(covered) == len(set(covered)) == statistic.counts[21]
    assert all(isinstance(match, WordMatch) for match in statistic.alignment.matches)


@given(st.lists(st.sampled_from(SMALL.split()), min_size=1, unique=True))
def test_a_text_of_different_words_equals_itself(data: MeteorData, words: list[str]) -> None:
    (statistic,) = score_texts([(" ".join(words), [" ".join(words)])], data=data)
    assert statistic.score == 1.0


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_makes_the_scorer_stumble(data: MeteorData, candidate: str, reference: str) -> None:
    (statistic,) = score_texts([(candidate, [reference])], data=data)
    assert 0 <= statistic.score <= 1


def test_half_a_surrogate_pair_is_a_character_like_others(data: MeteorData) -> None:
    (statistic,) = score_texts([("a \ud83d dog", ["a \ud83d dog"])], data=data)
    assert statistic.score == 1.0
