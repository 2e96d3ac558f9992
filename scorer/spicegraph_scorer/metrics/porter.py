"""The word stems of ROUGE-1.5.5: WordNet's irregular forms, and Porter's algorithm as that program runs it."""
# Porter 1980, "An algorithm for suffix stripping". ROUGE-1.5.5 departs from it in the fourth step, where ``-ement``,
# ``-ment``, ``-ent`` and ``-ion`` fall off a word that has lost another suffix. No library has that.

from __future__ import annotations

import gzip
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from spicegraph_parser.spice.parse import word_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHORTEST: Final = 4  # Shorter words are left as they are.

_CONSONANTS: Final = "[^aeiou][^aeiouy]*"
_VOWELS: Final = "[aeiouy][aeiou]*"
_SYLLABLE: Final = f"(?:{_CONSONANTS})?{_VOWELS}{_CONSONANTS}"
_LONG: Final = re.compile(_SYLLABLE)
_LONGER: Final = re.compile(f"{_SYLLABLE}{_VOWELS}{_CONSONANTS}")
_MIDDLING: Final = re.compile(f"{_SYLLABLE}(?:{_VOWELS})?")
_VOWEL: Final = re.compile(f"(?:{_CONSONANTS})?[aeiouy]")
_SHORT_END: Final = re.compile(f"{_CONSONANTS}[aeiouy][^aeiouwxy]")

_SECOND: Final = dict(
    word_pairs(
        """ational ate, tional tion, enci ence, anci ance, izer ize, bli ble, alli al, entli ent, eli e, ousli ous,
        ization ize, ation ate, ator ate, alism al, iveness ive, fulness ful, ousness ous, aliti al, iviti ive,
        biliti ble, logi log"""
    )
)
_THIRD: Final = dict(word_pairs("""icate ic, ative, alize al, iciti ic, ical ic, ful, ness"""))
_FOURTH: Final = dict.fromkeys(
    ["al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ou", "ism", "ate", "iti", "ous", "ive", "ize"], ""
)


def stem(word: str) -> str:
    """Return the stem of a lower-cased word of letters and digits, as ROUGE-1.5.5 with its option ``-m``."""
    if len(word) < _SHORTEST:
        return word
    irregular = _irregular().get(word)
    return stem_regular(word) if irregular is None else irregular


def stem_regular(word: str) -> str:
    """Return the stem of a word of more than two letters without looking for it among the irregular forms."""
    # A y that begins the word is a consonant; in capitals, no pattern takes it for a vowel.
    word = word.replace("y", "Y", 1) if word.startswith("y") else word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and _VOWEL.match(word[:-1]):
        word = f"{word[:-1]}i"
    word = _exchanged(word, _SECOND, _LONG)
    word = _exchanged(word, _THIRD, _LONG)
    word = _exchanged(word, _FOURTH, _LONGER)
    word = _cut(word, ("ement", "ment", "ent"))
    if word.endswith(("sion", "tion")):
        word = _cut(word, ("ion",))
    if word.endswith("e") and _may_lose_e(word[:-1]):
        word = word[:-1]
    if word.endswith("ll") and _LONGER.match(word):
        word = word[:-1]
    return word.lower()


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _may_lose_e(rest: str) -> bool:
    return bool(_LONGER.match(rest) or (_MIDDLING.fullmatch(rest) and not _SHORT_END.fullmatch(rest)))


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _LONG.match(word[:-3]) else word
    suffix = next((suffix for suffix in ("ed", "ing") if word.endswith(suffix)), "")
    rest = word.removesuffix(suffix)
    if not suffix or not _VOWEL.match(rest):
        return word
    if rest.endswith(("at", "bl", "iz")) or _SHORT_END.fullmatch(rest):
        return f"{rest}e"
    return rest[:-1] if rest[-1:] == rest[-2:-1] and rest[-1] not in "aeiouylsz" else rest


def _exchanged(word: str, endings: Mapping[str, str], enough: re.Pattern[str]) -> str:
    """Exchange the longest of the endings that the word has, if enough of the word stands before it."""
    suffix = max((suffix for suffix in endings if word.endswith(suffix)), key=len, default="")
    rest = word.removesuffix(suffix)
    return rest + endings[suffix] if suffix and enough.match(rest) else word


def _cut(word: str, suffixes: Iterable[str]) -> str:
    """Cut the first of the suffixes that leaves enough of the word."""
    for suffix in suffixes:
        if word.endswith(suffix) and _LONGER.match(word.removesuffix(suffix)):
            return word.removesuffix(suffix)
    return word


@cache
def _irregular() -> Mapping[str, str]:
    """Read WordNet's irregular forms (``geese`` is ``goose``), as far as ROUGE-1.5.5 has them."""
    data = files("spicegraph_scorer").joinpath("metrics", "data", "irregular.txt.gz").read_bytes()
    return dict(line.split(" ") for line in gzip.decompress(data).decode().splitlines())
