"""From concepts to vectors: the rows that the graphs of some items need, made together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_scorer.graded.contradiction import Values, values_of
from spicegraph_scorer.graded.table import Floats, VectorTable, load_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Rows", "Vectors", "load_vectors"]

Strings = tuple[str, ...]

_UNKNOWN_IDF: Final = 1.0
_SHORTEST: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Concepts, each by the strings that stand for it: a unit vector, a weight, and the values that exclude others.

    A concept without any known word has a zero vector: it is like nothing but itself.
    """

    places: Mapping[Strings, int]
    vectors: Floats
    idf: Sequence[float]
    values: Sequence[Mapping[str, Values]]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A table of vectors, ready for look-ups; it does not change."""

    signature: str
    places: Mapping[str, int] = field(repr=False)
    directions: Floats = field(repr=False)
    idf: Sequence[float] = field(repr=False)

    @classmethod
    def of(cls, table: VectorTable) -> Vectors:
        """Make a table ready."""
        places = {word: place for place, word in enumerate(table.words)}
        return cls(table.signature, places, table.directions(), table.idf().tolist())

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Let worker processes read the bundled table themselves."""
        if self is load_vectors():
            return load_vectors, ()
        return Vectors, (self.signature, self.places, self.directions, self.idf)

    def rows(self, concepts: Iterable[Strings]) -> Rows:
        """Return the rows of concepts.

        A string's vector is the sum of those of its known words, at length 1, and a concept's the sum of its
        strings', at length 1 too. Weights are means over the strings, and over the words of each.
        """
        distinct = list(dict.fromkeys(concepts))
        known = [[places for string in strings if (places := self._words(string))] for strings in distinct]
        vectors = np.zeros((len(distinct), self.directions.shape[1]), np.float32)
        plain = [row for row, strings in enumerate(known) if len(strings) == len(strings[0] if strings else ()) == 1]
        vectors[plain] = self.directions[[known[row][0][0] for row in plain]]
        for row in set(range(len(known))).difference(plain):
            if known[row]:
                vectors[row] = _sum([_sum([self.directions[word] for word in words]) for words in known[row]])
        return Rows(
            {strings: row for row, strings in enumerate(distinct)},
            vectors,
            [_mean([_mean([self.idf[word] for word in words]) for words in strings]) for strings in known],
            list(map(values_of, distinct)),
        )

    def _words(self, string: str) -> list[int]:
        return [self.places[word] for word in string.split() if word in self.places]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else _UNKNOWN_IDF


def _sum(vectors: Sequence[Floats]) -> Floats:
    """Return the sum of unit vectors at length 1; the first if they cancel each other out."""
    if len(vectors) == 1:
        return vectors[0]
    total: Floats = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(total))
    return vectors[0] if length < _SHORTEST else total / np.float32(length)


@lru_cache(maxsize=1)
def load_vectors() -> Vectors:
    """Return the bundled table, ready for look-ups; read once per process.

    Raises:
        DataError: it is missing or damaged.
    """
    return Vectors.of(load_table())
