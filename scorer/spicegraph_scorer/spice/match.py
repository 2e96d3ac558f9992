"""Which tuples of a candidate find a tuple of the references, and which on either side do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.graph import SceneTuple

__all__ = ["Match", "match_tuples"]


@dataclass(frozen=True, slots=True)
class Match:
    """Both tuple lists and, for every tuple, the indices of its partners on the other side.

    Matching is not one-to-one, as in SPICE 1.0: a reference tuple may serve several candidate tuples.
    """

    candidate: tuple[SceneTuple, ...]
    reference: tuple[SceneTuple, ...]
    candidate_partners: tuple[tuple[int, ...], ...]
    reference_partners: tuple[tuple[int, ...], ...]

    @property
    def pairs(self) -> tuple[tuple[SceneTuple, SceneTuple], ...]:
        """Every matched candidate tuple with its first reference tuple."""
        return tuple(
            (mine, self.reference[partners[0]])
            for mine, partners in zip(self.candidate, self.candidate_partners, strict=True)
            if partners
        )

    @property
    def invented(self) -> tuple[SceneTuple, ...]:
        """Candidate tuples that no reference has."""
        return tuple(t for t, partners in zip(self.candidate, self.candidate_partners, strict=True) if not partners)

    @property
    def missed(self) -> tuple[SceneTuple, ...]:
        """Reference tuples that the candidate does not have."""
        return tuple(t for t, partners in zip(self.reference, self.reference_partners, strict=True) if not partners)


def match_tuples(candidate: Sequence[SceneTuple], reference: Sequence[SceneTuple]) -> Match:
    """Match two lists of tuples: equal length, and a common string or synset at every position.

    Source: Anderson et al., ECCV 2016, section 3.3 (binary matching operator with WordNet synonyms).
    """
    by_length: dict[int, list[tuple[int, SceneTuple]]] = {}
    for index, theirs in enumerate(reference):
        by_length.setdefault(len(theirs.concepts), []).append((index, theirs))
    mine_to: list[list[int]] = [[] for _ in candidate]
    theirs_to: list[list[int]] = [[] for _ in reference]
    for i, mine in enumerate(candidate):
        keys = [concept.keys for concept in mine.concepts]
        first_keys, rest = keys[0], keys[1:]
        for j, theirs in by_length.get(len(keys), ()):
            concepts = theirs.concepts
            if not first_keys.isdisjoint(concepts[0].keys) and all(
                not own.isdisjoint(other.keys) for own, other in zip(rest, concepts[1:], strict=True)
            ):
                mine_to[i].append(j)
                theirs_to[j].append(i)
    return Match(tuple(candidate), tuple(reference), tuple(map(tuple, mine_to)), tuple(map(tuple, theirs_to)))
