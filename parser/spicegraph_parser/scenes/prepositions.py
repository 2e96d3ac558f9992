"""Prepositions of one word and of several: what a caption says stands between two things, as one name.

The closed list of relations lacks most of them. Where it has none that means the same, the caption's own wins.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.scenes.words import NAMES, WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_TEXTS: Final = 100_000
_SAME: Final = {name.replace("-", " "): frozenset(words.split()) for name, words in NAMES["same"].items()}
"""What means the same as a preposition; those that are not here are named by themselves alone."""

GENERAL: Final = WORDS["general_prepositions"]
"""Prepositions of many meanings, of which people draw one ("in a hat": wear): there the network decides."""

_SECOND: Final = {first: frozenset(seconds.split()) for first, seconds in NAMES["second"].items()}
"""Words that may stand behind a first word of a preposition, and belong to it."""
_FIRST: Final = WORDS["prepositions"] | _SECOND.keys()
_PLAIN: Final = 3  # words of the longest preposition without a noun
_LONGEST: Final = 7  # words of a preposition with its articles


class Preposition(NamedTuple):
    """A preposition: its name without articles, and its words."""

    name: str
    tokens: tuple[int, ...]


def preposition(words: Sequence[str], start: int, end: int) -> Preposition | None:
    """Return the preposition that all words from ``start`` up to ``end`` are; words are in lower case."""
    start = next((at for at in range(start, end) if words[at] not in WORDS["before_prepositions"]), max(start, end - 1))
    if _FIRST.isdisjoint(words[start:end][:1]):
        return None
    tokens = tuple([at for at in range(start, end) if words[at] not in WORDS["articles"]])
    kept = [words[token] for token in tokens]
    is_known = _has_noun(kept) or (len(kept) == end - start <= _PLAIN and _is_plain(kept))
    return Preposition(" ".join(kept), tokens) if is_known else None


def _has_noun(words: Sequence[str]) -> bool:
    """Say whether words are a preposition with a noun ("on the other side of")."""
    first, *others = words
    *inner, noun, last = ["", "", *others]
    is_known = first in WORDS["prepositions"] and last in {"of", "from"} and noun in WORDS["places"]
    return words == ["on", "top"] or (is_known and WORDS["before_places"].issuperset(filter(None, inner)))


def _is_plain(words: Sequence[str]) -> bool:
    """Say whether words without a noun are a preposition ("out of")."""
    if len(words) == 1:
        return words[0] in WORDS["prepositions"]
    return all(word in _SECOND.get(before, ()) for before, word in pairwise(words))


@lru_cache(maxsize=_MOST_TEXTS)
def last_preposition(words: tuple[str, ...]) -> tuple[int, Preposition | None]:
    """Return the longest preposition with which words end, and where it starts."""
    every = ((at, preposition(words, at, len(words))) for at in range(len(words)))
    return next(((at, own) for at, own in every if own), (len(words), None))


def inner_nouns(words: Sequence[str]) -> set[int]:
    """Return the positions of nouns that are part of a preposition ("on the top of")."""
    out: set[int] = set()
    for at, word in enumerate(words):
        if word in WORDS["adjectives_of_prepositions"] and words[at + 1 : at + 2] in (["to"], ["from"], ["of"]):
            out.add(at)
        if word in WORDS["places"]:
            out |= _around(words, at)
    return out


def _around(words: Sequence[str], at: int) -> set[int]:
    """Return the nouns of the preposition around a noun, if there is one."""
    ends = [end for end in (at + 2, at + 1) if end <= len(words)]
    every = (preposition(words, start, end) for start in range(max(0, at - _LONGEST + 2), at) for end in ends)
    own = next((stated.tokens for stated in every if stated and at in stated.tokens), ())
    return {token for token in own if words[token] in WORDS["places"] | WORDS["before_places"]}


def means_same(name: str, caption_name: str) -> bool:
    """Say whether a relation's name says what a caption's preposition does, one of many meanings ("in") always."""
    first, *others = caption_name.split()
    if name == caption_name or name.endswith(f" {caption_name}") or caption_name in GENERAL:
        return True
    if first in WORDS["particles"] and others and others[-1] in GENERAL:
        return True
    words = frozenset(name.split())
    same = _SAME.get(caption_name)
    return words.issuperset((first, *others)) if same is None else not same.isdisjoint(words)


def is_preposition_word(word: str) -> bool:
    """Say whether prepositions start with a word."""
    return word in _FIRST
