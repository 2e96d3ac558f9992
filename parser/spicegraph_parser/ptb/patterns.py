"""The patterns that several rules share.

Loops are possessive (``++``) where nothing that follows could take back a character, and bounded where it
could: so no text takes long, whoever wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from spicegraph_parser.ptb import writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spicegraph_parser.ptb.alphabet import Alphabet

__all__ = [
    "ACRONYM",
    "ADDRESS",
    "HOST",
    "MAIL",
    "MOST_NAMES",
    "TAG",
    "WEB",
    "Patterns",
    "Variant",
    "any_case",
    "capitalised",
]

Variant = Literal["coco", "spice"]
"""``coco``: CoreNLP 3.4.1, as the COCO toolkit runs it; ``spice``: CoreNLP 3.6, as SPICE 1.0 runs it."""


class Patterns:
    """The patterns that several rules share, over one alphabet."""

    def __init__(self, alphabet: Alphabet, variant: Variant) -> None:
        """Build the patterns."""
        self.space = f"[{alphabet.space}]"
        self.symbol = f"[{alphabet.symbol}]"
        self.letter = f"[{alphabet.letter}]"
        self.capital = f"[{alphabet.capital}]"
        self.digit = f"[{alphabet.digit}]"
        self.inside = f"[{alphabet.letter}{alphabet.digit}{alphabet.mark}]"
        self.run = f"[{alphabet.letter}{alphabet.digit}]{self.inside}*+"
        self.word = rf"{self.letter}{self.inside}*+(?:[.!?]{self.letter}{self.inside}*+)*+"
        self.number = rf"{self.digit}++(?:[.,:]{self.digit}++)*"
        self.phone = f"{self.digit}{{3,4}}[- ]?{self.digit}{{3,5}}"
        self.apostrophe = alphabet.apostrophe
        self.quote = f"(?:{alphabet.apostrophe}|{alphabet.quote})"
        self.name = f"[dDlLoO]{self.quote}{self.inside}{{2,}}+"
        self.write_name = writing.straight if variant == "spice" else None


def any_case(words: Iterable[str]) -> str:
    """Return a pattern of any of the words in any case, the longer first."""
    return "(?i:" + "|".join(sorted(words, key=_longest_first)) + ")"


def capitalised(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, capitalised or in capitals, the longer first."""
    forms = (f"{word.capitalize()}|{word.upper()}" for word in sorted(words, key=_longest_first))
    return "(?:" + "|".join(forms) + ")"


def _longest_first(word: str) -> tuple[int, str]:
    return -len(word), word


MOST_NAMES: Final = 20
"""So many names an address may have; no text is searched further for an address's end."""
ACRONYM: Final = r"[A-Za-z]\.(?:[A-Za-z]\.)++"
ADDRESS: Final = r'[^\s"<>|(){}]+[^\s"<>|.!?(){},-]'
HOST: Final = (
    rf"(?:[^\s!\"$'(),\-./0-9A-Z:;<=>?@\[\\\]^_`{{|}}]{{1,63}}\.){{1,{MOST_NAMES}}}(?i:com|net|org|edu)"
    rf"(?:/{ADDRESS})?"
)
MAIL: Final = r'[A-Za-z0-9][^\s"<>|(){}]{0,99}@(?:[^\s"<>|().{}]++\.)*[^\s"<>|().{}]++'
WEB: Final = rf"(?i:www)\.(?:[^\s\"<>|.(){{}},]{{1,63}}\.){{1,{MOST_NAMES}}}[A-Za-z]{{2,4}}(?:/{ADDRESS})?"
_NAME: Final = "[A-Za-z][A-Za-z0-9_:.-]*+"
_VALUE: Final = r"(?:\"[^\"\n]{0,999}\"|'[^'\n]{0,999}')"
TAG: Final = rf"<(?:{_NAME}(?:[ \t]++{_NAME}(?:={_VALUE})?)*[ \t]*/?|/{_NAME}[ \t]*|[!?][A-Za-z-][^>\r\n]{{0,999}})>"
