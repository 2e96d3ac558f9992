"""Sums of weights, in total and by category, and precision, recall and F1 as properties of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.spice.counts import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.graded.sides import Side
    from spicegraph_scorer.graded.similarity import Support
    from spicegraph_scorer.spice.categories import Category

__all__ = ["Weighed", "weigh"]


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'."""

    supported: float
    candidate: float
    found: float
    reference: float

    @property
    def precision(self) -> float:
        """Supported share of the candidate's weight, in [0, 1]; 0 without candidate tuples."""
        return self.supported / self.candidate if self.candidate else 0.0

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
    sides: tuple[Side, Side], supports: tuple[Support, Support], categories: Mapping[str, Category]
) -> dict[str, Weighed]:
    """Add up weights in total (``All``) and by category.

    A category holds its own tuples; what supports them may be of another.
    """
    mine, theirs = (
        ((support.support * side.weights).tolist(), side.weights.tolist())
        for side, support in zip(sides, supports, strict=True)
    )
    sums = {ALL: Weighed(sum(mine[0]), sum(mine[1]), sum(theirs[0]), sum(theirs[1]))}
    for name, category in categories.items():
        sums[name] = Weighed(*_sums(sides[0], category, mine), *_sums(sides[1], category, theirs))
    return sums


def _sums(side: Side, category: Category, values: tuple[list[float], list[float]]) -> tuple[float, float]:
    """Return the supported part and the whole of a category's weights on one side."""
    first = sum(side.sizes[: category.length - 1])
    last = first + side.sizes[category.length - 1]
    supported, weights = values
    if category.words is None and category.keys is None:  # a whole type: no need to look at its tuples
        return sum(supported[first:last]), sum(weights[first:last])
    places = category.select(side.tuples, range(first, last))
    return sum([supported[place] for place in places]), sum([weights[place] for place in places])
