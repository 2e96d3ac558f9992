"""METEOR's paraphrase table in a form that opens in a moment, built once.

A phrase is known by a 64-bit hash of its text (the 2,616,378 phrases of the table have as many different
hashes), and named by the place of that hash in the sorted list of all hashes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spicegraph_parser.errors import DataError
from spicegraph_scorer.metrics.meteor.hashing import LineHasher

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["Paraphrases", "Progress", "build_index"]

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""

Hashes = NDArray[np.uint64]

_READ = 1 << 17  # bytes of the packed file at a time
_LINE_FEED = 10


@dataclass(frozen=True, slots=True, eq=False)
class Paraphrases:
    """METEOR's paraphrase table.

    ``phrases``: the hashes of all phrases, ascending; a phrase's number is its place here. ``sources``: the
    numbers of the phrases that have paraphrases, ascending. ``targets``: the numbers of their paraphrases,
    source by source, in the file's order; ``target_starts``: where each source's begin, and at last where
    they end.
    """

    phrases: Hashes
    sources: NDArray[np.uint32]
    target_starts: NDArray[np.uint32]
    targets: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The paraphrase file in its own order.

    ``counts``: how many entries in a row share one source; ``hashes``: those of these sources, then of all
    targets.
    """

    counts: NDArray[np.int64]
    hashes: Hashes


def _unpacked(path: Path, progress: Progress) -> Iterator[bytes]:
    """Yield the file's content in pieces, and report how much of the file has been read."""
    size = path.stat().st_size
    unpacker = zlib.decompressobj(wbits=31)
    with path.open("rb") as stream:
        while piece := stream.read(_READ):
            yield unpacker.decompress(piece)
            progress(stream.tell() / size)
    if not unpacker.eof:
        msg = f"{path} ends too early"
        raise DataError(msg)


def _entries(path: Path, progress: Progress) -> Iterator[tuple[Hashes, Hashes]]:
    """Yield the hashes of sources and of targets, some thousands at a time.

    An entry is three lines: a probability, which METEOR ignores, the source, the target.
    """
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
        msg = f"{path} ends inside an entry"
        raise DataError(msg)


def _read_table(path: Path, progress: Progress) -> _Table:
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
        msg = f"{path} holds no paraphrases"
        raise DataError(msg)
    counts = np.diff(np.concatenate([*firsts, np.array([total])]))
    return _Table(counts, np.concatenate([*sources, *targets]))


def _numbered(hashes: Hashes) -> tuple[Hashes, NDArray[np.uint32]]:
    """Return the sorted different hashes, and for each given hash its place among them."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    new = np.ones(len(hashes), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(len(hashes), dtype=np.uint32)
    numbers[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return ordered[new], numbers


def _index(path: Path, progress: Progress) -> Paraphrases:
    table = _read_table(path, progress)
    phrases, numbers = _numbered(table.hashes)
    sources, targets = np.split(numbers, [len(table.counts)])
    order = np.argsort(sources)
    if (np.diff(sources[order].astype(np.int64)) == 0).any():
        msg = f"{path} does not list the paraphrases of each phrase together"
        raise DataError(msg)
    begins = np.cumsum(table.counts) - table.counts
    counts = table.counts[order]
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    moved = np.arange(len(targets)) + np.repeat(begins[order] - starts[:-1], counts)  # row by row
    return Paraphrases(phrases, sources[order], starts.astype(np.uint32), targets[moved])


def build_index(path: Path, *, progress: Progress | None = None) -> Paraphrases:
    """Return the index of METEOR's paraphrase file (some ten seconds, 300 MB of memory).

    ``progress`` is called with the share of the file that has been read.

    Raises:
        DataError: the file is damaged.
    """
    try:
        return _index(path, progress or (lambda _: None))
    except zlib.error as error:
        msg = f"{path} is damaged ({error})"
        raise DataError(msg) from error
