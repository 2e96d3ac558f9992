"""The correlation coefficients: scipy's values and p-values, and the values of resamples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from spicegraph_scorer.studies.agreement.concordance import Matrix, PairOrder, Vector, pair_order, tau_b, tau_c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["COEFFICIENTS", "Coefficient", "Correlation", "Observations", "correlation", "observations", "resampled"]

_FEWEST = 3  # two points correlate perfectly, whatever they are


class Correlation(NamedTuple):
    """A coefficient and the p-value of no association; both ``None`` where it is undefined."""

    value: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A correlation coefficient: what to call it, how scipy gives it, and its values for resamples."""

    label: str
    exact: Callable[[Vector, Vector], tuple[float, float]]
    resampled: Callable[[Observations, Matrix], Vector]


@dataclass(frozen=True, slots=True)
class Observations:
    """Metric values and human ratings of the same captions, ordered once for all resamples."""

    pairs: PairOrder

    @property
    def values(self) -> Vector:
        """The metric's values."""
        return self.pairs.first

    @property
    def ratings(self) -> Vector:
        """The human ratings."""
        return self.pairs.second


def observations(values: Vector, ratings: Vector) -> Observations:
    """Order a metric's values and the ratings of the same captions."""
    return Observations(pair_order(values, ratings))


def correlation(name: str, values: Vector, ratings: Vector) -> Correlation:
    """Return a coefficient of ``COEFFICIENTS`` and its two-sided p-value, from scipy.

    The p-value takes the observations as independent of each other. The coefficient is undefined for fewer
    than three observations or where one of the two never varies.

    Example:
        >>> correlation("pearson", np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])).value
        1.0
    """
    if len(values) < _FEWEST or np.ptp(values) == 0 or np.ptp(ratings) == 0:
        return Correlation(None, None)
    value, p = COEFFICIENTS[name].exact(values, ratings)
    return Correlation(_defined(value), _defined(p))


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _scipy_tau_b(values: Vector, ratings: Vector) -> tuple[float, float]:
    found = stats.kendalltau(values, ratings, variant="b")
    return float(found.statistic), float(found.pvalue)


def _scipy_tau_c(values: Vector, ratings: Vector) -> tuple[float, float]:
    found = stats.kendalltau(values, ratings, variant="c")
    return float(found.statistic), float(found.pvalue)


def _scipy_pearson(values: Vector, ratings: Vector) -> tuple[float, float]:
    found = stats.pearsonr(values, ratings)
    return float(found.statistic), float(found.pvalue)


def _scipy_spearman(values: Vector, ratings: Vector) -> tuple[float, float]:
    found = stats.spearmanr(values, ratings)
    return float(found.statistic), float(found.pvalue)


def _resampled_tau_b(of: Observations, weights: Matrix) -> Vector:
    return tau_b(of.pairs.counts(weights))


def _resampled_tau_c(of: Observations, weights: Matrix) -> Vector:
    return tau_c(of.pairs.counts(weights))


def _resampled_pearson(of: Observations, weights: Matrix) -> Vector:
    first, second = of.values - of.values.mean(), of.ratings - of.ratings.mean()
    sums = weights @ np.stack([first, second, first * first, second * second, first * second], axis=1)
    return _pearson(weights.sum(axis=1), sums.T)


def _resampled_spearman(of: Observations, weights: Matrix) -> Vector:
    """Return Pearson's coefficient of the ranks, which every resample has of its own."""
    size = weights.sum(axis=1)
    middle = (size[:, None] + 1) / 2
    first, second = (_ranks(values, weights) - middle for values in (of.values, of.ratings))
    sums = [(weights * part).sum(axis=1) for part in (first, second, first**2, second**2, first * second)]
    return _pearson(size, np.stack(sums))


def _ranks(values: Vector, weights: Matrix) -> Matrix:
    """Return the mid-rank of each observation in each resample."""
    distinct, classes = np.unique(values, return_inverse=True)
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(len(distinct)))
    sizes = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks: Matrix = (np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2)[:, classes]
    return ranks


def _pearson(size: Vector, sums: Matrix) -> Vector:
    """Return Pearson's coefficient from the weighted sums of x, y, xx, yy, xy; NaN where one does not vary."""
    x, y, xx, yy, xy = sums
    spread_x, spread_y = size * xx - x * x, size * yy - y * y
    tiny = 1e-12  # what is left of an exact 0 by rounding
    varied = (spread_x > tiny * size * xx) & (spread_y > tiny * size * yy)
    scale = np.sqrt(np.where(varied, spread_x * spread_y, 1.0))
    return np.where(varied, np.clip((size * xy - x * y) / scale, -1.0, 1.0), np.nan)


COEFFICIENTS: Mapping[str, Coefficient] = {
    "tau_b": Coefficient("tau-b", _scipy_tau_b, _resampled_tau_b),
    "tau_c": Coefficient("tau-c", _scipy_tau_c, _resampled_tau_c),
    "pearson": Coefficient("Pearson", _scipy_pearson, _resampled_pearson),
    "spearman": Coefficient("Spearman", _scipy_spearman, _resampled_spearman),
}
"""Every coefficient by name. To add one: scipy's function, its values for weighted observations, a line here."""


def resampled(of: Observations, weights: Matrix, names: Iterable[str]) -> dict[str, Vector]:
    """Return the named coefficients of each resample; pairs are counted once for both of Kendall's."""
    wanted = tuple(names)
    found: dict[str, Vector] = {}
    if {"tau_b", "tau_c"} <= set(wanted):
        counts = of.pairs.counts(weights)
        found = {"tau_b": tau_b(counts), "tau_c": tau_c(counts)}
    return {name: found[name] if name in found else COEFFICIENTS[name].resampled(of, weights) for name in wanted}
