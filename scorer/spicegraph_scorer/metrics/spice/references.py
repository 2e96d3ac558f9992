"""The merged references of images: all candidates of an image are matched with the same tuples."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.metrics.spice.counts import select_categories
from spicegraph_scorer.metrics.spice.match import group_by_length

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.metrics.spice.categories import Category


class MergedReferences(NamedTuple):
    """What all candidates of an image have in common: tuples, their places by length, and by category."""

    tuples: tuple[SceneTuple, ...]
    by_length: Mapping[int, list[int]]
    categories: Mapping[str, Category]
    selected: Mapping[str, frozenset[int]]


class ReferenceCache:
    """Keeps the merged references of the images that were scored last, about 20 kB each.

    Args:
        images: how many images; an image is known by the metric and its references.
    """

    def __init__(self, images: int) -> None:
        self._images = images
        self._merged: OrderedDict[tuple[str, tuple[str, ...]], MergedReferences] = OrderedDict()

    def get(
        self,
        metric: str,
        references: tuple[str, ...],
        categories: Mapping[str, Category],
        merge: Callable[[], tuple[SceneTuple, ...]],
    ) -> MergedReferences:
        """Return an image's references, which are merged if they are not known.

        Args:
            metric: the name of the metric, which says how references are merged.
            references: the captions.
            categories: what is counted beside the total; other categories are selected anew.
            merge: gives the tuples.
        """
        key = (metric, references)
        known = self._merged.get(key)
        if known is not None and known.categories is categories:
            self._merged.move_to_end(key)
            return known
        tuples = known.tuples if known else merge()
        made = MergedReferences(tuples, group_by_length(tuples), categories, select_categories(tuples, categories))
        self._merged[key] = made
        if len(self._merged) > self._images:
            self._merged.popitem(last=False)
        return made
