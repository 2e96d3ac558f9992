"""How the words of a caption state a relation: by a preposition of one word or several, or by a verb of their own.

The closed list of relations lacks most of them. Where it has none that means the same, the caption's own wins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas, plural_lemma, verb_lemma
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scenes.words import MOST, NAMES, WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from spicegraph_scenes.network import Labels

_SAME: Final = {name.replace("-", " "): frozenset(words.split()) for name, words in NAMES["same"].items()}
"""What means the same as a preposition; those that are not here are named by themselves alone."""

GENERAL: Final = WORDS["general_prepositions"]
"""Prepositions of many meanings, of which people draw one ("in a hat": wear): there the network decides."""

_SECOND: Final = {first: frozenset(seconds.split()) for first, seconds in NAMES["second"].items()}
"""Words that may stand behind a first word of a preposition, and belong to it."""
_FIRST: Final = WORDS["prepositions"] | _SECOND.keys()
_INSIDE: Final = WORDS["adjectives_of_prepositions"] | WORDS["places"]
_PLAIN: Final = 3  # words of the longest preposition without a noun
_LONGEST: Final = 7  # words of a preposition with its articles

HAVE: Final = "have"
OFTEN: Final = frozenset([HAVE, "wear"])
"""What people draw for verbs of many kinds."""

RECIPROCAL: Final = (["each", "other"], ["one", "another"])
_VERBS: Final = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_NAMED: Final = re.compile(r"[XP.]*(?:B[XPBN.]*)?V[VXP.]*")
"""Kinds of the words between two things that name a relation: no other thing but in a list before the verb."""
RELATION_MARGIN: Final = 2.0
"""How far the scores of relations but "have" are lowered in descriptions; chosen as the network's margin of objects."""
HAVE_NAMES: Final = frozenset({"have", "with"})
"""Names of relations of a whole to its part: captions have "with" where people draw "have"."""


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


@lru_cache(maxsize=MOST)
def last_preposition(words: tuple[str, ...]) -> tuple[int, Preposition | None]:
    """Return the longest preposition with which words end, and where it starts."""
    every = ((at, preposition(words, at, len(words))) for at in range(len(words)))
    return next(((at, own) for at, own in every if own), (len(words), None))


def inner_nouns(words: Sequence[str]) -> set[int]:
    """Return the positions of nouns that are part of a preposition ("on the top of")."""
    if _INSIDE.isdisjoint(words):
        return set()
    adjectives = {
        at
        for at, word in enumerate(words)
        if word in WORDS["adjectives_of_prepositions"] and words[at + 1 : at + 2] in (["to"], ["from"], ["of"])
    }
    return adjectives.union(*(_around(words, at) for at, word in enumerate(words) if word in WORDS["places"]))


def _around(words: Sequence[str], at: int) -> set[int]:
    """Return the nouns of the preposition around a noun, if there is one."""
    ends = [end for end in (at + 2, at + 1) if end <= len(words)]
    every = (preposition(words, start, end) for start in range(max(0, at - _LONGEST + 2), at) for end in ends)
    own = next((stated.tokens for stated in every if stated and at in stated.tokens), ())
    return {token for token in own if words[token] in WORDS["places"] | WORDS["before_places"]}


@lru_cache(maxsize=MOST)
def means_same(name: str, caption_name: str) -> bool:
    """Say whether a relation's name matches a caption's preposition; general ones ("in") match any name."""
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


@lru_cache(maxsize=MOST)
def stems(form: str) -> frozenset[str]:
    """Return the forms by which the name of a relation may have a word."""
    lower = form.lower()
    return frozenset((lower, verb_lemma(lower), plural_lemma(lower), *NAMES["irregular"].get(lower, "").split()))


@lru_cache(maxsize=MOST)
def verb_base(form: str, tag: str) -> str:
    """Return the base of a verb's form, as the names of relations have it."""
    lower = form.lower()
    return NAMES["irregular"].get(lower, bundled_lemmas().lemma(lower, tag)).partition(" ")[0]


@lru_cache(maxsize=MOST)
def _kind(word: str, tag: str) -> str:
    """Return a word's kind in relation names: verb, auxiliary, preposition, noun, joint, "than" or none."""
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


def relation_name(listed: str, words: Sequence[str], labels: Labels, ends: tuple[int, int], *, is_sure: bool) -> str:
    """Return the likeliest name, or where it is not sure the caption's words."""
    if is_sure:
        return listed
    first, later = sorted(ends)
    words_of_later = [word for head, word in (*labels.parts, *labels.attributes) if head == later]
    end = min([later, *(word for word in words_of_later if word > first)])
    caption_name = own_name(words, labels.tags, first + 1, end, turned=ends[1] < ends[0])
    return caption_name or listed


def margin(name: str) -> float:
    """Return how far a relation's score is lowered in descriptions: that of "have" not at all."""
    return 0.0 if name in HAVE_NAMES else RELATION_MARGIN


def relation_tokens(
    name: str, subject: Sequence[int], target: Sequence[int], forms: Sequence[frozenset[str]]
) -> tuple[int, ...]:
    """Return the words that state a relation: for each word of its name the one nearest to its object."""
    others = {*subject, *target}
    stating = [[at for at, of in enumerate(forms) if word in of and at not in others] for word in name.split()]
    return tuple(sorted({min(own, key=lambda token: abs(token - target[0])) for own in stating if own}))


@lru_cache(maxsize=MOST)
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
    """Say whether a relation's name matches a preposition, and its verb the words before it."""
    first, space, _ = name.partition(" ")
    if stated in GENERAL or not (space and before) or is_preposition_word(first):
        return means_same(name, stated)
    said = {form for word, _ in before for form in (*stems(word), *(verb_base(word, tag) for tag in _VERBS))}
    return first in said and means_same(name, stated)


@lru_cache(maxsize=MOST)
def adds_verb(stated: str | None, name: str) -> bool:
    """Say whether a caption states a relation's preposition with a verb of its own ("wave at": smile at)."""
    verb, _, said = (stated or "").partition(" ")
    first, _, rest = name.partition(" ")
    if said != (name if is_preposition_word(first) else rest) or verb in {first, *WORDS["plain_verbs"]}:
        return False
    return not is_preposition_word(verb) and bool(load_wordnet().senses(verb, "v"))


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
