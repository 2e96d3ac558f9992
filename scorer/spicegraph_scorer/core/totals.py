"""What corpus scores are made from, without the items: sums of parts of a corpus add up to those of the whole.

The scores of the sums are those of :func:`spicegraph_scorer.score` to the bit, however the corpus was cut. So a
corpus of any size is scored in parts, and nothing of an item is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.core.exact import ExactSums
from spicegraph_scorer.core.significance import Summed, summed
from spicegraph_scorer.core.summary import CorpusScore, RunSummary
from spicegraph_scorer.metrics.graded.metric import GradedMeans, GradedStatistic, SpiceG
from spicegraph_scorer.metrics.spice.metric import CategoryMeans, Spice, SpiceStatistic
from spicegraph_scorer.metrics.spider import Spider, mean_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.core.significance import Matrix, Vector
    from spicegraph_scorer.metrics.spider import SpiderStatistic

__all__ = ["RunTotals", "added", "summary_of", "totals_of"]


@dataclass(frozen=True, slots=True)
class RunTotals:
    """One metric's sums over some items.

    ``sums`` are of what its corpus scores are functions of, ``defined`` counts by score the items where it is defined,
    and ``categories`` holds the sums of SPICE's and SPICE-G's categories.
    """

    sums: ExactSums
    defined: tuple[int, ...]
    categories: Mapping[str, ExactSums]

    def __add__(self, other: RunTotals) -> RunTotals:
        """Return the sums over both sets of items."""
        return RunTotals(
            self.sums + other.sums,
            tuple(mine + theirs for mine, theirs in zip(self.defined, other.defined, strict=True)),
            {name: mine + other.categories[name] for name, mine in self.categories.items()},
        )


def totals_of(metric: Metric[Any], statistics: Sequence[Any]) -> RunTotals:
    """Return the sums over the statistics of at least one item.

    Example:
        >>> from spicegraph_scorer.core.items import Corpus, Item
        >>> from spicegraph_scorer.metrics.rouge import RougeL
        >>> rouge = RougeL()
        >>> statistics = rouge.collect(Corpus((Item(1, "a dog", ("a dog",)), Item(2, "a cat", ("dogs",)))))
        >>> parts = [totals_of(rouge, [statistic]) for statistic in statistics]
        >>> summary_of(rouge, parts[1] + parts[0]).scores
        (CorpusScore(name='ROUGE_L', value=0.5, items=2),)
    """
    rows = [_category_row(statistic) for statistic in statistics]
    return RunTotals(
        ExactSums.of(_columns_of(metric).columns(statistics).tolist()),
        tuple(sum(value is not None for value in score.each) for score in metric.total(statistics)),
        {name: ExactSums.of([row[name] for row in rows]) for name in rows[0]},
    )


def added(parts: Sequence[Mapping[str, RunTotals]]) -> dict[str, RunTotals]:
    """Return the totals of several parts together, by metric; there is at least one part."""
    sums = dict(parts[0])
    for part in parts[1:]:
        sums = {name: mine + part[name] for name, mine in sums.items()}
    return sums


def summary_of(metric: Metric[Any], totals: RunTotals) -> RunSummary:
    """Return the corpus scores that the sums make."""
    values = _columns_of(metric).combine(totals.sums.rounded())
    scores = tuple(
        CorpusScore(name, None if math.isnan(value[0]) else float(value[0]), items)
        for (name, value), items in zip(values.items(), totals.defined, strict=True)
    )
    return RunSummary(
        scores,
        {n: _category_means(sums) for n, sums in totals.categories.items()} if isinstance(metric, Spice) else {},
        {n: _graded_means(sums) for n, sums in totals.categories.items()} if isinstance(metric, SpiceG) else {},
    )


@dataclass(frozen=True, slots=True)
class _SpiderMeans:
    """SPIDEr's corpus value is the mean of two corpus values, each rounded on its own."""

    metric: Spider

    def columns(self, statistics: Sequence[SpiderStatistic]) -> Matrix:
        cider = summed(self.metric.cider).columns([statistic.cider for statistic in statistics])
        return np.hstack([cider, summed(self.metric.spice).columns([statistic.spice for statistic in statistics])])

    def combine(self, sums: Matrix) -> Mapping[str, Vector]:
        cider, spice = np.hsplit(sums, [2])  # CIDEr-D is one score: its sum, and the number of items
        [first] = summed(self.metric.cider).combine(cider).values()
        second, *_ = summed(self.metric.spice).combine(spice).values()
        return {"SPIDEr": np.array([mean_of(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)])}


def _columns_of(metric: Metric[Any]) -> Summed[Any]:
    return _SpiderMeans(metric) if isinstance(metric, Spider) else summed(metric)


@singledispatch
def _category_row(_statistic: object) -> Mapping[str, tuple[float, ...]]:
    """Return what is summed for each category of an item's statistic; nothing for metrics without categories."""
    return {}


@_category_row.register
def _(statistic: SpiceStatistic) -> Mapping[str, tuple[float, ...]]:
    return {name: _counts_row(counts, total=name == ALL) for name, counts in statistic.counts.items()}


@_category_row.register
def _(statistic: GradedStatistic) -> Mapping[str, tuple[float, ...]]:
    scores = {name: statistic.scores(name) for name in statistic.weights}
    return {
        name: (found["f"] or 0.0, found["pr"] or 0.0, found["re"] or 0.0, found["f"] is not None)
        for name, found in scores.items()
    }


def _counts_row(counts: Counts, *, total: bool) -> tuple[float, ...]:
    numbers = (counts.matched, counts.candidate, counts.reference)
    if not counts.reference and not total:
        return (0.0, 0.0, 0.0, 0, *numbers)
    return (counts.f1, counts.precision, counts.recall, 1, *numbers)


def _category_means(sums: ExactSums) -> CategoryMeans:
    f1, precision, recall, items, *numbers = sums.values()
    means = _mean(f1, items), _mean(precision, items), _mean(recall, items)
    return CategoryMeans(*means, int(items), Counts(*map(int, numbers)))


def _graded_means(sums: ExactSums) -> GradedMeans:
    f1, precision, recall, items = sums.values()
    return GradedMeans(_mean(f1, items), _mean(precision, items), _mean(recall, items), int(items))


def _mean(total: float, items: float) -> float | None:
    return total / items if items else None
