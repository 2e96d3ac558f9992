"""The merged references of images, remembered: a training loop scores the same images again and again."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.metrics.spice.counts import count_match, select_categories
from spicegraph_scorer.metrics.spice.match import group_by_length, match_tuples
from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.metrics.spice.categories import Category
    from spicegraph_scorer.metrics.spice.metric import Spice

__all__ = ["ReferenceTuples"]

_IMAGES = 2_000  # about 20 kB each


class _Reference(NamedTuple):
    """What all candidates of an image have in common: tuples, their places by length, and by category."""

    tuples: tuple[SceneTuple, ...]
    by_length: Mapping[int, list[int]]
    categories: Mapping[str, Category]
    selected: Mapping[str, frozenset[int]]


class ReferenceTuples:
    """Collects the statistics of a SPICE metric as the metric itself does, without merging references twice."""

    def __init__(self, facts: Callable[[str], tuple[Fact, ...]]) -> None:
        self._facts = facts
        self._merged: OrderedDict[tuple[str, tuple[str, ...]], _Reference] = OrderedDict()

    def collect(self, metric: Spice, items: Iterable[Item]) -> list[SpiceStatistic]:
        """Return what ``metric.collect`` returns for the items."""
        statistics = []
        for item in items:
            candidate = metric.graph([self._facts(item.candidate)]).tuples()
            reference = self._reference(metric, item.references)
            match = match_tuples(candidate, reference.tuples, by_length=reference.by_length)
            counts = count_match(match, categories=metric.categories, reference=reference.selected)
            statistics.append(SpiceStatistic(counts, match))
        return statistics

    def _reference(self, metric: Spice, references: tuple[str, ...]) -> _Reference:
        key = (metric.name, references)
        known = self._merged.get(key)
        if known is None or known.categories is not metric.categories:
            tuples = known.tuples if known else metric.graph([self._facts(text) for text in references]).tuples()
            selected = select_categories(tuples, metric.categories)
            known = _Reference(tuples, group_by_length(tuples), metric.categories, selected)
            self._merged[key] = known
            if len(self._merged) > _IMAGES:
                self._merged.popitem(last=False)
        else:
            self._merged.move_to_end(key)
        return known
