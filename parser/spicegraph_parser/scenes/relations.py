"""How the words of a caption state a relation: what share of its name, where, and by which verb of their own."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas, plural_lemma, verb_lemma
from spicegraph_parser.scenes.prepositions import (
    GENERAL,
    is_preposition_word,
    last_preposition,
    means_same,
    preposition,
)
from spicegraph_parser.scenes.words import FINITE, NAMES, WORDS
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from spicegraph_parser.caption_pipeline.layout import Floats

WHOLE: Final = 0.999  # A share that counts as all of a name's words, rounding aside.
HAVE: Final = "have"
OFTEN: Final = frozenset([HAVE, "wear"])
"""What people draw for verbs of many kinds."""

RECIPROCAL: Final = (["each", "other"], ["one", "another"])
_MOST_STEMS: Final = 100_000
_VERBS: Final = ("VBG", "VBN", "VBZ")
_NAMED: Final = re.compile(r"[XP.]*(?:B[XPBN.]*)?V[VXP.]*")
"""Kinds of the words between two things that name a relation: no other thing but in a list before the verb."""


@lru_cache(maxsize=_MOST_STEMS)
def stems(form: str) -> frozenset[str]:
    """Return the forms by which the name of a relation may have a word."""
    lower = form.lower()
    return frozenset((lower, verb_lemma(lower), plural_lemma(lower), *NAMES["irregular"].get(lower, "").split()))


@lru_cache(maxsize=_MOST_STEMS)
def verb_base(form: str, tag: str) -> str:
    """Return the base of a verb's form, as the names of relations have it."""
    lower = form.lower()
    return NAMES["irregular"].get(lower, bundled_lemmas().lemma(lower, tag)).partition(" ")[0]


def has_ing_form(base: str, known: Collection[str]) -> bool:
    """Say whether words have the "-ing" form of a verb."""
    return any(form in known for form in (f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1:]}ing"))


@lru_cache(maxsize=_MOST_STEMS)
def _kind(word: str, tag: str) -> str:
    """Return what a word is in the name of a relation: verb, auxiliary, preposition, noun, joint, "than" or none."""
    if word == "than":  # what is compared is an adjective
        return "T"
    if tag.startswith("VB"):
        return "X" if verb_base(word, tag) in WORDS["auxiliaries"] else "V"
    if tag in {"IN", "TO", "RP"} or word in WORDS["in_relations"]:
        return "P"
    return "N" if tag.startswith("NN") else "B" if tag in {"CC", ","} else "."


def own_name(words: Sequence[str], tags: Sequence[str], start: int, end: int, *, turned: bool = False) -> str | None:
    """Return the verb's base and prepositions between two things; ``turned``: the later is the subject ("by")."""
    forms = [word.lower() for word in words[start:end]]
    kinds = "".join(map(_kind, forms, tags[start:end]))
    if not _NAMED.fullmatch(kinds):
        return None
    verb = kinds.rindex("V")
    base = verb_base(forms[verb], tags[start + verb])
    behind = max([verb, *(at + 2 for at in range(len(forms)) if forms[at : at + 2] in RECIPROCAL)])
    others = [form for form, kind in zip(forms[behind:], kinds[behind:], strict=True) if kind == "P"]
    if turned:
        return base if others == ["by"] else None
    return " ".join([base, *others])


def is_misquoted(name: str, words: Sequence[str]) -> bool:
    """Say whether a relation's name has its first word from a sentence, and others not."""
    first, *others = name.split()
    if not others:
        return False
    said = frozenset().union(*map(stems, words))
    return first in said and not said.issuperset(others)


def in_two_clauses(words: Sequence[str], tags: Sequence[str], start: int, end: int) -> bool:
    """Say whether a clause ends between two things: a verb, and behind it a word that joins clauses."""
    between = itertools.dropwhile(lambda at: not tags[at].startswith("VB"), range(start, end))
    behind = itertools.takewhile(lambda tag: tag not in {"WDT", "WP", "WP$", "WRB"}, tags[end:])
    joints = WORDS["joints"] if FINITE.isdisjoint(behind) else WORDS["joints"] | WORDS["prepositions_or_joints"]
    tagged_words = [(words[at].lower(), tags[at]) for at in between]
    return any(word in joints or (word, tag) == ("that", "IN") for word, tag in tagged_words)


class Stated:
    """Says how far words state each relation: which share of the words of its name they have."""

    def __init__(self, relations: Sequence[str]) -> None:
        words = sorted({word for name in relations for word in name.split()})
        self._places = {word: row for row, word in enumerate(words)}
        self._parts = np.zeros((len(words), len(relations)), dtype=np.float32)
        for number, name in enumerate(relations):
            for word in name.split():
                self._parts[self._places[word], number] = 1.0
        self._sizes = self._parts.sum(axis=0)

    def __call__(self, groups: Sequence[Sequence[str]]) -> tuple[Floats, list[int]]:
        """Return (different groups, relations) the share of a name's words that a group has, and each group's row."""
        rows: dict[frozenset[str], int] = {}
        known = self._places.keys()
        row_of = [rows.setdefault(frozenset(known & set().union(*map(stems, group))), len(rows)) for group in groups]
        present = np.zeros((len(rows), len(known)), dtype=np.float32)
        for row, words in enumerate(rows):
            present[row, [*map(self._places.__getitem__, words)]] = 1.0
        shares: Floats = present @ self._parts
        shares /= self._sizes
        return shares, row_of


def relation_tokens(
    name: str, subject: Sequence[int], target: Sequence[int], forms: Sequence[frozenset[str]]
) -> tuple[int, ...]:
    """Return the words that state a relation: for each word of its name the one nearest to its object."""
    others = {*subject, *target}
    stating = [[at for at, of in enumerate(forms) if word in of and at not in others] for word in name.split()]
    return tuple(sorted({min(own, key=lambda token: abs(token - target[0])) for own in stating if own}))


@lru_cache(maxsize=_MOST_STEMS)
def forms_of(form: str, tag: str) -> frozenset[str]:
    """Return the forms by which the name of a relation may have a word with its tag."""
    return stems(form) | {verb_base(form, tag)} if tag.startswith("VB") else stems(form)


def preposition_between(
    words: Sequence[str], tags: Sequence[str], inner: Sequence[int], name: str | None = None
) -> str | None:
    """Return the preposition between two phrases with its verb; nothing where it means the same as ``name``."""
    start, stated = last_preposition(tuple([words[at] for at in inner]))
    if stated is None:
        return None
    before = [(words[at], tags[at]) for at in inner[:start] if tags[at] != "RB" and words[at] not in WORDS["copulas"]]
    if name is not None and _is_said(name, stated.name, before):
        return None
    if not before:
        return stated.name
    verb, tag = before[-1]
    return f"{verb_base(verb, tag)} {stated.name}" if tag.startswith("VB") else None


def _is_said(name: str, stated: str, before: Sequence[tuple[str, str]]) -> bool:
    """Say whether a relation's name means what a preposition does, and no other verb than the words before it."""
    first, space, _ = name.partition(" ")
    if stated in GENERAL or not (space and before) or is_preposition_word(first):
        return means_same(name, stated)
    said = {form for word, _ in before for form in (*stems(word), *(verb_base(word, tag) for tag in _VERBS))}
    return first in said and means_same(name, stated)


def adds_verb(stated: str | None, name: str) -> bool:
    """Say whether what a caption states is a relation's name, a preposition, with a verb before it."""
    verb, _, preposition_name = (stated or "").partition(" ")
    if preposition_name != name or verb in WORDS["plain_verbs"]:
        return False
    is_verb = not is_preposition_word(verb) and bool(load_wordnet().senses(verb, "v"))
    return is_verb and is_preposition_word(name.partition(" ")[0])


def other_verb(words: Sequence[str], tags: Sequence[str], inner: Sequence[int], name: str) -> str | None:
    """Return the one verb between two things if a relation's name has no word of it ("digging": have)."""
    verbs = [at for at in inner if tags[at] != "RB"]
    if len(verbs) != 1 or tags[verbs[0]] not in _VERBS:
        return None
    verb = verb_base(words[verbs[0]], tags[verbs[0]])
    return None if verb in WORDS["plain_verbs"] or not stems(words[verbs[0]]).isdisjoint(name.split()) else verb


def stated_between(
    words: Sequence[str], before: int, phrase: tuple[int, int], left_out: Collection[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield the relation that the words between a noun and the next phrase (its start, its noun) state, if any."""
    start, head = phrase
    inner = [at for at in range(before + 1, start) if at not in left_out]
    texts = [words[at] for at in inner]
    if texts == ["of"]:
        yield (before, head, "of") if words[before] in WORDS["depictions"] else (head, before, HAVE)
    elif (stated := preposition(texts, 0, len(texts))) and stated.name != "without":
        yield before, head, stated.name
