"""The paraphrase table of METEOR: its index, built once, and the phrases and paraphrases of the texts at hand."""
# A phrase is named by the place of a 64-bit hash of its text in the sorted list of all hashes (the 2,616,378 phrases
# have as many different ones): the sum of ``value[byte] * BASE**position`` modulo 2**64, which numpy computes over
# millions of lines at once, and which follows from the hashes of a phrase's words.

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spicegraph_parser.errors import DataError
from spicegraph_scorer.core.ngrams import distinct

if TYPE_CHECKING:
    from pathlib import Path


Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]
Integers = NDArray[np.int64]

_MODULUS = 1 << 64
_BASE = 0x9E3779B97F4A7C15
_SPACE = 32


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


class LineHasher:
    """Hashes every line of a text; holds the tables of powers for this, which grow with the longest text seen."""

    def __init__(self) -> None:
        values = []  # a fixed pseudo-random number for each byte (splitmix64 from 0), the same on every machine
        for step in range(1, 257):
            mixed = step * _BASE % _MODULUS
            mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % _MODULUS
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % _MODULUS
            values.append(mixed ^ (mixed >> 31))
        self._values = np.array(values, dtype=np.uint64)
        self._resize(1 << 12)

    def _resize(self, count: int) -> None:
        self._powers = _powers(_BASE, count)
        self._inverses = _powers(pow(_BASE, -1, _MODULUS), count)

    def lines(self, text: bytes | memoryview, ends: Positions) -> Hashes:
        """Return the hash of each line; ``ends`` are the positions of the line feeds, in order."""
        size = int(ends[-1]) + 1 if len(ends) else 0
        if size > len(self._powers):
            self._resize(2 * size)
        content = np.frombuffer(text, dtype=np.uint8, count=size)
        sums = np.empty(size + 1, dtype=np.uint64)
        sums[0] = 0
        np.cumsum(self._values[content] * self._powers[:size], out=sums[1:])
        starts = np.concatenate([np.zeros(1, dtype=ends.dtype), ends[:-1] + 1])[: len(ends)]
        hashes: Hashes = (sums[ends] - sums[starts]) * self._inverses[starts]
        return hashes

    def words(self, words: Sequence[str]) -> tuple[Hashes, Positions]:
        """Return the hash and the length in UTF-8 bytes of each word; words contain no line feed."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        text = b"\n".join([*encoded, b""])
        return self.lines(text, np.cumsum(lengths + 1) - 1), lengths

    def join(self, left: Hashes, lengths: Positions, right: Hashes) -> Hashes:
        """Return the hashes of ``left + ' ' + right``, where ``lengths`` are those of ``left`` in bytes."""
        if len(lengths) and (longest := int(lengths.max())) >= len(self._powers):
            self._resize(2 * longest)
        space = self._values[_SPACE]
        joined: Hashes = left + self._powers[lengths] * (space + np.uint64(_BASE) * right)
        return joined


Progress = Callable[[float], None]  # Called now and then with the share of the work that is done, from 0 to 1.

_READ = 1 << 17  # bytes of the packed file at a time
_LINE_FEED = 10


@dataclass(frozen=True, slots=True, eq=False)
class Paraphrases:
    """METEOR's paraphrase table."""

    phrases: Hashes  # the hashes of all phrases, ascending; a phrase's number is its place
    sources: NDArray[np.uint32]  # the numbers of the phrases that have paraphrases, ascending
    target_starts: NDArray[np.uint32]  # where each source's begin, and at last where they end
    targets: NDArray[np.uint32]  # the numbers of their paraphrases, source by source, in the file's order


def _unpacked(path: Path, progress: Progress) -> Iterator[bytes]:
    """Yield the file's content in pieces, and report how much of the file has been read."""
    size = path.stat().st_size
    unpacker = zlib.decompressobj(wbits=31)
    with path.open("rb") as stream:
        while piece := stream.read(_READ):
            yield unpacker.decompress(piece)
            progress(stream.tell() / size)
    if not unpacker.eof:
        raise DataError(f"{path} ends too early")


def _entries(path: Path, progress: Progress) -> Iterator[tuple[Hashes, Hashes]]:
    """Yield the hashes of sources and of targets, some thousands at a time."""
    # An entry is three lines: a probability, which METEOR ignores, the source, the target.
    hasher = LineHasher()
    rest = b""
    for piece in _unpacked(path, progress):
        text = rest + piece
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _LINE_FEED)
        ends = ends[: len(ends) // 3 * 3]
        hashes = hasher.lines(text, ends)
        rest = text[int(ends[-1]) + 1 :] if len(ends) else text
        yield hashes[1::3], hashes[2::3].copy()
    if rest:
        raise DataError(f"{path} ends inside an entry")


def _read_table(path: Path, progress: Progress) -> tuple[Integers, Hashes]:
    """Return how many consecutive entries share one source, and the hashes of these sources, then of all targets."""
    sources: list[Hashes] = []
    firsts: list[NDArray[np.int64]] = []
    targets: list[Hashes] = []
    total = 0
    last = None
    for source, target in _entries(path, progress):
        changes = np.ones(len(source), dtype=bool)
        changes[1:] = source[1:] != source[:-1]
        if last is not None and len(source):
            changes[0] = source[0] != last
        sources.append(source[changes])
        firsts.append(np.flatnonzero(changes) + total)
        targets.append(target)
        total += len(source)
        last = source[-1] if len(source) else last
    if not total:
        raise DataError(f"{path} contains no paraphrases")
    counts = np.diff(np.concatenate([*firsts, np.array([total])]))
    return counts, np.concatenate([*sources, *targets])


def build_index(path: Path, *, progress: Progress | None = None) -> Paraphrases:
    """Return the index of METEOR's paraphrase file (some ten seconds, 300 MB of memory), telling the share read."""
    try:
        entries, hashes = _read_table(path, progress or (lambda _: None))
    except zlib.error as error:
        raise DataError(f"{path} is damaged ({error})") from error
    # The sorted different hashes, and for each hash its place among them.
    order = np.argsort(hashes)
    ordered = hashes[order]
    new = np.ones(len(hashes), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(len(hashes), dtype=np.uint32)
    numbers[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    phrases = ordered[new]
    sources, targets = np.split(numbers, [len(entries)])
    order = np.argsort(sources)
    if (np.diff(sources[order].astype(np.int64)) == 0).any():
        raise DataError(f"{path} does not list the paraphrases of each phrase together")
    begins = np.cumsum(entries) - entries
    counts = entries[order]
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    moved = np.arange(len(targets)) + np.repeat(begins[order] - starts[:-1], counts)  # row by row
    return Paraphrases(phrases, sources[order], starts.astype(np.uint32), targets[moved])


Occurrence = tuple[int, int, int]  # A phrase in a text: its first word, its number of words, its number in the book.

BACK = 32  # A link holds two places in lists, each from 1, or 0 for none: below this bit and from it on.

_MAX_WORDS = 7  # of a phrase of the table
_MAX_BYTES = 128  # the table's longest phrase has 71


def _places(ordered: NDArray[np.generic], wanted: NDArray[np.generic]) -> Integers:
    """Return where each wanted value is in an ascending array, -1 where it is not."""
    if not len(ordered):
        return np.full(len(wanted), -1)
    rows = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[rows] == wanted, rows, -1)


class PhraseFinder:
    """Finds the phrases of many texts at once; keeps the hashes of the words it has seen."""

    def __init__(self, table: Paraphrases) -> None:
        self._table = table
        self._hasher = LineHasher()
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._lengths: Integers = np.empty(0, dtype=np.int64)

    def find(
        self, texts: Sequence[tuple[int, ...]], words: Sequence[str]
    ) -> tuple[list[list[Occurrence]], Sequence[Mapping[int, int]]]:
        """Return each text's phrases that have paraphrases in the texts, by first word and length, and their links."""
        new = words[len(self._hashes) :]
        hashes, lengths = self._hasher.words([word if len(word) <= _MAX_BYTES else "" for word in new])
        too_long = np.fromiter((len(word) > _MAX_BYTES for word in new), dtype=bool, count=len(new))
        self._hashes = np.concatenate([self._hashes, hashes])
        # A word that is too long for any phrase has a length that says so.
        self._lengths = np.concatenate([self._lengths, np.where(too_long, _MAX_BYTES + 1, lengths)])
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        flat = np.fromiter((word for text in texts for word in text), dtype=np.int64, count=int(sizes.sum()))
        ends = np.cumsum(sizes)
        hashes, starts, counts = self._grams(flat, np.repeat(ends, sizes))
        known, links = self._linked(distinct(hashes.copy()))
        numbers = _places(self._table.phrases[known], hashes)
        phrases = np.flatnonzero(numbers >= 0)
        phrases = phrases[np.lexsort((counts[phrases], starts[phrases]))]
        owners = np.searchsorted(ends, starts[phrases], side="right")
        firsts = starts[phrases] - (ends - sizes)[owners]
        triples = zip(firsts.tolist(), counts[phrases].tolist(), numbers[phrases].tolist(), strict=True)
        everything: list[Occurrence] = list(triples)
        cuts = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
        return [everything[a:b] for a, b in pairwise(cuts)], links

    def _grams(self, flat: Integers, ends: Integers) -> tuple[Hashes, Integers, Integers]:
        """Return hash, first word and number of words of every n-gram that is short enough for the table."""
        word_hashes, word_lengths = self._hashes[flat], self._lengths[flat]
        starts = np.flatnonzero(word_lengths <= _MAX_BYTES)
        hashes, lengths = word_hashes[starts], word_lengths[starts]
        levels = [(hashes, starts)]
        for more in range(1, _MAX_WORDS):
            inside = np.flatnonzero(starts + more < ends[starts])
            starts, hashes, lengths = starts[inside], hashes[inside], lengths[inside]
            following = starts + more
            hashes = self._hasher.join(hashes, lengths, word_hashes[following])
            lengths = lengths + 1 + word_lengths[following]
            short = np.flatnonzero(lengths <= _MAX_BYTES)
            starts, hashes, lengths = starts[short], hashes[short], lengths[short]
            levels.append((hashes, starts))
        counts = np.repeat(np.arange(1, _MAX_WORDS + 1), [len(level) for level, _ in levels])
        return np.concatenate([level for level, _ in levels]), np.concatenate([s for _, s in levels]), counts

    def _linked(self, hashes: Hashes) -> tuple[Integers, list[dict[int, int]]]:
        """Return the numbers in the table of the phrases that have a paraphrase among them, and their links."""
        # The hashes are ascending: looked up in this order, they are found many times faster.
        table = self._table
        known = _places(table.phrases, hashes)
        known = known[known >= 0]
        rows = _places(table.sources, known)
        sources = np.flatnonzero(rows >= 0)
        rows = rows[sources]
        starts = table.target_starts[rows].astype(np.int64)
        counts = table.target_starts[rows + 1] - starts
        # All positions of these ranges, joined, and for each its place within its range.
        within = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = np.repeat(starts, counts) + within
        here = np.zeros(len(table.phrases), dtype=bool)
        here[known] = True
        kept = np.flatnonzero(here[table.targets[positions]])
        ones, others = known[np.repeat(sources, counts)[kept]], table.targets[positions[kept]]
        known = distinct(np.concatenate([ones, others]))
        # The links of each of these phrases: where each of the others is in its list, both ways in one number.
        ones, others, size, place = _places(known, ones), _places(known, others), len(known), within[kept] + 1
        keys = np.concatenate([ones * size + others, others * size + ones])
        order = np.argsort(keys, kind="stable")
        pairs, firsts = np.unique(keys[order], return_index=True)
        both_ways = np.concatenate([place, place << BACK])[order]
        links: list[int] = np.add.reduceat(both_ways, firsts).tolist() if size else []
        linked: list[int] = (pairs % max(size, 1)).tolist()
        cuts = np.searchsorted(pairs, np.arange(size + 1, dtype=np.int64) * size).tolist()
        return known, [dict(zip(linked[a:b], links[a:b], strict=True)) for a, b in pairwise(cuts)]
