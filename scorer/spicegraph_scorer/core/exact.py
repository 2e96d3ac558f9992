"""Sums of floats without rounding, so that they may be taken in parts, in any order, on any number of machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ExactSums", "Row"]

Row: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""A matrix of one row."""


@dataclass(frozen=True, slots=True)
class ExactSums:
    """The sums of the columns of a table, each as the few floats that add up to it without rounding.

    Sums of parts of a table add up to those of the whole, to the bit.

    Example:
        >>> whole = ExactSums.of([(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)])
        >>> whole == ExactSums.of([(0.3, 3.0)]) + ExactSums.of([(0.1, 1.0), (0.2, 2.0)])
        True
        >>> whole.rounded().tolist()
        [[0.6, 6.0]]
    """

    columns: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> ExactSums:
        """Sum the columns of at least one row; all rows are of one length, all values finite."""
        return cls(tuple(map(_parts, zip(*rows, strict=True))))

    def __add__(self, other: ExactSums) -> ExactSums:
        """Return the sums of both tables together."""
        pairs = zip(self.columns, other.columns, strict=True)
        return ExactSums(tuple(_parts((*mine, *theirs)) for mine, theirs in pairs))

    def values(self) -> list[float]:
        """Return the sums, each rounded once: what ``math.fsum`` gives of the column."""
        return [math.fsum(parts) for parts in self.columns]

    def rounded(self) -> Row:
        """Return :meth:`values` as a matrix of one row."""
        return np.array([self.values()], dtype=np.float64)


def _parts(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rounded sum, the rounded rest, the rest of that ...: together the sum itself.

    >>> _parts((1e100, 1.0, -1e100, 0.5))
    (1.5,)
    >>> _parts((1e100, 1.0))
    (1e+100, 1.0)
    """
    parts: list[float] = []
    while rest := math.fsum((*values, *(-part for part in parts))):
        parts.append(rest)
    return tuple(parts)
