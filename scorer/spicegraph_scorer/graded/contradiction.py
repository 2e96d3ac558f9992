"""Words that exclude each other: an object of one colour has no other, and two are not three."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FAMILIES", "Values", "deny", "exclusions", "values_of"]

Values = frozenset[int]
"""The values of a family that a concept has: ``gray/grey`` has one, ``red`` another; empty: none."""

FAMILIES: Final[Mapping[str, str]] = {
    "colour": "black brown blue red yellow pink gray/grey green white orange purple maroon beige violet tan",
    "count": "one/1/single two/2/couple/pair three/3/trio four/4 five/5 six/6 seven/7 eight/8 nine/9 ten/10",
}
"""Families of words that exclude each other; a slash joins words that do not."""


def _numbers() -> Mapping[str, tuple[str, int]]:
    return {
        word: (family, value)
        for family, words in FAMILIES.items()
        for value, group in enumerate(words.split())
        for word in group.split("/")
    }


_NUMBERS: Final = _numbers()


def values_of(strings: Iterable[str]) -> Mapping[str, Values]:
    """Return the values that a concept's strings have, by family.

    >>> values_of(("gray", "grey"))
    {'colour': frozenset({6})}
    """
    found: dict[str, Values] = {}
    for family, value in (_NUMBERS[string] for string in strings if string in _NUMBERS):
        found[family] = found.get(family, frozenset()) | {value}
    return found


def deny(mine: Mapping[str, Values], theirs: Mapping[str, Values]) -> bool:
    """Say whether two concepts, by their values, exclude each other.

    >>> deny(values_of(("red",)), values_of(("blue",))), deny(values_of(("two",)), values_of(("pair",)))
    (True, False)
    """
    return any(family in theirs and theirs[family].isdisjoint(value) for family, value in mine.items())


def exclusions(
    candidate: Sequence[Mapping[str, Values]], reference: Sequence[Mapping[str, Values]]
) -> npt.NDArray[np.bool_] | None:
    """Return which concepts of two lists exclude each other, or nothing if none do."""
    theirs = [(column, values) for column, values in enumerate(reference) if values]
    if not theirs:
        return None
    excluded = [
        (row, column) for row, mine in enumerate(candidate) if mine for column, values in theirs if deny(mine, values)
    ]
    if not excluded:
        return None
    matrix = np.zeros((len(candidate), len(reference)), np.bool_)
    matrix[tuple(zip(*excluded, strict=True))] = True
    return matrix
