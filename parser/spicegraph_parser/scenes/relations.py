"""How the words of a caption state a relation: what share of its name, where, and by which verb of their own."""

from __future__ import annotations

import itertools
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
from spicegraph_parser.scenes.visible import DEPICTIONS
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from spicegraph_parser.caption_pipeline.layout import Floats

WHOLE: Final = 0.999  # A share that counts as all of a name's words, rounding aside.

_MOST_STEMS: Final = 100_000
_IRREGULAR_FORMS: Final = """
    worn=wear wore=wear held=hold lying=lay/lie lies=lay/lie laying=lay lain=lay laid=lay sat=sit stood=stand hung=hang
    has=have had=have ridden=ride eaten=eat made=make shown=show taken=take driven=drive tied=tie tying=tie stuck=stick
    built=build seen=see grown=grow thrown=throw flown=fly drawn=draw written=write broken=break swung=swing
"""
_IRREGULAR: Final = {form: bases.split("/") for form, _, bases in (p.partition("=") for p in _IRREGULAR_FORMS.split())}
"""Bases of irregular verb forms; people write "lay on" for what lies."""
_AUXILIARIES: Final = frozenset({"be", "have", "see"})
_PREPOSITIONS: Final = frozenset({"IN", "TO", "RP"})
_BREAKS: Final = frozenset({"CC", ","})
_JOINTS: Final = word_set("as while when whilst because if although though then where whether")
"""Words that join clauses."""
_PREPOSITIONS_OR_JOINTS: Final = frozenset({"after", "before", "since", "until"})
"""Words that join clauses where a clause follows: not in "run after a cat"."""
FINITE: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_THAT: Final = ("that", "IN")
_THAN: Final = "than"
_RELATIVES: Final = frozenset({"WDT", "WP", "WP$", "WRB"})
_PLACES: Final = word_set("top side front back middle edge end bottom left right close next")
"""Words inside of relations like "on top of"."""


@lru_cache(maxsize=_MOST_STEMS)
def stems(form: str) -> frozenset[str]:
    """Return the forms by which the name of a relation may have a word."""
    lower = form.lower()
    return frozenset((lower, verb_lemma(lower), plural_lemma(lower), *_IRREGULAR.get(lower, ())))


@lru_cache(maxsize=_MOST_STEMS)
def verb_base(form: str, tag: str) -> str:
    """Return the base of a verb's form, as the names of relations have it."""
    lower = form.lower()
    return _IRREGULAR[lower][0] if lower in _IRREGULAR else bundled_lemmas().lemma(lower, tag)


def own_name(words: Sequence[str], tags: Sequence[str], start: int, end: int, *, turned: bool = False) -> str | None:
    """Return the verb's base and prepositions between two things; ``turned``: the later is the subject ("by")."""
    name: list[str] = []
    is_list = False
    for form, tag in zip(words[start:end], tags[start:end], strict=True):
        lower = form.lower()
        if lower == _THAN:  # what is compared is an adjective
            return None
        if tag.startswith("VB"):
            base = verb_base(form, tag)
            name = name if base in _AUXILIARIES else [base]
        elif tag in _PREPOSITIONS or lower in _PLACES:
            name += [lower] if name else []
        elif name and (tag.startswith("NN") or tag in _BREAKS):
            return None
        elif tag in _BREAKS:
            is_list = True
        elif tag.startswith("NN") and not is_list:
            return None
    if turned:
        return name[0] if name[1:] == ["by"] else None
    return " ".join(name) or None


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
    behind = itertools.takewhile(lambda tag: tag not in _RELATIVES, tags[end:])
    joints = _JOINTS if FINITE.isdisjoint(behind) else _JOINTS | _PREPOSITIONS_OR_JOINTS
    tagged_words = [(words[at].lower(), tags[at]) for at in between]
    return any(word in joints or (word, tag) == _THAT for word, tag in tagged_words)


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
    nearest = set()
    for word in name.split():
        stating = [token for token, of in enumerate(forms) if word in of and token not in others]
        if stating:
            nearest.add(min(stating, key=lambda token: abs(token - target[0])))
    return tuple(sorted(nearest))


@lru_cache(maxsize=_MOST_STEMS)
def forms_of(form: str, tag: str) -> frozenset[str]:
    """Return the forms by which the name of a relation may have a word with its tag."""
    return stems(form) | {verb_base(form, tag)} if tag.startswith("VB") else stems(form)


_COVERED: Final = {"covered": "cover", "topped": "top", "lined": "line", "adorned": "adorn", "decorated": "decorate"}
_BY_WITH_IN: Final = word_set("by with in")
_HAVE: Final = "have"
OFTEN: Final = frozenset([_HAVE, "wear"])
"""What people draw for verbs of many kinds."""


def preposition_between(
    words: Sequence[str], tags: Sequence[str], inner: Sequence[int], name: str | None = None
) -> str | None:
    """Return the preposition between two phrases with its verb; nothing where it means the same as ``name``."""
    start, stated_preposition = last_preposition(tuple([words[at] for at in inner]))
    if stated_preposition is None:
        return None
    before = [at for at in inner[:start] if tags[at] != "RB" and words[at] not in _BE]
    if name is not None and means_same(name, stated_preposition.name):
        first, space, _ = name.partition(" ")
        if stated_preposition.name in GENERAL or not (space and before) or is_preposition_word(first):
            return None
        if any(first in stems(words[at]) or first in [verb_base(words[at], tag) for tag in _VERBS] for at in before):
            return None
    if not before:
        return stated_preposition.name
    verb = before[-1]
    if not tags[verb].startswith("VB") and not words[verb].endswith(_ING):
        return None
    return f"{verb_base(words[verb], tags[verb] if tags[verb].startswith('VB') else 'VBG')} {stated_preposition.name}"


_PLAIN_VERBS: Final = word_set("see say use have be wear show")


def adds_verb(stated: str | None, name: str) -> bool:
    """Say whether what a caption states is a relation's name, a preposition, with a verb before it."""
    verb, _, preposition_name = (stated or "").partition(" ")
    if preposition_name != name or verb in _PLAIN_VERBS:
        return False
    is_verb = not is_preposition_word(verb) and bool(load_wordnet().senses(verb, "v"))
    return is_verb and is_preposition_word(name.partition(" ")[0])


def other_verb(words: Sequence[str], tags: Sequence[str], inner: Sequence[int], name: str) -> str | None:
    """Return the one verb between two things if a relation's name has no word of it ("digging": have)."""
    verbs = [at for at in inner if tags[at] != "RB"]
    if len(verbs) != 1 or tags[verbs[0]] not in _VERBS:
        return None
    verb = verb_base(words[verbs[0]], tags[verbs[0]])
    return None if verb in _PLAIN_VERBS or not stems(words[verbs[0]]).isdisjoint(name.split()) else verb


_ING: Final = "ing"


_VERBS: Final = ("VBG", "VBN", "VBZ")


def stated_between(
    words: Sequence[str], tags: Sequence[str], before: int, phrase: tuple[int, int], left_out: Collection[int]
) -> tuple[int, int, str] | None:
    """Return the relation that the words between a noun and the next phrase (its start, its noun) state, if any."""
    start, head = phrase
    inner = [at for at in range(before + 1, start) if at not in left_out]
    texts = [words[at] for at in inner]
    if texts == ["of"]:
        is_picture = words[before] in DEPICTIONS
        return (before, head, "of") if is_picture else (head, before, _HAVE)
    is_copula = bool(texts) and texts[0] in _BE
    stated_preposition = preposition(texts, int(is_copula), len(texts))
    if stated_preposition is not None:
        return None if stated_preposition.name == _WITHOUT else (before, head, stated_preposition.name)
    verb = next((at for at in inner if tags[at].startswith("VB") and words[at] not in _BE), None)
    if verb is None or not (tags[inner[0]].startswith("VB") or tags[inner[0]] in _BEFORE_VERBS):
        return None
    if words[verb] in _COVERED and texts[-1] in _BY_WITH_IN:
        return head, before, _COVERED[words[verb]]
    is_passive = tags[verb] == "VBN" and texts[-1] == "by" and inner[-1] == verb + 1
    name = _HAVE if texts[-1] == "has" else own_name(words, tags, inner[0], start, turned=is_passive)
    if not name:
        return None
    return (head, before, name) if is_passive else (before, head, name)


_BE: Final = word_set("is are was were be being been 's")
_BEFORE_VERBS: Final = frozenset({"RB", "WDT"})
_WITHOUT: Final = "without"
