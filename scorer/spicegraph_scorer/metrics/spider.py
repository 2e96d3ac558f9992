"""SPIDEr, the score of audio captioning: the mean of CIDEr-D and SPICE (Liu et al., ICCV 2017)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from spicegraph_scorer.core.metric import Matrix, Metric, Needs, Score, Summed, Vector, Weigh
from spicegraph_scorer.metrics.cider import Cider, CiderStatistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.tokens import Corpus
    from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic


class SpiderStatistic(NamedTuple):
    """One item's statistics of both metrics."""

    cider: CiderStatistic
    spice: SpiceStatistic


@dataclass(frozen=True, slots=True)
class Spider(Metric[SpiderStatistic]):
    """SPIDEr as ``(CIDEr-D + SPICE) / 2``, of a corpus and of every item.

    CIDEr-D runs from 0 to 10 and SPICE from 0 to 1, so that CIDEr-D weighs far more in it.
    """

    needs: ClassVar[Needs] = Needs(facts=True, data=Cider.needs.data | {"spice_text"})
    highest: ClassVar[float] = (Cider.highest + Metric.highest) / 2

    spice: Spice
    cider: Cider = field(default_factory=Cider)

    @property
    def name(self) -> str:
        """``spider``."""
        return "spider"

    def signature(self) -> Mapping[str, str]:
        """Return what both metrics say, SPICE's pipeline and lexicon first."""
        return {**self.spice.signature(), **self.cider.signature(), "metric": self.name}

    def collect(self, corpus: Corpus) -> list[SpiderStatistic]:
        """Return both statistics of every item.

        Warns:
            CiderWarning: the document frequencies come from a single image.
        """
        pairs = zip(self.cider.collect(corpus), self.spice.collect(corpus), strict=True)
        return [SpiderStatistic(*pair) for pair in pairs]

    def total(self, statistics: Sequence[SpiderStatistic]) -> tuple[Score, ...]:
        """Return the score ``SPIDEr``, in [0, 5.5]; ``None`` where CIDEr-D is undefined."""
        cider = self.cider.total([statistic.cider for statistic in statistics])[0]
        spice = self.spice.total([statistic.spice for statistic in statistics])[0]
        each = tuple(mean_of(*pair) for pair in zip(cider.each, spice.each, strict=True))
        return (Score("SPIDEr", mean_of(cider.value, spice.value), each),)

    def summed(self) -> Summed[SpiderStatistic]:
        """Return the sums of both metrics: the corpus value is the mean of two values, each rounded by itself."""
        return _Means(self.cider.summed(), self.spice.summed())

    def compact(self, statistic: SpiderStatistic) -> SpiderStatistic:
        """Return the statistic without SPICE's match."""
        return statistic._replace(spice=self.spice.compact(statistic.spice))

    @property
    def weigh(self) -> Weigh | None:
        """What CIDEr-D weighs with."""
        return self.cider.weigh

    def weighted(self, weights: Any) -> Spider:
        """Return the metric with the document frequencies of a corpus."""
        return replace(self, cider=self.cider.weighted(weights))

    def defer(self, corpus: Corpus) -> list[tuple[Any, SpiceStatistic]]:
        """Return what CIDEr-D keeps of each item, and SPICE's statistic: nothing is parsed at the end."""
        return list(zip(self.cider.defer(corpus), self.spice.defer(corpus), strict=True))

    def finish(self, kept: Sequence[tuple[Any, SpiceStatistic]]) -> list[SpiderStatistic]:
        """Return both statistics of every item."""
        cider = self.cider.finish([one for one, _ in kept])
        return [SpiderStatistic(one, spice) for one, (_, spice) in zip(cider, kept, strict=True)]


@dataclass(frozen=True, slots=True)
class _Means:
    cider: Summed[CiderStatistic]
    spice: Summed[SpiceStatistic]

    def columns(self, statistics: Sequence[SpiderStatistic]) -> Matrix:
        cider = self.cider.columns([statistic.cider for statistic in statistics])
        return np.hstack([cider, self.spice.columns([statistic.spice for statistic in statistics])])

    def from_sums(self, sums: Matrix) -> Mapping[str, Vector]:
        cider, spice = np.hsplit(sums, [2])  # CIDEr-D is one score: its sum, and the number of items
        [first] = self.cider.from_sums(cider).values()
        second, *_ = self.spice.from_sums(spice).values()
        return {"SPIDEr": np.array([mean_of(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)])}


def mean_of(cider: float | None, spice: float | None) -> float | None:
    """Return the mean of a CIDEr-D and a SPICE score, ``None`` if one of them is undefined.

    Example:
        >>> mean_of(1.5, 0.25)
        0.875
    """
    return None if cider is None or spice is None else (cider + spice) / 2
