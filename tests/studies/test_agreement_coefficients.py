"""Coefficients equal scipy's, and so does every resample; pair counts equal counting every pair."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spicegraph_scorer.core.significance import Resampling
from spicegraph_studies.agreement.coefficients import (
    COEFFICIENTS,
    KENDALL,
    Bounded,
    MetricComparison,
    PairOrder,
    accuracy_permutation,
    correlation,
    of_balance,
    resampled,
    williams,
)
from spicegraph_studies.agreement.pair_counts import image_pairs, permutation
from spicegraph_studies.pages import best_metric

SCIPY = {
    "tau_b": lambda x, y: stats.kendalltau(x, y, variant="b"),
    "tau_c": lambda x, y: stats.kendalltau(x, y, variant="c"),
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
}


@st.composite
def tied(draw):
    """Values and ratings with many ties, and whole weights, some of them 0."""
    size = draw(st.integers(3, 40))
    few = draw(st.sampled_from([2, 5, 100]))
    values = draw(st.lists(st.integers(0, few).map(lambda n: n / 7), min_size=size, max_size=size))
    ratings = draw(st.lists(st.integers(1, 4).map(float), min_size=size, max_size=size))
    weights = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    return np.array(values), np.array(ratings), np.array(weights, dtype=float)


@given(tied())
def test_coefficients_are_scipys_and_undefined_where_scipys_are(data):
    values, ratings, _ = data
    for name, of_scipy in SCIPY.items():
        found = correlation(name, values, ratings)
        if np.ptp(values) == 0 or np.ptp(ratings) == 0:
            assert (found.value, found.p) == (None, None)
        else:
            expected = of_scipy(values, ratings)
            assert found.value == pytest.approx(expected.statistic, abs=1e-12)
            assert found.p == pytest.approx(expected.pvalue, abs=1e-12)


@given(tied())
def test_a_resample_has_the_coefficients_of_the_drawn_observations(data):
    values, ratings, weights = data
    drawn = np.repeat(np.arange(len(values)), weights.astype(int))
    x, y = values[drawn], ratings[drawn]
    found = resampled(PairOrder(values, ratings), weights[None, :], COEFFICIENTS)
    for name, of_scipy in SCIPY.items():
        value = float(found[name][0])
        if len(drawn) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
            assert math.isnan(value), name
        else:
            with np.errstate(all="ignore"):
                assert value == pytest.approx(of_scipy(x, y).statistic, abs=1e-9), name


@given(tied(), st.booleans())
def test_pair_counts_are_those_of_every_pair(data, swapped):
    values, ratings, weights = data
    first, second = (ratings, values) if swapped else (values, ratings)
    found = PairOrder(first, second).counts(weights[None, :])
    drawn = np.repeat(np.arange(len(values)), weights.astype(int))
    expected = dict.fromkeys(("balance", "tied_first", "tied_second"), 0)
    for i, j in itertools.combinations(drawn, 2):
        one, other = np.sign(first[i] - first[j]), np.sign(second[i] - second[j])
        expected["balance"] += int(one * other)
        expected["tied_first"] += one == 0
        expected["tied_second"] += other == 0
    assert {name: int(getattr(found, name)[0]) for name in expected} == expected
    assert int(found.size[0]) == len(drawn)
    assert int(found.classes[0]) == min(len(np.unique(first[drawn])), len(np.unique(second[drawn])))


def test_every_coefficient_has_its_scipy_function_here():
    assert SCIPY.keys() == COEFFICIENTS.keys()


def test_williams_gives_the_published_example():
    """R's psych, ``r.test(103, .4, .5, .1)``: t = -0.89, p < 0.37 with 100 degrees of freedom."""
    p = williams(0.4, 0.5, 0.1, 103)
    assert stats.t.isf(p / 2, 100) == pytest.approx(0.89, abs=0.005)
    assert williams(0.5, 0.4, 0.1, 103) == p
    assert williams(0.4, 0.4, 1.0, 103) is None
    assert williams(0.4, 0.5, 0.1, 3) is None


def brute_permutation(name, first, second, ratings, groups):
    """Exchange the scaled values of the two metrics in every possible way."""
    scale = stats.zscore if name == "pearson" else stats.rankdata
    one, other = scale(first), scale(second)
    observed = correlation(name, second, ratings).value - correlation(name, first, ratings).value
    extreme = []
    for moved in itertools.product([False, True], repeat=int(groups.max()) + 1):
        swap = np.array(moved)[groups]
        values = [correlation(name, np.where(swap, a, b), ratings).value for a, b in ((other, one), (one, other))]
        extreme.append(abs(values[1] - values[0]) >= abs(observed) - 1e-12)
    return np.mean(extreme)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_the_permutation_test_is_that_of_all_exchanges(name):
    generator = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), 2)
    ratings = generator.integers(1, 5, 16).astype(float)
    first, second = ratings + generator.normal(0, 2, 16), ratings + generator.normal(0, 1, 16)
    expected = brute_permutation(name, first, second, ratings, groups)
    found = permutation(name, first, second, ratings, groups, resampling=Resampling(draws=4000, seed=1))
    assert found == pytest.approx(expected, abs=0.03)


def several_captions() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two metrics with ties, and up to three ratings of each of several captions of 20 images."""
    generator = np.random.default_rng(11)
    groups = np.sort(generator.integers(0, 20, 120))
    groups = np.unique(groups, return_inverse=True)[1]
    ratings = generator.integers(1, 5, 120).astype(float)
    first, second = (np.round(ratings + generator.normal(0, 2, 120)) for _ in range(2))
    return first, second, ratings, groups


def test_pairs_by_image_give_the_coefficients_of_all_resamples():
    first, _, ratings, groups = several_captions()
    images = groups.max() + 1
    drawn = np.random.default_rng(1).multinomial(images, np.full(images, 1 / images), size=30).astype(float)
    slow = resampled(PairOrder(first, ratings), drawn[:, groups], KENDALL)
    pairs = image_pairs({"": first}, ratings, groups)[""]
    for name, values in of_balance(pairs.balance_of(drawn)).items():
        np.testing.assert_allclose(values, slow[name], atol=1e-12)


@pytest.mark.parametrize("name", sorted(KENDALL))
def test_pairs_by_image_give_the_same_permutation_test(name):
    first, second, ratings, groups = several_captions()
    pairs = image_pairs({"first": first, "second": second}, ratings, groups)
    slow, fast = (
        permutation(name, first, second, ratings, groups, resampling=Resampling(draws=500), pairs=given)
        for given in (None, (pairs["first"], pairs["second"]))
    )
    assert slow == fast


def test_pairs_by_image_are_left_to_few_images():
    ratings = np.arange(70.0)
    assert image_pairs({"": ratings}, ratings, np.arange(70)) == {}


def test_a_metric_does_not_differ_from_itself_and_chance_gives_uniform_p():
    generator = np.random.default_rng(5)
    ratings = generator.integers(1, 5, 60).astype(float)
    values = generator.normal(size=60)
    assert permutation("tau_b", values, values, ratings, np.arange(60), resampling=Resampling(draws=50)) == 1
    found = [
        permutation(
            "pearson", *generator.normal(size=(2, 60)), ratings, np.arange(60), resampling=Resampling(draws=200)
        )
        for _ in range(60)
    ]
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_the_permutation_test_of_accuracy_is_the_sign_test_of_all_exchanges():
    difference = np.array([1.0, 1.0, 1.0, 0.5, 0.0, -0.5])
    totals = [abs(np.dot(signs, difference)) for signs in itertools.product([-1, 1], repeat=6)]
    expected = np.mean(np.array(totals) >= difference.sum() - 1e-12)
    found = accuracy_permutation(difference, np.arange(6), resampling=Resampling(draws=20000, seed=2))
    assert found == pytest.approx(expected, abs=0.01)


def compared(first: str, second: str, difference: float, low: float, high: float) -> MetricComparison:
    return MetricComparison(first, second, "accuracy", None, None, difference, low, high, None, None)


def test_the_best_metric_is_named_where_it_is_known() -> None:
    values = {"SPICE": Bounded(0.80, 0.76, 0.84), "CIDEr": Bounded(0.70, 0.65, 0.75)}
    sure = best_metric("accuracy", values, [compared("SPICE", "CIDEr", -0.1, -0.14, -0.06)], of=(500, "pairs"))
    assert sure == (
        "SPICE agrees best with people: accuracy 0.800 (0.760 to 0.840)",
        "Next is CIDEr with 0.700; the difference is 0.100 (95 % interval 0.060 to 0.140).",
    )
    unsure = best_metric("accuracy", values, [compared("CIDEr", "SPICE", 0.1, -0.1, 0.3)], of=(500, "pairs"))
    assert unsure == (
        "No sure winner: SPICE has the highest accuracy, 0.800 (0.760 to 0.840)",
        "Next is CIDEr with 0.700; the interval of their difference includes 0, and some 2,000 pairs would be needed.",
    )
    few = best_metric("accuracy", values, [compared("SPICE", "CIDEr", -0.1, -0.14, -0.06)], of=(4, "pairs"))
    assert few is not None
    assert few[0].startswith("No sure winner: SPICE")
    assert few[1] == "Next is CIDEr with 0.700; 4 pairs are too few to tell them apart."
    assert best_metric("accuracy", {"SPICE": Bounded(0.8)}, [], of=(9, "pairs")) == (
        "SPICE agrees with people: accuracy 0.800",
        "",
    )
    assert best_metric("accuracy", {"SPICE": Bounded(None)}, [], of=(9, "pairs")) is None


@pytest.mark.parametrize("names", [("SPICE", "ROUGE_L", "CIDEr"), ("ROUGE_L", "CIDEr", "SPICE")])
def test_metrics_that_are_level_have_no_winner_in_any_order(names: tuple[str, ...]) -> None:
    values = {name: Bounded(0.5 if name == "CIDEr" else 1.0, 0.4, 1.0) for name in names}
    assert best_metric("accuracy", values, [], of=(2, "pairs")) == (
        "No winner: ROUGE_L and SPICE are level, accuracy 1.000",
        "2 pairs do not tell them apart.",
    )
