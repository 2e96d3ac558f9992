"""A word in place of another: a caption that is a reference but for one word, such as "cat" for "dog"."""
# Verdicts weigh all that a caption says, and may be too unsure of a single word to name it; here nothing else differs.

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_graded.detail.claims import is_thing
from spicegraph_graded.spice_g.facts import values_of
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_APART: Final = (
    ({"on", "atop", "upon", "over", "above", "in", "inside"}, {"under", "underneath", "below", "beneath"}),
    ({"in", "inside", "into", "within"}, {"outside"}),
    ({"behind"}, {"before"}),
    ({"up"}, {"down"}),
)  # Prepositions that exclude each other; of most others two may hold.


class Swap(NamedTuple):
    """A swapped word: its span, the reference and span of the other word, their aspect."""

    span: tuple[int, int]
    reference: int
    other: tuple[int, int]
    aspect: str


def swap_of(candidate: str, references: Sequence[str]) -> Swap | None:
    """Return the word that no reference has, where one of them has another in its place and all else is equal."""
    own = list(_WORD.finditer(candidate))
    known = {word[0].lower() for text in references for word in _WORD.finditer(text)}
    for number, text in enumerate(references):
        others = list(_WORD.finditer(text))
        if len(own) != len(others):
            continue
        apart = [pair for pair in zip(own, others, strict=True) if _plain(pair[0]) != _plain(pair[1])]
        if len(apart) == 1 and apart[0][0][0].lower() not in known:
            ((word, other),) = apart
            if aspect := _aspect(word[0].lower(), other[0].lower()):
                return Swap(word.span(), number, other.span(), aspect)
    return None


def _plain(word: re.Match[str]) -> str:
    said = word[0].lower()
    return "a" if said == "an" else said


def _aspect(word: str, other: str) -> str:
    """Return the aspect of two words that exclude each other; empty otherwise."""
    if values_of((word,)) or values_of((other,)):  # colours and counts, which verdicts hold against each other
        return ""
    if _exclude(word, other):
        return "relation"
    for part, is_part, aspect in (("v", _is_verb, "action"), ("n", is_thing, "object")):
        if is_part(word) and is_part(other):
            return aspect if _differ(word, other, part) else ""
    return ""


def _exclude(word: str, other: str) -> bool:
    return any((word in a and other in b) or (word in b and other in a) for a, b in _APART)


def _is_verb(word: str) -> bool:
    """Return whether a word has as many senses as a verb as it has as a noun, or more."""
    wordnet = load_wordnet()
    return bool(wordnet.senses(word, "v")) and len(wordnet.senses(word, "v")) >= len(wordnet.senses(word, "n"))


def _differ(word: str, other: str, part: str) -> bool:
    """Return whether neither word is a synonym or a kind of the other, by the two most frequent senses of both."""
    wordnet = load_wordnet()
    first, second = (wordnet.senses(each, part)[:2] for each in (word, other))
    return bool(first and second) and not any(
        a in wordnet.ancestors(b) or b in wordnet.ancestors(a) for a in first for b in second
    )
