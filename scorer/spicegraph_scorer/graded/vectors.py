"""From concepts to vectors: the rows that the graphs of some items need, made together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_scorer.graded.contradiction import Values, values_of
from spicegraph_scorer.graded.table import Floats, VectorTable, load_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.graded.order import WordOrder

__all__ = ["Rows", "Vectors", "load_vectors"]

Strings = tuple[str, ...]

_UNKNOWN_IDF: Final = 1.0
_IDF_EXPONENT: Final = 0.75
_SHORTEST: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Concepts, each by the strings that stand for it: a unit vector, its idf and what it weighs for that.

    A concept without any known word has a zero vector: it is like nothing but itself. ``values`` has the rows of the
    concepts with values that exclude others.
    """

    places: Mapping[Strings, int]
    vectors: Floats
    idf: Sequence[float]
    weights: npt.NDArray[np.float64]
    values: Mapping[int, Values]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A table of vectors, ready for look-ups, and the order of words, if the table has one; it does not change."""

    signature: str
    places: Mapping[str, int] = field(repr=False)
    directions: Floats = field(repr=False)
    idf: Sequence[float] = field(repr=False)
    order: WordOrder | None = field(default=None, repr=False)

    @classmethod
    def of(cls, table: VectorTable) -> Vectors:
        """Make a table ready."""
        places = {word: place for place, word in enumerate(table.words)}
        return cls(table.signature, places, table.directions(), table.idf().tolist(), table.order)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Let worker processes read the bundled table themselves."""
        if self is load_vectors():
            return load_vectors, ()
        return Vectors, (self.signature, self.places, self.directions, self.idf, self.order)

    def rows(self, concepts: Iterable[Strings]) -> Rows:
        """Return the rows of concepts.

        A string's vector is the sum of those of its known words, at length 1, and a concept's the sum of its
        strings', at length 1 too. Weights are means over the strings, and over the words of each.
        """
        distinct = list(dict.fromkeys(concepts))
        vectors = np.zeros((len(distinct), self.directions.shape[1]), np.float32)
        idf = [_UNKNOWN_IDF] * len(distinct)
        plain: dict[int, int] = {}
        for row, strings in enumerate(distinct):
            place = self.places.get(strings[0]) if len(strings) == 1 else None
            if place is not None:  # a single known word, as most concepts are: all of these at once, below
                plain[row], idf[row] = place, self.idf[place]
            elif known := [words for string in strings if (words := self._words(string))]:
                vectors[row] = _sum([_sum([self.directions[word] for word in words]) for words in known])
                idf[row] = _mean([_mean([self.idf[word] for word in words]) for words in known])
        vectors[list(plain)] = self.directions[list(plain.values())]
        return Rows(
            {strings: row for row, strings in enumerate(distinct)},
            vectors,
            idf,
            np.array(idf, np.float64) ** _IDF_EXPONENT,
            {row: values for row, strings in enumerate(distinct) if (values := values_of(strings))},
        )

    def _words(self, string: str) -> list[int]:
        return [self.places[word] for word in string.split() if word in self.places]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _sum(vectors: Sequence[Floats]) -> Floats:
    """Return the sum of unit vectors at length 1; the first if they cancel each other out."""
    if len(vectors) == 1:
        return vectors[0]
    total: Floats = reduce(np.add, vectors)
    length = np.sqrt(total.dot(total))
    return vectors[0] if length < _SHORTEST else total / length


@lru_cache(maxsize=1)
def load_vectors() -> Vectors:
    """Return the bundled table, ready for look-ups; read once per process.

    Raises:
        DataError: it is missing or damaged.
    """
    return Vectors.of(load_table())
