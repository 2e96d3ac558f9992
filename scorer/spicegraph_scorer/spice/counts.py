"""Counts that add up, and precision, recall and F1 as properties of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer.spice.categories import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.spice.categories import Category
    from spicegraph_scorer.spice.match import Match

__all__ = ["ALL", "Counts", "count_match"]

ALL = "All"
"""The name of the total over every tuple."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of tuples: matched candidate tuples, all candidate tuples, all reference tuples."""

    matched: int = 0
    candidate: int = 0
    reference: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Return the sum, for micro averages."""
        return Counts(self.matched + other.matched, self.candidate + other.candidate, self.reference + other.reference)

    @property
    def precision(self) -> float:
        """Share of candidate tuples that match, in [0, 1]; 0 without candidate tuples."""
        return self.matched / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Matched tuples over reference tuples, in [0, 1] but for many-to-one matches; 0 without references.

        SPICE divides the number of matched *candidate* tuples by the number of reference tuples.
        """
        return self.matched / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are 0."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def count_match(match: Match, *, categories: Mapping[str, Category] = CATEGORIES) -> dict[str, Counts]:
    """Count a match in total (``All``) and by category.

    Within a category only its own tuples match each other: "grey" finds no partner among the colours when the
    reference's is "gray/grey", as in SPICE 1.0.
    """
    partners = match.candidate_partners
    counts = {ALL: Counts(sum(map(bool, partners)), len(match.candidate), len(match.reference))}
    candidate, reference = _by_length(match.candidate), _by_length(match.reference)
    for name, category in categories.items():
        mine = category.select(match.candidate, candidate.get(category.length, ()))
        theirs = set(category.select(match.reference, reference.get(category.length, ())))
        hits = [index for index in mine if not theirs.isdisjoint(partners[index])]
        counts[name] = Counts(len(hits), len(mine), len(theirs))
    return counts


def _by_length(tuples: Sequence[SceneTuple]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index, scene_tuple in enumerate(tuples):
        found.setdefault(len(scene_tuple.concepts), []).append(index)
    return found
