"""The drill-down of one image: what each tuple is, where it stands, and why it has no partner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_service.output.report.data import CandidateView, TupleView
from spicegraph_service.output.report.overlay import overlay
from spicegraph_service.output.report.spans import mentions
from spicegraph_service.output.report.synonyms import connecting_synset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic
    from spicegraph_scorer.studies.errors import Finding
    from spicegraph_service.output.report.data import GradedView

__all__ = ["candidate_view"]

_PARTS = {1: ("nvar",), 2: ("nvar", "anvr"), 3: ("nvar", "vnar", "nvar")}
"""The parts of speech of a tuple's slots by its length, the likeliest first."""


def candidate_view(
    item: Item,
    statistic: SpiceStatistic,
    findings: Sequence[Finding],
    places: dict[str, tuple[tuple[int, int], ...]],
    sides: Mapping[str, str],
    *,
    graded: GradedView | None = None,
) -> CandidateView:
    """Return the view of one system's caption.

    Args:
        item: the caption with its references.
        statistic: what its score was made from.
        findings: of the same match.
        places: the words' places by caption.
        sides: the side of each kind of error.
        graded: the caption's SPICE-G, if it was asked for.
    """
    match = statistic.match
    mine = {finding.tuple: finding for finding in findings if sides[finding.kind] == "invented"}
    theirs = {finding.tuple: finding for finding in findings if sides[finding.kind] == "missed"}
    return CandidateView(
        item.candidate,
        tuple(statistic.f1(category) for category in statistic.counts),
        tuple(
            _view(t, (item.candidate,), places, partners, mine.get(i), how=_how(t, match.reference, partners))
            for i, (t, partners) in enumerate(zip(match.candidate, match.candidate_partners, strict=True))
        ),
        tuple(
            _view(t, item.references, places, partners, theirs.get(i))
            for i, (t, partners) in enumerate(zip(match.reference, match.reference_partners, strict=True))
        ),
        overlay(match),
        graded,
    )


def _view(
    scene_tuple: SceneTuple,
    captions: Sequence[str],
    places: dict[str, tuple[tuple[int, int], ...]],
    partners: tuple[int, ...],
    finding: Finding | None,
    *,
    how: tuple[int, ...] = (),
) -> TupleView:
    return TupleView(
        scene_tuple.strings,
        mentions(scene_tuple, captions, places),
        partners,
        how,
        finding.kind if finding else None,
        finding.counterpart if finding else None,
        str(finding.near) if finding and finding.near else None,
    )


def _how(scene_tuple: SceneTuple, reference: Sequence[SceneTuple], partners: tuple[int, ...]) -> tuple[int, ...]:
    """Return 0 for each slot that a string connects with the first partner, else the connecting synset."""
    parts = _PARTS[len(scene_tuple.concepts)]
    if not partners:
        return ()
    theirs = reference[partners[0]]
    return tuple(
        0 if set(own.strings) & set(other.strings) else connecting_synset(own, other, likely)
        for own, other, likely in zip(scene_tuple.concepts, theirs.concepts, parts, strict=True)
    )
