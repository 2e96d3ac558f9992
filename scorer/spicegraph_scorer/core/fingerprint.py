"""What says whether two corpora have the same references, in any order of their items."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.items import Item

__all__ = ["Fingerprint"]

_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of items, the fewest and the most references of one, and a hash of all ids and references.

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

    @classmethod
    def of(cls, items: Sequence[Item]) -> Fingerprint:
        """Take the fingerprint of at least one item."""
        counts = [len(item.references) for item in items]
        return cls(len(items), min(counts), max(counts), _modulo(sum(map(_hash, items))))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of both corpora together."""
        return Fingerprint(
            self.items + other.items,
            min(self.fewest, other.fewest),
            max(self.most, other.most),
            _modulo(self.hash + other.hash),
        )

    @property
    def digest(self) -> str:
        """The hash in hexadecimal."""
        return f"{self.hash:0{2 * _BYTES}x}"


def _modulo(value: int) -> int:
    return value % (1 << 8 * _BYTES)


def _hash(item: Item) -> int:
    row = msgspec.json.encode((str(item.id), item.references))
    return int.from_bytes(hashlib.blake2b(row, digest_size=_BYTES).digest(), "big")
