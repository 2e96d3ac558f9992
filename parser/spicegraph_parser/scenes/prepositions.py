"""Prepositions of one word and of several: what a caption says stands between two things, as one name.

The closed list of relations lacks most of them. Where it has none that means the same, the caption's own wins.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.spice.parse import tables, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_TEXTS: Final = 100_000
_ARTICLES: Final = word_set("the a an its their his her")

_SAME_TEXT: Final = tables(__package__)["same"]
"""Each line: prepositions, and words of which a relation's name has one if it means the same."""

SAME: Final = {
    name.replace("-", " "): frozenset(words.split())
    for line in _SAME_TEXT.strip().splitlines()
    for names, _, words in [line.strip().partition(":")]
    for name in names.split()
}
"""What means the same as a preposition; those that are not here are named by themselves alone."""

GENERAL: Final = word_set("of with in on at by for from to as")
"""Prepositions of many meanings, of which people draw one ("in a hat": wear): there the network decides."""

_SIMPLE: Final = word_set(tables(__package__)["prepositions"])
_NOUNS: Final = word_set(tables(__package__)["places"])
"""Nouns inside of prepositions like "on the top of"."""
_BEFORE_NOUNS: Final = word_set(tables(__package__)["before_places"])
_SECOND_TEXT: Final = tables(__package__)["second"]
_SECOND: Final = {
    first: tuple(seconds.split())
    for line in _SECOND_TEXT.strip().splitlines()
    for first, _, seconds in [line.strip().partition(":")]
}
"""Words that may stand behind a first word of a preposition, and belong to it."""
_FIRST: Final = _SIMPLE | _SECOND.keys()
_SKIPPED: Final = word_set("just right directly immediately partly partially all")


class Preposition(NamedTuple):
    """A preposition: its name without articles, and its words."""

    name: str
    tokens: tuple[int, ...]


def preposition(words: Sequence[str], start: int, end: int) -> Preposition | None:
    """Return the preposition that all words from ``start`` up to ``end`` are; words are in lower case."""
    for at in range(start, end):
        if words[at] not in _SKIPPED or end - at == 1:
            start = at
            break
    if start >= end or words[start] not in _FIRST:
        return None
    tokens = tuple([at for at in range(start, end) if words[at] not in _ARTICLES])
    kept = [words[token] for token in tokens]
    is_known = kept == ["on", "top"]
    if len(kept) > 2 and kept[0] in _SIMPLE and kept[-1] in {"of", "from"} and kept[-2] in _NOUNS:
        is_known = _BEFORE_NOUNS.issuperset(kept[1:-2])
    if not is_known and len(kept) == end - start <= _PLAIN:
        pairs = pairwise(kept)
        is_known = all(word in _SECOND.get(before, ()) for before, word in pairs) if kept[1:] else kept[0] in _SIMPLE
    return Preposition(" ".join(kept), tokens) if is_known else None


@lru_cache(maxsize=_MOST_TEXTS)
def last_preposition(words: tuple[str, ...]) -> tuple[int, Preposition | None]:
    """Return the longest preposition with which words end, and where it starts."""
    every = ((at, preposition(words, at, len(words))) for at in range(len(words)))
    return next(((at, own) for at, own in every if own), (len(words), None))


_PLAIN: Final = 3  # words of the longest preposition without a noun
_LONGEST: Final = 7  # words of a preposition with its articles
_ADJECTIVES: Final = word_set(
    "close next adjacent parallel opposite far north south east west northeast northwest southeast southwest"
)
_BEHIND: Final = (["to"], ["from"], ["of"])


def inner_nouns(words: Sequence[str]) -> set[int]:
    """Return the positions of nouns that are part of a preposition ("on the top of")."""
    if _NOUNS.isdisjoint(words) and _ADJECTIVES.isdisjoint(words):
        return set()
    out: set[int] = set()
    for at, word in enumerate(words):
        if word in _ADJECTIVES and words[at + 1 : at + 2] in _BEHIND:
            out.add(at)
        if word not in _NOUNS:
            continue
        for start in range(max(0, at - _LONGEST + 2), at):
            stated_preposition = preposition(words, start, min(at + 2, len(words))) or preposition(words, start, at + 1)
            if stated_preposition is not None and at in stated_preposition.tokens:
                out.update(token for token in stated_preposition.tokens if words[token] in _NOUNS | _BEFORE_NOUNS)
                break
    return out


_PARTICLES: Final = word_set("up down over back around")


def means_same(name: str, caption_name: str) -> bool:
    """Say whether a relation's name says what a caption's preposition does, one of many meanings ("in") always."""
    first, *others = caption_name.split()
    if name == caption_name or name.endswith(f" {caption_name}") or caption_name in GENERAL:
        return True
    if first in _PARTICLES and others and others[-1] in GENERAL:
        return True
    words = frozenset(name.split())
    same = SAME.get(caption_name)
    return words.issuperset((first, *others)) if same is None else not same.isdisjoint(words)


def is_preposition_word(word: str) -> bool:
    """Say whether prepositions start with a word."""
    return word in _FIRST
