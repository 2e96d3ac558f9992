"""One match, seen the way that error rules ask about it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.spice.match import Match

__all__ = ["MatchView", "agreement", "word"]


def agreement(scene_tuple: SceneTuple) -> int:
    """Return how many captions say the tuple; of a reference tuple, how many references agree on it."""
    return len({caption for caption, _ in scene_tuple.evidence})


def word(scene_tuple: SceneTuple, slot: int) -> str:
    """Return the string that most of the captions behind the tuple use for a slot.

    A merged concept ("couch/sofa") gets one name under which it can be counted over images.
    """
    strings = scene_tuple.concepts[slot].strings
    if len(strings) == 1:
        return strings[0]
    used = Counter(w for _, fact in scene_tuple.evidence for w in fact.words if w in strings)
    return max(strings, key=used.__getitem__)


class MatchView:
    """The tuples of a match by length, and what the other side knows of an object."""

    __slots__ = ("match", "matched_objects", "missed", "objects", "reference")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.reference: dict[int, list[int]] = {1: [], 2: [], 3: []}
        for index, theirs in enumerate(match.reference):
            self.reference[len(theirs.concepts)].append(index)
        self.missed = {index for index, partners in enumerate(match.reference_partners) if not partners}
        self.objects = [theirs.concepts[0] for theirs in match.reference if len(theirs.concepts) == 1]
        self.matched_objects = [
            mine.concepts[0]
            for mine, partners in zip(match.candidate, match.candidate_partners, strict=True)
            if partners and len(mine.concepts) == 1
        ]

    def is_known(self, concept: Concept) -> bool:
        """Say whether the references have an object."""
        return any(concept.shares(other) for other in self.objects)

    def is_named(self, concept: Concept) -> bool:
        """Say whether the candidate names an object of the references."""
        return any(concept.shares(other) for other in self.matched_objects)

    def references(self, length: int) -> Iterator[tuple[int, SceneTuple]]:
        """Yield the reference tuples of a length, those that most references agree on first."""
        for index in sorted(self.reference[length], key=self._agreed, reverse=True):
            yield index, self.match.reference[index]

    def _agreed(self, index: int) -> int:
        return agreement(self.match.reference[index])
