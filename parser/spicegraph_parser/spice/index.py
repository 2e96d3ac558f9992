"""From an English word to its concept: the synonym lookup of SPICE, over WordNet 3.0.

The index is built by ``tools/build_lexicon.py`` and ships with the package.
"""

from __future__ import annotations

import gzip
import hashlib
from array import array
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import msgspec

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.parse import word_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_FORMAT = 1
# Suffix and its replacement; the first that gives a word of the index is the word's base.
_SUFFIXES = word_pairs(
    """s, ses s, xes x, zes z, ches ch, shes sh, men man, ies y, es e, es, ed e, ed, ing e, ing, er, est, er e,
    est e"""
)
# The same in the same order, by the letter that a word with the suffix ends with.
_SUFFIXES_BY_END = {
    end: tuple(pair for pair in _SUFFIXES if pair[0].endswith(end)) for end in {suffix[-1] for suffix, _ in _SUFFIXES}
}
_MEMORY = 200_000  # words whose concept is kept; captions use about 30,000


@dataclass(frozen=True, slots=True)
class Concept:
    """A meaning: the strings that stand for it and the WordNet synsets they have."""

    strings: tuple[str, ...]  # in the order in which they came together
    synsets: frozenset[int]
    keys: frozenset[str | int]  # both
    printed: tuple[str, ...]  # the strings in the order in which SPICE 1.0 prints them
    label: str

    @classmethod
    def of(cls, strings: Iterable[str], synsets: frozenset[int]) -> Concept:
        """Make a concept from its strings, without repeats, and its synsets."""
        unique = tuple(dict.fromkeys(strings))
        printed = unique if len(unique) == 1 else _hash_order(unique)
        return cls(unique, synsets, synsets.union(unique), printed, "/".join(printed))

    def shares(self, other: Concept) -> bool:
        """Say whether the two have a string or a synset in common: SPICE's test for a match."""
        return not self.keys.isdisjoint(other.keys)

    def union(self, other: Concept) -> Concept:
        """Return the merged concept."""
        if other.strings[0] in self.keys and other.keys <= self.keys:
            return self
        return _united(self, other)

    def __hash__(self) -> int:
        return hash(self.label)  # is kept; those of strings and synsets are not

    def __str__(self) -> str:
        return self.label


@lru_cache(maxsize=_MEMORY)
def _united(first: Concept, other: Concept) -> Concept:
    """Return the merged concept; images show the same things, so that most of these are asked for again."""
    return Concept.of(first.strings + other.strings, first.synsets | other.synsets)


def _hash_order(strings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the strings as a Java ``HashSet`` orders them: SPICE 1.0 prints "toilet/bathroom"."""
    buckets = 16
    while len(strings) > buckets * 0.75:
        buckets *= 2
    hashes = {string: java_hash(string) for string in strings}
    return tuple(sorted(strings, key=lambda string: (hashes[string] ^ hashes[string] >> 16) % buckets))


def java_hash(word: str) -> int:
    """Return the 32-bit hash of Java's strings, unsigned."""
    value = 0
    if word.isascii():
        for unit in word.encode():
            value = value * 31 + unit
    else:
        encoded = word.encode("utf-16-le", "surrogatepass")
        for low, high in zip(encoded[::2], encoded[1::2], strict=True):
            value = value * 31 + low + (high << 8)
    return value & 0xFFFFFFFF


def data_file(name: str) -> bytes:
    """Return a file of the package's data."""
    try:
        return (files("spicegraph_parser") / "data" / name).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"WordNet's file {name} is not installed; reinstall spicegraph") from error


class Synonyms(Protocol):
    """Source of the concepts of a language's words; it can be pickled."""

    @property
    def signature(self) -> str:
        """Its source and version, for the signature of a score."""

    @property
    def concept(self) -> Callable[[str], Concept]:
        """The concept of a lower-cased word or phrase."""

    @property
    def exact_concept(self) -> Callable[[str], Concept]:
        """The same without its synonyms."""

    def synsets(self, phrase: str) -> frozenset[int]:
        """Return the synset numbers of a word or phrase (empty if unknown)."""


class _LexiconFile(msgspec.Struct):
    format: int
    source: str
    words: str
    counts: bytes
    synsets: bytes
    bases: dict[str, list[str]]


class Lexicon:
    """A frozen word index. Every method is a pure function of the word; concepts are remembered."""

    __slots__ = ("_bases", "_ends", "_positions", "_synsets", "concept", "exact_concept", "signature")

    def __init__(self, data: bytes) -> None:
        try:
            table = msgspec.msgpack.decode(gzip.decompress(data), type=_LexiconFile)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            raise DataError(f"the WordNet index is damaged ({error}); reinstall spicegraph") from error
        if table.format != _FORMAT:
            raise DataError(f"the WordNet index has format {table.format}, this version reads {_FORMAT}")
        self._positions: Mapping[str, int] = {word: i for i, word in enumerate(table.words.split("\n"))}
        self._ends = array("I", accumulate(table.counts, initial=0))
        self._synsets = array("I", table.synsets)
        self._bases: Mapping[str, list[str]] = table.bases
        self.signature = f"wordnet3.0-{hashlib.sha256(data).hexdigest()[:8]}"
        # The concept of a lower-cased word or phrase, and the same without its synonyms.
        self.concept = lru_cache(maxsize=_MEMORY)(lambda phrase: Concept.of((phrase,), self.synsets(phrase)))
        self.exact_concept = lru_cache(maxsize=_MEMORY)(lambda phrase: Concept.of((phrase,), frozenset()))

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return load_index, ()  # worker processes load their own copy

    def synsets(self, phrase: str) -> frozenset[int]:
        """Return the synset numbers of a word or phrase, with those of its base form (empty if unknown)."""
        forms = self.forms(phrase)
        if len(forms) == 1:  # as most words; a caption corpus has thousands of different ones
            return self._lookup(forms[0])
        return frozenset[int]().union(*map(self._lookup, forms))

    def words(self) -> tuple[str, ...]:
        """Return every word and phrase of the index, in its order; underscores join the words of a phrase."""
        return tuple(self._positions)

    def entries(self, word: str) -> range:
        """Return where a word's synsets stand in the table of all words' synsets (empty if unknown)."""
        position = self._positions.get(word)
        return range(0) if position is None else range(self._ends[position], self._ends[position + 1])

    def synset_at(self, entry: int) -> int:
        """Return the synset number of an entry."""
        return self._synsets[entry]

    def forms(self, phrase: str) -> tuple[str, ...]:
        """Return the words under which a phrase is looked up: itself and its base forms, if they are known."""
        word = phrase.replace(" ", "_")
        bases = self._bases.get(word) or (self._base(word),)
        known = self._positions
        return tuple([form for form in dict.fromkeys((word, *bases)) if form in known])

    def _lookup(self, word: str) -> frozenset[int]:
        position = self._positions.get(word)
        if position is None:
            return frozenset()
        return frozenset(self._synsets[self._ends[position] : self._ends[position + 1]])

    def _base(self, word: str) -> str:
        if len(word) < 3 or word.endswith("ss"):
            return word
        for suffix, ending in _SUFFIXES_BY_END.get(word[-1], ()):
            if word.endswith(suffix):
                base = word[: -len(suffix)] + ending
                if base in self._positions:
                    return base
        return word


@lru_cache(maxsize=1)
def load_index() -> Lexicon:
    """Return the bundled lexicon of English, loaded once per process.

    Raises:
        DataError: the index is missing or damaged.
    """
    return Lexicon(data_file("wordnet.msgpack.gz"))
