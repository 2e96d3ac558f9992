"""One match as the error rules see it, and near misses: words that mean almost the same without a common synset.

Near is what has the same stem, or what WordNet calls a kind of the other, a few steps away ("puppy" for "dog").
Only the most frequent sense of each word is compared: over all senses, captions connect "runway" with "dog"
(a runway is a track, a track is trod by a dog ...). Words with a common broader one are not near: "man" and
"woman" are two steps apart, over "adult".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from spicegraph_parser.wordnet import load_wordnet
from spicegraph_scorer.metrics.ngram.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.spice.match import Match


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


_STEPS = {"n": 3, "v": 2, "a": 1}
"""How many steps broader or narrower still count as near, by part of speech."""

_REMEMBERED = 50_000
_stem = lru_cache(maxsize=_REMEMBERED)(stem)


@dataclass(frozen=True, slots=True)
class Near:
    """How the candidate's word is near that of the references.

    Attributes:
        how: ``"same stem"``, or that the candidate's word is ``"broader"`` or ``"narrower"``.
        distance: the steps between their synsets in WordNet; ``None`` for a stem.
    """

    how: str
    distance: int | None = None

    def __str__(self) -> str:
        """Return it in words, such as ``narrower, WordNet distance 2``."""
        return self.how if self.distance is None else f"{self.how}, WordNet distance {self.distance}"


def near_concepts(mine: Concept, theirs: Concept, parts: str = "n") -> Near | None:
    """Return how a candidate's concept is near one of the references, if it is: by stem, else by WordNet.

    Args:
        mine: the candidate's.
        theirs: the references'.
        parts: the parts of speech under which WordNet is asked.

    Example:
        >>> from spicegraph_parser.lexicon import load_lexicon
        >>> concept = load_lexicon().concept
        >>> near_concepts(concept("puppy"), concept("dog"))
        Near(how='narrower', distance=1)
    """
    if {_stem(w) for w in mine.strings} & {_stem(w) for w in theirs.strings}:
        return Near("same stem")
    found = [near for a in mine.strings for b in theirs.strings for near in _by_wordnet(a, b, parts)]
    return min(found, key=_steps, default=None)


@lru_cache(maxsize=_REMEMBERED)
def _by_wordnet(mine: str, theirs: str, parts: str) -> tuple[Near, ...]:
    return tuple(_related(mine, theirs, parts))


def _related(mine: str, theirs: str, parts: str) -> Iterator[Near]:
    wordnet = load_wordnet()
    for part in parts:
        one, other = wordnet.common_sense(mine, part), wordnet.common_sense(theirs, part)
        if one is None or other is None:
            continue
        up, down = wordnet.ancestors(one).get(other), wordnet.ancestors(other).get(one)
        for how, steps in (("narrower", up), ("broader", down)):
            if steps is not None and steps <= _STEPS[part]:
                yield Near(how, wordnet.distance(one, other))


def _steps(near: Near) -> int:
    return near.distance or 0
