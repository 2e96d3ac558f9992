"""N-gram counts of many captions at once, as sparse matrices, and in how many images' references an n-gram occurs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from spicegraph_parser.errors import DataError, InputError, expect, expect_list, kind_of, reading
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem, TokenizedItems, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from scipy import sparse


Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Number = TypeVar("Number", bound=np.integer[Any])
CountMatrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"
Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

_SLICE: Final = 1024  # Items counted together: some 10 MB; larger slices are slower.


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """The n-grams of one order in some captions."""

    order: int
    matrix: CountMatrix  # (captions, columns): how often a caption has an n-gram
    prefix: Integers  # the column of a column's first n-1 words in the order below
    last: Integers  # the number of its last word


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """The n-grams of a corpus: the rows of each matrix are the candidates, then all references in order."""

    vocabulary: tuple[str, ...]
    orders: tuple[NgramCounts, ...]
    lengths: Integers  # The number of words of each row's caption.
    item: Integers  # The item that each reference belongs to.

    @property
    def items(self) -> int:
        """The number of items, and so of candidates."""
        return len(self.lengths) - len(self.item)


def split_at_spaces(tokens: Tokens) -> Tokens:
    """Split tokens at white space inside them ("2 1/2"), as the COCO toolkit does for BLEU and CIDEr, not for ROUGE."""
    return tuple(" ".join(tokens).split())


def count_slices(
    items: Sequence[TokenizedItem], *, orders: int = 4, only_references: bool = False
) -> Iterator[CorpusCounts]:
    """Count n-grams a slice of the items at a time, all with one vocabulary; or as if candidates were empty."""
    table = items if isinstance(items, TokenizedItems) else TokenizedItems.of(items)
    # Words are split at white space: the pieces of word k are table_numbers from number_starts[k] to [k + 1].
    pieces_of = [split_at_spaces((word,)) for word in table.vocabulary]
    vocabulary = tuple(sorted(set(chain.from_iterable(pieces_of))))
    number = {word: index for index, word in enumerate(vocabulary)}
    table_numbers = np.array([number[word] for split in pieces_of for word in split], np.int64)
    number_starts = np.cumsum([0, *map(len, pieces_of)])
    words, starts = np.asarray(table.words), np.asarray(table.starts)
    captions, firsts = np.asarray(table.captions), np.asarray(table.firsts)
    for start in range(0, len(table), _SLICE):
        first = firsts[start : start + _SLICE + 1]
        candidates = captions[first[:-1]]
        references = np.delete(captions[first[0] : first[-1]], first[:-1] - first[0])
        empty = len(candidates) if only_references else 0
        rows = np.concatenate([candidates, references])[empty:]
        tokens, lengths = _taken(words, starts, rows)
        numbers, pieces = _taken(table_numbers, number_starts, tokens)
        caption = np.repeat(np.arange(empty, empty + len(rows)), lengths)
        lengths = np.bincount(caption, pieces, minlength=empty + len(rows)).astype(np.int64)
        owner = np.repeat(np.arange(len(candidates)), np.diff(first) - 1)
        yield CorpusCounts(vocabulary, _count(numbers, lengths, len(vocabulary), orders), lengths, owner)


def _taken(values: Integers, starts: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Return the values from ``starts[k]`` to ``starts[k + 1]`` of every chosen ``k``, joined, and their counts."""
    lengths: Integers = starts[chosen + 1] - starts[chosen]
    shifts = starts[chosen] - np.cumsum(lengths) + lengths
    return values[np.repeat(shifts, lengths) + np.arange(lengths.sum())], lengths


def count_ngrams(captions: Sequence[Tokens], *, orders: int) -> tuple[tuple[str, ...], tuple[NgramCounts, ...]]:
    """Return the sorted vocabulary and, for each order, the counts of the captions' n-grams."""
    vocabulary = sorted({word for tokens in captions for word in tokens})
    number = {word: index for index, word in enumerate(vocabulary)}
    words = np.array([number[word] for tokens in captions for word in tokens], np.int64)
    lengths = np.fromiter(map(len, captions), np.int64, len(captions))
    return tuple(vocabulary), _count(words, lengths, len(vocabulary), orders)


def _count(words: Integers, lengths: Integers, vocabulary: int, orders: int) -> tuple[NgramCounts, ...]:
    """Count the n-grams of captions of such lengths, whose words come as numbers below ``vocabulary``."""
    # An n-gram gets its number from that of its first n-1 words and its last word, so that every order is one sort of
    # whole numbers, without a tuple per n-gram.
    from scipy import sparse  # noqa: PLC0415 (a third of the time that importing the scorer would take)

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


Images: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int32]]

ORDERS: Final = 4

_FORMAT: Final = 1
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The n-grams of one order: a code each, sorted, and the number of images that have it."""

    codes: Integers  # number of the first n-1 words' n-gram, times the size of the vocabulary, plus the last word's
    images: Images

    def find(self, codes: Integers) -> Integers:
        """Return the places of codes, ``-1`` for those that are not here."""
        rows = np.searchsorted(self.codes, codes)
        known = rows < len(self.codes)
        known[known] = self.codes[rows[known]] == codes[known]
        numbers: Integers = np.where(known, rows, _UNKNOWN)
        return numbers


def _images(references: Iterable[Sequence[Tokens]]) -> Iterator[tuple[Tokens, ...]]:
    """Yield each image's references, and refuse what is not lists of lists of words."""
    expect_list(references, "references", "a list of images' references")
    for index, image in enumerate(references):
        if not isinstance(image, list | tuple):
            raise InputError(f"references[{index}]: is {kind_of(image)}, expected a list of tokenized references")
        for tokens in image:
            if not isinstance(tokens, list | tuple) or (tokens and not isinstance(tokens[0], str)):
                raise InputError(f"references[{index}]: holds {kind_of(tokens)}, expected lists of words")
        yield tuple(image)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentFrequencies:
    """For every n-gram up to four words, the number of images that have it in one of their references.

    Kept in a file (:meth:`write`, :meth:`read`), single captions can be scored, and several systems alike.
    """

    images: int  # The number of images counted.
    vocabulary: tuple[str, ...]  # The words, sorted.
    orders: tuple[_Order, ...]

    @classmethod
    def from_references(cls, references: Iterable[Sequence[Tokens]]) -> DocumentFrequencies:
        """Count over images: ``references`` holds, for each image, the tokens of each of its references.

        >>> frequencies = DocumentFrequencies.from_references([[("a", "dog")], [("a", "cat"), ("a", "cat")]])
        >>> frequencies.images
        2
        >>> dict(frequencies.ngrams())
        {'a': 2, 'cat': 1, 'dog': 1, 'a cat': 1, 'a dog': 1}
        """
        return cls.of_items(TokenizedItems.of(TokenizedItem((), image) for image in _images(references)))

    @classmethod
    def from_ngrams(cls, images: int, ngrams: Mapping[tuple[str, ...], float]) -> DocumentFrequencies:
        """Take frequencies counted elsewhere, of n-grams up to four words; a ValueError if some are not tuples."""
        if not all(map(_is_ngram, ngrams)):
            raise ValueError("an n-gram is not a tuple of words")
        vocabulary = tuple(sorted(set(chain.from_iterable(ngrams))))
        number = {word: index for index, word in enumerate(vocabulary)}
        codes: dict[tuple[str, ...], int] = {(): 0}
        orders = []
        for size in range(1, ORDERS + 1):
            # The beginning of a longer n-gram gets a place, even where it was not counted itself.
            of_size = {ngram[:size] for ngram in ngrams if len(ngram) >= size}
            code = {ngram: codes[ngram[:-1]] * len(vocabulary) + number[ngram[-1]] for ngram in of_size}
            ordered = sorted(of_size, key=code.__getitem__)
            orders.append(
                _Order(
                    np.array([code[ngram] for ngram in ordered], np.int64),
                    np.array([ngrams.get(ngram, 0) for ngram in ordered], np.int32),
                )
            )
            codes = {ngram: index for index, ngram in enumerate(ordered)}
        return cls(images, vocabulary, tuple(orders))

    @classmethod
    def of_items(cls, items: TokenizedItems) -> DocumentFrequencies:
        """Count over the references of items, each item an image of its own."""
        parts: list[DocumentFrequencies] = []
        for counts in count_slices(items, orders=ORDERS, only_references=True):
            tables = [
                _Order(
                    ngrams.prefix * len(counts.vocabulary) + ngrams.last,
                    images_with(ngrams.matrix[counts.items :], counts.item).astype(np.int32),
                )
                for ngrams in counts.orders
            ]
            parts.append(cls(counts.items, counts.vocabulary, tuple(tables)))
            # Parts of about the same size are added up, as numbers carry: few are held, and none is added often.
            while len(parts) > 1 and parts[-2].images <= parts[-1].images:
                parts[-2:] = [cls.sum_of(parts[-2:])]
        return parts[0] if len(parts) == 1 else cls.sum_of(parts)

    @classmethod
    def sum_of(cls, parts: Sequence[DocumentFrequencies]) -> DocumentFrequencies:
        """Return the frequencies of the images of all parts together, as if they had been counted at once."""
        known = {part.vocabulary for part in parts}
        vocabulary = known.pop() if len(known) == 1 else tuple(sorted(set(chain.from_iterable(known))))
        words = [_places(part.vocabulary, vocabulary) for part in parts]
        shorter = [np.zeros(1, np.int64)] * len(parts)  # where each part's n-grams of the order before are now
        orders = []
        for order in range(ORDERS):
            tables = [part.orders[order] for part in parts]
            codes = [
                before[table.codes // max(1, len(part.vocabulary))] * len(vocabulary)
                + last[table.codes % max(1, len(part.vocabulary))]
                for part, table, before, last in zip(parts, tables, shorter, words, strict=True)
            ]
            merged = distinct(np.concatenate([np.zeros(0, np.int64), *codes]))
            shorter = [np.searchsorted(merged, part) for part in codes]
            images = np.zeros(len(merged), np.int32)
            for numbers, table in zip(shorter, tables, strict=True):
                images[numbers] += table.images
            orders.append(_Order(merged, images))
        return cls(sum(part.images for part in parts), vocabulary, tuple(orders))

    def __add__(self, other: DocumentFrequencies) -> DocumentFrequencies:
        """Return the frequencies of the images of both together."""
        return self.sum_of([self, other])

    def ngrams(self) -> Iterator[tuple[str, int]]:
        """Yield each n-gram, its words joined by spaces, with the number of images that have it."""
        shorter = [""]
        for order in self.orders:
            prefixes, words = np.divmod(order.codes, max(1, len(self.vocabulary)))
            texts = [
                f"{shorter[prefix]} {self.vocabulary[word]}".lstrip()
                for prefix, word in zip(prefixes.tolist(), words.tolist(), strict=True)
            ]
            yield from zip(texts, order.images.tolist(), strict=True)
            shorter = texts

    def lookup(self, counts: CorpusCounts) -> tuple[Integers, ...]:
        """Return for each order the number of images that have the n-gram of each column, 0 if none has."""
        words = _places(counts.vocabulary, self.vocabulary)
        shorter = np.zeros(1, np.int64)
        frequencies: list[Integers] = []
        for order, ngrams in zip(self.orders, counts.orders, strict=True):
            prefix, last = shorter[ngrams.prefix], words[ngrams.last]
            codes = np.where((prefix < 0) | (last < 0), _UNKNOWN, prefix * len(self.vocabulary) + last)
            shorter = order.find(codes)
            images = np.zeros(len(shorter), np.int64)
            known = shorter != _UNKNOWN
            images[known] = order.images[shorter[known]]
            frequencies.append(images)
        return tuple(frequencies)

    @property
    def digest(self) -> str:
        """A short hash of the contents, for signatures."""
        contents = hashlib.sha256("\n".join([str(self.images), *self.vocabulary]).encode())
        for order in self.orders:
            contents.update(order.codes.astype("<i8").tobytes())
            contents.update(order.images.astype("<i8").tobytes())
        return contents.hexdigest()[:16]

    def write(self, path: Path) -> None:
        """Write the frequencies to a file (numpy's compressed ``.npz``)."""
        words = np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8)
        arrays = {"header": np.array([_FORMAT, self.images, len(self.vocabulary)]), "words": words}
        for order, table in enumerate(self.orders, 1):
            arrays |= {f"codes{order}": table.codes, f"images{order}": table.images.astype(np.int64)}
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, path: Path | str) -> DocumentFrequencies:
        """Read what :meth:`write` wrote; a DataError if the file is missing, or is not a file of frequencies."""
        expect(path, (str, Path), "path", "the path of a file")
        with reading(path, "document frequencies"), np.load(path, allow_pickle=False) as arrays:
            file_format, images, size = arrays["header"].tolist()
            vocabulary = tuple(arrays["words"].tobytes().decode().split("\n")) if size else ()
            orders = tuple(
                _Order(arrays[f"codes{order}"], arrays[f"images{order}"].astype(np.int32))
                for order in range(1, ORDERS + 1)
            )
        if file_format != _FORMAT or len(vocabulary) != size:
            raise DataError(f"{path}: document frequencies of another version, or damaged; write them again")
        return cls(images, vocabulary, orders)


def frequencies_of(corpus: Corpus) -> DocumentFrequencies:
    """Count over the references of a corpus, each item an image of its own."""
    return DocumentFrequencies.of_items(corpus.tokens)


def _is_ngram(key: object) -> bool:
    return isinstance(key, tuple) and all(isinstance(word, str) for word in key)


def _places(words: tuple[str, ...], vocabulary: tuple[str, ...]) -> Integers:
    """Return the place in a vocabulary of each word, ``-1`` for those that are not there."""
    if words is vocabulary:
        return np.arange(len(words))
    number = {word: index for index, word in enumerate(vocabulary)}
    return np.array([number.get(word, _UNKNOWN) for word in words], np.int64)


def images_with(matrix: CountMatrix, image: Integers) -> Integers:
    """Return for each n-gram the number of images that have it; ``image`` names the image of each row."""
    cells = matrix.tocoo()
    columns = matrix.shape[1]
    pairs = distinct(image[cells.row] * columns + cells.col)
    images: Integers = np.bincount(pairs % max(1, columns), minlength=columns)
    return images


def distinct(values: np.ndarray[tuple[int], np.dtype[Number]]) -> np.ndarray[tuple[int], np.dtype[Number]]:
    """Sort whole numbers in place, and return each once; faster here than numpy's unique, which hashes."""
    values.sort()
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values[is_first]
