"""Sums of weights, in total and by category, and precision, recall and F1 as properties of them."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_scorer.metrics.spice.counts import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.graded.sides import Side
    from spicegraph_scorer.metrics.graded.similarity import Floats
    from spicegraph_scorer.metrics.spice.categories import Category

__all__ = ["Weighed", "weigh"]

_Part = tuple["Sequence[Concept]", list[float], list[float]]


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'.

    A candidate's tuple has a part of its weight supported that is the square root of its support; :attr:`precision`
    undoes it, so that one tuple without any support costs more than two with half of theirs.
    """

    supported: float
    candidate: float
    found: float
    reference: float

    @property
    def precision(self) -> float:
        """Power mean, with exponent 1/2, of the support of the candidate's tuples, in [0, 1]; 0 without any."""
        share = self.supported / self.candidate if self.candidate else 0.0
        return share * share

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are 0."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def weigh(
    sides: tuple[Side, Side], supported: tuple[Floats, Floats], categories: Mapping[str, Category], *, order: float = 1
) -> dict[str, Weighed]:
    """Add up weights in total (``All``) and by category.

    ``supported`` says how far each tuple of either side is. A category holds its own tuples; what supports them may
    be of another. ``order`` is the share of every support that the order of the candidate's words leaves.
    """
    (candidate, reference), (forward, backward) = sides, supported
    left = np.float64(order)  # so that sums are of doubles
    mine = (np.sqrt(forward * left) * candidate.weights).tolist(), candidate.weights.tolist()
    theirs = (backward * left * reference.weights).tolist(), reference.weights.tolist()
    sums = {ALL: Weighed(sum(mine[0]), sum(mine[1]), sum(theirs[0]), sum(theirs[1]))}
    parts, other_parts = _parts(sides[0], *mine), _parts(sides[1], *theirs)
    for name, category in categories.items():
        kind = category.length - 1
        sums[name] = Weighed(*_sums(category, *parts[kind]), *_sums(category, *other_parts[kind]))
    return sums


def _parts(side: Side, supported: list[float], weights: list[float]) -> list[_Part]:
    """Return objects, attributes and relations of a side, each with the supported part of the weights and the whole."""
    objects, attributes, _ = side.sizes
    cuts = slice(objects), slice(objects, objects + attributes), slice(objects + attributes, None)
    return [(side.concepts[cut], supported[cut], weights[cut]) for cut in cuts]


def _sums(category: Category, concepts: Sequence[Concept], *values: list[float]) -> list[float]:
    """Return the sums of a category's values."""
    if category.words is None and category.keys is None:  # a whole type: no need to look at its tuples
        return list(map(sum, values))
    takes = category.takes(concepts) if concepts else []
    return [sum(compress(of_all, takes)) for of_all in values] if any(takes) else [0.0] * len(values)
