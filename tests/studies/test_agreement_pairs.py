"""Agreement on pairs: accuracy by category, ties, references, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.scoring import score
from spicegraph_studies.agreement import PAIR_PROTOCOLS, CaptionPair, JudgementScoring, agree_on_pairs, pair_protocol
from spicegraph_studies.agreement.pairwise import ALL, MEAN
from spicegraph_studies.agreement.protocols import TIE_CREDIT, ReferenceChoice, Ties, prepare_pairs

QUICK = Resampling(draws=40, seed=7)
PLAIN = PAIR_PROTOCOLS["plain"]


def pair(number, scores, *, category="", preferred=0, references=("a dog runs",), **more):
    given_scores = {"A": scores} if scores is not None else {}
    return CaptionPair(
        f"pair {number}", f"{number}", category, ("a dog", "a cat"), preferred, references, given_scores, **more
    )


def accuracy(found, category=ALL, metric="A"):
    return next(row for row in found.accuracies if (row.metric, row.category) == (metric, category))


VALUES = st.integers(0, 3).map(float)
ROWS = st.lists(st.tuples(VALUES, VALUES, st.integers(0, 1), st.sampled_from("xyz")), min_size=1, max_size=30)


@given(ROWS, st.sampled_from(Ties))
def test_accuracy_is_a_count(rows, ties):
    pairs = [pair(n, (a, b), category=c, preferred=p) for n, (a, b, p, c) in enumerate(rows)]
    found = agree_on_pairs(
        pairs, replace(PLAIN, ties=ties), scoring=JudgementScoring(()), resampling=Resampling(draws=2)
    )
    for category in {c for *_, c in rows} | {ALL}:
        mine = [(a, b) if p == 0 else (b, a) for a, b, p, c in rows if category in {c, ALL}]
        right, tied = sum(a > b for a, b in mine), sum(a == b for a, b in mine)
        row = accuracy(found, category)
        assert (row.pairs, row.right, row.tied, row.wrong) == (len(mine), right, tied, len(mine) - right - tied)
        assert row.value == pytest.approx((right + TIE_CREDIT[ties] * tied) / len(mine))


def test_the_mean_is_that_of_the_categories():
    pairs = [pair(0, (1.0, 0.0), category="HC"), pair(1, (1.0, 0.0), category="HC"), pair(2, (0.0, 1.0), category="HI")]
    found = agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), resampling=QUICK)
    assert accuracy(found, MEAN).value == 0.5
    assert accuracy(found).value == pytest.approx(2 / 3)
    assert found.categories == ("HC", "HI")


def test_pairs_without_a_preference_or_a_value_are_left_out_and_counted():
    pairs = [pair(0, (1.0, 0.0)), pair(1, (1.0, 0.0), preferred=None), pair(2, (None, 1.0))]
    found = agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), resampling=QUICK)
    assert accuracy(found).pairs == found.pairs == 1
    assert found.removed == {"pairs on which people are tied": 1}
    assert found.undefined == {"A": 1}
    with pytest.raises(InputError, match=r"leaves no pair: pairs on which people are tied \(1\)"):
        agree_on_pairs(pairs[1:2], PLAIN, scoring=JudgementScoring(()))


def test_the_interval_is_that_of_resampled_images():
    generator = np.random.default_rng(2)
    outcomes = generator.integers(0, 2, size=200).astype(float)
    pairs = [pair(n, (outcome, 0.5)) for n, outcome in enumerate(outcomes)]
    found = accuracy(agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), resampling=Resampling(draws=2000)))
    spread = 1.96 * np.sqrt(found.value * (1 - found.value) / 200)
    assert found.low == pytest.approx(found.value - spread, abs=0.012)
    assert found.high == pytest.approx(found.value + spread, abs=0.012)
    together = [replace(each, image="one") for each in pairs]
    alone = accuracy(agree_on_pairs(together, PLAIN, scoring=JudgementScoring(()), resampling=QUICK))
    assert alone.low == alone.high == alone.value


REFERENCES = ("a dog runs", "a cat sleeps", "a dog and a cat", "two animals", "a brown dog", "the cat")


def test_references_are_the_first_or_drawn_and_the_curve_says_how_many():
    pairs = [pair(n, None, preferred=n % 2, references=REFERENCES[n:] + REFERENCES[:n]) for n in range(6)]
    scoring = JudgementScoring(("rouge",))
    first = replace(PLAIN, references=2, choice=ReferenceChoice.FIRST)
    found = agree_on_pairs(pairs, first, scoring=scoring, resampling=QUICK, curve=(1, 2, 6))
    items = [[Item(n, each.captions[side], each.references[:2]) for n, each in enumerate(pairs)] for side in (0, 1)]
    sides = [score(side, ("rouge",)).runs[0].scores[0].each for side in items]
    expected = [np.sign(a - b) * (1 if each.preferred == 0 else -1) for each, a, b in zip(pairs, *sides, strict=True)]
    row = accuracy(found, metric="ROUGE_L")
    assert (row.right, row.tied) == (expected.count(1), expected.count(0))
    assert list(found.curve) == [1, 2, 6]
    assert found.curve[2] == found.accuracies
    drawn = replace(first, choice=ReferenceChoice.RANDOM, draws=3)
    one, other = (agree_on_pairs(pairs, drawn, scoring=scoring, resampling=QUICK) for _ in range(2))
    assert one == other
    all_used = agree_on_pairs(pairs, replace(drawn, references=9), scoring=scoring, resampling=QUICK)
    assert all_used.fewer_references == 6
    assert all_used.accuracies == found.curve[6]


def test_a_point_of_the_curve_is_over_the_pairs_that_have_as_many_references():
    pairs = [pair(n, None, preferred=n % 2, references=REFERENCES[: 2 + 2 * (n % 2)]) for n in range(6)]
    scoring = JudgementScoring(("rouge",))
    found = agree_on_pairs(pairs, PLAIN, scoring=scoring, resampling=QUICK, curve=(2, 4, 5))
    alone = agree_on_pairs(pairs[1::2], PLAIN, scoring=scoring, resampling=QUICK)
    assert (list(found.curve), found.too_few) == ([2, 4, 5], {2: 0, 4: 3, 5: 6})
    assert [row.value for row in found.curve[4]] == [row.value for row in alone.accuracies]
    assert {row.pairs for row in found.curve[4]} == {3}
    assert {(row.pairs, row.value, row.low) for row in found.curve[5]} == {(0, None, None)}
    assert [row.category for row in found.curve[5]] == [row.category for row in found.accuracies]


def test_a_draw_takes_no_reference_twice_and_averages_outcomes():
    """One of two references prefers each caption: over all draws of one, accuracy is near one half."""
    pairs = [pair(n, None, references=("a dog", "a cat")) for n in range(50)]
    protocol = replace(PLAIN, references=1, choice=ReferenceChoice.RANDOM, draws=8)
    row = accuracy(
        agree_on_pairs(pairs, protocol, scoring=JudgementScoring(("rouge",)), resampling=QUICK), metric="ROUGE_L"
    )
    assert row.value == pytest.approx(0.5, abs=0.08)
    assert row.right + row.tied + row.wrong == pytest.approx(50)
    both = accuracy(
        agree_on_pairs(pairs, replace(protocol, references=2), scoring=JudgementScoring(("rouge",)), resampling=QUICK),
        metric="ROUGE_L",
    )
    assert both.tied == 50


def test_foil_removes_the_true_caption_from_its_references():
    own = pair(0, None, references=("a dog", "an animal"))
    found = agree_on_pairs([own], pair_protocol("foil"), scoring=JudgementScoring(("rouge",)), resampling=QUICK)
    assert found.removed == {"references equal to a judged caption, removed": 1}
    assert accuracy(found, metric="ROUGE_L").tied == 1


def test_two_metrics_are_tested_against_each_other():
    pairs = [
        CaptionPair(f"{n}", f"{n}", "", ("a", "b"), 0, ("a",), {"good": (1.0, 0.0), "poor": (float(n % 2), 0.5)})
        for n in range(60)
    ]
    (row,) = agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), resampling=Resampling(draws=500)).comparisons
    assert (row.first, row.second, row.difference) == (1.0, 0.5, -0.5)
    assert row.high < 0
    assert row.p_permutation == 1 / 501


def test_bad_numbers_and_curves_from_given_scores_are_refused():
    pairs = [pair(0, (1.0, 0.0))]
    with pytest.raises(InputError, match="numbers of references and draws begin at 1, got 0"):
        agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), curve=(0,))
    with pytest.raises(InputError, match="given scores belong to one set of references"):
        agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), curve=(1,))
    with pytest.raises(InputError, match="there is no protocol 'pascal' for pairs"):
        pair_protocol("pascal")
    for name, protocol in PAIR_PROTOCOLS.items():
        assert protocol.name == name


@pytest.mark.parametrize(
    ("name", "value"), [("pascal50s", 1.0), ("pascal50s-clipscore", 0.5), ("fense-pairs", 0.0), ("discofoil", 0.0)]
)
def test_published_protocols_count_a_tie_as_their_papers_do(name, value):
    found = agree_on_pairs([pair(0, (0.5, 0.5))], pair_protocol(name), scoring=JudgementScoring(()), resampling=QUICK)
    assert accuracy(found).value == value


def test_the_two_protocols_on_pascal50s_differ_in_ties_alone():
    one, other = pair_protocol("pascal50s"), pair_protocol("pascal50s-clipscore")
    assert (one.coin, other.coin) == (False, True)
    changed = replace(other, ties=one.ties, coin=False, name=one.name, about=one.about, source=one.source)
    assert changed == one


def test_a_pair_on_which_people_are_tied_counts_half_where_a_coin_decides():
    pairs = [pair(0, (1.0, 0.0), preferred=None), pair(1, (1.0, 0.0)), pair(2, (0.5, 0.5), preferred=None)]
    found = agree_on_pairs(pairs, pair_protocol("pascal50s-clipscore"), scoring=JudgementScoring(()), resampling=QUICK)
    row = accuracy(found)
    assert (row.pairs, row.right, row.tied, row.wrong, row.value) == (3, 2.0, 0.0, 1.0, pytest.approx(2 / 3))
    assert (found.removed, found.to_dict()["protocol"]["people_tied"]) == ({}, "coin")


@pytest.mark.parametrize(
    ("captions", "first", "second"),
    [
        (("one", "two"), ("two", "three"), ("one", "three")),  # both are references: HC
        (("one", "other"), ("two", "three"), ("two", "three")),  # the first is: HI, HM, FOIL
        (("other", "two"), ("one", "three"), ("one", "three")),
        (("other", "another"), ("one", "two", "three"), ("one", "two", "three")),  # MM
    ],
)
def test_a_caption_is_no_reference_of_its_own_and_both_have_as_many(captions, first, second):
    given = CaptionPair("", "1", "", captions, 0, ("one", "two", "three"))
    for name in ("fense-pairs", "foil", "pascal50s"):
        (kept,), _ = prepare_pairs([given], pair_protocol(name))
        assert (kept.references_of(0), kept.references_of(1)) == (first, second)
    with pytest.raises(InputError, match="captions without another reference"):
        prepare_pairs([replace(given, captions=("one", "x"), references=("one",))], pair_protocol("foil"))


def test_each_caption_is_scored_against_its_own_references():
    given = CaptionPair("", "1", "", ("a dog", "a cat"), 0, ("a dog",), second=("a bird sings",))
    row = accuracy(
        agree_on_pairs([given], PLAIN, scoring=JudgementScoring(("rouge",)), resampling=QUICK), metric="ROUGE_L"
    )
    swapped = replace(given, references=("a bird sings",), second=("a cat",))
    other = accuracy(
        agree_on_pairs([swapped], PLAIN, scoring=JudgementScoring(("rouge",)), resampling=QUICK), metric="ROUGE_L"
    )
    assert (row.right, other.wrong) == (1, 1)


def test_metrics_of_which_the_lowest_is_best_are_turned_round():
    given = CaptionPair("", "1", "", ("a dog on a couch", "a dog on a bus"), 0, ("a dog on a sofa",))
    found = agree_on_pairs([given], PLAIN, scoring=JudgementScoring(("chair",)), resampling=QUICK)
    assert [(row.metric, row.right) for row in found.accuracies[:3]] == [
        ("1 - CHAIRi", 1),
        ("1 - CHAIRs", 1),
        ("CHAIR_Recall", 1),
    ]


def test_of_descriptions_length_alone_and_accuracy_at_like_length_are_said():
    """People prefer the longer caption on three of four pairs; of those of like length the metric is right on one."""
    texts = {count: " ".join(["word"] * count) for count in (40, 44, 80)}
    rows = [((80, 40), 0, (1.0, 0.0)), ((40, 80), 1, (1.0, 0.0)), ((44, 40), 0, (1.0, 0.0)), ((40, 44), 0, (0.0, 1.0))]
    pairs = [
        replace(pair(n, scores, preferred=preferred), captions=tuple(texts[count] for count in counts))
        for n, (counts, preferred, scores) in enumerate(rows)
    ]
    pairs.append(replace(pairs[0], image="tied", place="tied", preferred=None))
    found = agree_on_pairs(pairs, PLAIN, scoring=JudgementScoring(()), resampling=QUICK)
    assert found.length == {"": 0.75, "A": 0.5}
    assert found.to_dict()["length"] == {"length alone": 0.75, "A": 0.5}
    short = agree_on_pairs([pair(0, (1.0, 0.0))], PLAIN, scoring=JudgementScoring(()), resampling=QUICK)
    assert short.length == {}
    assert "length" not in short.to_dict()
