"""Metrics that weigh an item by all others: what is collected from a part of a request, and what at its end.

CIDEr's words weigh by the references of the whole request. Of a part, the items themselves are kept, and what
else can be had already: at the end, no caption is parsed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.evidence import without_evidence
from spicegraph_scorer.metrics.cider import Cider, CiderStatistic
from spicegraph_scorer.metrics.spider import Spider, SpiderStatistic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

__all__ = ["collect_part", "finish_parts", "needs_whole_corpus"]


class _Way(NamedTuple):
    """How a metric is collected in parts: its CIDEr, a value an item of a part, statistics from those values."""

    cider: Callable[[Any], Cider]
    collect: Callable[[Any, Corpus], list[Any]]
    finish: Callable[[Any, Sequence[Any]], list[Any]]


def _cider(metric: Cider) -> Cider:
    return metric


def _cider_part(_metric: Cider, corpus: Corpus) -> list[Item]:
    return list(corpus.items)


def _cider_finish(metric: Cider, items: Sequence[Item]) -> list[CiderStatistic]:
    return metric.collect(Corpus(tuple(items)))


def _spider_cider(metric: Spider) -> Cider:
    return metric.cider


def _spider_part(metric: Spider, corpus: Corpus) -> list[tuple[Item, SpiceStatistic]]:
    spice = map(without_evidence, metric.spice.collect(corpus))
    return list(zip(corpus.items, spice, strict=True))


def _spider_finish(metric: Spider, values: Sequence[tuple[Item, SpiceStatistic]]) -> list[SpiderStatistic]:
    cider = _cider_finish(metric.cider, [item for item, _ in values])
    return [SpiderStatistic(one, spice) for one, (_, spice) in zip(cider, values, strict=True)]


_WAYS: Mapping[type[Any], _Way] = {
    Cider: _Way(_cider, _cider_part, _cider_finish),
    Spider: _Way(_spider_cider, _spider_part, _spider_finish),
}


def needs_whole_corpus(metric: Metric[Any]) -> bool:
    """Say whether an item's statistic depends on the other items."""
    way = _WAYS.get(type(metric))
    return way is not None and way.cider(metric).frequencies is None


def collect_part(metric: Metric[Any], corpus: Corpus) -> list[Any]:
    """Return a value an item of a part of a request; for metrics that need the whole corpus."""
    return _WAYS[type(metric)].collect(metric, corpus)


def finish_parts(metric: Metric[Any], values: Sequence[Any]) -> list[Any]:
    """Return the statistics of all items from the values of the parts."""
    return _WAYS[type(metric)].finish(metric, values)
