"""The words of the texts at hand, and which of them match: exactly, by stem, as synonyms."""

from __future__ import annotations

from enum import IntEnum
from importlib.metadata import version
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError
from spicegraph_scorer.metrics.meteor.hashing import java_hash
from spicegraph_scorer.metrics.meteor.sources import INSTALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spicegraph_scorer.metrics.meteor.data import MeteorData

__all__ = ["Module", "Words", "english_stemmer"]


class Module(IntEnum):
    """What makes two words or phrases match, in the order in which METEOR tries."""

    EXACT = 0
    STEM = 1
    SYNONYM = 2
    PARAPHRASE = 3


def english_stemmer() -> Callable[[str], str]:
    """Return the Snowball stemmer for English in the version that METEOR has ("Porter2", about 2010).

    Raises:
        DataError: snowballstemmer is not installed, or in a version whose stems differ.
    """
    try:
        # Not snowballstemmer.stemmer("english"): that may pick a compiled stemmer of another version.
        from snowballstemmer.english_stemmer import (  # type: ignore[import-untyped] # noqa: PLC0415 (an extra)
            EnglishStemmer,
        )

        installed = version("snowballstemmer")
    except ImportError as error:
        raise DataError(INSTALL) from error
    if not installed.startswith("2."):
        msg = f"snowballstemmer {installed} has other stems than METEOR: pip install 'snowballstemmer>=2.2,<3'"
        raise DataError(msg)
    stem: Callable[[str], str] = EnglishStemmer().stemWord
    return stem


class Words:
    """Numbers words as they come, and keeps for each which of the others match it.

    Words are compared by the 32-bit hash that METEOR uses, so that ``an`` and ``c0`` are one exact match.
    What is here grows with the number of different words, nothing else.
    """

    def __init__(self, data: MeteorData) -> None:
        self._lexicon = data.lexicon
        self._function_words = data.sources.function_words
        self._stem = english_stemmer()
        self._numbers: dict[str, int] = {}
        self._same_hash: dict[int, list[int]] = {}
        self._same_stem: dict[int, list[int]] = {}
        self._same_synset: dict[int, list[int]] = {}
        self.texts: list[str] = []
        """The words in the order of their numbers."""
        self.hashes: list[int] = []
        """Their 32-bit hashes."""
        self.is_function: list[bool] = []
        """Whether each is a function word."""
        self._matches: list[dict[int, tuple[Module, ...]]] = []

    def numbers(self, tokens: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of words, new words included."""
        known = self._numbers
        return tuple([known[word] if word in known else self._add(word) for word in tokens])

    def matches(self, number: int) -> Mapping[int, tuple[Module, ...]]:
        """Return the words that match a word (itself among them), and by which modules."""
        return self._matches[number]

    def _add(self, word: str) -> int:
        number = self._numbers[word] = len(self.texts)
        own_hash = java_hash(word)
        self.texts.append(word)
        self.hashes.append(own_hash)
        self.is_function.append(word.lower() in self._function_words)
        self._matches.append({})
        for other in self._join(self._same_hash, [own_hash], number):
            self._note(number, other, Module.EXACT)
        different = [
            (Module.STEM, self._join(self._same_stem, [java_hash(self._stem(word))], number)),
            (Module.SYNONYM, self._join(self._same_synset, self._lexicon.synsets(word), number)),
        ]
        for module, others in different:
            for other in others:
                if self.hashes[other] != own_hash:
                    self._note(number, other, module)
        return number

    @staticmethod
    def _join(groups: dict[int, list[int]], keys: Iterable[int], number: int) -> set[int]:
        """Add a word to the groups of ``keys``, and return all their members."""
        members = set()
        for key in keys:
            group = groups.setdefault(key, [])
            group.append(number)
            members.update(group)
        return members

    def _note(self, one: int, other: int, module: Module) -> None:
        self._matches[one][other] = (*self._matches[one].get(other, ()), module)
        if one != other:
            self._matches[other][one] = self._matches[one][other]
