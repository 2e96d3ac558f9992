"""From the supports of tuples to precision, recall and F1: sums of weights, in total and by category."""

from __future__ import annotations

from itertools import chain, starmap
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.metrics.graded.matching import precision_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.metrics.graded.matching import Integers, Sides, Supports, Weights
    from spicegraph_scorer.metrics.spice.categories import Category

_PRECISION_EXPONENT: Final = 0.75
_WORDS_SHARE: Final = 0.5
_ALIGNED_SHARE: Final = 0.2


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'.

    ``aligned`` is the alignment of the texts, which has a fifth of F1: of the total alone, and where texts were read.
    """

    supported: float
    candidate: float
    found: float
    reference: float
    aligned: float | None = None

    @property
    def precision(self) -> float:
        """Supported share of the candidate's weight, in [0, 1]; 0 without any."""
        return self.supported / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 where both are 0; four fifths of it and a fifth of ``aligned``."""
        precision, recall = self.precision, self.recall
        found = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return found if self.aligned is None else found + _ALIGNED_SHARE * (self.aligned - found)

    def mixed(self, words: Weighed, aligned: float | None) -> Weighed:
        """Return the total: half of the support is that of the words alone, if there are any, on either side."""
        supported, found = self.supported, self.found
        if words.candidate:
            supported += _WORDS_SHARE * (words.precision * self.candidate - supported)
        if words.reference:
            found += _WORDS_SHARE * (words.recall * self.reference - found)
        return Weighed(supported, self.candidate, found, self.reference, aligned)


def weigh(
    sides: Sides,
    precision: Supports,
    recall: Supports,
    categories: Mapping[str, Category],
    order: Sequence[float],
) -> list[dict[str, Weighed]]:
    """Add up the weights of each comparison in total (``All``) and by category.

    The supported part of a candidate's weight is the power mean, with exponent 3/4, of its tuples' support: two tuples
    with half of their support cost less than one without any. (Formula 3 had 1/2, which costs longer captions more than
    people think.)

    A category holds its own tuples; what supports them may be of another. ``order`` is, for each comparison, the share
    of every support that the order of the candidate's words leaves.
    """
    left = np.array(order, np.float64)
    mine = precision_weights(sides, precision)
    theirs = sides.weights[recall.tuples]
    powers = (precision.found.support * np.repeat(left, precision.counts)) ** _PRECISION_EXPONENT * mine
    found = recall.found.support * np.repeat(left, recall.counts) * theirs
    columns = [_weighed(_sums(precision, powers, mine), _sums(recall, found, theirs))]
    for takes in _members(sides, categories):
        own, other = takes[precision.tuples], takes[recall.tuples]
        columns.append(
            _weighed(_sums(precision, powers * own, mine * own), _sums(recall, found * other, theirs * other))
        )
    names = ALL, *categories
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _sums(side: Supports, *values: Weights) -> list[Weights]:
    """Return the sum of values of each comparison, added up in order."""
    comparison: Integers = np.repeat(np.arange(len(side.counts)), side.counts)
    # of nothing, bincount returns integers
    return [np.bincount(comparison, one, len(side.counts)).astype(np.float64, copy=False) for one in values]


def _weighed(mine: Sequence[Weights], theirs: Sequence[Weights]) -> list[Weighed]:
    powers, weights = mine
    shares = np.divide(powers, weights, out=np.zeros_like(powers), where=weights > 0)
    supported = weights * shares ** (1 / _PRECISION_EXPONENT)
    return list(starmap(Weighed, np.stack([supported, weights, *theirs], axis=1).tolist()))


def _members(sides: Sides, categories: Mapping[str, Category]) -> Iterator[Weights]:
    """Yield for each category 1 for each tuple of the graphs that belongs to it, and 0 for others."""
    concepts = list(chain.from_iterable(graph.concepts for graph in sides.nodes)) if categories else []
    places = [np.flatnonzero(sides.kinds == kind) for kind in range(3)]
    of_kind = [[concepts[place] for place in of] for of in places] if concepts else [[], [], []]
    for category in categories.values():
        takes = np.zeros(len(sides.kinds))
        kind = category.length - 1
        takes[places[kind]] = 1 if category.takes_all else category.takes(of_kind[kind])
        yield takes
