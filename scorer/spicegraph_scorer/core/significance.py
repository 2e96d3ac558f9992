"""Intervals and paired tests for every score, from the statistics that the score itself was made from.

Nothing is parsed or tokenized again: a resample of the items is a weighting of their rows, so that all
resamples of a metric are one matrix product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.metric import Matrix, Metric, Vector

SIGNIFICANT: Final = 0.05  # A corrected p below is called sure.
LEVEL: Final = 0.95  # The share of resamples inside every interval.

_BLOCK = 64  # resamples at a time: bounds the memory of large corpora
_ROUNDING = 1e-12  # two equal systems differ by rounding alone


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals and tests draw: number of draws and the seed that makes them repeatable."""

    draws: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        """Refuse what does not give a distribution."""
        if self.draws < 1:
            raise InputError(f"draws: at least 1 is needed, got {self.draws}")

    def signature(self) -> dict[str, float]:
        """Return the settings that must match for two intervals to be comparable."""
        return {"draws": self.draws, "seed": self.seed, "interval": LEVEL}

    def generator(self) -> np.random.Generator:
        """Return a fresh generator."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile bootstrap interval of a corpus score over the items; ``None`` where it is undefined."""

    name: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A score of two systems on the same items, and how likely such a difference is by chance.

    ``difference`` is ``second`` minus ``first``; ``low`` and ``high`` bound it (percentile bootstrap over
    items). ``p_bootstrap`` is the two-sided p of the paired bootstrap test (Koehn, EMNLP 2004, with the
    distribution shifted to the null hypothesis as in Riezler and Maxwell 2005), ``p_randomization`` that of
    approximate randomisation (Noreen 1989). Both are at least ``1 / (draws + 1)``. All are ``None`` where a
    score is undefined; interval and p also where fewer than two items of either system have the score, since then
    nothing varies. ``p_corrected`` is the larger of the two, corrected for the number of tests beside it
    (see :func:`corrected`): by it alone a difference is called sure.
    """

    name: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_bootstrap: float | None
    p_randomization: float | None
    p_corrected: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the difference is more than chance, among all that are looked at together."""
        return self.p_corrected is not None and self.p_corrected < SIGNIFICANT


def corrected(tests: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return tests that are looked at together with ``p_corrected``, by Holm's procedure (1979)."""
    given = tuple(tests)
    known = {
        number: max(test.p_bootstrap, test.p_randomization)
        for number, test in enumerate(given)
        if test.p_bootstrap is not None and test.p_randomization is not None
    }
    ps: dict[int, float] = {}
    for rank, number in enumerate(sorted(known, key=known.__getitem__)):
        ps[number] = max(min(1.0, (len(known) - rank) * known[number]), *ps.values(), 0.0)
    return tuple(replace(test, p_corrected=ps.get(number)) for number, test in enumerate(given))


def intervals(
    metric: Metric[Any], statistics: Sequence[Any], *, resampling: Resampling | None = None, level: float = LEVEL
) -> tuple[Interval, ...]:
    """Return an interval with the share ``level`` of resamples for each score, in the order of ``metric.total``."""
    _check(statistics, level)
    resampling = resampling or Resampling()
    draws = _draw(metric, [metric.columns(statistics)], resampling)[0]
    return tuple(Interval(name, *percentile_bounds(values, level)) for name, values in draws.items())


def compare(
    metric: Metric[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    resampling: Resampling | None = None,
    level: float = LEVEL,
) -> tuple[Comparison, ...]:
    """Test two systems' statistics on the same items, in the same order, against each other."""
    _check(first, level)
    if len(first) != len(second):
        raise InputError(f"the systems have different numbers of items: {len(first)} and {len(second)}")
    resampling = resampling or Resampling()
    first_columns, second_columns = metric.columns(first), metric.columns(second)
    scores = [metric.from_sums(columns.sum(axis=0, keepdims=True)) for columns in (first_columns, second_columns)]
    each = [metric.from_sums(columns) for columns in (first_columns, second_columns)]
    boot = _draw(metric, [first_columns, second_columns], resampling)
    swapped = _swap(metric, first_columns, second_columns, resampling)
    comparisons = []
    for name in scores[0]:
        before, after = float(scores[0][name][0]), float(scores[1][name][0])
        difference = after - before
        tested: tuple[float | None, ...] = (None, None, None, None)
        if all(np.count_nonzero(~np.isnan(values[name])) > 1 for values in each):  # else nothing varies
            drawn = boot[1][name] - boot[0][name]
            tested = (
                *percentile_bounds(drawn, level),
                share_as_extreme(drawn - difference, difference),
                share_as_extreme(swapped[1][name] - swapped[0][name], difference),
            )
        comparisons.append(Comparison(name, _defined(before), _defined(after), _defined(difference), *tested))
    return tuple(comparisons)


def _check(statistics: Sequence[Any], level: float) -> None:
    if not statistics:
        raise InputError("there are no items to resample")
    if not 0 < level < 1:
        raise InputError(f"level: a share between 0 and 1 is needed, got {level}")


def share_as_extreme(null: Vector, observed: float) -> float | None:
    """Return how often chance gives a difference at least as large, with the observed one counted in."""
    if np.isnan(observed):
        return None
    null = null[~np.isnan(null)]
    extreme = int(np.count_nonzero(np.abs(null) >= abs(observed) - _ROUNDING))
    return (extreme + 1) / (len(null) + 1)


def percentile_bounds(values: Vector, level: float = LEVEL) -> tuple[float | None, float | None]:
    """Return the percentile interval of resampled values without NaN; ``None`` if none is left."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None, None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else value


def _draw(metric: Metric[Any], tables: Sequence[Matrix], resampling: Resampling) -> list[dict[str, Vector]]:
    """Return the scores of resamples of the items, drawn with replacement; the same items for every table."""
    items = len(tables[0])
    generator = resampling.generator()
    blocks: list[list[Mapping[str, Vector]]] = [[] for _ in tables]
    for size in _blocks(resampling.draws):
        weights = generator.multinomial(items, np.full(items, 1 / items), size=size).astype(np.float64)
        for table, block in zip(tables, blocks, strict=True):
            block.append(metric.from_sums(weights @ table))
    return [_joined(block) for block in blocks]


def _swap(
    metric: Metric[Any], first_columns: Matrix, second_columns: Matrix, resampling: Resampling
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """Return the scores of both systems after their items were swapped, each with probability one half."""
    generator = resampling.generator()
    difference = second_columns - first_columns
    first: list[Mapping[str, Vector]] = []
    second: list[Mapping[str, Vector]] = []
    for size in _blocks(resampling.draws):
        moved = generator.integers(0, 2, size=(size, len(first_columns))).astype(np.float64) @ difference
        first.append(metric.from_sums(first_columns.sum(axis=0) + moved))
        second.append(metric.from_sums(second_columns.sum(axis=0) - moved))
    return _joined(first), _joined(second)


def _blocks(draws: int) -> list[int]:
    return [min(_BLOCK, draws - done) for done in range(0, draws, _BLOCK)]


def _joined(blocks: Sequence[Mapping[str, Vector]]) -> dict[str, Vector]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def conformal_threshold(probabilities: Sequence[float], rate: float = 0.1) -> float:
    """Return the threshold above which at most a share ``rate`` of right words, in (0, 1), are flagged.

    It is the ceil((n + 1)(1 - rate))-th smallest of n probabilities of right words, not of the fit: of
    a new right word, exchangeable with these, the chance of being above it is at most the rate. Fewer than 1 / rate - 1
    words give 1: none is flagged.
    """
    if not 0 < rate < 1:
        raise InputError(f"the rate of false alarms is {rate}; expected a number between 0 and 1")
    rank = math.ceil((len(probabilities) + 1) * (1 - rate))
    return 1.0 if rank > len(probabilities) else float(np.sort(np.asarray(probabilities, np.float64))[rank - 1])
