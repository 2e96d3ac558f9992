"""In how many images' references an n-gram occurs: what CIDEr weighs n-grams with."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.errors import DataError
from spicegraph_scorer.ngram.counts import (
    CorpusCounts,
    CountMatrix,
    Integers,
    count_ngrams,
    split_at_spaces,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from spicegraph_scorer.ngram.ptb import Tokens

__all__ = ["DocumentFrequencies"]

ORDERS: Final = 4

_FORMAT: Final = 1
_DIGEST_CHARACTERS: Final = 16
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The n-grams of one order: a code each, sorted, and the number of images that have it.

    A code is the number of the first n-1 words' n-gram, times the size of the vocabulary, plus the number of
    the last word.
    """

    codes: Integers
    images: Integers

    def find(self, codes: Integers) -> Integers:
        """Return the places of codes, ``-1`` for those that are not here."""
        places = np.searchsorted(self.codes, codes)
        known = places < len(self.codes)
        known[known] = self.codes[places[known]] == codes[known]
        found: Integers = np.where(known, places, _UNKNOWN)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class DocumentFrequencies:
    """For every n-gram up to four words, the number of images that have it in one of their references.

    Made from references by :meth:`from_references`, or kept in a file (:meth:`write`, :meth:`read`), so that
    single captions can be scored, and several systems with the same weights.
    """

    images: int
    """The number of images counted."""
    vocabulary: tuple[str, ...]
    """The words, sorted."""
    orders: tuple[_Order, ...]

    @classmethod
    def from_references(cls, references: Sequence[Sequence[Tokens]]) -> DocumentFrequencies:
        """Count over images: ``references`` holds, for each image, the tokens of each of its references.

        >>> frequencies = DocumentFrequencies.from_references([[("a", "dog")], [("a", "cat"), ("a", "cat")]])
        >>> frequencies.images
        2
        >>> dict(frequencies.ngrams())
        {'a': 2, 'cat': 1, 'dog': 1, 'a cat': 1, 'a dog': 1}
        """
        captions = [split_at_spaces(tokens) for image in references for tokens in image]
        image = np.repeat(np.arange(len(references)), [len(image) for image in references])
        vocabulary, counts = count_ngrams(captions, orders=ORDERS)
        orders = (
            _Order(ngrams.prefix * len(vocabulary) + ngrams.last, images_with(ngrams.matrix, image))
            for ngrams in counts
        )
        return cls(len(references), vocabulary, tuple(orders))

    @classmethod
    def sum_of(cls, parts: Sequence[DocumentFrequencies]) -> DocumentFrequencies:
        """Return the frequencies of the images of all parts together, as if they had been counted at once.

        >>> dog, cat = (DocumentFrequencies.from_references([[(word, "runs")]]) for word in ("dog", "cat"))
        >>> dict(DocumentFrequencies.sum_of([dog, cat]).ngrams())
        {'cat': 1, 'dog': 1, 'runs': 2, 'cat runs': 1, 'dog runs': 1}
        """
        vocabulary = tuple(sorted({word for part in parts for word in part.vocabulary}))
        number = {word: place for place, word in enumerate(vocabulary)}
        words = [np.array([number[word] for word in part.vocabulary], np.int64) for part in parts]
        shorter = [np.zeros(1, np.int64) for _ in parts]  # where each part's n-grams of the order before are now
        orders = []
        for order in range(ORDERS):
            own = [part.orders[order] for part in parts]
            codes = [
                before[table.codes // max(1, len(part.vocabulary))] * len(vocabulary)
                + last[table.codes % max(1, len(part.vocabulary))]
                for part, table, before, last in zip(parts, own, shorter, words, strict=True)
            ]
            merged, places = np.unique(np.concatenate([np.zeros(0, np.int64), *codes]), return_inverse=True)
            images = np.concatenate([np.zeros(0, np.int64), *(table.images for table in own)])
            orders.append(_Order(merged, np.bincount(places, images, minlength=len(merged)).astype(np.int64)))
            shorter = [np.searchsorted(merged, part) for part in codes]
        return cls(sum(part.images for part in parts), vocabulary, tuple(orders))

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
        number = {word: place for place, word in enumerate(self.vocabulary)}
        words = np.array([number.get(word, _UNKNOWN) for word in counts.vocabulary], np.int64)
        shorter = np.zeros(1, np.int64)
        frequencies: list[Integers] = []
        for order, ngrams in zip(self.orders, counts.orders, strict=True):
            prefix, last = shorter[ngrams.prefix], words[ngrams.last]
            codes = np.where((prefix < 0) | (last < 0), _UNKNOWN, prefix * len(self.vocabulary) + last)
            shorter = order.find(codes)
            images = np.append(order.images, 0)  # the last is what -1 stands for
            frequencies.append(images[shorter])
        return tuple(frequencies)

    @property
    def digest(self) -> str:
        """A short hash of the contents, for signatures."""
        contents = hashlib.sha256("\n".join([str(self.images), *self.vocabulary]).encode())
        for order in self.orders:
            contents.update(order.codes.astype("<i8").tobytes())
            contents.update(order.images.astype("<i8").tobytes())
        return contents.hexdigest()[:_DIGEST_CHARACTERS]

    def write(self, path: Path) -> None:
        """Write the frequencies to a file (numpy's compressed ``.npz``).

        Raises:
            OSError: the file cannot be written.
        """
        words = np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8)
        arrays = {"header": np.array([_FORMAT, self.images, len(self.vocabulary)]), "words": words}
        for order, table in enumerate(self.orders, 1):
            arrays |= {f"codes{order}": table.codes, f"images{order}": table.images}
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, path: Path) -> DocumentFrequencies:
        """Read what :meth:`write` wrote.

        Raises:
            DataError: the file is missing, or is no file of frequencies.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                file_format, images, size = arrays["header"].tolist()
                vocabulary = tuple(arrays["words"].tobytes().decode().split("\n")) if size else ()
                orders = tuple(
                    _Order(arrays[f"codes{order}"], arrays[f"images{order}"]) for order in range(1, ORDERS + 1)
                )
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is something else"
            raise DataError(f"{path}: cannot be read as document frequencies ({reason})") from error
        if file_format != _FORMAT or len(vocabulary) != size:
            raise DataError(f"{path}: document frequencies of another version, or damaged; write them again")
        return cls(images, vocabulary, orders)


def images_with(matrix: CountMatrix, image: Integers) -> Integers:
    """Return for each n-gram the number of images that have it; ``image`` names the image of each row."""
    cells = matrix.tocoo()
    columns = matrix.shape[1]
    # Sorting is faster here than numpy's unique, which hashes.
    pairs = np.sort(image[cells.row] * columns + cells.col)
    first = np.diff(pairs, prepend=_UNKNOWN) != 0
    found: Integers = np.bincount(pairs[first] % max(1, columns), minlength=columns)
    return found
