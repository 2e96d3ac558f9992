"""Counts of matches, in total and by category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.metrics.spice.match import group_by_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.metrics.spice.categories import Category
    from spicegraph_scorer.metrics.spice.match import Match

__all__ = ["ALL", "CategoryCounts", "Counts", "count_match", "select_categories"]


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts(Mapping[str, Counts]):
    """One item's counts by category, in a third of a dict's memory: a corpus has millions of them.

    ``places`` says which of ``each`` is a category's: one dict for all items. Equal counts are one value, too.
    """

    places: Mapping[str, int]
    each: tuple[Counts, ...]

    @classmethod
    def of(cls, counts: Mapping[str, Counts]) -> CategoryCounts:
        """Keep counts."""
        return cls(_places(tuple(counts)), tuple(map(_shared, counts.values())))

    def __getitem__(self, name: str) -> Counts:
        return self.each[self.places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.each)


@lru_cache(maxsize=256)
def _places(names: tuple[str, ...]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


@lru_cache(maxsize=1 << 14)
def _shared(counts: Counts) -> Counts:
    return counts


def count_match(
    match: Match,
    *,
    categories: Mapping[str, Category] = CATEGORIES,
    reference: Mapping[str, frozenset[int]] | None = None,
) -> dict[str, Counts]:
    """Count a match in total (``All``) and by category.

    Within a category only its own tuples match each other: "grey" finds no partner among the colours when the
    reference's is "gray/grey", as in SPICE 1.0.

    Args:
        match: what is counted.
        categories: the categories beside ``All``.
        reference: ``select_categories`` of the reference's tuples, where they are counted with many candidates.
    """
    partners = match.candidate_partners
    counts = {ALL: Counts(sum(map(bool, partners)), len(match.candidate), len(match.reference))}
    candidate = select_categories(match.candidate, categories)
    if reference is None:
        reference = select_categories(match.reference, categories)
    for name, mine in candidate.items():
        theirs = reference[name]
        hits = sum(not theirs.isdisjoint(partners[index]) for index in mine)
        counts[name] = Counts(hits, len(mine), len(theirs))
    return counts


def select_categories(tuples: Sequence[SceneTuple], categories: Mapping[str, Category]) -> dict[str, frozenset[int]]:
    """Return the indices of the tuples of each category."""
    lengths = group_by_length(tuples)
    return {
        name: frozenset(category.select(tuples, lengths.get(category.length, ())))
        for name, category in categories.items()
    }
