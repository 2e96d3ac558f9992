"""How a table of vectors is learned: from which words people use for one image, each in a caption of their own."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no stubs

from spicegraph_graded.spice_g.vectors import VectorTable
from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.loose import DENIED, NEGATIONS, NOTES, PLURAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_graded.spice_g.texts import WordOrder
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.facts import FactSource

FEWEST: Final = 5  # In how many captions a word must stand.
DIMENSIONS: Final = 192  # The length of a vector.
_CONTEXT_EXPONENT: Final = 0.75
_ABOUT_WORDS: Final = NOTES | {PLURAL}
_DISCOUNT: Final = 10.0
_LARGEST: Final = 127


def words_of(facts: Iterable[Fact]) -> frozenset[str]:
    """Return the words of a caption's tuples, those of loose words and negations included."""
    strings: set[str] = set()
    for fact in facts:
        if fact.rule == DENIED:  # "no hat": a fact about "hat", which adds the "no"
            strings |= NEGATIONS.intersection(fact.words)
        elif fact.rule not in _ABOUT_WORDS:
            strings.update(fact.words)
    return frozenset(word for string in strings for word in string.split())


def word_sets(images: Iterable[Sequence[str]], source: FactSource) -> Iterator[list[frozenset[str]]]:
    """Yield for each image the word sets of its captions; every caption is parsed once."""
    groups = list(images)
    texts = list(dict.fromkeys(text for group in groups for text in group))
    words = dict(zip(texts, map(words_of, source.facts(texts)), strict=True))
    yield from ([words[text] for text in group] for group in groups)


def _word_matrix(captions: Iterable[frozenset[str]], words: Sequence[str]) -> csr_array:
    """Return which of the words each caption has, (captions, words)."""
    number = {word: index for index, word in enumerate(words)}
    rows = [sorted(number[word] for word in caption if word in number) for caption in captions]
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(chain.from_iterable(rows), np.int64, ends[-1])
    return csr_array((np.ones(len(indices)), indices, ends), shape=(len(rows), len(words)))


def build_table(
    images: Sequence[Sequence[frozenset[str]]],
    *,
    name: str,
    dimensions: int = DIMENSIONS,
    fewest: int = FEWEST,
    order: WordOrder | None = None,
) -> VectorTable:
    """Learn a table from the captions of images, each caption its set of words (:func:`word_sets`).

    Two words are counted together if they are in *different* captions of an image: what people say of the same
    thing, not what they say together. "sofa" and "couch" are then close; "red" and "blue", or "two" and "three",
    are not, although they have the same neighbours. The counts become positive pointwise mutual
    information (contexts to the power of 0.75, Levy, Goldberg and Dagan, TACL 2015; times n / (n + 10), Pantel and
    Lin 2002), and the left singular vectors at length 1 are the words' vectors.
    """
    if not name.strip() or not name.isprintable():
        raise InputError(f"{name!a}: a table's name is one line of printable characters")
    frequencies = Counter(chain.from_iterable(chain.from_iterable(images)))
    words = sorted((w for w, n in frequencies.items() if n >= fewest), key=lambda w: (-frequencies[w], w))
    if len(words) < 3:
        raise InputError(f"only {len(words)} words are in {fewest} or more captions; a table needs at least 3")
    captions = _word_matrix(chain.from_iterable(images), words)
    owner = np.repeat(np.arange(len(images)), [len(image) for image in images])
    ones = np.ones(len(owner))
    grouping = csr_array((ones, (owner, np.arange(len(owner)))), shape=(len(images), len(owner)))
    sums = csr_array(grouping @ captions)
    together = csr_array(sums.T @ sums - captions.T @ captions)
    information = _information(together)
    if not information.nnz:
        raise InputError("no image has two captions that say different things; a table needs several of each image")
    image_counts = np.bincount(sums.indices, minlength=len(words)).astype(np.int32)
    with threadpool_limits(1):  # the same sums in the same order
        left, sizes, _ = svds(information, k=min(dimensions, len(words) - 1), v0=np.ones(len(words)))
    left = left[:, np.argsort(-sizes)]
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])  # the largest entry is positive
    return VectorTable(name, len(images), tuple(words), image_counts, _rounded(left * signs), order)


def extended_table(base: VectorTable, own: VectorTable) -> VectorTable:
    """Return a table of the words of both: a word's vector is its two side by side, each of half the squared length."""
    # Two words that both tables know are then as alike as the mean of their cosines; zeros stand where a table lacks
    # one.
    words = (*base.words, *sorted(set(own.words) - set(base.words)))
    row_of = {word: index for index, word in enumerate(words)}
    counts = np.zeros(len(words), np.int32)
    parts = []
    for table in (base, own):
        rows = [row_of[word] for word in table.words]
        counts[rows] += table.image_counts
        part = np.zeros((len(words), table.vectors.shape[1]))
        part[rows] = table.directions()
        parts.append(part)
    images = base.images + own.images
    order = base.order or own.order
    return VectorTable(own.name, images, words, counts, _rounded(np.concatenate(parts, axis=1)), order)


def _information(counts: csr_array) -> csr_array:
    """Return the positive pointwise mutual information of counts."""
    cells = counts.tocoo()
    (row, column), values = cells.coords, cells.data
    seen = values > 0
    row, column, values = row[seen], column[seen], values[seen]
    size = counts.shape[0]
    total = values.sum() or 1
    words = np.bincount(row, values, size) / total
    contexts = np.bincount(column, values, size) ** _CONTEXT_EXPONENT
    contexts /= contexts.sum() or 1
    information = np.log(values / total / (words[row] * contexts[column])) * values / (values + _DISCOUNT)
    positive = information > 0
    return csr_array((information[positive], (row[positive], column[positive])), shape=counts.shape)


def _rounded(
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    rounded: np.ndarray[tuple[int, int], np.dtype[np.int8]] = np.rint(
        vectors / np.where(largest > 0, largest, 1) * _LARGEST
    ).astype(np.int8)
    return rounded
