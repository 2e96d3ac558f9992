"""What words that a table of vectors lacks stand for: a form of a known word, or words near them in WordNet."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_parser.lexicon import load_lexicon
from spicegraph_parser.wordnet import load_wordnet
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_parser.wordnet import Synset

Floats = npt.NDArray[np.float32]

_PARTS: Final = "nva"
_SENSES: Final = 2  # the most frequent ones of each part of speech
_STEPS: Final = 3  # up from a word, and down to another
_MOST_BELOW: Final = 400  # known words under a synset that still says something
_NEAREST: Final = 8
_REMEMBERED: Final = 50_000


@dataclass(frozen=True, eq=False)
class UnknownWords:
    """The known words, by their places in a table, and what others stand for among them."""

    places: Mapping[str, int] = field(repr=False)
    directions: Floats = field(repr=False)
    canonical: Callable[[str], str] = field(init=False, repr=False)
    direction: Callable[[str], Floats | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Remember what was looked up: a corpus asks for the same words."""
        object.__setattr__(self, "canonical", lru_cache(_REMEMBERED)(self._canonical))
        object.__setattr__(self, "direction", lru_cache(_REMEMBERED)(self._direction))

    def _canonical(self, word: str) -> str:
        """Return the known word that a word is a form of ("honking": "honk"), or what its own forms share."""
        if word in self.places:
            return word
        forms = load_lexicon().forms(word)
        known = next((form for form in forms if form in self.places), None)
        if known is not None:
            return known
        shared = stem(word)
        return self._by_stem.get(shared) or (forms[-1] if forms else shared)

    def _direction(self, word: str) -> Floats | None:
        """Return the vector of a word that the table lacks: the sum of the nearest known words of WordNet, at length 1.

        Near are words that share a synset with one of the word's two most frequent senses, or a broader one at most
        three steps above both; each counts half as much for every step. Nothing: WordNet has no such words.
        """
        near = self._near(word)
        if not near:
            return None
        total: Floats = reduce(
            np.add, [self.directions[self.places[other]] * np.float32(2.0**-steps) for other, steps in near]
        )
        length = np.sqrt(total.dot(total))
        return total / length if length > 0 else None

    def _near(self, word: str) -> Sequence[tuple[str, int]]:
        steps: dict[str, int] = {}
        for above, up in _above(word):
            below = self._below.get(above, ())
            if len(below) <= _MOST_BELOW:
                for other, down in below:
                    steps[other] = min(up + down, steps.get(other, up + down))
        return sorted(steps.items(), key=lambda found: (found[1], self.places[found[0]]))[:_NEAREST]

    @cached_property
    def _by_stem(self) -> Mapping[str, str]:
        # The most frequent words stand first: of a stem's words the first is set last.
        return {stem(word): word for word in reversed(list(self.places))}

    @cached_property
    def _below(self) -> Mapping[Synset, Sequence[tuple[str, int]]]:
        """The known words under each synset, with the number of steps down to them."""
        below: defaultdict[Synset, list[tuple[str, int]]] = defaultdict(list)
        for word in self.places:
            for above, steps in _above(word):
                below[above].append((word, steps))
        return below


def _above(word: str) -> Iterator[tuple[Synset, int]]:
    """Yield the synsets of a word and the broader ones, with the steps up to them; a rarer sense is a step more."""
    wordnet = load_wordnet()
    for part in _PARTS:
        for rank, sense in enumerate(wordnet.senses(word, part)[:_SENSES]):
            for above, steps in wordnet.ancestors(sense).items():
                if steps <= _STEPS:
                    yield above, steps + rank
