"""Intervals and paired tests: the same numbers as the metrics, and the behaviour that statistics promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.metric import Metric, Score
from spicegraph_scorer.core.significance import Comparison, Resampling, compare, corrected, intervals
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.bleu import Bleu
from spicegraph_scorer.metrics.cider import Cider

ITEMS = tuple(
    Item(number, f"a {color} {animal} on the grass", (f"a {color} {animal} runs", f"one {animal} on green grass"))
    for number, (color, animal) in enumerate(
        [("brown", "dog"), ("black", "cat"), ("white", "horse"), ("red", "bird"), ("gray", "elephant")] * 4
    )
)


@dataclass(frozen=True)
class Mean(Metric):
    """A metric whose statistics are its items' values."""

    name = "mean"

    def signature(self):
        return {}

    def collect(self, corpus):
        raise NotImplementedError

    def total(self, statistics):
        defined = [value for value in statistics if value is not None]
        return (Score("mean", sum(defined) / len(defined) if defined else None, tuple(statistics)),)


@pytest.mark.parametrize("metric", [Bleu(), Cider()], ids=lambda metric: metric.name)
def test_a_comparison_gives_the_scores_that_the_metric_gives(metric):
    statistics = metric.collect(Corpus(ITEMS))
    half = len(ITEMS) // 2
    found = compare(metric, statistics[:half], statistics[half:], resampling=Resampling(draws=10))
    first, second = metric.total(statistics[:half]), metric.total(statistics[half:])
    assert [c.name for c in found] == [score.name for score in first]
    for comparison, one, other in zip(found, first, second, strict=True):
        assert comparison.first == pytest.approx(one.value, abs=1e-12)
        assert comparison.second == pytest.approx(other.value, abs=1e-12)


def test_the_interval_of_a_mean_is_the_textbook_one():
    values = np.random.default_rng(1).normal(5, 2, size=400).tolist()
    (interval,) = intervals(Mean(), values, resampling=Resampling(draws=4000))
    margin = 1.96 * np.std(values) / math.sqrt(len(values))
    assert interval.low == pytest.approx(np.mean(values) - margin, abs=0.03)
    assert interval.high == pytest.approx(np.mean(values) + margin, abs=0.03)


def test_undefined_items_do_not_count_and_a_wholly_undefined_score_stays_undefined():
    (interval,) = intervals(Mean(), [None, 2.0, None, 2.0] * 5)
    assert (interval.low, interval.high) == (2.0, 2.0)
    (nothing,) = intervals(Mean(), [None, None])
    assert (nothing.low, nothing.high) == (None, None)
    (undefined,) = compare(Mean(), [None, None], [1.0, 2.0])
    assert (undefined.first, undefined.difference, undefined.p_bootstrap, undefined.p_randomization) == (None,) * 4


def test_a_score_of_one_item_has_a_difference_and_no_test():
    (one,) = compare(Mean(), [None, 1.0, None], [0.5, 3.0, 1.0])
    assert (one.first, one.second, one.difference) == (1.0, 1.5, 0.5)
    assert (one.low, one.high, one.p_bootstrap, one.p_randomization) == (None,) * 4
    (two,) = compare(Mean(), [None, 1.0, 2.0], [None, 3.0, 1.0])
    assert None not in (two.low, two.high, two.p_bootstrap, two.p_randomization)


def test_equal_systems_differ_by_chance_and_a_clear_winner_does_not():
    values = np.random.default_rng(2).normal(size=100)
    (equal,) = compare(Mean(), values.tolist(), values.tolist())
    assert (equal.difference, equal.p_bootstrap, equal.p_randomization) == (0.0, 1.0, 1.0)
    (better,) = compare(Mean(), values.tolist(), (values + 1 + 0.1 * values**2).tolist())
    assert better.low > 0
    assert better.p_bootstrap == better.p_randomization == 1 / 1001


def test_under_the_null_hypothesis_small_p_values_are_as_rare_as_they_say():
    generator = np.random.default_rng(3)
    small = {"bootstrap": 0, "randomization": 0}
    for _ in range(200):
        pair = generator.normal(size=(2, 60))
        (found,) = compare(Mean(), pair[0].tolist(), pair[1].tolist(), resampling=Resampling(draws=200))
        small["bootstrap"] += found.p_bootstrap < 0.1
        small["randomization"] += found.p_randomization < 0.1
    assert 8 <= small["bootstrap"] <= 36
    assert 8 <= small["randomization"] <= 36


def test_a_seed_repeats_itself_and_another_one_does_not():
    values = np.random.default_rng(4).normal(size=50).tolist()
    assert intervals(Mean(), values) == intervals(Mean(), values)
    assert intervals(Mean(), values) != intervals(Mean(), values, resampling=Resampling(seed=1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intervals(Mean(), []), "no items"),
        (lambda: intervals(Mean(), [1.0], level=1.5), "level"),
        (lambda: compare(Mean(), [1.0], [1.0, 2.0]), "different numbers of items: 1 and 2"),
        (lambda: Resampling(draws=0), "draws"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(InputError, match=message):
        call()


def _tested(*ps: float | None) -> list[Comparison]:
    return [Comparison(str(n), 0.0, 1.0, 1.0, 0.5, 1.5, p, None if p is None else p / 2) for n, p in enumerate(ps)]


def test_p_values_are_corrected_by_holm_s_procedure() -> None:
    # Holm (1979): the smallest of m times m, the next m - 1 times, never less than one before
    found = [test.p_corrected for test in corrected(_tested(0.01, 0.04, 0.03, None, 0.005))]
    assert found == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06), None, pytest.approx(0.02)]
    assert [test.is_sure for test in corrected(_tested(0.01, 0.04, 0.03, None, 0.005))] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_the_larger_of_both_p_values_decides() -> None:
    (test,) = corrected([Comparison("a", 0.0, 1.0, 1.0, 0.5, 1.5, 0.001, 0.2)])
    assert (test.p_corrected, test.is_sure) == (0.2, False)
    assert not _tested(0.001)[0].is_sure  # nothing was looked at yet
