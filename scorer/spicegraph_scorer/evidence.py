"""Statistics without the matches that they were counted from: a hundredth of the size, for sending and keeping."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from spicegraph_scorer.metrics.graded.metric import GradedStatistic
from spicegraph_scorer.metrics.meteor.metric import NO_ALIGNMENT, MeteorStatistic
from spicegraph_scorer.metrics.spice.match import NO_MATCH
from spicegraph_scorer.metrics.spice.metric import SpiceStatistic
from spicegraph_scorer.metrics.spider import SpiderStatistic

__all__ = ["without_evidence"]


@singledispatch
def without_evidence(statistic: Any) -> Any:
    """Return an item's statistic of any metric with its numbers only.

    Scores, intervals and comparisons need no more; reports and the SPICE program's own output do.

    Example:
        >>> from spicegraph_scorer import Item, score
        >>> statistic = score([Item(1, "a dog", ("a dog",))]).runs[0].statistics[0]
        >>> len(statistic.match.candidate), len(without_evidence(statistic).match.candidate)
        (1, 0)
    """
    return statistic


@without_evidence.register
def _(statistic: SpiceStatistic) -> SpiceStatistic:
    return statistic if statistic.match is NO_MATCH else replace(statistic, match=NO_MATCH)


@without_evidence.register
def _(statistic: SpiderStatistic) -> SpiderStatistic:
    return statistic._replace(spice=without_evidence(statistic.spice))


@without_evidence.register
def _(statistic: GradedStatistic) -> GradedStatistic:
    return replace(statistic, match=None)


@without_evidence.register
def _(statistic: MeteorStatistic) -> MeteorStatistic:
    return replace(statistic, alignment=NO_ALIGNMENT)
