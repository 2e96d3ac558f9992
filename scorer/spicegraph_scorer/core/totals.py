"""What corpus scores are made from, without the items: sums of parts of a corpus add up to those of the whole.

The sums are exact: floats are added without rounding, in any order, on any number of machines. The scores of the sums
are those of :func:`spicegraph_scorer.score` to the bit, however the corpus was cut. So a corpus of any size is scored
in parts, and nothing of an item is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spicegraph_scorer.core.categories import CategoryMeans, CategoryScore, Counts
from spicegraph_scorer.core.results import CorpusScore, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric


Row: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""A matrix of one row."""


@dataclass(frozen=True, slots=True)
class ExactSums:
    """The sums of the columns of a table, each as the few floats that add up to it without rounding.

    Sums of parts of a table add up to those of the whole, to the bit.

    Example:
        >>> whole = ExactSums.of([(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)])
        >>> whole == ExactSums.of([(0.3, 3.0)]) + ExactSums.of([(0.1, 1.0), (0.2, 2.0)])
        True
        >>> whole.rounded().tolist()
        [[0.6, 6.0]]
    """

    columns: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> ExactSums:
        """Sum the columns of at least one row; all rows are of one length, all values finite."""
        return cls(tuple(map(_parts, zip(*rows, strict=True))))

    def __add__(self, other: ExactSums) -> ExactSums:
        """Return the sums of both tables together."""
        pairs = zip(self.columns, other.columns, strict=True)
        return ExactSums(tuple(_parts((*mine, *theirs)) for mine, theirs in pairs))

    def values(self) -> list[float]:
        """Return the sums, each rounded once: what ``math.fsum`` gives of the column."""
        return [math.fsum(parts) for parts in self.columns]

    def rounded(self) -> Row:
        """Return :meth:`values` as a matrix of one row."""
        return np.array([self.values()], dtype=np.float64)


def _parts(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rounded sum, the rounded rest, the rest of that ...: together the sum itself.

    >>> _parts((1e100, 1.0, -1e100, 0.5))
    (1.5,)
    >>> _parts((1e100, 1.0))
    (1e+100, 1.0)
    """
    parts: list[float] = []
    while rest := math.fsum((*values, *(-part for part in parts))):
        parts.append(rest)
    return tuple(parts)


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
    rows = [_category_rows(metric.by_category(statistic)) for statistic in statistics]
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
    return RunSummary(scores, {name: _means_of_sums(sums) for name, sums in totals.categories.items()})


def _category_rows(scores: Mapping[str, CategoryScore]) -> dict[str, Sequence[float]]:
    """Return what is summed for each category of an item: its scores, whether it is defined, and its counts."""
    return {
        name: (score.f or 0.0, score.pr or 0.0, score.re or 0.0, score.f is not None, *(score.counts or ()))
        for name, score in scores.items()
    }


def _means_of_sums(sums: ExactSums) -> CategoryMeans:
    """Return the means that the sums of :func:`_category_rows` make."""
    f, pr, re, items, *numbers = sums.values()
    means = [total / items if items else None for total in (f, pr, re)]
    return CategoryMeans(means[0], means[1], means[2], int(items), Counts(*map(int, numbers)) if numbers else None)
