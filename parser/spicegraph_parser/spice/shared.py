"""Concepts that two languages share: by synsets, relations by those of their verb, prepositions by a table.

SPICE compares a relation as a whole ("ride on"), which no wordnet has. Across languages its verb counts alone where it
has one, and a preposition without a verb is what the language's table says: "sur" is "on".
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.languages import ENGLISH, find_language
from spicegraph_parser.spice.index import Concept
from spicegraph_parser.spice.lexicon import load_lexicon

if TYPE_CHECKING:
    from spicegraph_parser.spice.index import Synonyms

_MEMORY: Final = 200_000  # words whose concept is kept


class SharedLexicon:
    """The words of a language, as another matches them: :class:`spicegraph_parser.spice.index.Synonyms`."""

    __slots__ = ("_code", "_numbers", "_words", "concept", "exact_concept", "signature")

    def __init__(self, code: str) -> None:
        language = find_language(code)
        self._code = language.code
        self._words: Synonyms = load_lexicon(code)
        heads = sorted({head for _, *heads in ENGLISH.prepositions for head in heads})
        numbers = {head: -1 - place for place, head in enumerate(heads)}  # which no synset has
        self._numbers = {
            word.replace("_", " "): frozenset(numbers[head] for head in heads) for word, *heads in language.prepositions
        }
        self.signature = f"{self._words.signature}+relations"
        self.concept = lru_cache(maxsize=_MEMORY)(lambda phrase: Concept.of((phrase,), self.synsets(phrase)))
        self.exact_concept = self._words.exact_concept

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_shared, (self._code,)

    def synsets(self, phrase: str) -> frozenset[int]:
        """Return the synset numbers of a word, a phrase, or a relation's verb; negative ones of a preposition."""
        if phrase in self._numbers:
            return self._numbers[phrase]
        words = phrase.split()
        ends = (end for end in range(1, len(words)) if " ".join(words[end:]) in self._numbers)
        verb = " ".join(words[: next(ends, 0)])
        return self._words.synsets(phrase) | (self._words.synsets(verb) if verb else frozenset())


@cache
def load_shared(code: str) -> SharedLexicon:
    """Return the lexicon of a language for matches with other languages, made once per process."""
    return SharedLexicon(code)
