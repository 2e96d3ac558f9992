"""Words that exclude each other: an object of one colour has no other, and two are not three."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FAMILIES", "Values", "deny", "values_of", "verdicts"]

Values = frozenset[tuple[str, int]]
"""The values that a concept has, each a family and a number: ``gray/grey`` has one, ``red`` another; empty: none."""

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


def values_of(strings: Iterable[str]) -> Values:
    """Return the values that a concept's strings have.

    >>> values_of(("gray", "grey"))
    frozenset({('colour', 6)})
    """
    return frozenset([_NUMBERS[string] for string in strings if string in _NUMBERS])


@lru_cache(maxsize=4096)
def deny(mine: Values, theirs: Values) -> bool:
    """Say whether concepts exclude each other by their values: both have some of a family, and none in common.

    >>> deny(values_of(("red",)), values_of(("blue",))), deny(values_of(("two",)), values_of(("pair",)))
    (True, False)
    """
    families = {family for family, _ in mine} & {family for family, _ in theirs}
    return any(all(family != common for family, _ in mine & theirs) for common in families)


def verdicts(
    candidate: Sequence[tuple[int, Values]], reference: Sequence[tuple[int, Values]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return which concepts of two lists exclude each other, and which say the same value ("two" and "a pair").

    Args:
        candidate: the index and the values of each concept that has any.
        reference: the same of the other list.
    """
    excluded, agreed = [], []
    for row, mine in candidate:
        for column, theirs in reference:
            if deny(mine, theirs):
                excluded.append((row, column))
            elif not mine.isdisjoint(theirs):
                agreed.append((row, column))
    return excluded, agreed
