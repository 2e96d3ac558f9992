"""Whether the words of a caption follow one another as words do in captions: "on a red couch", not "couch a on red".

SPICE-G compares what captions say, and a parser finds something to compare in any heap of words. Whoever is scored by
it, or trained with it, should gain nothing by such heaps.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_scorer.core.credit import FUNCTION_WORDS
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")
_SIGNS: Final = bytes([code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(256)])
_EDGE: Final = ""  # stands before the first word and after the last
_ENDING: Final = "-"  # how the kind of a rarer word begins: with its last letters behind it
_LETTERS: Final = 2
_FEWEST: Final = 2  # words that have an order
_PATIENCE: Final = 10.0  # nats; of 24,000 captions of people and models one had less flow than -10
_SMOOTHING: Final = 20.0
_STEPS: Final = 16  # of the numbers in a table, a nat
_LARGEST: Final = 127


def words_of_text(text: str) -> list[str]:
    """Return the lower-cased words of a text, without punctuation."""
    lower = text.lower()
    if lower.isascii() and "'" not in lower and "-" not in lower:  # as most captions
        return lower.encode().translate(_SIGNS).decode().split()
    return _WORD.findall(lower)


@dataclass(frozen=True, slots=True, eq=False)
class WordOrder:
    """How much more often than by chance words of one kind follow those of another.

    ``kinds`` are frequent words, endings of rarer ones (``-ng``), all other words (``-``) and the edge of a caption
    (empty). ``information`` has the pointwise mutual information of each kind (row) and the next (column), in
    sixteenths of a nat.
    """

    kinds: tuple[str, ...]
    information: npt.NDArray[np.int8]
    _rows: Mapping[str, Mapping[str, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lay the table out for look-ups."""
        rows = (self.information / _STEPS).tolist()
        by_kind = {kind: dict(zip(self.kinds, row, strict=True)) for kind, row in zip(self.kinds, rows, strict=True)}
        object.__setattr__(self, "_rows", by_kind)

    def flow(self, text: str) -> float:
        """Return by how much a text's words are likelier in their order than in any: the log of the ratio, in nats.

        It is the information of all neighbours, the edges included: about 10 for captions of people, 0 where words
        follow each other as by chance. Less than two words have no order: 0.
        """
        total = 0.0
        for information in self.junctions(words_of_text(text)):
            total += information
        return total

    def junctions(self, words: Sequence[str]) -> Iterator[float]:
        """Yield the information of each word and the one before it, in nats, and of the last word and the end."""
        if len(words) < _FEWEST:
            return
        rows, before = self._rows, _EDGE
        for word in words:
            kind = word if word in rows else _ENDING + word[-_LETTERS:]
            if kind not in rows:
                kind = _ENDING
            yield rows[before][kind]
            before = kind
        yield rows[before][_EDGE]

    def share(self, candidate: str, references: Iterable[str]) -> float:
        """Return the share of its score that the order of its words leaves a candidate, in (0, 1].

        All of it, unless the words are e**10 = 22,000 times as unlikely in their order as in any; then 22,000 over
        how many times it is. Captions of another style are held against their own kind: against the reference with
        the least flow, if that is below 0.
        """
        flow = self.flow(candidate)
        if flow >= -_PATIENCE:
            return 1.0
        least = min([self.flow(text) for text in references], default=0.0)
        return math.exp(min(0.0, flow - min(least, 0.0) + _PATIENCE))


def learn_order(texts: Iterable[str], *, frequent: int = 200, endings: int = 30) -> WordOrder:
    """Learn a word order from captions.

    With n(a, b) for how often kind b follows kind a, and a part of what chance would give added to each (as much as 20
    words more after every a): the logarithm of n(a, b) over what chance would give. So many of the most ``frequent``
    words are kinds of their own, and so many ``endings`` of other words.
    """
    captions = [words_of_text(text) for text in texts]
    counts = Counter(chain.from_iterable(captions))
    known = _most_frequent(counts, frequent)
    ends = Counter[str]()
    for word, count in counts.items():
        if word not in known:
            ends[_ENDING + word[-_LETTERS:]] += count
    known |= _most_frequent(ends, endings)
    # A frequent word is a kind of its own, others are known by their last letters, or not at all.
    of_word = {word: word if word in known else _ENDING + word[-_LETTERS:] for word in counts}
    of_word = {word: kind if kind in known else _ENDING for word, kind in of_word.items()}
    kinds = sorted(known | {_EDGE, _ENDING})
    number_of = {kind: index for index, kind in enumerate(kinds)}
    pairs = Counter(
        chain.from_iterable(pairwise([_EDGE, *map(of_word.__getitem__, words), _EDGE]) for words in captions)
    )
    together = np.zeros((len(kinds), len(kinds)))
    for (first, second), count in pairs.items():
        together[number_of[first], number_of[second]] = count
    after = (together.sum(axis=0) + 1) / max(together.sum(), 1)
    before = together.sum(axis=1, keepdims=True) + _SMOOTHING
    nats = np.log((together + _SMOOTHING * after) / (before * after))
    information = np.clip(np.rint(nats * _STEPS), -_LARGEST, _LARGEST).astype(np.int8)
    return WordOrder(tuple(kinds), information)


def _most_frequent(counts: Mapping[str, int], size: int) -> frozenset[str]:
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:size])


_FUNCTION_WEIGHT: Final = 0.2
PRECISION_SHARE: Final = 0.25
_REMEMBERED: Final = 100_000


@lru_cache(maxsize=_REMEMBERED)
def weighted_stem(word: str) -> tuple[str, float]:
    """Return the stem of a word and what it weighs in alignments, in (0, 1]."""
    return (word, _FUNCTION_WEIGHT) if word in FUNCTION_WORDS else (stem(word), 1.0)
