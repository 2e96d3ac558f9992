"""Near misses: words that mean almost the same, but that neither a string nor a synset connects.

Near is what has the same stem, or what WordNet calls a kind of the other, a few steps away ("puppy" for "dog").
Only the most frequent sense of each word is compared: over all senses, captions connect "runway" with "dog"
(a runway is a track, a track is trod by a dog ...). Words with a common broader one are not near: "man" and
"woman" are two steps apart, over "adult".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from spicegraph_parser.wordnet import load_wordnet
from spicegraph_scorer.metrics.ngram.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser.lexicon import Concept

__all__ = ["Near", "near_concepts"]

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
