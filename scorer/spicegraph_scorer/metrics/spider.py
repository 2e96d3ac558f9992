"""SPIDEr, the score of audio captioning: the mean of CIDEr-D and SPICE (Liu et al., ICCV 2017)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.core.metric import Score
from spicegraph_scorer.metrics.cider import Cider, CiderStatistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.items import Corpus
    from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic

__all__ = ["Spider", "SpiderStatistic", "mean_of"]


class SpiderStatistic(NamedTuple):
    """One item's statistics of both metrics."""

    cider: CiderStatistic
    spice: SpiceStatistic


@dataclass(frozen=True, slots=True)
class Spider:
    """SPIDEr as ``(CIDEr-D + SPICE) / 2``, of a corpus and of every item.

    CIDEr-D runs from 0 to 10 and SPICE from 0 to 1, so that CIDEr-D weighs far more in it.
    """

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


def mean_of(cider: float | None, spice: float | None) -> float | None:
    """Return the mean of a CIDEr-D and a SPICE score, ``None`` if one of them is undefined.

    Example:
        >>> mean_of(1.5, 0.25)
        0.875
    """
    return None if cider is None or spice is None else (cider + spice) / 2
