"""Which ids occur twice among any number of them, found in a bounded memory: eight bytes an id, on disk."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_scorer.core.items import ItemId

Hashes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

_BYTES: Final = 8
_RUN: Final = 1 << 22
"""Ids that are held in memory, and sorted together: 32 MB."""


def hashes_of(ids: Iterable[ItemId]) -> Hashes:
    """Return a hash of each id; that of 7 differs from that of "7".

    >>> hashes_of([7, "7", 7]).tolist() == hashes_of([7]).tolist() + hashes_of(["7", 7]).tolist()
    True
    """
    return np.frombuffer(
        b"".join(hashlib.blake2b(repr(value).encode(), digest_size=_BYTES).digest() for value in ids), np.uint64
    )


class SeenIds:
    """Hashes of ids, in sorted runs: what does not fit in memory lies in files of a folder."""

    def __init__(self, folder: Path, *, run: int = _RUN) -> None:
        self._folder = folder
        self._run = run
        self._waiting: list[Hashes] = []
        self._count = 0
        self._files: list[Path] = []

    def add(self, hashes: Hashes) -> None:
        """Note hashes of ids."""
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count >= self._run:
            self._files.append(self._folder / f"{len(self._files)}.npy")
            np.save(self._files[-1], self._sorted())
            self._waiting, self._count = [], 0

    def _sorted(self) -> Hashes:
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *self._waiting]))

    def repeated(self, limit: int) -> tuple[Hashes, int]:
        """Return up to ``limit`` hashes that were noted more than once, and how many were noted again in all."""
        runs: list[Hashes] = [*(np.load(path, mmap_mode="r") for path in self._files), self._sorted()]
        found: list[Hashes] = [np.zeros(0, np.uint64)]
        count = 0
        for part in _ranges(runs):
            again = part[1:][part[1:] == part[:-1]]
            count += len(again)
            found.append(np.unique(again)[: max(0, limit - sum(map(len, found)))])
        return np.concatenate(found), count


def _ranges(runs: list[Hashes]) -> Iterator[Hashes]:
    """Yield what all sorted runs hold together, sorted, in ranges that are each about as large as a run."""
    starts = [0] * len(runs)
    for number in range(1, len(runs) + 1):
        end = number * 2 ** (8 * _BYTES) // len(runs)
        ends = [len(run) if number == len(runs) else int(np.searchsorted(run, np.uint64(end))) for run in runs]
        yield np.sort(np.concatenate([run[s:e] for run, s, e in zip(runs, starts, ends, strict=True)]))
        starts = ends


@contextmanager
def seen_ids() -> Iterator[SeenIds]:
    """Give a place for ids; its files are gone afterwards."""
    with TemporaryDirectory(prefix="spicegraph-") as folder:
        yield SeenIds(Path(folder))
