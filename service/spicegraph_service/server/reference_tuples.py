"""The merged references of images, remembered: a training loop scores the same images again and again."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from spicegraph_scorer.spice.counts import count_match
from spicegraph_scorer.spice.match import match_tuples
from spicegraph_scorer.spice.metric import SpiceStatistic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.items import Item
    from spicegraph_scorer.spice.metric import Spice

__all__ = ["ReferenceTuples"]

_IMAGES = 2_000  # about 20 kB each


class ReferenceTuples:
    """Collects the statistics of a SPICE metric as the metric itself does, without merging references twice."""

    def __init__(self, facts: Callable[[str], tuple[Fact, ...]]) -> None:
        self._facts = facts
        self._merged: OrderedDict[tuple[str, tuple[str, ...]], tuple[SceneTuple, ...]] = OrderedDict()

    def collect(self, metric: Spice, items: Iterable[Item]) -> list[SpiceStatistic]:
        """Return what ``metric.collect`` returns for the items."""
        statistics = []
        for item in items:
            candidate = metric.graph([self._facts(item.candidate)]).tuples()
            match = match_tuples(candidate, self._reference(metric, item.references))
            statistics.append(SpiceStatistic(count_match(match, categories=metric.categories), match))
        return statistics

    def _reference(self, metric: Spice, references: tuple[str, ...]) -> tuple[SceneTuple, ...]:
        key = (metric.name, references)
        merged = self._merged.get(key)
        if merged is None:
            merged = metric.graph([self._facts(text) for text in references]).tuples()
            self._merged[key] = merged
            if len(self._merged) > _IMAGES:
                self._merged.popitem(last=False)
        else:
            self._merged.move_to_end(key)
        return merged
