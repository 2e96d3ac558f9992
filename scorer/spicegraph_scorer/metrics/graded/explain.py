"""Why a SPICE-G score is what it is: every tuple's best partner, slot by slot, and what would change the score most."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.metrics.graded.changes import Change, Rescore, changes_of
from spicegraph_scorer.metrics.graded.contradiction import deny, values_of
from spicegraph_scorer.metrics.graded.similarity import NO_PARTNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.metrics.graded.metric import GradedMatch
    from spicegraph_scorer.metrics.graded.sides import Side
    from spicegraph_scorer.metrics.graded.similarity import Support
    from spicegraph_scorer.metrics.graded.vectors import Rows, Vectors

__all__ = ["GradedExplanation", "GradedTuple", "explain_match", "graded_tuples"]

_HEAD: Final = {1: 0, 2: 1, 3: 1}  # the slot that a tuple adds, by its length


@dataclass(frozen=True, slots=True)
class GradedTuple:
    """A tuple of one side, and what of the other side supports it.

    Attributes:
        words: object; object and attribute; or subject, relation, object.
        share: its share of its side's weight, in [0, 1].
        support: how far the other side supports it, in [0, 1].
        partner: index of the tuple of the other side that supports it best; ``None`` if none does.
        slots: the similarity of each of its slots and what stands there in the partner, in [0, 1]; ``None`` where
            the partner, of another length, has nothing.
        denied_by: index of a reference attribute that excludes this one (another colour or count of the same
            object) and has cost it support; ``None`` if none has.
    """

    words: tuple[str, ...]
    share: float
    support: float
    partner: int | None
    slots: tuple[float | None, ...]
    denied_by: int | None = None


@dataclass(frozen=True, slots=True)
class GradedExplanation:
    """Both sides of an item's match, and the single changes that would raise its score most, the best first.

    ``order`` is what the order of the candidate's words leaves of precision, recall and F1, in (0, 1]; what the
    changes would give is for words in the same order.
    """

    candidate: tuple[GradedTuple, ...]
    reference: tuple[GradedTuple, ...]
    changes: tuple[Change, ...]
    order: float = 1.0

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            "candidate": [asdict(found) for found in self.candidate],
            "reference": [asdict(found) for found in self.reference],
            "changes": [asdict(change) for change in self.changes],
            "order": self.order,
        }


def explain_match(match: GradedMatch, vectors: Vectors, rescore: Rescore, *, changes: int = 3) -> GradedExplanation:
    """Explain a match.

    Args:
        match: from ``GradedStatistic.match``.
        vectors: those that the match was made with.
        rescore: the score of a candidate that consists of other facts.
        changes: how many changes to name at most; none are looked for with 0, which is ten times as fast.
    """
    candidate, reference = graded_tuples(match, vectors)
    denials = [found.denied_by for found in candidate]
    found = changes_of(match, denials, rescore)[:changes] if changes else ()
    return GradedExplanation(candidate, reference, found, match.order)


def graded_tuples(match: GradedMatch, vectors: Vectors) -> tuple[tuple[GradedTuple, ...], tuple[GradedTuple, ...]]:
    """Return the tuples of both sides with what supports them; indices are places in these."""
    sides = match.candidate, match.reference
    rows = vectors.rows(concept.strings for side in sides for found in side.tuples for concept in found.concepts)
    denials = list(_denials(match, rows))
    nobody = [None] * len(match.reference.tuples)
    return (
        tuple(_tuples(match.candidate, match.precision, match.reference.tuples, rows, denials)),
        tuple(_tuples(match.reference, match.recall, match.candidate.tuples, rows, nobody)),
    )


def _tuples(
    side: Side, support: Support, others: Sequence[SceneTuple], rows: Rows, denials: Sequence[int | None]
) -> Iterator[GradedTuple]:
    total = float(side.weights.sum())
    for index, mine in enumerate(side.tuples):
        partner = int(support.partner[index])
        paired = partner != NO_PARTNER
        yield GradedTuple(
            mine.strings,
            float(side.weights[index]) / total if total else 0.0,
            float(support.support[index]),
            partner if paired else None,
            _slots(mine, others[partner], rows) if paired else (None,) * len(mine.concepts),
            denials[index],
        )


def _slots(mine: SceneTuple, theirs: SceneTuple, rows: Rows) -> tuple[float | None, ...]:
    """Return the similarities by slot; an attribute has both of its slots held against a plain object."""
    length, other = len(mine.concepts), len(theirs.concepts)
    if length == other:
        return tuple(_alike(a, b, rows) for a, b in zip(mine.concepts, theirs.concepts, strict=True))
    if (length, other) == (2, 1):
        return tuple(_alike(a, theirs.concepts[0], rows) for a in mine.concepts)
    head = theirs.concepts[_HEAD[other]]
    return tuple(
        _alike(concept, head, rows) if slot == _HEAD[length] else None for slot, concept in enumerate(mine.concepts)
    )


def _alike(mine: Concept, theirs: Concept, rows: Rows) -> float:
    if mine.strings == theirs.strings:
        return 1.0
    values, others = values_of(mine.strings), values_of(theirs.strings)
    if deny(values, others):
        return 0.0
    if not values.isdisjoint(others):
        return 1.0
    one, other = (rows.vectors[rows.places[concept.strings]] for concept in (mine, theirs))
    return min(max(float(one @ other), 0.0), 1.0)


def _denials(match: GradedMatch, rows: Rows) -> Iterator[int | None]:
    """Yield for each candidate tuple the reference attribute of the most similar object that excludes it."""
    attributes = [
        (index, found.concepts[0], values)
        for index, found in enumerate(match.reference.tuples)
        if len(found.concepts) == 2 and (values := values_of(found.concepts[1].strings))
    ]
    for mine, denied in zip(match.candidate.tuples, match.precision.contradicted, strict=True):
        against = [
            (_alike(mine.concepts[0], owner, rows), -index)
            for index, owner, values in attributes
            if denied and deny(values_of(mine.concepts[1].strings), values)
        ]
        yield -max(against)[1] if against else None
