"""From concepts to vectors: the rows that the graphs of some items need, made together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_scorer.metrics.graded.contradiction import Values, values_of
from spicegraph_scorer.metrics.graded.table import Floats, VectorTable, load_table
from spicegraph_scorer.metrics.graded.telling import NO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.metrics.graded.order import WordOrder

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
        if load_vectors.cache_info().currsize and self is load_vectors():  # read already, or this is not it
            return load_vectors, ()
        return Vectors, (self.signature, self.places, self.directions, self.idf, self.order)

    def rows(self, concepts: Iterable[Strings]) -> Rows:
        """Return the rows of concepts.

        A string's vector is the sum of those of its known words, each times its idf, at length 1, and a concept's the
        sum of its strings', at length 1 too. A string's idf is the mean of its words', weighted by themselves: "sit on"
        is above all "sit". A concept is as frequent as the most frequent of its strings. What is denied ("no hat")
        points away from what is not: it is like other denials only.
        """
        distinct = list(dict.fromkeys(concepts))
        vectors = np.zeros((len(distinct), self.directions.shape[1]), np.float32)
        idf = [_UNKNOWN_IDF] * len(distinct)
        plain: dict[int, int] = {}
        for row, strings in enumerate(distinct):
            place = self.places.get(strings[0]) if len(strings) == 1 else None
            if place is not None:  # a single known word, as most concepts are: all of these at once, below
                plain[row], idf[row] = place, self.idf[place]
            elif known := [found for string in strings if (found := self._string(string))]:
                vectors[row] = _sum([vector for vector, _ in known])
                idf[row] = min([weight for _, weight in known])
        vectors[list(plain)] = self.directions[list(plain.values())]
        return Rows(
            {strings: row for row, strings in enumerate(distinct)},
            vectors,
            idf,
            np.array(idf, np.float64) ** _IDF_EXPONENT,
            {row: values for row, strings in enumerate(distinct) if (values := values_of(strings))},
        )

    def _string(self, string: str) -> tuple[Floats, float] | None:
        """Return the vector and the idf of a string; nothing if no word of it is known."""
        if string.startswith(NO):
            found = self._string(string.removeprefix(NO))
            return found and (-found[0], found[1])
        words = [self.places[word] for word in string.split() if word in self.places]
        if len(words) <= 1:
            return (self.directions[words[0]], self.idf[words[0]]) if words else None
        weights = [self.idf[word] for word in words]
        vector = _sum([self.directions[word] * np.float32(weight) for word, weight in zip(words, weights, strict=True)])
        return vector, sum([weight * weight for weight in weights]) / sum(weights)


def _sum(vectors: Sequence[Floats]) -> Floats:
    """Return the sum of vectors at length 1; the first if they cancel each other out."""
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
