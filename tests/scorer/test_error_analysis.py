"""Every error has one explanation, known errors come out as such, and counts add up to the scores."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_scorer import score_tuples
from spicegraph_scorer.errors import CHANCES, KINDS, ErrorSide, analyse_errors, explain, hallucinations
from spicegraph_scorer.errors.rules import Near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

Tuples = list[tuple[str, ...]]


def statistic(candidate: Sequence[Sequence[str]], *references: Sequence[Sequence[str]]) -> SpiceStatistic:
    return score_tuples(candidate, references).statistic


def kinds(candidate: Sequence[Sequence[str]], *references: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return [(f.kind, *f.words) for f in explain(statistic(candidate, *references).match)]


CASES: dict[str, tuple[Tuples, Tuples, set[tuple[str, ...]]]] = {
    "object invented": ([("zebra",)], [("sky",)], {("object_invented", "zebra"), ("object_missed", "sky")}),
    "object of the same stem": (
        [("operator",)],
        [("operation",)],
        {("object_near_miss", "operation", "operator", "same stem"), ("object_missed", "operation")},
    ),
    "broader object": (
        [("animal",)],
        [("dog",)],
        {("object_near_miss", "dog", "animal", "broader, WordNet distance 2"), ("object_missed", "dog")},
    ),
    "narrower object, the nearest of several": (
        [("puppy",)],
        [("mammal",), ("dog",)],
        {
            ("object_near_miss", "dog", "puppy", "narrower, WordNet distance 1"),
            ("object_missed", "dog"),
            ("object_missed", "mammal"),
        },
    ),
    "objects under a common one": ([("man",)], [("woman",)], {("object_invented", "man"), ("object_missed", "woman")}),
    "objects that only a rare sense connects": (
        [("dog",)],
        [("runway",)],
        {("object_invented", "dog"), ("object_missed", "runway")},
    ),
    "count in digits off by one": (
        [("dog",), ("dog", "3")],
        [("dog",), ("dog", "two")],
        {("count_off_by_one", "two", "3"), ("count_missed", "two", "dog")},
    ),
    "count in digits that no reference gives": ([("dog",), ("dog", "3")], [("dog",)], {("count_invented", "3", "dog")}),
    "attribute near": (
        [("umbrella",), ("umbrella", "color")],
        [("umbrella",), ("umbrella", "colorful")],
        {("attribute_near_miss", "colorful", "color", "same stem"), ("attribute_missed", "colorful", "umbrella")},
    ),
    "size that WordNet calls similar": (
        [("dog",), ("dog", "huge")],
        [("dog",), ("dog", "large")],
        {("attribute_near_miss", "large", "huge", "narrower, WordNet distance 1"), ("size_missed", "large", "dog")},
    ),
    "relation near": (
        [("man",), ("road",), ("man", "road", "stroll")],
        [("man",), ("road",), ("man", "road", "walk")],
        {("relation_near_miss", "walk", "stroll", "narrower, WordNet distance 1"), ("verb_missed", "walk")},
    ),
    "colour": (
        [("car",), ("car", "blue")],
        [("car",), ("car", "red")],
        {("color_confused", "red", "blue"), ("color_missed", "red", "car")},
    ),
    "colour that is free": ([("car",), ("car", "blue")], [("car",)], {("color_invented", "blue", "car")}),
    "count off by one": (
        [("dog",), ("dog", "three")],
        [("dog",), ("dog", "two")],
        {("count_off_by_one", "two", "three"), ("count_missed", "two", "dog")},
    ),
    "count off by more": (
        [("dog",), ("dog", "seven")],
        [("dog",), ("dog", "two")],
        {("count_off_by_more", "two", "seven"), ("count_missed", "two", "dog")},
    ),
    "size": (
        [("dog",), ("dog", "tiny")],
        [("dog",), ("dog", "big")],
        {("size_opposite", "big", "tiny"), ("size_missed", "big", "dog")},
    ),
    "attribute elsewhere": (
        [("dog",), ("horse",), ("dog", "furry")],
        [("dog",), ("horse",), ("horse", "furry")],
        {("attribute_misplaced", "furry", "horse", "dog"), ("attribute_missed", "furry", "horse")},
    ),
    "attribute that follows": (
        [("zebra",), ("zebra", "red")],
        [("sky",)],
        {("object_invented", "zebra"), ("attribute_of_invented_object", "zebra", "red"), ("object_missed", "sky")},
    ),
    "relation wrong": (
        [("cat",), ("mat",), ("cat", "mat", "under")],
        [("cat",), ("mat",), ("cat", "mat", "on")],
        {("relation_confused", "on", "under"), ("verb_missed", "on")},
    ),
    "swapped": (
        [("horse",), ("man",), ("horse", "man", "ride")],
        [("horse",), ("man",), ("man", "horse", "ride")],
        {("relation_swapped", "man", "ride", "horse"), ("verb_missed", "ride")},
    ),
    "relation moved": (
        [("man",), ("horse",), ("bike",), ("man", "horse", "ride")],
        [("man",), ("horse",), ("bike",), ("man", "bike", "ride")],
        {("relation_moved", "ride", "bike", "horse"), ("verb_missed", "ride")},
    ),
    "relation invented": (
        [("man",), ("tree",), ("man", "tree", "paint")],
        [("man",), ("tree",)],
        {("relation_invented", "man", "paint", "tree")},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_is_found(case: str) -> None:
    candidate, reference, expected = CASES[case]
    assert set(kinds(candidate, reference)) == expected
    assert len(kinds(candidate, reference)) == len(expected)


def test_a_colour_that_one_reference_gives_is_no_confusion() -> None:
    assert kinds([("car",), ("car", "blue")], [("car",), ("car", "red")], [("car", "blue")]) == [
        ("color_missed", "red", "car")
    ]


def test_the_nearest_count_is_the_one_that_was_meant() -> None:
    found = kinds([("dog",), ("dog", "four")], [("dog",), ("dog", "nine")], [("dog", "three")])
    assert found[0] == ("count_off_by_one", "three", "four")


def test_of_several_rivals_most_references_decide() -> None:
    found = kinds([("car",), ("car", "blue")], [("car", "white")], [("car", "red")], [("car", "red")], [("car",)])
    assert found[0] == ("color_confused", "red", "blue")


def test_37_reds_turned_to_blue_are_37_confusions_and_nothing_else() -> None:
    reference = [("car",), ("car", "red"), ("road",)]
    wrong = [("car",), ("car", "blue"), ("road",)]
    statistics = [statistic(wrong if n < 37 else reference, reference) for n in range(100)]
    report = analyse_errors(statistics)
    (group,) = report.kind("color_confused").groups
    assert (group.words, group.count, group.items) == (("red", "blue"), 37, tuple(range(37)))
    others = {kind.name: kind.count for kind in report.kinds if kind.count}
    assert others == {"color_confused": 37, "color_missed": 37}


def test_missed_objects_come_by_the_references_that_agree() -> None:
    references = ([("dog",), ("cat",)], [("dog",)], [("dog",)])
    report = analyse_errors([statistic([("zebra",)], *references), statistic([("dog",)], *references)])
    dog, cat = sorted(report.kind("object_missed").groups, key=lambda group: group.words, reverse=True)
    assert report.kind("object_missed").groups[0] is dog
    assert (dog.words, dog.count, dog.weight, dog.of, dog.rate) == (("dog",), 1, 3, 2, 0.5)
    assert (cat.words, cat.count, cat.weight, cat.rate) == (("cat",), 2, 2, 1.0)


def test_merged_objects_count_under_the_name_that_most_captions_use() -> None:
    references = ([("couch",)], [("sofa",)], [("sofa",)])
    assert kinds([], *references) == [("object_missed", "sofa")]


def test_a_near_miss_says_how_near() -> None:
    finding = explain(statistic([("operator",)], [("operation",)]).match)[0]
    assert (finding.kind, finding.near, finding.counterpart) == ("object_near_miss", Near("same stem"), 0)
    finding = explain(statistic([("animal",)], [("dog",)]).match)[0]
    assert (finding.near, finding.counterpart) == (Near("broader", 2), 0)


WORDS = st.sampled_from(
    ["dog", "cat", "couch", "sofa", "car", "red", "blue", "gray", "grey", "two", "three", "big", "tiny", "on"]
)
TUPLES = st.lists(st.one_of(st.tuples(WORDS), st.tuples(WORDS, WORDS), st.tuples(WORDS, WORDS, WORDS)), max_size=8)
ITEMS = st.tuples(TUPLES, st.lists(TUPLES, min_size=1, max_size=3))


@given(st.lists(ITEMS, min_size=1, max_size=4))
def test_findings_add_up_to_the_counts_behind_the_score(items: list[tuple[Tuples, list[Tuples]]]) -> None:
    statistics = [statistic(candidate, *references) for candidate, references in items]
    report = analyse_errors(statistics)
    wrong = Counter[ErrorSide]()
    for kind in report.kinds:
        assert kind.count == sum(group.count for group in kind.groups)
        wrong[KINDS[kind.name].side] += kind.count
    counts = [s.counts["All"] for s in statistics]
    assert wrong[ErrorSide.INVENTED] == sum(c.candidate - c.matched for c in counts)
    assert wrong[ErrorSide.MISSED] == sum(len(s.match.missed) for s in statistics)
    for s, row in zip(statistics, report.findings, strict=True):
        explained = Counter((KINDS[f.kind].side, f.tuple) for f in row)
        assert set(explained.values()) <= {1}
        assert len(explained) == len(s.match.invented) + len(s.match.missed)


@given(st.lists(ITEMS, min_size=1, max_size=4))
def test_hallucinations_are_the_false_positives_of_the_scores(items: list[tuple[Tuples, list[Tuples]]]) -> None:
    statistics = [statistic(candidate, *references) for candidate, references in items]
    for row in hallucinations(statistics):
        counts = [s.counts[row.category] for s in statistics]
        assert row.invented == sum(c.candidate - c.matched for c in counts)
        assert row.said == sum(c.candidate for c in counts)
        assert row.captions <= row.of == len(items)


def test_without_captions_nothing_is_hallucinated() -> None:
    assert hallucinations([]) == ()
    row = hallucinations([statistic([], [("dog",)])])[0]
    assert (row.per_instance, row.per_sentence) == (None, 0.0)


def test_a_rate_is_of_what_can_go_wrong() -> None:
    """A system with a wrong object in every second caption gets no color wrong that it could get right."""
    reference = [("car",), ("car", "red"), ("man",), ("car", "man", "near")]
    careful = statistic([("car",), ("car", "red")], reference)
    careless = statistic([("zebra",), ("zebra", "blue"), ("zebra", "man", "near")], reference)
    confused = statistic([("car",), ("car", "blue")], reference)
    report = analyse_errors([careful, careless, confused])
    colors = report.kind("color_confused")
    assert (colors.count, colors.of, colors.rate) == (1, 2, 0.5)
    follows = report.kind("attribute_of_invented_object")
    assert (follows.count, follows.of) == (1, 3)
    assert (report.kind("relation_invented").of, report.kind("relation_of_invented_object").of) == (0, 1)
    assert report.kind("relation_invented").rate is None
    missed = report.kind("color_missed")
    assert (missed.count, missed.of) == (1, 2)  # where the car is not named, its color can't be missed
    assert all(kind.count <= kind.of for kind in report.kinds)


def test_every_kind_has_its_chances() -> None:
    for name, kind in KINDS.items():
        assert (CHANCES[kind.among].side, CHANCES[kind.among].length) == (kind.side, kind.length), name
    assert {kind.among for kind in KINDS.values()} == CHANCES.keys()


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("color_confused", "Color"),
        ("count_missed", "Cardinality"),
        ("size_opposite", "Size"),
        ("attribute_misplaced", "Attribute"),
        ("attribute_invented", "Attribute"),
        ("verb_missed", "Relation"),
        ("object_invented", "Object"),
    ],
)
def test_a_kind_belongs_to_a_category(kind: str, category: str) -> None:
    assert KINDS[kind].category == category


def test_a_count_in_digits_is_right_where_references_have_the_word() -> None:
    report = analyse_errors([statistic([("dog",), ("dog", "2")], [("dog",), ("dog", "two")])])
    assert [(kind.count, kind.of) for kind in report.kinds if kind.name.startswith("count_")] == [(0, 1)] * 4
