"""The vectors behind SPICE-G: a table learned from captions of the same images, and the rows that graphs need of it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_graded.spice_g.facts import NO, Values, values_of
from spicegraph_graded.spice_g.texts import WordOrder
from spicegraph_parser.errors import DataError, InputError, reading
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.loose import PLURAL
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.data import WordVectors


Floats = npt.NDArray[np.float32]

_PARTS: Final = "nva"
_SENSES: Final = 2  # the most frequent ones of each part of speech
_STEPS: Final = 3  # up from a word, and down to another
_MOST_BELOW: Final = 400  # known words under a synset that still says something
_REMEMBERED: Final = 50_000


class UnknownWords:
    """Known stand-ins for words that a table of vectors lacks."""

    def __init__(self, places: Mapping[str, int], directions: Floats) -> None:
        self.places, self.directions = places, directions
        self.canonical = lru_cache(_REMEMBERED)(self._canonical)  # a corpus asks for the same words
        self.direction = lru_cache(_REMEMBERED)(self._direction)

    def make_ready(self) -> int:
        """Build the tables for unknown words (.4 s); return the number of stems and synsets."""
        return len(self._by_stem) + len(self._below)

    def _canonical(self, word: str) -> str:
        """Return a known form of the word ("honk" for "honking"), or one of its stem."""
        if word in self.places:
            return word
        forms = load_lexicon().forms(word)
        known = next((form for form in forms if form in self.places), None)
        if known is not None:
            return known
        shared = stem(word)
        return self._by_stem.get(shared) or (forms[-1] if forms else shared)

    def _direction(self, word: str) -> Floats | None:
        """Return the vector for a word that the table lacks: the sum of the nearest known words of WordNet."""
        # Near are words that share a synset with one of the word's two most frequent senses, or a broader one at most
        # three steps above both; each counts half as much for every step.
        steps: dict[str, int] = {}
        for above, up in _above(word):
            below = self._below.get(above, ())
            if len(below) <= _MOST_BELOW:
                for other, down in below:
                    steps[other] = min(up + down, steps.get(other, up + down))
        near = sorted(steps.items(), key=lambda word_steps: (word_steps[1], self.places[word_steps[0]]))[:8]
        if not near:
            return None
        total: Floats = reduce(
            np.add, [self.directions[self.places[other]] * np.float32(2.0**-count) for other, count in near]
        )
        length = np.sqrt(total.dot(total))
        return total / length if length > 0 else None

    @cached_property
    def _by_stem(self) -> Mapping[str, str]:
        # The most frequent words stand first: of a stem's words the first is set last.
        return {stem(word): word for word in reversed(list(self.places))}

    @cached_property
    def _below(self) -> Mapping[Synset, Sequence[tuple[str, int]]]:
        """The known words under each synset, with the number of steps down to them."""
        below: defaultdict[Synset, list[tuple[str, int]]] = defaultdict(list)
        for word in self.places:
            for above, steps in _above(word):
                below[above].append((word, steps))
        return below


def _above(word: str) -> Iterator[tuple[Synset, int]]:
    """Yield the synsets of a word and the broader ones, with the steps up to them; a rarer sense is a step more."""
    wordnet = load_wordnet()
    senses = wordnet.senses(word, _PARTS)
    for part in _PARTS:
        for rank, sense in enumerate([sense for sense in senses if sense.part == part][:_SENSES]):
            for above, steps in wordnet.ancestors(sense).items():
                if steps <= _STEPS:
                    yield above, steps + rank


_FORMAT: Final = 2
_NO_ORDER: Final = WordOrder((), np.zeros((0, 0), np.int8))
_LOWEST_IDF, _HIGHEST_IDF = 0.1, 7.0


@dataclass(frozen=True, slots=True, eq=False)
class VectorTable:
    """Words with their vectors and the number of images whose captions have them."""

    name: str
    images: int
    words: tuple[str, ...]
    image_counts: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.int8]  # a row for each word, of which only the direction means something
    order: WordOrder | None = None  # None: the order of a candidate's words costs nothing

    @property
    def signature(self) -> str:
        """Name and a hash of the contents, such as ``coco-train2014-1a2b3c4d``."""
        contents = hashlib.sha256("\n".join([self.name, str(self.images), *self.words]).encode())
        contents.update(self.image_counts.astype("<i4").tobytes())
        contents.update(self.vectors.tobytes())
        if self.order is not None:
            contents.update("\n".join(self.order.kinds).encode())
            contents.update(self.order.information.tobytes())
        return f"{self.name}-{contents.hexdigest()[:8]}"

    def directions(self) -> Floats:
        """Return the vectors at length 1."""
        rows = self.vectors.astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        directions: Floats = rows / np.maximum(lengths, 1)
        return directions

    def idf(self) -> Floats:
        """Return each word's log of (images / images with the word), between 0.1 and 7."""
        idf: Floats = np.clip(np.log(self.images / self.image_counts), _LOWEST_IDF, _HIGHEST_IDF).astype(np.float32)
        return idf

    def write(self, path: Path) -> None:
        """Write the table to a file (numpy's compressed ``.npz``)."""
        header = "\n".join([str(_FORMAT), self.name, str(self.images)])
        order = self.order or _NO_ORDER
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                header=np.frombuffer(header.encode(), np.uint8),
                words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
                image_counts=self.image_counts,
                vectors=self.vectors,
                kinds=np.frombuffer("\n".join(order.kinds).encode(), np.uint8),
                information=order.information,
            )

    @classmethod
    def read(cls, path: Path) -> VectorTable:
        """Load a table of vectors; a DataError if the file is missing or damaged."""
        with reading(path, "a table of vectors"), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            file_format, name, images = arrays["header"].tobytes().decode().split("\n")
            words = tuple(arrays["words"].tobytes().decode().split("\n"))
            kinds, information = tuple(arrays["kinds"].tobytes().decode().split("\n")), arrays["information"]
            order = WordOrder(kinds, information) if information.size else None
            table = cls(name, int(images), words, arrays["image_counts"], arrays["vectors"], order)
        sound = (
            table.vectors.ndim == 2
            and table.vectors.dtype == np.int8
            and table.image_counts.dtype == np.int32
            and table.image_counts.shape == (len(table.words),) == table.vectors.shape[:1]
            and bool(((table.image_counts > 0) & (table.image_counts <= table.images)).all())
            and (order is None or information.dtype == np.int8)
        )
        if int(file_format) != _FORMAT or not sound:
            raise DataError(f"{path}: a table of vectors of another version, or damaged; build it again")
        return table


@lru_cache(maxsize=1)
def load_table() -> VectorTable:
    """Return the bundled table, from the captions of COCO train2014; read once per process."""
    with as_file(files("spicegraph_graded") / "spice_g" / "data" / "coco_train2014.npz") as path:
        return VectorTable.read(path)


Strings = tuple[str, ...]

_UNKNOWN_IDF: Final = 1.0
_IDF_EXPONENT: Final = 0.75
_SHORTEST: Final = 1e-6
_REMEMBERED_ROWS: Final = 20_000  # rows of concepts: 15 MB
_MARK: Final = (PLURAL,)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Concepts, each by the strings that stand for it: a unit vector (zero without known words), idf and weight."""

    places: Mapping[Strings, int]
    vectors: Floats
    idf: Sequence[float]
    weights: npt.NDArray[np.float64]
    values: Mapping[int, Values]  # rows of the concepts with values that exclude others
    denied: Sequence[int] = ()  # rows of what is denied ("no hat")


class _ConceptRow(NamedTuple):
    """A concept: where the table has it if that is one word, its vector otherwise (``None``: 0), idf and values."""

    table_row: int | None
    vector: Floats | None
    idf: float
    values: Values
    denied: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A table of vectors, ready for look-ups, and the order of words, if the table has one; it does not change."""

    signature: str
    places: Mapping[str, int] = field(repr=False)
    directions: Floats = field(repr=False)
    idf: Sequence[float] = field(repr=False)
    order: WordOrder | None = field(default=None, repr=False)
    unknown: UnknownWords = field(init=False, repr=False)
    row: Callable[[Strings], _ConceptRow] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make ready for words that the table lacks, and remember the rows of concepts: a corpus asks for the same."""
        object.__setattr__(self, "unknown", UnknownWords(self.places, self.directions))
        object.__setattr__(self, "row", lru_cache(_REMEMBERED_ROWS)(self._row))

    @classmethod
    def of(cls, table: VectorTable) -> Vectors:
        """Make a table ready."""
        places = {word: row for row, word in enumerate(table.words)}
        return cls(table.signature, places, table.directions(), table.idf().tolist(), table.order)

    @classmethod
    def read(cls, path: Path | str) -> Vectors:
        """Read a table and make it ready; see :meth:`VectorTable.read`."""
        return cls.of(VectorTable.read(Path(path)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Let worker processes read the bundled table themselves."""
        if load_vectors.cache_info().currsize and self is load_vectors():  # read already, or this is not it
            return load_vectors, ()
        return Vectors, (self.signature, self.places, self.directions, self.idf, self.order)

    def rows(self, concepts: Iterable[Strings]) -> Rows:
        """Return the rows of concepts."""
        # A string's vector is the sum of those of its known words, each times its idf, at length 1, and a concept's the
        # sum of its strings', at length 1 too. A string's idf is the mean of its words', weighted by themselves: "sit
        # on" is above all "sit". A concept is as frequent as the most frequent of its strings. What is denied ("no
        # hat") points away from what is not. A word that the table lacks stands for the known word that it is a form
        # of, and for words near it in WordNet otherwise; forms of one unknown word are equal. Marks, such as "plural",
        # are not words.
        rows: dict[Strings, int] = {}
        places: dict[Strings, int] = {}
        for strings in dict.fromkeys(concepts):
            known = strings == _MARK or (len(strings) == 1 and strings[0] in self.places)
            places[strings] = rows.setdefault(strings if known else tuple(map(self._form, strings)), len(rows))
        concept_rows = list(map(self.row, rows))
        vectors = self._vectors_of(concept_rows)
        idf = [concept_row.idf for concept_row in concept_rows]
        values = {row: concept_row.values for row, concept_row in enumerate(concept_rows) if concept_row.values}
        denied = [row for row, concept_row in enumerate(concept_rows) if concept_row.denied]
        return Rows(places, vectors, idf, np.array(idf, np.float64) ** _IDF_EXPONENT, values, denied)

    def _vectors_of(self, concept_rows: Sequence[_ConceptRow]) -> Floats:
        vectors = np.zeros((len(concept_rows), self.directions.shape[1]), np.float32)
        plain = {
            row: concept_row.table_row
            for row, concept_row in enumerate(concept_rows)
            if concept_row.table_row is not None
        }  # as most concepts are
        vectors[list(plain)] = self.directions[list(plain.values())]
        for row, concept_row in enumerate(concept_rows):
            if concept_row.vector is not None:
                vectors[row] = concept_row.vector
        return vectors

    def _row(self, strings: Strings) -> _ConceptRow:
        """Return the row of a concept, by its strings as the table knows them."""
        values = values_of(strings)
        table_row = self.places.get(strings[0]) if len(strings) == 1 else None
        if table_row is not None:
            return _ConceptRow(table_row, None, self.idf[table_row], values)
        if strings == _MARK or not (parts := [vector for string in strings if (vector := self._string(string))]):
            return _ConceptRow(None, None, _UNKNOWN_IDF, values)
        idf = min([weight for _, weight in parts if weight is not None], default=_UNKNOWN_IDF)
        denied = any(string.startswith(NO) for string in strings)
        return _ConceptRow(None, _sum([vector for vector, _ in parts]), idf, values, denied)

    def _form(self, string: str) -> str:
        if " " not in string:
            return self.unknown.canonical(string)
        return NO + self._form(string.removeprefix(NO)) if string.startswith(NO) else string

    def _string(self, string: str) -> tuple[Floats, float | None] | None:
        """Return the vector and the idf of a string, ``None`` as the idf of unknown words; nothing: no vector."""
        if string.startswith(NO):
            affirmed = self._string(string.removeprefix(NO))
            return affirmed and (-affirmed[0], affirmed[1])
        words = [self.places[form] for word in string.split() if (form := self.unknown.canonical(word)) in self.places]
        if not words:
            near = self.unknown.direction(string)
            return None if near is None else (near, None)
        if len(words) == 1:
            return self.directions[words[0]], self.idf[words[0]]
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


def vectors_of(given: WordVectors | None) -> Vectors:
    """Return the vectors that a user gives, or the bundled ones."""
    if given is None or isinstance(given, Vectors):
        return given or load_vectors()
    raise InputError(f"vectors: expected Vectors, as Vectors.read returns them; got {type(given).__name__}")


@lru_cache(maxsize=1)
def load_vectors() -> Vectors:
    """Return the bundled table, ready for look-ups; read once per process."""
    return Vectors.of(load_table())
