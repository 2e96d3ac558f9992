"""From a match to its findings: every tuple without a partner gets exactly one explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.studies.errors.findings import Finding, Kind, Side
from spicegraph_scorer.studies.errors.invented import INVENTED
from spicegraph_scorer.studies.errors.missed import MISSED
from spicegraph_scorer.studies.errors.view import MatchView, agreement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.metrics.spice.match import Match

__all__ = ["KINDS", "explain"]

KINDS: Mapping[str, Kind] = {**INVENTED, **MISSED}
"""Every kind of error by its key."""


def explain(match: Match) -> tuple[Finding, ...]:
    """Explain every tuple without a partner, the candidate's first.

    Each of them gets exactly one finding, so that findings add up to the counts behind the score: those of
    the candidate to its unmatched tuples (``fp``), those of the references to theirs.

    Args:
        match: from ``SpiceStatistic.match``.

    Example:
        >>> from spicegraph_scorer import score_tuples
        >>> result = score_tuples([["car"], ["car", "blue"]], [[["car"], ["car", "red"]]])
        >>> [(finding.kind, finding.words) for finding in explain(result.statistic.match)]
        [('color_confused', ('red', 'blue')), ('color_missed', ('red', 'car'))]
    """
    view = MatchView(match)
    sides: tuple[tuple[Side, Sequence[SceneTuple], Sequence[tuple[int, ...]]], ...] = (
        (Side.INVENTED, match.candidate, match.candidate_partners),
        (Side.MISSED, match.reference, match.reference_partners),
    )
    return tuple(
        finding
        for side, tuples, partners in sides
        for index, found in enumerate(partners)
        if not found
        for finding in _first(view, side, index, tuples[index])
    )


def _first(view: MatchView, side: Side, index: int, scene_tuple: SceneTuple) -> Iterator[Finding]:
    """Yield the finding of the first rule that explains the tuple."""
    length = len(scene_tuple.concepts)
    for name, kind in KINDS.items():
        if kind.side is side and kind.length == length:
            found = kind.rule(view, scene_tuple)
            if found is not None:
                words, counterpart, near = found
                yield Finding(name, words, index, counterpart, agreement(scene_tuple), near)
                return
