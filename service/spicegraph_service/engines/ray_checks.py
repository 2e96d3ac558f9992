"""The first pass over a corpus on a cluster: every item is checked, and what all of them have to tell is summed up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol

from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.readers.checks import label
from spicegraph_scorer.readers.faults import SHOWN_FAULTS, Fault, input_error
from spicegraph_service.engines.ray_workers import Checked, Placed, RowReader, check_rows, find_rows, unpacked_rows
from spicegraph_service.engines.repeated import SeenIds, seen_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from ray.data import Dataset

    from spicegraph_scorer.core.fingerprint import Fingerprint
    from spicegraph_scorer.core.items import Item, ItemId
    from spicegraph_scorer.metrics import Progress

__all__ = ["CheckedCorpus", "checked_corpus"]

_LOOKED_AT: Final = 1_000
"""Hashes met twice that are looked at: chance makes one of 6 * 10^9 ids, so that a true repetition is among them."""

_WAITING: Final = 1 << 20
"""N-grams of blocks that are summed up together, at least."""


class Mapped(Protocol):
    """Applies a function to the blocks of the corpus."""

    def __call__(self, function: Callable[[pa.Table], pa.Table], /) -> Dataset:
        """Return what the function makes of each."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedCorpus:
    """A corpus without faults: what its references are, whether ids are strings, and the frequencies of its n-grams.

    ``items`` are there if they were to be kept.
    """

    fingerprint: Fingerprint
    text_ids: bool
    frequencies: DocumentFrequencies | None
    items: tuple[Item, ...]


def checked_corpus(
    mapped: Mapped, reader: RowReader, source: str, *, count: bool, keep: bool, progress: Progress | None
) -> CheckedCorpus:
    """Check every item.

    Args:
        mapped: applies a function to the blocks of rows.
        reader: makes items of rows.
        source: what the corpus is called.
        count: count document frequencies.
        keep: keep the items.
        progress: is told how many items there are.

    Raises:
        InputError: items are faulty, two have the same id, or there is none.
    """
    check = partial(check_rows, reader=reader, release=version("spicegraph"), count=count, keep=keep)
    found = _Found()
    with seen_ids() as seen:
        checked: Checked
        for checked in unpacked_rows(mapped(check)):
            found.add(checked)
            seen.add(checked.hashes)
            if progress and found.fingerprint is not None:
                progress("reading items", found.fingerprint.items, found.fingerprint.items)
        faults, count_again = _repeated(mapped, reader, seen)
    if found.fingerprint is None and not found.faulty:
        raise input_error(source, [Fault("", "", "holds no items")])
    if found.fingerprint is None or found.faulty or faults:
        raise input_error(source, [*found.faults, *faults], count=found.faulty + count_again)
    return CheckedCorpus(
        found.fingerprint,
        found.integers < found.fingerprint.items,
        found.frequencies.total() if count else None,
        tuple(found.items),
    )


class _Found:
    """What the blocks say together, see :class:`Checked`."""

    def __init__(self) -> None:
        self.fingerprint: Fingerprint | None = None
        self.integers = 0
        self.faults: list[Fault] = []
        self.faulty = 0
        self.items: list[Item] = []
        self.frequencies = _Frequencies()

    def add(self, checked: Checked) -> None:
        self.faults += checked.faults[: SHOWN_FAULTS - len(self.faults)]
        self.faulty += checked.faulty
        if checked.fingerprint is not None:
            before = self.fingerprint
            self.fingerprint = checked.fingerprint if before is None else before + checked.fingerprint
        self.integers += checked.integers
        self.items += checked.items
        if checked.frequencies is not None:
            self.frequencies.add(checked.frequencies)


class _Frequencies:
    """Sums document frequencies up: what waits is never much more than what is summed already."""

    def __init__(self) -> None:
        self._parts: list[DocumentFrequencies] = []
        self._waiting = 0
        self._summed = 0

    def add(self, part: DocumentFrequencies) -> None:
        self._parts.append(part)
        self._waiting += _size(part)
        if self._waiting > max(self._summed, _WAITING):
            total = self.total()
            self._parts, self._waiting, self._summed = [total], 0, _size(total)

    def total(self) -> DocumentFrequencies:
        return DocumentFrequencies.sum_of(self._parts)


def _size(frequencies: DocumentFrequencies) -> int:
    return sum(len(order.codes) for order in frequencies.orders)


def _repeated(mapped: Mapped, reader: RowReader, seen: SeenIds) -> tuple[list[Fault], int]:
    """Return the first items whose ids other items have too, as faults, and the number of all.

    Ids whose hashes are the same are looked for in a pass of its own, which hardly ever is needed.
    """
    wanted, count = seen.repeated(_LOOKED_AT)
    if not count:
        return [], 0
    first: dict[ItemId, str] = {}
    faults: list[Fault] = []
    found: list[Placed]
    for found in unpacked_rows(mapped(partial(find_rows, reader=reader, wanted=wanted))):
        for placed in found:
            if placed.id not in first:
                first[placed.id] = placed.place
            elif len(faults) < SHOWN_FAULTS:
                reason = f"is also the id of an item of {first[placed.id]}"
                faults.append(Fault(label(placed.place, placed.id), "id", reason))
    return faults, count if faults else 0
