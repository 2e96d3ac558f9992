"""What the rules must know of a language, as one table of words each: ``fr.toml`` and so on. English is one of them.

A table with its code as its name is all that a further language needs: the rules read dependencies, which Universal
Dependencies write alike in every language, and only ask this table which words are prepositions in one with an article,
quantities, agents, pronouns and denials.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError, expect
from spicegraph_parser.spice.parse import word_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

Words = frozenset[str]
Phrases = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Language:
    """A language's table; words are in lower case, and lemmas where that is said."""

    code: str  # ISO 639-1, as spaCy names languages
    wordnet: str  # ISO 639-3, as the Open Multilingual Wordnet names them
    name: str
    copulas: Words = frozenset()  # lemmas: "be"
    light: Words = frozenset()  # lemmas of verbs that say nothing where no rule uses them: "be", "have", "do"
    articles: Words = frozenset()  # lemmas: "a", "an", "the"
    indefinite: Words = frozenset()  # "a", "an"
    of: Words = frozenset()  # prepositions between a quantity and what there is so much of: "of"
    agents: Words = frozenset()  # prepositions in front of the one who acts: "by"
    quantity_nouns: Words = frozenset()  # with an indefinite article a quantity: "lot" of "a lot of trees"
    quantity_plurals: Words = frozenset()  # a quantity alone: "lots", "several"
    quantity_words: Words = frozenset()  # a quantity in front of a noun with an article: "some of the dogs"
    quantities: Words = frozenset()  # lemmas of nouns that graded matching reads as quantities: "pair", "group"
    singular_pronouns: Words = frozenset()  # lemmas: "he", "his"
    negations: Words = frozenset()  # lemmas: "no", "not", "never"
    without: Words = frozenset()  # prepositions that deny their noun: "without"
    alternatives: Words = frozenset()  # lemmas of coordinators that go on with a denial: "or", "nor"
    contractions: Words = frozenset()  # prepositions in one with an article: "du", "al", "zum"
    phrases: Phrases = frozenset()  # prepositions of several words: "à côté de"
    colours: Words = frozenset()  # attributes that SPICE's category of that name counts, beside WordNet's
    counts: Words = frozenset()
    sizes: Words = frozenset()
    senses: Phrases = frozenset()  # words with the English ones whose synsets they have, in place of WordNet's for them
    endings: tuple[tuple[str, str], ...] = ()  # of words that WordNet lacks: the ending, and what stands in its place

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return find_language, (self.code,)  # one table a process, also where parses go to others


# Codes by every name that a language is asked for with: ISO 639-1, and ISO 639-3 as wordnets have it.
LANGUAGES: Final[Mapping[str, str]] = {
    "en": "en", "eng": "en", "fr": "fr", "fra": "fr", "es": "es", "spa": "es", "de": "de", "deu": "de",
    "it": "it", "ita": "it", "pt": "pt", "por": "pt", "cs": "cs", "ces": "cs",
}  # fmt: skip


def find_language(code: str) -> Language:
    """Return a language by its code of two letters or of three.

    Raises:
        InputError: it has no table; the message names those that have one.

    Example:
        >>> find_language("fra").code, find_language("fr").wordnet
        ('fr', 'fra')
    """
    expect(code, str, "language", "a code such as fr")
    if code.lower() not in LANGUAGES:
        known = ", ".join(sorted(set(LANGUAGES.values())))
        raise InputError(f"language: {code!r} is not known; known are {known}")
    return _read(LANGUAGES[code.lower()])


@cache
def _read(code: str) -> Language:
    table = tomllib.loads(files(__name__).joinpath(f"{code}.toml").read_text(encoding="utf-8"))
    values: dict[str, object] = {}
    for field in fields(Language):
        text = table.pop(field.name, None)
        if field.name == "endings" and text:
            values[field.name] = tuple((ending.strip("-"), other) for ending, other in word_pairs(text))
        elif field.name in {"phrases", "senses"} and text:
            values[field.name] = frozenset(tuple(phrase.split()) for phrase in text.split(","))
        elif text:
            values[field.name] = text if field.type == "str" else frozenset(text.split())
    return Language(**values, **table)  # type: ignore[arg-type]


ENGLISH: Final = find_language("en")
