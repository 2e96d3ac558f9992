"""N-gram counts of many captions at once, as sparse matrices: what BLEU and CIDEr are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.ngram.ptb import TokenizedItem, Tokens

__all__ = [
    "CorpusCounts",
    "Floats",
    "Integers",
    "NgramCounts",
    "count_corpus",
    "count_ngrams",
    "split_at_spaces",
]

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
CountMatrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"
Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


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


def count_corpus(items: Sequence[TokenizedItem], *, orders: int = 4) -> CorpusCounts:
    """Count the n-grams up to ``orders`` of all captions of a corpus."""
    captions = [split_at_spaces(item.candidate) for item in items]
    captions += [split_at_spaces(reference) for item in items for reference in item.references]
    owner = np.repeat(np.arange(len(items)), [len(item.references) for item in items])
    vocabulary, counts = count_ngrams(captions, orders=orders)
    return CorpusCounts(vocabulary, counts, np.fromiter(map(len, captions), np.int64, len(captions)), owner)


def count_ngrams(captions: Sequence[Tokens], *, orders: int) -> tuple[tuple[str, ...], tuple[NgramCounts, ...]]:
    """Return the sorted vocabulary and, for each order, the counts of the captions' n-grams.

    An n-gram of order n gets its number from that of its first n-1 words and its last word, so that every
    order is one sort of whole numbers, without a tuple per n-gram.
    """
    vocabulary = sorted({word for tokens in captions for word in tokens})
    number = {word: place for place, word in enumerate(vocabulary)}
    words = np.array([number[word] for tokens in captions for word in tokens], np.int64)
    lengths = np.fromiter(map(len, captions), np.int64, len(captions))
    caption = np.repeat(np.arange(len(captions)), lengths)
    remaining = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(words))
    counts: list[NgramCounts] = []
    position = np.arange(len(words))
    ngram = np.zeros(len(words), np.int64)
    for order in range(1, orders + 1):
        inside = remaining[position] >= order
        position, ngram = position[inside], ngram[inside]
        keys, ngram = np.unique(ngram * len(number) + words[position + order - 1], return_inverse=True)
        ones = np.ones(len(position))
        shape = (len(captions), len(keys))
        matrix = sparse.coo_array((ones, (caption[position], ngram)), shape=shape).tocsr()
        prefix, last = np.divmod(keys, max(1, len(number)))
        counts.append(NgramCounts(order, matrix, prefix, last))
    return tuple(vocabulary), tuple(counts)
