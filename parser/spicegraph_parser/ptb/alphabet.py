"""Character classes of the tokenizer, for plain ASCII text and for all of Unicode's basic plane."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ASCII", "Alphabet", "basic_plane"]


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Insides of regular expression classes (``[...]``), and the forms of an apostrophe."""

    capital: str
    letter: str
    digit: str
    mark: str
    """What may stand inside a word but not begin it: combining marks, soft and typographic hyphens."""
    space: str
    symbol: str
    """Everything that is a token of its own when no other rule takes it."""
    apostrophe: str
    """What counts as one in every contraction."""
    quote: str
    """What else counts as one in ``don't`` and in names."""


ASCII: Final = Alphabet(
    capital="A-Z",
    letter="A-Za-z",
    digit="0-9",
    mark="",
    space=r" \t\n\r\f\x0b\x00",
    symbol=r"!-/:-@\[-`{-~",
    apostrophe="(?:'|&apos;)",
    quote="`",
)


def _ranges(belong: Iterable[bool]) -> str:
    """Write the characters whose place in ``belong`` holds as the ranges of a class."""
    runs: list[str] = []
    for inside, run in groupby(enumerate(belong), key=itemgetter(1)):
        if inside:
            codes = [code for code, _ in run]
            runs.append(f"{re.escape(chr(codes[0]))}-{re.escape(chr(codes[-1]))}")
    return "".join(runs)


@cache
def basic_plane() -> Alphabet:
    """Return the classes for text with characters outside ASCII; astral characters are in none of them.

    Java sees an astral character as two surrogates, which no rule of the tokenizer takes. It also knows no
    script that Unicode got later: of the 55,501 letters, marks, digits and signs here, its tokenizer takes
    some 2,800 rare ones in another way.
    """
    categories = [unicodedata.category(chr(code)) for code in range(0x10000)]

    def of(*starts: str, but: str = "") -> str:
        return _ranges(category.startswith(starts) and chr(code) not in but for code, category in enumerate(categories))

    return Alphabet(
        capital=of("Lu"),
        letter=of("L"),
        digit=of("Nd"),
        mark=of("M") + "\u00ad\u2010\u2011",
        space=ASCII.space + "\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff",
        symbol=of("P", "S", "No", but="\u2010\u2011\u2012"),
        apostrophe="(?:['\u2019\u0092]|&apos;)",
        quote="[`\u2018\u201b\u0091]",
    )
