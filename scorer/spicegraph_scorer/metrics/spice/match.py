"""Which tuples of a candidate find a tuple of the references, and which on either side do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple

__all__ = ["NO_MATCH", "Match", "group_by_length", "match_tuples"]


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


NO_MATCH: Final = Match((), (), (), ())
"""Stands where a match is not kept."""


def match_tuples(
    candidate: Sequence[SceneTuple],
    reference: Sequence[SceneTuple],
    *,
    by_length: Mapping[int, Sequence[int]] | None = None,
) -> Match:
    """Match two lists of tuples: equal length, and a common string or synset at every position.

    Source: Anderson et al., ECCV 2016, section 3.3 (binary matching operator with WordNet synonyms).

    Args:
        candidate: the candidate's tuples.
        reference: the tuples of all references together.
        by_length: ``group_by_length(reference)``, where many candidates are matched with the same references.
    """
    lengths = group_by_length(reference) if by_length is None else by_length
    mine_to: list[list[int]] = [[] for _ in candidate]
    theirs_to: list[list[int]] = [[] for _ in reference]
    for i, mine in enumerate(candidate):
        keys = [concept.keys for concept in mine.concepts]
        first_keys, rest = keys[0], keys[1:]
        for j in lengths.get(len(keys), ()):
            concepts = reference[j].concepts
            if not first_keys.isdisjoint(concepts[0].keys) and all(
                not own.isdisjoint(other.keys) for own, other in zip(rest, concepts[1:], strict=True)
            ):
                mine_to[i].append(j)
                theirs_to[j].append(i)
    return Match(tuple(candidate), tuple(reference), tuple(map(tuple, mine_to)), tuple(map(tuple, theirs_to)))


def group_by_length(tuples: Sequence[SceneTuple]) -> dict[int, list[int]]:
    """Return the indices of tuples by their length: 1 object, 2 attribute, 3 relation."""
    found: dict[int, list[int]] = {}
    for index, scene_tuple in enumerate(tuples):
        found.setdefault(len(scene_tuple.concepts), []).append(index)
    return found
