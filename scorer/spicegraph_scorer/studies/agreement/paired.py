"""Is one metric closer to people than another, on the same captions?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from spicegraph_scorer.core.significance import share_as_extreme
from spicegraph_scorer.studies.agreement.coefficients import COEFFICIENTS, correlation, observations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_scorer.studies.agreement.concordance import Indices, Matrix, Vector

__all__ = ["MetricComparison", "accuracy_permutation", "blocks", "permutation", "williams"]

_CELLS = 1 << 20
"""Numbers in a block of resamples: what fits a processor's cache."""
_MOST = 64


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """Two metrics' agreement with people on the same captions.

    ``difference`` is ``second`` minus ``first``; ``low`` and ``high`` bound it (95 % percentile bootstrap over
    images). ``p_permutation`` is the two-sided p of the permutation test in which both metrics' values are
    exchanged image by image (Deutsch et al., TACL 2021, PERM-BOTH), at least ``1 / (draws + 1)``.
    ``p_williams`` is that of Williams' test of two dependent Pearson coefficients (Williams 1959; Graham and
    Baldwin, EMNLP 2014), which takes observations as independent. None is corrected for the number of pairs of
    metrics that are looked at.
    """

    first_metric: str
    second_metric: str
    statistic: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_permutation: float | None
    p_williams: float | None


def williams(first: float, second: float, between: float, size: int) -> float | None:
    """Return the two-sided p of Williams' test: do two metrics correlate differently with the same ratings?

    Args:
        first: Pearson's r of the first metric and the ratings.
        second: that of the second metric.
        between: that of the two metrics.
        size: observations; the test has ``size - 3`` degrees of freedom.

    ``None`` where there are fewer than four observations or the two metrics are the same.

    Example:
        >>> round(williams(0.5, 0.4, 0.6, 103), 3)
        0.198
    """
    if size <= 3 or between >= 1 - 1e-12:
        return None
    rest = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    spread = 2 * rest * (size - 1) / (size - 3) + mean**2 * (1 - between) ** 3
    if spread <= 0:
        return None
    statistic = (first - second) * math.sqrt((size - 1) * (1 + between) / spread)
    return float(2 * stats.t.sf(abs(statistic), size - 3))


def permutation(
    name: str, first: Vector, second: Vector, ratings: Vector, groups: Indices, *, resampling: Resampling
) -> float | None:
    """Return the two-sided p of exchanging two metrics' values group by group, each with probability one half.

    The metrics have scales of their own; so what is exchanged are ranks for the rank coefficients, and values
    with mean 0 and deviation 1 for Pearson's.

    Args:
        name: the coefficient, a key of ``COEFFICIENTS``.
        first: the first metric's values.
        second: the second metric's.
        ratings: the human ratings of the same captions.
        groups: the number of each observation's group, from 0.
        resampling: draws and seed.
    """
    observed = [correlation(name, values, ratings).value for values in (first, second)]
    if observed[0] is None or observed[1] is None:
        return None
    scaled = _standard if name == "pearson" else stats.rankdata
    # Both metrics' values stand in one list; who holds which of them is a weighting of the list by 0 and 1.
    both = observations(np.concatenate([scaled(first), scaled(second)]), np.concatenate([ratings, ratings]))
    resampled = COEFFICIENTS[name].resampled
    generator = resampling.generator()
    differences: list[Vector] = []
    for size in blocks(resampling.draws, 2 * len(first)):
        moved = generator.integers(0, 2, size=(size, int(groups.max()) + 1)).astype(np.float64)[:, groups]
        weights: Matrix = np.hstack([1 - moved, moved])
        differences.append(resampled(both, 1 - weights) - resampled(both, weights))
    return share_as_extreme(np.concatenate(differences), observed[1] - observed[0])


def _standard(values: Vector) -> Vector:
    standard: Vector = (values - values.mean()) / values.std()
    return standard


def accuracy_permutation(difference: Vector, groups: Indices, *, resampling: Resampling) -> float | None:
    """Return the two-sided p of exchanging two metrics' points for pairs of captions, group by group.

    Args:
        difference: the second metric's points for each pair, minus the first's.
        groups: the number of each pair's group, from 0.
        resampling: draws and seed.
    """
    by_group = np.bincount(groups, weights=difference)
    generator = resampling.generator()
    draws = [
        (generator.integers(0, 2, size=(size, len(by_group))) * 2.0 - 1) @ by_group
        for size in blocks(resampling.draws, len(by_group))
    ]
    return share_as_extreme(np.concatenate(draws), float(by_group.sum()))


def blocks(draws: int, width: int) -> Iterator[int]:
    """Yield how many resamples of ``width`` numbers to make at a time, ``draws`` in all."""
    size = max(1, min(_MOST, _CELLS // max(width, 1)))
    yield from (min(size, draws - done) for done in range(0, draws, size))
