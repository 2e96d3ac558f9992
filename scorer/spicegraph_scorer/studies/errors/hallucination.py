"""Hallucination in the manner of CHAIR (Rohrbach et al., EMNLP 2018), with an open vocabulary.

CHAIR checks 80 object classes against ground-truth boxes; here everything that a caption says is checked
against what the references say. So a figure is an upper bound: what no reference mentions may still be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

__all__ = ["Hallucination", "hallucinations"]


@dataclass(frozen=True, slots=True)
class Hallucination:
    """What candidates say in a category and no reference does.

    Attributes:
        category: a SPICE category, such as ``Object``.
        invented: candidate tuples without a partner.
        said: all candidate tuples.
        captions: candidates with at least one invented tuple.
        of: all candidates.
    """

    category: str
    invented: int
    said: int
    captions: int
    of: int

    @property
    def per_instance(self) -> float | None:
        """CHAIR_i: share of what is said that no reference has, in [0, 1]; ``None`` if nothing is said."""
        return self.invented / self.said if self.said else None

    @property
    def per_sentence(self) -> float | None:
        """CHAIR_s: share of the captions that say at least one such thing, in [0, 1]."""
        return self.captions / self.of if self.of else None


def hallucinations(statistics: Sequence[SpiceStatistic]) -> tuple[Hallucination, ...]:
    """Return the hallucination of every category but the total, from the counts behind the scores.

    Example:
        >>> from spicegraph_scorer import score_tuples
        >>> result = score_tuples([["cat"], ["mat"]], [[["mat"]]])
        >>> {h.category: h.per_instance for h in hallucinations([result.statistic])}["Object"]
        0.5
    """
    categories = [name for name in (statistics[0].counts if statistics else ()) if name != ALL]
    return tuple(_category(name, statistics) for name in categories)


def _category(name: str, statistics: Sequence[SpiceStatistic]) -> Hallucination:
    counts = [statistic.counts[name] for statistic in statistics]
    wrong = [count.candidate - count.matched for count in counts]
    return Hallucination(name, sum(wrong), sum(count.candidate for count in counts), sum(map(bool, wrong)), len(counts))
