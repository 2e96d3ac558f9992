"""Metrics that are called as they are, for all held-out captions of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spicegraph_scorer.core.items import Corpus, Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.studies.bounds.tables import Batch

__all__ = ["item_statistics"]


def item_statistics(metric: Metric[Any], batch: Batch) -> list[list[Any]]:
    """Return the statistics of each trial's candidates, each against its image's other captions.

    For metrics whose statistic depends on the item alone. What is scored against the same captions follows each
    other, so that a metric that prepares a set of references once for neighbouring items does so.
    """
    statistics = metric.collect(Corpus(tuple(_items(batch))))
    return [statistics[place :: len(batch.trials)] for place in range(len(batch.trials))]


def _items(batch: Batch) -> Iterator[Item]:
    """Yield the items caption by caption, and for each caption trial by trial."""
    number = 0
    for captions, *trials in zip(batch.captions, *batch.trials, strict=True):
        for place in range(len(captions)):
            others = captions[:place] + captions[place + 1 :]
            for mine in trials:
                yield Item(number, mine[place], others)
                number += 1
