"""The unit of scoring, a candidate caption with its references, and whether two systems have the same items."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


ItemId = int | str
"""An image's identifier, as its file gives it: COCO uses integers, other sets use strings."""


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate caption with the references of its image.

    ``references`` holds at least one caption; their order is kept, because SPICE merges references in order.
    """

    id: ItemId
    candidate: str
    references: tuple[str, ...]


class CheckedItems(tuple[Item, ...]):
    """Items that can be scored together: there are some, their ids differ, and their captions are sound."""

    __slots__ = ()


_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of items, the fewest and the most references of one, a hash of all ids and references, empty candidates.

    The fingerprints of parts of a corpus add up to that of the whole: the hash is the sum of the items' hashes,
    modulo 2^64.

    Example:
        >>> from spicegraph_scorer.core.items import Item
        >>> one, other = Item(1, "", ("a dog",)), Item(2, "", ("a cat", "cats"))
        >>> Fingerprint.of([one, other]) == Fingerprint.of([other]) + Fingerprint.of([one])
        True
    """

    items: int
    fewest: int
    most: int
    hash: int
    empty: int = 0

    @classmethod
    def of(cls, items: Sequence[Item]) -> Fingerprint:
        """Take the fingerprint of at least one item."""
        counts = [len(item.references) for item in items]
        return cls(len(items), min(counts), max(counts), _modulo(sum(map(_hash, items))), empty_candidates(items))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of both corpora together."""
        return Fingerprint(
            self.items + other.items,
            min(self.fewest, other.fewest),
            max(self.most, other.most),
            _modulo(self.hash + other.hash),
            self.empty + other.empty,
        )

    @property
    def digest(self) -> str:
        """The hash in hexadecimal."""
        return f"{self.hash:0{2 * _BYTES}x}"


class _HasCandidate(Protocol):
    @property
    def candidate(self) -> str: ...


def empty_candidates(items: Iterable[_HasCandidate]) -> int:
    """Return how many candidates are empty: they score as in the original programs, which is zero."""
    return sum(not item.candidate.strip() for item in items)


def _modulo(value: int) -> int:
    return value % (1 << 8 * _BYTES)


def _hash(item: Item) -> int:
    row = msgspec.json.encode((str(item.id), item.references))
    return int.from_bytes(hashlib.blake2b(row, digest_size=_BYTES).digest(), "big")


_SHOWN = 5


def in_order_of(
    first: Sequence[Item], second: Sequence[Item], *, names: tuple[str, str] = ("the first", "the second")
) -> tuple[Item, ...]:
    """Return the second system's items in the order of the first's.

    Args:
        first: a system's items; ids differ.
        second: another's, for the same ids with the same references, in any order.
        names: what the systems are called in an error.

    Raises:
        InputError: ids or references differ; the message names the first five.

    Example:
        >>> from spicegraph_scorer.core.items import Item
        >>> a, b = Item(1, "a dog", ("dog",)), Item(2, "a cat", ("cat",))
        >>> in_order_of([a, b], [b, a]) == (a, b)
        True
    """
    one, other = names
    by_id = {item.id: item for item in second}
    known = {item.id for item in first}
    faults = [f"item {item.id!r} is only in {one}" for item in first if item.id not in by_id]
    faults += [f"item {item.id!r} is only in {other}" for item in second if item.id not in known]
    faults += [
        f"item {item.id!r} has other references in {other}"
        for item in first
        if item.id in by_id and by_id[item.id].references != item.references
    ]
    if faults:
        more = f"\n... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InputError(f"{one} and {other} can't be compared:\n" + "\n".join(faults[:_SHOWN]) + more)
    return tuple(by_id[item.id] for item in first)
