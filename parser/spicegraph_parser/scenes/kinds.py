"""Of which kind a text is, by its nouns: a caption of a photograph, one of something else, or a description.

The network learned captions of photographs from people who share conventions, all else from others: it reads each kind
by its own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.scenes.relations import stems
from spicegraph_parser.scenes.visible import DEPICTIONS
from spicegraph_parser.spice.parse import tables, word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from spicegraph_parser.scenes.network import Names

LONGEST_CAPTION: Final = 40  # words up to which several sentences are captions: descriptions of pictures have more
_MOST_WORDS: Final = 100_000
_FOREIGN: Final = 0.2  # least share of nouns that photographs lack; none of DiscoSG's first 100 descriptions has it
_TOLD: Final = word_set(tables(__package__)["told"])
"""Nouns that captions of photographs lack, and 15 or more of 1,500 descriptions of photographs have."""


class Kind(IntEnum):
    """Kinds of texts, each with the number of its conventions in the network's weights."""

    PHOTOGRAPH = 0
    OTHER = 1
    DESCRIPTION = 2


def kind_of(forms: Sequence[str], lengths: Sequence[int], names: Names) -> Kind:
    """Return the kind of a text of sentences.

    It is of another kind where a fifth of its words are nouns that captions of photographs lack, and else a description
    if it has several sentences and more than ``LONGEST_CAPTION`` words.
    """
    words = [form.lower() for form in forms if form[0].isalpha()]
    foreign = sum(word not in names.known and word not in _TOLD and is_noun(word) for word in words)
    if foreign and foreign >= _FOREIGN * len(words):
        return Kind.OTHER
    return Kind.DESCRIPTION if len(lengths) > 1 and len(forms) > LONGEST_CAPTION else Kind.PHOTOGRAPH


@lru_cache(maxsize=_MOST_WORDS)
def is_noun(word: str) -> bool:
    """Say whether WordNet has a noun, which typing errors are not."""
    wordnet = load_wordnet()
    last = word.rpartition("-")[2]
    forms = (word, last, plural_lemma(last))
    return word in DEPICTIONS or any(wordnet.senses(form, "n") for form in forms)


@lru_cache(maxsize=_MOST_WORDS)
def is_material(word: str) -> bool:
    """Say whether a word names what things are made of, which people draw as an attribute."""
    wordnet = load_wordnet()
    return wordnet.is_kind_of(word, wordnet.find("matter.n.03"))


@lru_cache(maxsize=_MOST_WORDS)
def verb_tag(before: str, word: str) -> str | None:
    """Return the tag of a word that is taken for a noun behind a noun, if WordNet has the verb and no name of both."""
    wordnet = load_wordnet()
    base = verb_lemma(word)
    if base == word or not wordnet.senses(base, "v") or wordnet.senses(f"{before} {word}", "n"):
        return None
    return "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else None


def may_be_verb(word: str, known: Collection[str]) -> bool:
    """Say whether a word that is taken for a noun may be a verb ("wind blows"): the network knows its "-ing" form."""
    return word.endswith("s") and any(
        form in known
        for base in stems(word)
        for form in (f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1]}ing")
        if len(base) > 1 and not word.endswith("ss")
    )
