"""Correlation coefficients with people: values, p-values, values of resamples, and tests of one metric against another.

A resample weights the observations by whole numbers, so that they are ordered and grouped once and every resample is
sums over that order: O(n log n), then O(n log k) for each of k distinct values of the variable with fewer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy  # loads scipy.stats where it is first used: a second that help and errors need not wait for

from spicegraph_scorer.core.significance import Resampling, share_as_extreme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Numbers: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64 | np.int64]]"
AnyShape = TypeVar("AnyShape", bound="np.ndarray[tuple[int, ...], np.dtype[np.float64]]")
_Level: TypeAlias = tuple[Indices, Vector, Indices, Indices]
"""One bit of the ranks: an order in which ranks that agree above the bit stand together, and by it the bits, the places
of those that are 0, and for each of these the place where its group begins."""
_FEWEST = 3  # two points correlate perfectly, whatever they are
_CELLS = 1 << 20  # numbers in a block of resamples: what fits a processor's cache
_MOST = 64


class Bounded(NamedTuple):
    """A value, its 95 % bootstrap interval, and the p of no association (observations taken as independent)."""

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """The values as JSON has them."""
        return {"value": self.value, "p": self.p, "low": self.low, "high": self.high}

    @property
    def said(self) -> str:
        """The interval behind a value in a sentence, or nothing."""
        return "" if self.low is None or self.high is None else f" ({self.low:.3f} to {self.high:.3f})"


class Balance(NamedTuple):
    """Counts behind Kendall's coefficients, by resample: ``balance`` is concordant minus discordant pairs."""

    balance: Vector
    tied_first: Vector
    tied_second: Vector
    size: Vector
    classes: Vector


class PairOrder:
    """Everything about two variables of the same observations that does not depend on the weights."""

    def __init__(self, first: Vector, second: Vector) -> None:
        self.first, self.second = first, second
        self._swapped = len(np.unique(first)) < len(np.unique(second))
        many, few = (second, first) if self._swapped else (first, second)
        self._order = np.lexsort((few, many))  # by the variable with more distinct values, then by the other
        self._few_order = np.argsort(few, kind="stable")
        ranks = np.unique(few, return_inverse=True)[1].astype(np.int64)[self._order]
        self._levels: list[_Level] = []
        for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
            groups = ranks >> (bit + 1)
            place = np.argsort(groups, kind="stable")
            ones = (ranks[place] >> bit) & 1
            starts = np.maximum.accumulate(np.where(_changes(groups[place]), np.arange(len(place)), 0))
            zeros = np.flatnonzero(ones == 0)
            self._levels.append((place, ones.astype(np.float64), zeros, starts[zeros]))
        many_new = _changes(many[self._order])
        self._many_starts = np.flatnonzero(many_new)
        self._joint_starts = np.flatnonzero(many_new | _changes(few[self._order]))
        self._few_starts = np.flatnonzero(_changes(few[self._few_order]))

    def counts(self, weights: Matrix) -> Balance:
        """Count the pairs of each resample; ``weights``: (resamples, observations), how often each was drawn."""
        columns = np.ascontiguousarray(weights.T)  # an observation's weights side by side: quick to put in order
        ordered = columns[self._order]
        many = np.add.reduceat(ordered, self._many_starts)
        few = np.add.reduceat(columns[self._few_order], self._few_starts)
        tied_many, tied_few = _pairs(many).sum(axis=0), _pairs(few).sum(axis=0)
        tied_both = _pairs(np.add.reduceat(ordered, self._joint_starts)).sum(axis=0)
        size = weights.sum(axis=1)
        discordant = np.zeros(len(weights))
        for order, bits, zeros, starts in self._levels:  # 1s before a 0 of the same group, for each column of weights
            drawn = ordered[order]
            ones = drawn * bits[:, None]
            before = np.cumsum(ones, axis=0)
            before -= ones
            discordant += np.einsum("ij,ij->j", drawn[zeros], before[zeros] - before[starts])
        return Balance(
            # what is neither tied nor discordant is concordant; a pair that is tied in both stands in both tie counts
            _pairs(size) - tied_many - tied_few + tied_both - 2 * discordant,
            *((tied_few, tied_many) if self._swapped else (tied_many, tied_few)),
            size,
            np.minimum(np.count_nonzero(many, axis=0), np.count_nonzero(few, axis=0)).astype(np.float64),
        )


def _changes(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say of each value whether it differs from the one before it; the first does."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _pairs(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Vector:
    pairs: Vector = counts * (counts - 1) / 2
    return pairs


def tau_b(counts: Balance) -> Vector:
    """Kendall's tau-b (1945), [-1, 1], for N pairs: (C - D) / sqrt((N - T1) (N - T2)); NaN where one never varies."""
    total = _pairs(counts.size)
    scale = np.sqrt(total - counts.tied_first) * np.sqrt(total - counts.tied_second)
    return np.clip(ratio(counts.balance, scale), -1.0, 1.0)  # rounding may lead just outside


def tau_c(counts: Balance) -> Vector:
    """Stuart's tau-c (1953), [-1, 1]: 2 (C - D) / (n^2 (m - 1) / m), m the fewer distinct values; NaN as for tau-b."""
    scale = counts.size**2 * (counts.classes - 1) / np.maximum(counts.classes, 1)
    return np.clip(ratio(2 * counts.balance, scale), -1.0, 1.0)


def ratio(above: AnyShape, below: Numbers) -> AnyShape:
    """Return above over below; NaN where below is not above 0."""
    ratios = np.full_like(above, np.nan)
    np.divide(above, below, out=ratios, where=below > 0)
    return ratios


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A correlation coefficient: its label, scipy's function, and its values for resamples."""

    label: str
    exact: Callable[[Vector, Vector], tuple[float, float]]
    resampled: Callable[[PairOrder, Matrix], Vector]


def correlation(name: str, values: Vector, ratings: Vector) -> Bounded:
    """Return a coefficient with scipy's p; undefined for fewer than three observations or without variation."""
    if len(values) < _FEWEST or np.ptp(values) == 0 or np.ptp(ratings) == 0:
        return Bounded(None)
    value, p = (None if np.isnan(number) else float(number) for number in COEFFICIENTS[name].exact(values, ratings))
    return Bounded(value, p=p)


def _scipy(function: str, values: Vector, ratings: Vector, **options: str) -> tuple[float, float]:
    result = getattr(scipy.stats, function)(values, ratings, **options)
    return float(result.statistic), float(result.pvalue)


def _resampled_pearson(of: PairOrder, weights: Matrix) -> Vector:
    first, second = of.first - of.first.mean(), of.second - of.second.mean()
    sums = weights @ np.stack([first, second, first * first, second * second, first * second], axis=1)
    return _pearson(weights.sum(axis=1), sums.T)


def _resampled_spearman(of: PairOrder, weights: Matrix) -> Vector:
    """Return Pearson's coefficient of the ranks, which every resample has of its own."""
    size, centred = weights.sum(axis=1), []
    for values in (of.first, of.second):
        classes = np.unique(values, return_inverse=True)[1]
        order = np.argsort(classes, kind="stable")
        sizes = np.add.reduceat(weights[:, order], np.flatnonzero(_changes(classes[order])), axis=1)
        ranks = np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2  # equal values share the middle of their ranks
        centred.append(ranks[:, classes] - (size[:, None] + 1) / 2)
    first, second = centred
    sums = [(weights * part).sum(axis=1) for part in (first, second, first**2, second**2, first * second)]
    return _pearson(size, np.stack(sums))


def _pearson(size: Vector, sums: Matrix) -> Vector:
    """Return Pearson's coefficient from the weighted sums of x, y, xx, yy, xy; NaN where one does not vary."""
    x, y, xx, yy, xy = sums
    spread_x, spread_y = size * xx - x * x, size * yy - y * y
    tiny = 1e-12  # what is left of an exact 0 by rounding
    varied = (spread_x > tiny * size * xx) & (spread_y > tiny * size * yy)
    scale = np.sqrt(np.where(varied, spread_x * spread_y, 1.0))
    return np.where(varied, np.clip((size * xy - x * y) / scale, -1.0, 1.0), np.nan)


KENDALL: Final = frozenset({"tau_b", "tau_c"})  # the coefficients that count pairs

COEFFICIENTS: Mapping[str, Coefficient] = {
    "tau_b": Coefficient("tau-b", partial(_scipy, "kendalltau", variant="b"), lambda of, w: tau_b(of.counts(w))),
    "tau_c": Coefficient("tau-c", partial(_scipy, "kendalltau", variant="c"), lambda of, w: tau_c(of.counts(w))),
    "pearson": Coefficient("Pearson", partial(_scipy, "pearsonr"), _resampled_pearson),
    "spearman": Coefficient("Spearman", partial(_scipy, "spearmanr"), _resampled_spearman),
}
"""Every coefficient by name. To add one: scipy's function, its values for weighted observations, a line here."""


def resampled(of: PairOrder, weights: Matrix, names: Iterable[str]) -> dict[str, Vector]:
    """Return the named coefficients of each resample; pairs are counted once for both of Kendall's."""
    wanted = tuple(names)
    drawn = of_balance(of.counts(weights)) if set(wanted) >= KENDALL else {}
    return {name: drawn[name] if name in drawn else COEFFICIENTS[name].resampled(of, weights) for name in wanted}


def of_balance(balance: Balance) -> dict[str, Vector]:
    """Return Kendall's coefficients."""
    return {"tau_b": tau_b(balance), "tau_c": tau_c(balance)}


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """Two metrics' agreement with people on the same captions; no p is corrected for the number of comparisons."""

    first_metric: str
    second_metric: str
    statistic: str
    first: float | None
    second: float | None
    difference: float | None  # ``second`` minus ``first``, with its 95 % percentile bootstrap interval over images
    low: float | None
    high: float | None
    p_permutation: float | None  # values exchanged image by image (Deutsch et al., TACL 2021, PERM-BOTH), two-sided
    p_williams: float | None  # see :func:`williams`


def williams(first: float | None, second: float | None, between: float | None, size: int) -> float | None:
    """Return the two-sided p of Williams' test that two metrics correlate alike with the ratings, or ``None``."""
    # Williams 1959; Graham and Baldwin, EMNLP 2014; observations are taken as independent.
    if first is None or second is None or between is None or size <= 3 or between >= 1 - 1e-12:
        return None
    rest = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    spread = 2 * rest * (size - 1) / (size - 3) + mean**2 * (1 - between) ** 3
    if spread <= 0:
        return None
    statistic = (first - second) * math.sqrt((size - 1) * (1 + between) / spread)
    return float(2 * scipy.stats.t.sf(abs(statistic), size - 3))


def accuracy_permutation(difference: Vector, groups: Indices, *, resampling: Resampling) -> float | None:
    """Two-sided p of exchanging two metrics' points group by group; ``difference``: second minus first, by pair."""
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


def resamples(resampling: Resampling, groups: int, width: int = 0) -> Iterator[Matrix]:
    """Yield how often each group is drawn, (resamples, groups), a block of resamples at a time."""
    generator = resampling.generator()
    for size in blocks(resampling.draws, width or groups):
        yield generator.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(np.float64)


def numbered(names: Iterable[str]) -> Indices:
    """Number groups that are resampled together, such as images, by first appearance."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
