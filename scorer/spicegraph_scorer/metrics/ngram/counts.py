"""N-gram counts of many captions at once, as sparse matrices: what BLEU and CIDEr are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from scipy import sparse

from spicegraph_scorer.core.tokens import TokenizedItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_scorer.core.tokens import TokenizedItem, Tokens

__all__ = [
    "CorpusCounts",
    "Floats",
    "Integers",
    "NgramCounts",
    "count_ngrams",
    "count_slices",
    "split_at_spaces",
]

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
CountMatrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"
Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

_SLICE: Final = 1024
"""Items whose n-grams are counted together: some 10 MB, and of larger slices the counting is slower."""


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """The n-grams of one order in some captions.

    ``matrix[caption, column]`` says how often a caption has an n-gram. The n-gram of a column is the n-gram
    ``prefix[column]`` of the next lower order followed by the word ``last[column]``; single words have no
    prefix.
    """

    order: int
    matrix: CountMatrix
    prefix: Integers
    last: Integers


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """The n-grams of a corpus: the rows of each matrix are the candidates, then all references in order."""

    vocabulary: tuple[str, ...]
    orders: tuple[NgramCounts, ...]
    lengths: Integers
    """The number of words of each row's caption."""
    item: Integers
    """The item that each reference belongs to."""

    @property
    def items(self) -> int:
        """The number of items, and so of candidates."""
        return len(self.lengths) - len(self.item)


def split_at_spaces(tokens: Tokens) -> Tokens:
    """Split tokens at white space inside them, as the COCO toolkit does for BLEU and CIDEr, not for ROUGE.

    Few tokens have any: the Penn Treebank keeps ``2 1/2`` in one piece, with a no-break space.

    >>> split_at_spaces((f"2{chr(160)}1/2", "cups"))
    ('2', '1/2', 'cups')
    """
    return tuple(" ".join(tokens).split())


def count_slices(
    items: Sequence[TokenizedItem], *, orders: int = 4, only_references: bool = False
) -> Iterator[CorpusCounts]:
    """Count the n-grams up to ``orders`` of a corpus, a slice of its items at a time, all with one vocabulary.

    So memory for n-grams does not grow with the corpus. With ``only_references`` candidates count as empty.
    """
    table = items if isinstance(items, TokenizedItems) else TokenizedItems.of(items)
    vocabulary, places, place_starts = _split_vocabulary(table.vocabulary)
    words, starts = np.asarray(table.words), np.asarray(table.starts)
    captions, firsts = np.asarray(table.captions), np.asarray(table.firsts)
    for start in range(0, len(table), _SLICE):
        first = firsts[start : start + _SLICE + 1]
        candidates = captions[first[:-1]]
        references = np.delete(captions[first[0] : first[-1]], first[:-1] - first[0])
        empty = len(candidates) if only_references else 0
        rows = np.concatenate([candidates, references])[empty:]
        tokens, lengths = _taken(words, starts, rows)
        numbers, pieces = _taken(places, place_starts, tokens)
        caption = np.repeat(np.arange(empty, empty + len(rows)), lengths)
        lengths = np.bincount(caption, pieces, minlength=empty + len(rows)).astype(np.int64)
        owner = np.repeat(np.arange(len(candidates)), np.diff(first) - 1)
        yield CorpusCounts(vocabulary, _count(numbers, lengths, len(vocabulary), orders), lengths, owner)


def _split_vocabulary(words: Sequence[str]) -> tuple[tuple[str, ...], Integers, Integers]:
    """Split words at white space; return the sorted vocabulary, and the places in it of each word's pieces.

    Those of word ``k`` are from ``starts[k]`` to ``starts[k + 1]``.
    """
    pieces = [split_at_spaces((word,)) for word in words]
    vocabulary = sorted(set(chain.from_iterable(pieces)))
    number = {word: place for place, word in enumerate(vocabulary)}
    places = np.array([number[word] for split in pieces for word in split], np.int64)
    return tuple(vocabulary), places, np.cumsum([0, *map(len, pieces)])


def _taken(values: Integers, starts: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Return the values from ``starts[k]`` to ``starts[k + 1]`` of every chosen ``k``, joined, and their counts."""
    lengths: Integers = starts[chosen + 1] - starts[chosen]
    shifts = starts[chosen] - np.cumsum(lengths) + lengths
    return values[np.repeat(shifts, lengths) + np.arange(lengths.sum())], lengths


def count_ngrams(captions: Sequence[Tokens], *, orders: int) -> tuple[tuple[str, ...], tuple[NgramCounts, ...]]:
    """Return the sorted vocabulary and, for each order, the counts of the captions' n-grams."""
    vocabulary = sorted({word for tokens in captions for word in tokens})
    number = {word: place for place, word in enumerate(vocabulary)}
    words = np.array([number[word] for tokens in captions for word in tokens], np.int64)
    lengths = np.fromiter(map(len, captions), np.int64, len(captions))
    return tuple(vocabulary), _count(words, lengths, len(vocabulary), orders)


def _count(words: Integers, lengths: Integers, vocabulary: int, orders: int) -> tuple[NgramCounts, ...]:
    """Count the n-grams of captions of such lengths, whose words come as numbers below ``vocabulary``.

    An n-gram of order n gets its number from that of its first n-1 words and its last word, so that every
    order is one sort of whole numbers, without a tuple per n-gram.
    """
    caption = np.repeat(np.arange(len(lengths)), lengths)
    remaining = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(words))
    counts: list[NgramCounts] = []
    position = np.arange(len(words))
    ngram = np.zeros(len(words), np.int64)
    for order in range(1, orders + 1):
        inside = remaining[position] >= order
        position, ngram = position[inside], ngram[inside]
        keys, ngram = np.unique(ngram * vocabulary + words[position + order - 1], return_inverse=True)
        ones = np.ones(len(position))
        shape = (len(lengths), len(keys))
        matrix = sparse.coo_array((ones, (caption[position], ngram)), shape=shape).tocsr()
        prefix, last = np.divmod(keys, max(1, vocabulary))
        counts.append(NgramCounts(order, matrix, prefix, last))
    return tuple(counts)
