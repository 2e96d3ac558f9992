"""Concordant, discordant and tied pairs of two variables, for many resamples at once.

A resample of the observations is a weighting of them by whole numbers, so that ordering and grouping are done
once and every resample is sums over the same order: O(n log n) for the order, O(n log k) for each resample,
where k is the smaller number of distinct values (human ratings have few).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Matrix", "PairCounts", "PairOrder", "Vector", "pair_order", "tau_b", "tau_c"]

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


class PairCounts(NamedTuple):
    """How the pairs of observations stand to each other, one value for each resample.

    ``concordant + discordant + tied_first + tied_second - tied_both == total``: a pair that is tied in both
    variables is counted in each of the three.
    """

    concordant: Vector
    discordant: Vector
    tied_first: Vector
    tied_second: Vector
    tied_both: Vector
    size: Vector
    """Observations, drawn ones as often as they were drawn."""
    classes: Vector
    """Distinct values of the variable that has fewer."""

    @property
    def total(self) -> Vector:
        """All pairs."""
        return _pairs(self.size)


class _Level(NamedTuple):
    """One bit of the ranks: an order in which ranks that agree above the bit stand together."""

    order: Indices
    ones: Vector
    zeros: Indices
    """Positions in the order whose bit is 0."""
    starts: Indices
    """For each of them, the position where its group begins."""


@dataclass(frozen=True, slots=True)
class PairOrder:
    """Everything about two variables that does not depend on the weights; see :func:`pair_order`."""

    first: Vector
    second: Vector
    order: Indices
    """Observations by the variable with more distinct values, then by the other."""
    many_starts: Indices
    joint_starts: Indices
    few_order: Indices
    few_starts: Indices
    levels: tuple[_Level, ...]
    swapped: bool
    """Whether the variable with more distinct values is the second one."""

    def counts(self, weights: Matrix) -> PairCounts:
        """Count the pairs of each resample.

        Args:
            weights: (resamples, observations), how often each observation was drawn; whole numbers.
        """
        columns = np.ascontiguousarray(weights.T)  # an observation's weights side by side: quick to put in order
        ordered = columns[self.order]
        many = np.add.reduceat(ordered, self.many_starts)
        few = np.add.reduceat(columns[self.few_order], self.few_starts)
        tied_many, tied_few = _pairs(many).sum(axis=0), _pairs(few).sum(axis=0)
        tied_both = _pairs(np.add.reduceat(ordered, self.joint_starts)).sum(axis=0)
        size = weights.sum(axis=1)
        discordant = np.zeros(len(weights))
        for level in self.levels:
            discordant += _crossings(ordered, level)
        return PairCounts(
            _pairs(size) - tied_many - tied_few + tied_both - discordant,
            discordant,
            *((tied_few, tied_many) if self.swapped else (tied_many, tied_few)),
            tied_both,
            size,
            np.minimum(np.count_nonzero(many, axis=0), np.count_nonzero(few, axis=0)).astype(np.float64),
        )


def pair_order(first: Vector, second: Vector) -> PairOrder:
    """Order two variables of the same observations for :meth:`PairOrder.counts`.

    Example:
        >>> order = pair_order(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
        >>> counts = order.counts(np.ones((1, 3)))
        >>> float(counts.concordant[0]), float(counts.discordant[0])
        (2.0, 1.0)
    """
    swapped = len(np.unique(first)) < len(np.unique(second))
    many, few = (second, first) if swapped else (first, second)
    order = np.lexsort((few, many))
    few_order = np.argsort(few, kind="stable")
    few_ranks = np.unique(few, return_inverse=True)[1].astype(np.int64)
    many_new = _changes(many[order])
    joint_new = many_new | _changes(few[order])
    return PairOrder(
        first,
        second,
        order,
        np.flatnonzero(many_new),
        np.flatnonzero(joint_new),
        few_order,
        np.flatnonzero(_changes(few[few_order])),
        tuple(_levels(few_ranks[order])),
        swapped,
    )


def _levels(ranks: Indices) -> Iterator[_Level]:
    """Yield a level for every bit of the ranks.

    Two ranks first differ at exactly one bit, counted from the top; so every inversion (a higher rank before a
    lower one) is found at one level only, as a 1 before a 0 within a group.
    """
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        groups = ranks >> (bit + 1)
        order = np.argsort(groups, kind="stable")
        ones = (ranks[order] >> bit) & 1
        starts = np.maximum.accumulate(np.where(_changes(groups[order]), np.arange(len(order)), 0))
        zeros = np.flatnonzero(ones == 0)
        yield _Level(order, ones.astype(np.float64), zeros, starts[zeros])


def _crossings(ordered: Matrix, level: _Level) -> Vector:
    """Return the weighted number of 1s that stand before a 0 of the same group, for each column of weights."""
    weights = ordered[level.order]
    ones = weights * level.ones[:, None]
    before = np.cumsum(ones, axis=0)
    before -= ones
    found: Vector = np.einsum("ij,ij->j", weights[level.zeros], before[level.zeros] - before[level.starts])
    return found


def _changes(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say of each value whether it differs from the one before it; the first does."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _pairs(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Vector:
    pairs: Vector = counts * (counts - 1) / 2
    return pairs


def tau_b(counts: PairCounts) -> Vector:
    """Return Kendall's tau-b, [-1, 1]; NaN where a variable has one value only.

    (C - D) / sqrt((N - T1) (N - T2)) over N pairs, of which T1 and T2 are tied in a variable (Kendall 1945).
    """
    scale = np.sqrt(counts.total - counts.tied_first) * np.sqrt(counts.total - counts.tied_second)
    return _ratio(counts.concordant - counts.discordant, scale)


def tau_c(counts: PairCounts) -> Vector:
    """Return Stuart's tau-c, [-1, 1]; NaN where a variable has one value only.

    2 (C - D) / (n^2 (m - 1) / m) for n observations, where m is the smaller number of distinct values
    (Stuart 1953).
    """
    scale = counts.size**2 * (counts.classes - 1) / np.maximum(counts.classes, 1)
    return _ratio(2 * (counts.concordant - counts.discordant), scale)


def _ratio(above: Vector, below: Vector) -> Vector:
    found = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return np.clip(found, -1.0, 1.0)  # rounding may lead just outside
