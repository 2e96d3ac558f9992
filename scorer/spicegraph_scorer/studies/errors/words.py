"""Word tables behind the error rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NUMBERS", "are_opposite"]

_NUMERALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

NUMBERS: Mapping[str, int] = {name: value for value, name in enumerate(_NUMERALS, start=1)}
"""The numerals that SPICE counts as counts, with their values."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPPOSITES = (
    (
        _words("big large huge enormous giant gigantic great massive colossal mammoth immense vast oversize"),
        _words("small little tiny mini miniature minuscule microscopic teeny petite wee baby"),
    ),
    (_words("tall towering lanky"), _words("short small squat")),
    (_words("fat obese overweight plump chubby pudgy"), _words("thin skinny slim lean scrawny underweight")),
    (_words("wide broad"), _words("narrow slim thin")),
    (_words("thick thickset"), _words("thin slim")),
    (_words("heavy"), _words("light underweight")),
)


def are_opposite(one: str, other: str) -> bool:
    """Say whether two size words mean opposite sizes.

    Example:
        >>> are_opposite("big", "tiny"), are_opposite("big", "large")
        (True, False)
    """
    return any((one in a and other in b) or (one in b and other in a) for a, b in _OPPOSITES)
