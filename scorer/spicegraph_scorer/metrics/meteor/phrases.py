"""Which phrases of the texts at hand are in METEOR's paraphrase table, and which are paraphrases of which."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spicegraph_scorer.metrics.meteor.hashing import LineHasher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.metrics.meteor.data import MeteorData

__all__ = ["BACK", "Occurrence", "PhraseBook", "PhraseFinder"]

Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]

_Number = TypeVar("_Number", bound=np.integer[Any])

Occurrence = tuple[int, int, int]
"""A phrase in a text: its first word, its number of words, its number in the book."""

BACK = 32
"""A link holds two places in lists, each from 1, or 0 for none: below this bit and from it on."""

_MAX_WORDS = 7  # of a phrase of the table
_MAX_BYTES = 128  # the table's longest phrase has 71


@dataclass(frozen=True, slots=True, eq=False)
class PhraseBook:
    """The phrases of some texts that have paraphrases in these texts.

    ``occurrences``: for each text its phrases, by first word and then by length. ``links``: for each phrase
    p its paraphrases q among these texts' phrases, each with the place of q in the list of p's paraphrases,
    plus ``1 << BACK`` times the place of p in the list of q's.
    """

    occurrences: Sequence[Sequence[Occurrence]]
    links: Sequence[Mapping[int, int]]


def _different(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the different values in ascending order (faster here than numpy's ``unique``)."""
    values = np.sort(values)
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return values[new]


def _places(ordered: NDArray[np.generic], wanted: NDArray[np.generic]) -> Integers:
    """Return where each wanted value is in an ascending array, -1 where it is not."""
    if not len(ordered):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[places] == wanted, places, -1)


def _ranges(starts: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Return all positions of some ranges in a row, and for each its place within its range."""
    within = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + within, within


def _rows(ones: Integers, others: Integers, places: Integers, size: int) -> list[dict[int, int]]:
    """Return the links of ``size`` phrases: each of ``others`` has a place in a list of ``ones``."""
    keys = np.concatenate([ones * size + others, others * size + ones])
    order = np.argsort(keys, kind="stable")
    pairs, firsts = np.unique(keys[order], return_index=True)
    both_ways = np.concatenate([places, places << BACK])[order]
    links: list[int] = np.add.reduceat(both_ways, firsts).tolist() if size else []
    linked: list[int] = (pairs % max(size, 1)).tolist()
    cuts = np.searchsorted(pairs, np.arange(size + 1, dtype=np.int64) * size).tolist()
    return [dict(zip(linked[a:b], links[a:b], strict=True)) for a, b in pairwise(cuts)]


class PhraseFinder:
    """Finds the phrases of many texts at once; keeps the hashes of the words it has seen."""

    def __init__(self, data: MeteorData) -> None:
        self._table = data.paraphrases
        self._hasher = LineHasher()
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._lengths: Integers = np.empty(0, dtype=np.int64)

    def find(self, texts: Sequence[tuple[int, ...]], words: Sequence[str]) -> PhraseBook:
        """Return the phrases of texts that are given as numbers of ``words``."""
        self._learn(words[len(self._hashes) :])
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        flat = np.fromiter((word for text in texts for word in text), dtype=np.int64, count=int(sizes.sum()))
        ends = np.cumsum(sizes)
        hashes, starts, counts = self._grams(flat, np.repeat(ends, sizes))
        known, links = self._linked(_different(hashes))
        numbers = _places(self._table.phrases[known], hashes)
        found = np.flatnonzero(numbers >= 0)
        found = found[np.lexsort((counts[found], starts[found]))]
        owners = np.searchsorted(ends, starts[found], side="right")
        firsts = starts[found] - (ends - sizes)[owners]
        triples = zip(firsts.tolist(), counts[found].tolist(), numbers[found].tolist(), strict=True)
        everything: list[Occurrence] = list(triples)
        cuts = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
        return PhraseBook([everything[a:b] for a, b in pairwise(cuts)], links)

    def _learn(self, words: Sequence[str]) -> None:
        """Take in the hashes of new words; one that is too long for any phrase gets a length that says so."""
        short = [word if len(word) <= _MAX_BYTES else "" for word in words]
        hashes, lengths = self._hasher.words(short)
        too_long = np.fromiter((len(word) > _MAX_BYTES for word in words), dtype=bool, count=len(words))
        self._hashes = np.concatenate([self._hashes, hashes])
        self._lengths = np.concatenate([self._lengths, np.where(too_long, _MAX_BYTES + 1, lengths)])

    def _grams(self, flat: Integers, ends: Integers) -> tuple[Hashes, Integers, Integers]:
        """Return hash, first word and number of words of every n-gram that is short enough for the table."""
        word_hashes, word_lengths = self._hashes[flat], self._lengths[flat]
        starts = np.flatnonzero(word_lengths <= _MAX_BYTES)
        hashes, lengths = word_hashes[starts], word_lengths[starts]
        levels = [(hashes, starts)]
        for more in range(1, _MAX_WORDS):
            inside = np.flatnonzero(starts + more < ends[starts])
            starts, hashes, lengths = starts[inside], hashes[inside], lengths[inside]
            following = starts + more
            hashes = self._hasher.join(hashes, lengths, word_hashes[following])
            lengths = lengths + 1 + word_lengths[following]
            short = np.flatnonzero(lengths <= _MAX_BYTES)
            starts, hashes, lengths = starts[short], hashes[short], lengths[short]
            levels.append((hashes, starts))
        counts = np.repeat(np.arange(1, _MAX_WORDS + 1), [len(level) for level, _ in levels])
        return np.concatenate([level for level, _ in levels]), np.concatenate([s for _, s in levels]), counts

    def _linked(self, hashes: Hashes) -> tuple[Integers, list[dict[int, int]]]:
        """Return the numbers in the table of the phrases that have a paraphrase among them, and their links.

        ``hashes`` are ascending: looked up in this order, they are found many times faster.
        """
        table = self._table
        known = _places(table.phrases, hashes)
        known = known[known >= 0]
        rows = _places(table.sources, known)
        sources = np.flatnonzero(rows >= 0)
        rows = rows[sources]
        starts = table.target_starts[rows].astype(np.int64)
        counts = table.target_starts[rows + 1] - starts
        positions, within = _ranges(starts, counts)
        here = np.zeros(len(table.phrases), dtype=bool)
        here[known] = True
        kept = np.flatnonzero(here[table.targets[positions]])
        ones, others = known[np.repeat(sources, counts)[kept]], table.targets[positions[kept]]
        known = _different(np.concatenate([ones, others]))
        return known, _rows(_places(known, ones), _places(known, others), within[kept] + 1, len(known))
