"""What corpus scores are made from, without the items: sums of parts of a corpus add up to those of the whole.

The scores of the sums are those of :func:`spicegraph_scorer.score` to the bit, however the corpus was cut. So a
corpus of any size is scored in parts, and nothing of an item is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spicegraph_scorer.core.categories import category_rows, means_of_sums
from spicegraph_scorer.core.exact import ExactSums
from spicegraph_scorer.core.results import CorpusScore, RunSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric


@dataclass(frozen=True, slots=True)
class RunTotals:
    """One metric's sums over some items.

    ``sums`` are of what its corpus scores are functions of, ``defined`` counts by score the items where it is defined,
    and ``categories`` holds the sums of its categories.
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
        >>> from spicegraph_scorer.core.tokens import Corpus
        >>> from spicegraph_scorer.core.items import Item
        >>> from spicegraph_scorer.metrics.rouge import RougeL
        >>> rouge = RougeL()
        >>> statistics = rouge.collect(Corpus((Item(1, "a dog", ("a dog",)), Item(2, "a cat", ("dogs",)))))
        >>> parts = [totals_of(rouge, [statistic]) for statistic in statistics]
        >>> summary_of(rouge, parts[1] + parts[0]).scores
        (CorpusScore(name='ROUGE_L', value=0.5, items=2),)
    """
    rows = [category_rows(metric.by_category(statistic)) for statistic in statistics]
    return RunTotals(
        ExactSums.of(metric.summed().columns(statistics).tolist()),
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
    values = metric.summed().from_sums(totals.sums.rounded())
    scores = tuple(
        CorpusScore(name, None if math.isnan(value[0]) else float(value[0]), items)
        for (name, value), items in zip(values.items(), totals.defined, strict=True)
    )
    return RunSummary(scores, {name: means_of_sums(sums) for name, sums in totals.categories.items()})
