"""A detector of broken captions: unfinished, repeated, with a word missing or with words in the wrong order.

A linear model over n-grams of words and of their usual tags, over how often those stand in captions of people, and over
what a sentence says twice. It reads text alone, sentence by sentence, in numpy; ``training/fluency.py`` makes it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from itertools import chain, combinations, groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spicegraph_graded.spice_g.texts import weighted_stem
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

KINDS: Final = ("unfinished", "repetition", "conjunction", "verb", "noun", "function", "order")
"""What can be wrong: the end is missing; something is said twice; a conjunction, a verb, a noun or all function words
are missing; words or halves have changed places.
"""
BUCKETS: Final = 1 << 17  # of weights
COUNTERS: Final = 1 << 20  # of n-grams in captions of people
PADDING: Final = 2  # edges on either side of a sentence
_LETTERS: Final = 3
_LONGEST: Final = 8  # words of a repetition that are told apart
_CLAUSES: Final = 40  # of a sentence that are compared
_FAR: Final = 3  # words between two of the same
_TOKEN: Final = re.compile(r"\w+(?:['’-]\w+)*|[,;:]")
_END: Final = re.compile(r"[.!?]+(?:\s+|$)")
_CONNECTIVE: Final = frozenset([",", "and", "then", "followed", "by", "while", "as", "with", "before", "after"])
_PRIMES: Final = tuple(np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1], np.uint64))
_WORD_GRAMS: Final = ((0, 1), (0, 2), (0, 1, 2))
_TAG_GRAMS: Final = ((0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4))
_COUNTED: Final = (("word", (0, 1)), ("word", (0, 1, 2)), ("tag", (0, 1, 2, 3, 4)))


def sentences_of(text: str) -> list[list[str]]:
    """Return the lower-cased words and commas of each sentence; without an end punctuation mark, and never none."""
    sentences = []
    for part in _END.split(text.lower()):
        words = ["," if word in ";:" else word for word in _TOKEN.findall(part)]
        while words and words[-1] == ",":
            words.pop()
        if words:
            sentences.append(words)
    return sentences or [[]]


class FluencyVocabulary:
    """Frequent words, endings of others (``-ing``), all others (``-``), each with its usual tag; 0 is an edge."""

    def __init__(self, kinds: tuple[str, ...], tags: Ints) -> None:
        self.kinds, self.tags = kinds, tags
        self._places = {kind: index for index, kind in enumerate(kinds)}

    def place(self, word: str) -> int:
        """Return the number of a word's kind."""
        known = self._places.get(word)
        return self._places.get("-" + word[-_LETTERS:], 1) if known is None else known

    def laid_out(self, sentences: Sequence[Sequence[str]]) -> tuple[Ints, Ints]:
        """Return the kinds of all words with edges between sentences, and the number of the sentence of each."""
        edges = [0] * PADDING
        kinds: list[int] = []
        sizes = []
        for words in sentences:
            kinds += [*edges, *map(self.place, words), *edges]
            sizes.append(len(words) + 2 * PADDING)
        return np.array(kinds, np.int64), np.repeat(np.arange(len(sizes)), sizes)


def _hashed(salt: int, columns: Sequence[Ints], size: int) -> Ints:
    """Return a bucket for each row of numbers."""
    hashes = np.full(columns[0].shape, salt + 1, np.uint64)
    for column, prime in zip(columns, _PRIMES, strict=False):
        hashes = (hashes ^ (column.astype(np.uint64) + np.uint64(7))) * prime
        hashes ^= hashes >> np.uint64(15)
    return (hashes % np.uint64(size)).astype(np.int64)


def _windows(values: Ints, offsets: Sequence[int], starts: Ints) -> list[Ints]:
    return [values[starts + offset] for offset in offsets]


def counter_places(kinds: Ints, tags: Ints, rows: Ints) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield for each sort of n-gram that is counted where they start, their counters, and up to 3 words of each."""
    for salt, (sort, offsets) in enumerate(_COUNTED):
        starts = np.flatnonzero(rows[: len(rows) - offsets[-1]] == rows[offsets[-1] :])
        yield (
            starts,
            _hashed(100 + salt, _windows(kinds if sort == "word" else tags, offsets, starts), COUNTERS),
            min(len(offsets), 3),
        )


def features_of(
    vocabulary: FluencyVocabulary, levels: npt.NDArray[np.uint8], sentences: Sequence[Sequence[str]]
) -> tuple[Ints, Ints]:
    """Return the bucket of each feature, and the number of its sentence, in their order."""
    # ``levels`` are by counter: 0 (people hardly ever say it) to 7 (often)
    kinds, rows = vocabulary.laid_out(sentences)
    tags = vocabulary.tags[kinds]
    features: list[tuple[Ints, Ints]] = []
    salt = 0
    for values, grams in ((kinds, _WORD_GRAMS), (tags, _TAG_GRAMS)):
        for offsets in grams:
            starts = np.flatnonzero(rows[: len(rows) - offsets[-1]] == rows[offsets[-1] :])
            features.append((_hashed(salt, _windows(values, offsets, starts), BUCKETS), rows[starts]))
            salt += 1
    starts = np.flatnonzero(rows[:-2] == rows[2:])
    for mixed in ((tags, kinds, tags), (kinds, tags, kinds)):
        columns = [values[starts + offset] for offset, values in enumerate(mixed)]
        features.append((_hashed(salt + 20, columns, BUCKETS), rows[starts]))
        salt += 1
    for starts, counters, inside in counter_places(kinds, tags, rows):
        level = levels[counters].astype(np.int64)
        inner = _windows(tags, range(inside), starts)
        features.append((_hashed(salt, [level, *inner], BUCKETS), rows[starts]))
        for limit in (1, 3):
            low = np.bincount(rows[starts][level < limit], minlength=len(sentences))
            features.append((_hashed(salt + 40 + limit, [np.minimum(low, 9)], BUCKETS), np.arange(len(sentences))))
        salt += 1
    said = list(map(repetitions, sentences))
    numbers = np.repeat(np.arange(len(said)), list(map(len, said)))
    features.append((np.array(list(map(_named, chain.from_iterable(said))), np.int64), numbers))
    buckets, owners = (np.concatenate(part) for part in zip(*features, strict=True))
    order = np.argsort(owners, kind="stable")
    return buckets[order], owners[order]


@lru_cache(maxsize=4096)
def _named(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest(), "big") % BUCKETS


def repetitions(words: Sequence[str]) -> list[str]:
    """Return the repetitions in a sentence as names of features: ``words 7``, ``twice 3``."""
    long_words = [word for word in words if len(word) > _FAR]
    near = len(long_words) - len(set(long_words))
    longest = _longest_repeat(words)
    features = [f"words {min(len(words), 12)}", *_doubled(words)]
    if longest > 1:
        features.append(f"twice {longest}")
    if longest > 2:
        features.append("long")
    clauses = [tuple(clause) for is_end, clause in groupby(words, _CONNECTIVE.__contains__) if not is_end]
    if any(clauses.count(clause) > 1 for clause in clauses if len(clause) > 1):
        features.append("clause")
    features += _said_otherwise(clauses)
    if near:
        features.append(f"again {min(near, 4)}")
    return features


def _doubled(words: Sequence[str]) -> Iterator[str]:
    """Yield words that follow each other, or stand on both sides of a connective, as names of features."""
    last: dict[str, int] = {}
    for index, word in enumerate(words):
        if word in last and word != ",":
            gap = index - last[word]
            if gap == 1:
                yield "doubled"
            elif gap <= _FAR and words[index - 1] in _CONNECTIVE:
                yield f"around {words[index - 1]}"
        last[word] = index


def _longest_repeat(words: Sequence[str]) -> int:
    """Return how many words are said twice behind each other, at most :data:`_LONGEST`; the two do not overlap."""
    if len(set(words)) == len(words):
        return 0
    for size in range(2, _LONGEST + 1):
        first: dict[tuple[str, ...], int] = {}
        runs = zip(*(words[index:] for index in range(size)), strict=False)
        if not any(first.setdefault(run, index) + size <= index for index, run in enumerate(runs)):
            return size - 1
    return _LONGEST


def _said_otherwise(clauses: Sequence[Sequence[str]]) -> list[str]:
    """Return features of the most similar clause pairs, overall and of the same first word."""
    stems = [[stem for stem, weight in map(weighted_stem, clause) if weight == 1] for clause in clauses]
    numbered = list(enumerate(list(filter(None, stems))[:_CLAUSES]))
    pairs = [(set(a), set(b), a[0] == b[0], m > n + 1) for (n, a), (m, b) in combinations(numbered, 2)]
    features: list[str] = []
    for name, compared in (("stems", pairs), ("subject", [pair for pair in pairs if pair[2]])):
        best = max(compared, key=lambda pair: (len(pair[0] & pair[1]), -len(pair[0] ^ pair[1])), default=None)
        if best is not None and best[0] & best[1]:
            features += _shared(name, best)
    return features


def _shared(name: str, pair: tuple[set[str], set[str], bool, bool]) -> Iterator[str]:
    first, second, is_of_one, is_far = pair
    common, new = min(len(first & second), 4), min(len(second - first), 3)
    where, count_word = "far" if is_far else "near", "one" if is_of_one else "two"
    yield f"{name} {common} {min(len(first ^ second), 4)}"
    yield f"{name} {common} new {new}"
    yield f"{name} {common} new {new} {where} {count_word}"
    yield f"{name} {where} {count_word}"
    yield from sorted(f"both {name} {where} {stem}" for stem in first & second)


@dataclass(frozen=True, slots=True, eq=False)
class Detector:
    """The model: ``weights`` (buckets, 1 + kinds) in 8 bits, each column with its scale, and the bias of each class."""

    vocabulary: FluencyVocabulary
    levels: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    signature: str

    @classmethod
    def load(cls, path: Path) -> Detector:
        """Read a model; a DataError where the file is missing or is not one."""
        try:
            contents = path.read_bytes()
            with np.load(path, allow_pickle=False) as arrays:
                kinds = tuple(arrays["kinds"].tobytes().decode().split("\n"))
                vocabulary = FluencyVocabulary(kinds, arrays["tags"].astype(np.int64))
                levels, weights = arrays["levels"], arrays["weights"]
                scales, bias = arrays["scales"], arrays["bias"]
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{path}: is not a fluency detector ({error})") from error
        return cls(vocabulary, levels, weights, scales, bias, hashlib.blake2b(contents, digest_size=4).hexdigest())

    def save(self, path: Path) -> None:
        """Write the model."""
        arrays: dict[str, Any] = {
            "kinds": np.frombuffer("\n".join(self.vocabulary.kinds).encode(), np.uint8),
            "tags": self.vocabulary.tags.astype(np.uint8),
            "levels": self.levels,
            "weights": self.weights,
            "scales": self.scales,
            "bias": self.bias,
        }
        np.savez_compressed(path, **arrays)

    def probabilities(self, sentences: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
        """Return for each sentence the probability that nothing is wrong, and of each kind of error; their sum is 1."""
        buckets, rows = features_of(self.vocabulary, self.levels, sentences)
        starts = np.searchsorted(rows, np.arange(len(sentences)))
        sums = np.add.reduceat(self.weights[buckets].astype(np.int64), starts, axis=0)
        logits = sums * self.scales.astype(np.float64) + self.bias
        logits -= logits.max(axis=1, keepdims=True)
        raised = np.exp(logits)
        shares: npt.NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
        return shares


@lru_cache(maxsize=1)
def load_detector() -> Detector:
    """Return the bundled model, loaded once in a process."""
    with as_file(files("spicegraph_graded") / "fluency" / "data" / "detector.npz") as path:
        return Detector.load(path)
