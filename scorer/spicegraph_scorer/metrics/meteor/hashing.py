"""Two hashes of words: the 32-bit one whose collisions METEOR scores as matches, and one for look-up.

The 64-bit hash of a text is the sum of ``value[byte] * BASE**position`` modulo 2**64. It can be taken over
millions of lines at once with numpy, and the hash of a phrase follows from the hashes of its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LineHasher", "java_hash"]

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]

_MODULUS = 1 << 64
_BASE = 0x9E3779B97F4A7C15
_SPACE = 32


def java_hash(word: str) -> int:
    """Return the 32-bit hash of Java's strings, unsigned: METEOR compares words by it alone.

    Example:
        >>> java_hash("an") == java_hash("c0")
        True
    """
    value = 0
    if word.isascii():
        for unit in word.encode():
            value = value * 31 + unit
    else:
        encoded = word.encode("utf-16-le", "surrogatepass")
        for low, high in zip(encoded[::2], encoded[1::2], strict=True):
            value = value * 31 + low + (high << 8)
    return value & 0xFFFFFFFF


def _byte_values() -> Hashes:
    """Return a fixed pseudo-random number for each byte (splitmix64 from 0), the same on every machine."""
    values = []
    for step in range(1, 257):
        mixed = step * _BASE % _MODULUS
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % _MODULUS
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % _MODULUS
        values.append(mixed ^ (mixed >> 31))
    return np.array(values, dtype=np.uint64)


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


class LineHasher:
    """Hashes every line of a text; holds the tables of powers that this needs.

    The tables grow with the longest text seen; nothing else changes.
    """

    def __init__(self) -> None:
        self._values = _byte_values()
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
        """Return the hash and the length in UTF-8 bytes of each word; words hold no line feed."""
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
