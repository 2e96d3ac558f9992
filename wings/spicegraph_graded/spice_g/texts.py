"""What the texts of captions say beside their graphs: the order of their words, and their meaning as wholes."""
# A parser finds something to compare in any heap of words: those that do not follow one another as words do in captions
# ("couch a on red") lose their score. A caption points where the sum of its words' vectors does, from a table that
# learned it from a sentence encoder; such a sum knows neither order nor negation, which formula 5 leaves to the graph.

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import as_file, files
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_parser.errors import DataError, InputError, reading
from spicegraph_scorer.core.credit import FUNCTION_WORDS
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.data import WordVectors


_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")
_SIGNS: Final = bytes([code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(256)])
_EDGE: Final = ""  # stands before the first word and after the last
_ENDING: Final = "-"  # how the kind of a rarer word begins: with its last letters behind it
_LETTERS: Final = 2
_FEWEST: Final = 2  # words that have an order
_PATIENCE: Final = 10.0  # nats; of 24,000 captions of people and models one had less flow than -10
_SMOOTHING: Final = 20.0
_STEPS: Final = 16  # of the numbers in a table, a nat
_LARGEST: Final = 127


def words_of_text(text: str) -> list[str]:
    """Return the lower-cased words of a text, without punctuation."""
    lower = text.lower()
    if lower.isascii() and "'" not in lower and "-" not in lower:  # as most captions
        return lower.encode().translate(_SIGNS).decode().split()
    return _WORD.findall(lower)


@dataclass(frozen=True, slots=True, eq=False)
class WordOrder:
    """How much more often than by chance words of one kind follow those of another."""

    kinds: tuple[str, ...]  # frequent words, endings of rarer ones (-ng), all others (-), the edge of a caption (empty)
    information: npt.NDArray[np.int8]  # pointwise, of each kind (row) and the next (column), in sixteenths of a nat
    _rows: Mapping[str, Mapping[str, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lay the table out for look-ups; a table that lacks the edge or other words is damaged (ValueError)."""
        if self.kinds and not {_EDGE, _ENDING} <= set(self.kinds):
            raise ValueError("no word order")
        rows = (self.information / _STEPS).tolist()
        by_kind = {kind: dict(zip(self.kinds, row, strict=True)) for kind, row in zip(self.kinds, rows, strict=True)}
        object.__setattr__(self, "_rows", by_kind)

    def flow(self, text: str) -> float:
        """Return the log of how much likelier words are in their order than in any, in nats; 0 below two words."""
        # About 10 for captions of people, 0 where words follow each other as by chance.
        total = 0.0
        for information in self.junctions(words_of_text(text)):
            total += information
        return total

    def junctions(self, words: Sequence[str]) -> Iterator[float]:
        """Yield the information of each word and the one before it, in nats, and of the last word and the end."""
        if len(words) < _FEWEST:
            return
        rows, before = self._rows, _EDGE
        for word in words:
            kind = word if word in rows else _ENDING + word[-_LETTERS:]
            if kind not in rows:
                kind = _ENDING
            yield rows[before][kind]
            before = kind
        yield rows[before][_EDGE]

    def share(self, candidate: str, references: Iterable[str]) -> float:
        """Return the share of its score that the order of its words leaves a candidate, in (0, 1]."""
        # All of it, unless the words are e**10 = 22,000 times as unlikely in their order as in any; then 22,000 over
        # how many times it is. Captions of another style are held against the reference with the least flow, if that is
        # below 0.
        flow = self.flow(candidate)
        if flow >= -_PATIENCE:
            return 1.0
        least = min([self.flow(text) for text in references], default=0.0)
        return math.exp(min(0.0, flow - min(least, 0.0) + _PATIENCE))


def learn_order(texts: Iterable[str], *, frequent: int = 200, endings: int = 30) -> WordOrder:
    """Learn a word order; the ``frequent`` words are kinds of their own, and so many ``endings`` of other words."""
    # With n(a, b) for how often kind b follows kind a, and a part of what chance would give added to each (as much as
    # 20 words more after every a): the logarithm of n(a, b) over what chance would give.
    captions = [words_of_text(text) for text in texts]
    counts = Counter(chain.from_iterable(captions))
    known = _most_frequent(counts, frequent)
    # A frequent word is a kind of its own, others are known by their last letters, or not at all.
    of_word = {word: word if word in known else _ENDING + word[-_LETTERS:] for word in counts}
    ends = Counter[str]()
    for word in counts.keys() - known:
        ends[of_word[word]] += counts[word]
    known |= _most_frequent(ends, endings)
    of_word = {word: kind if kind in known else _ENDING for word, kind in of_word.items()}
    kinds = sorted(known | {_EDGE, _ENDING})
    number_of = {kind: index for index, kind in enumerate(kinds)}
    pairs = Counter(
        chain.from_iterable(pairwise([_EDGE, *map(of_word.__getitem__, words), _EDGE]) for words in captions)
    )
    together = np.zeros((len(kinds), len(kinds)))
    for (first, second), count in pairs.items():
        together[number_of[first], number_of[second]] = count
    after = (together.sum(axis=0) + 1) / max(together.sum(), 1)
    before = together.sum(axis=1, keepdims=True) + _SMOOTHING
    nats = np.log((together + _SMOOTHING * after) / (before * after))
    information = np.clip(np.rint(nats * _STEPS), -_LARGEST, _LARGEST).astype(np.int8)
    return WordOrder(tuple(kinds), information)


def _most_frequent(counts: Mapping[str, int], size: int) -> frozenset[str]:
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:size])


_FUNCTION_WEIGHT: Final = 0.2
PRECISION_SHARE: Final = 0.25
_REMEMBERED: Final = 100_000


@lru_cache(maxsize=_REMEMBERED)
def weighted_stem(word: str) -> tuple[str, float]:
    """Return the stem of a word and its weight in alignments, in (0, 1]."""
    return (word, _FUNCTION_WEIGHT) if word in FUNCTION_WORDS else (stem(word), 1.0)


Floats = npt.NDArray[np.float32]

_FORMAT: Final = "1"
_SHORTEST: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class MeaningTable:
    """Words with their vectors: (words, dimensions) 8-bit numbers, each row times its scale."""

    name: str
    words: tuple[str, ...]
    vectors: npt.NDArray[np.int8]
    scales: Floats

    @classmethod
    def of(cls, name: str, words: Sequence[str], vectors: Floats) -> MeaningTable:
        """Round the vectors (words, dimensions) of lower-cased words, the most frequent first, to 8 bits."""
        scales = (np.abs(vectors).max(axis=1) / _LARGEST).astype(np.float32)
        rounded = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
        return cls(name, tuple(words), rounded, scales)

    @property
    def signature(self) -> str:
        """Name and a hash of the contents, such as ``meaning-en-1a2b3c4d``."""
        contents = hashlib.sha256("\n".join([self.name, *self.words]).encode())
        contents.update(self.vectors.tobytes())
        contents.update(self.scales.astype("<f4").tobytes())
        return f"{self.name}-{contents.hexdigest()[:8]}"

    def write(self, path: Path) -> None:
        """Write the table to a file (numpy's compressed ``.npz``)."""
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                header=np.frombuffer("\n".join([_FORMAT, self.name]).encode(), np.uint8),
                words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
                vectors=self.vectors,
                scales=self.scales,
            )

    @classmethod
    def read(cls, path: Path) -> MeaningTable:
        """Load a table of meanings; a DataError if the file is missing or damaged."""
        with reading(path, "a table of meanings"), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            file_format, name = arrays["header"].tobytes().decode().split("\n")
            words = tuple(arrays["words"].tobytes().decode().split("\n"))
            table = cls(name, words, arrays["vectors"], arrays["scales"])
        sound = (
            table.vectors.ndim == 2
            and table.vectors.dtype == np.int8
            and table.scales.dtype == np.float32
            and table.scales.shape == (len(words),) == table.vectors.shape[:1]
            and bool(np.isfinite(table.scales).all())
            and len(set(words)) == len(words)
        )
        if file_format != _FORMAT or not sound:
            raise DataError(f"{path}: a table of meanings of another version, or damaged; build it again")
        return table


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """A table of meanings, ready for look-ups; it does not change."""

    signature: str
    places: Mapping[str, int] = field(repr=False)
    vectors: Floats = field(repr=False)

    def place(self, word: str) -> int:
        """Return the row of a word; one that the table lacks says nothing: it has the last row, zeros."""
        return self.places.get(word, len(self.vectors) - 1)

    @classmethod
    def of(cls, table: MeaningTable) -> Meaning:
        """Make a table ready."""
        count, dimensions = table.vectors.shape
        vectors = np.zeros((count + 1, dimensions), np.float32)  # filled in place: copies would stay in memory
        np.multiply(table.vectors, table.scales[:, None], out=vectors[:count])
        return cls(table.signature, {word: n for n, word in enumerate(table.words)}, vectors)

    @classmethod
    def read(cls, path: Path | str) -> Meaning:
        """Read a table and make it ready; see :meth:`MeaningTable.read`."""
        return cls.of(MeaningTable.read(Path(path)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Let worker processes read the bundled table themselves."""
        if load_meaning.cache_info().currsize and self is load_meaning():  # read already, or this is not it
            return load_meaning, ()
        return Meaning, (self.signature, self.places, self.vectors)

    def of_texts(self, texts: Iterable[str]) -> Floats:
        """Return (texts, dimensions) where texts point: unit vectors, zeros where no word is known."""
        words = list(map(words_of_text, texts))
        places = np.fromiter(map(self.place, chain.from_iterable(words)), np.intp)
        return self.sums(places, np.array(list(map(len, words)), np.intp))

    def sums(self, places: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]) -> Floats:
        """Return (texts, dimensions) the unit vectors of texts of such ``lengths``, given the rows of their words."""
        # sorted within each text, so that the order of words changes no bit
        keys = np.repeat(np.arange(len(lengths)), lengths) * len(self.vectors) + places
        keys.sort()
        keys %= len(self.vectors)
        # the longest texts first: those that have a third word are then the first so many (np.add.reduceat is slower)
        by_length = np.argsort(-lengths, kind="stable")
        starts = (lengths.cumsum() - lengths)[by_length]
        sums = np.zeros((len(lengths), self.vectors.shape[1]), np.float32)
        counts = np.searchsorted(-lengths[by_length], -np.arange(lengths.max(initial=0)), side="left")
        for step, count in enumerate(counts.tolist()):
            sums[:count] += self.vectors.take(keys[starts[:count] + step], axis=0)
        sums[by_length] = sums.copy()
        sizes = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        unit: Floats = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > _SHORTEST)
        return unit


def meaning_of(given: WordVectors | None) -> Meaning:
    """Return the table that a user gives, or the bundled one."""
    if given is None or isinstance(given, Meaning):
        return given or load_meaning()
    raise InputError(f"meaning: expected a Meaning, as Meaning.read returns it; got {type(given).__name__}")


def cosines(candidates: Floats, references: Floats) -> Floats:
    """Return the cosine of each unit vector (rows) and the vector of its references, in [0, 1]; 0 of a zero vector."""
    dots = np.einsum("ij,ij->i", candidates, references)
    sizes = np.sqrt(np.einsum("ij,ij->i", references, references))
    values: Floats = np.divide(dots, sizes, out=np.zeros_like(dots), where=sizes > _SHORTEST).clip(0, 1)
    return values


class Likeness(NamedTuple):
    """How alike a candidate and its references are as wholes; the shares of either side's words add up to it."""

    value: float  # the cosine, in [0, 1]
    candidate: tuple[tuple[str, float], ...]  # in their order, each with its share; below 0 where it leads away
    references: tuple[tuple[str, float], ...]  # the words of all, the largest share first


def likeness(meaning: Meaning, candidate: str, references: Sequence[str]) -> Likeness:
    """Divide the likeness of a candidate and its references among their words: it is a sum over pairs of words."""
    words, *others = map(words_of_text, (candidate, *references))
    rows, *other_rows = (meaning.vectors[[meaning.place(word) for word in text]] for text in (words, *others))
    units = [text_rows / max(float(np.linalg.norm(text_rows.sum(axis=0))), _SHORTEST) for text_rows in other_rows]
    total = np.sum([text_rows.sum(axis=0) for text_rows in units], axis=0)
    size = float(np.linalg.norm(rows.sum(axis=0))) * float(np.linalg.norm(total))
    if size <= _SHORTEST or float(rows.sum(axis=0) @ total) <= 0:
        return Likeness(0.0, tuple([(word, 0.0) for word in words]), ())
    shares = (rows.astype(np.float64) @ total.astype(np.float64) / size).tolist()
    of_word: defaultdict[str, float] = defaultdict(float)
    for text, text_rows in zip(others, units, strict=True):
        for word, share in zip(text, (text_rows @ rows.sum(axis=0) / size).tolist(), strict=True):
            of_word[word] += share
    ranked = sorted(of_word.items(), key=lambda word_share: (-word_share[1], word_share[0]))
    return Likeness(math.fsum(shares), tuple(zip(words, shares, strict=True)), tuple(ranked))


@lru_cache(maxsize=1)
def load_meaning() -> Meaning:
    """Return the bundled table, ready for look-ups; read once per process."""
    with as_file(files("spicegraph_graded") / "spice_g" / "data" / "meaning_en.npz") as path:
        return Meaning.read(path)
