"""What an alignment may choose from: words that match exactly, by stem or as synonyms, and paraphrases."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError
from spicegraph_parser.lexicon import java_hash
from spicegraph_scorer.metrics.meteor.aligner import Module
from spicegraph_scorer.metrics.meteor.data import INSTALL
from spicegraph_scorer.metrics.meteor.paraphrases import BACK, Occurrence, PhraseBook, PhraseFinder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_scorer.metrics.meteor.aligner import Possible
    from spicegraph_scorer.metrics.meteor.data import MeteorData


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
        raise DataError(
            f"snowballstemmer {installed} has other stems than METEOR: pip install 'snowballstemmer>=2.2,<3'"
        )
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
        own_hash = java_hash(word)  # METEOR compares words by it alone
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


_AHEAD = (1 << BACK) - 1

_Spot = tuple[int, int]
"""A phrase of the candidate: first word and number of words."""

_Reverse = tuple[int, int, int]
"""A phrase of the candidate and the place of the reference's phrase among its paraphrases."""

_NO_PARAPHRASES: tuple[list[_Spot], list[_Reverse]] = ([], [])


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A text as the matcher sees it: the numbers and the hashes of its words, and the phrases in it."""

    words: tuple[int, ...]
    hashes: tuple[int, ...]
    phrases: Sequence[Occurrence]


def read_sentences(
    texts: Sequence[Sequence[str]], words: Words, finder: PhraseFinder
) -> tuple[list[Sentence], PhraseBook]:
    """Return tokenized texts as sentences, and the book that their phrases' numbers refer to."""
    numbers = [words.numbers(tokens) for tokens in texts]
    book = finder.find(numbers, words.texts)
    sentences = [
        Sentence(row, tuple([words.hashes[word] for word in row]), phrases)
        for row, phrases in zip(numbers, book.occurrences, strict=True)
    ]
    return sentences, book


class Probe:
    """A candidate, ready to be held against its references.

    It remembers what it found for a word or a phrase, since references of one image share most of theirs.
    """

    def __init__(self, candidate: Sentence, words: Words, book: PhraseBook) -> None:
        self.candidate = candidate
        self._words = words
        self._links = book.links
        self._places: dict[int, list[int]] = {}
        for place, word in enumerate(candidate.words):
            self._places.setdefault(word, []).append(place)
        self._spots: dict[int, list[_Spot]] = {}
        for start, length, phrase in candidate.phrases:
            self._spots.setdefault(phrase, []).append((start, length))
        self._word_set = frozenset(self._places)
        self._phrase_set = frozenset(self._spots)
        self._near: dict[int, list[tuple[int, Module]]] = {}
        self._paraphrases: dict[int, tuple[list[_Spot], list[_Reverse]]] = {}

    def count(self, reference: Sentence) -> int:
        """Return how many matches of single words there are with a reference."""
        return sum(len(self._near_words(word)) for word in reference.words)

    def possible(self, reference: Sentence) -> list[list[Possible]]:
        """Return, for each word of the reference, the matches that start there, in METEOR's order."""
        rows: list[list[Possible]] = []
        for start, word in enumerate(reference.words):
            rows.append([(start, 1, place, 1, module) for place, module in self._near_words(word)])
        if reference.hashes == self.candidate.hashes:  # METEOR takes a short way when both sides are equal
            return [[match for match in row if match[4] is Module.EXACT] for row in rows]
        self._add_paraphrases(reference, rows)
        return rows

    def _near_words(self, word: int) -> list[tuple[int, Module]]:
        near = self._near.get(word)
        if near is None:
            near = self._near[word] = self._matching(word)
        return near

    def _matching(self, word: int) -> list[tuple[int, Module]]:
        """Return the places where the candidate matches a reference word: by module, then in order."""
        matches = self._words.matches(word)
        hits = matches.keys() & self._word_set
        if not hits:
            return []
        found = [(module, place) for hit in hits for module in matches[hit] for place in self._places[hit]]
        return [(place, module) for module, place in sorted(found)]

    def _add_paraphrases(self, reference: Sentence, rows: list[list[Possible]]) -> None:
        """Add the paraphrases: first those listed for the reference's phrases."""
        reverse: list[tuple[_Reverse, _Spot]] = []
        for start, length, phrase in reference.phrases:
            found = self._paraphrases.get(phrase)
            if found is None:
                found = self._paraphrases[phrase] = self._linked(self._links[phrase])
            ahead, back = found
            if ahead:
                rows[start] += [(start, length, spot, size, Module.PARAPHRASE) for spot, size in ahead]
            if back:
                reverse += [(way, (start, length)) for way in back]
        if reverse:
            reverse.sort()
            for (spot, size, _), (start, length) in reverse:
                rows[start].append((start, length, spot, size, Module.PARAPHRASE))

    def _linked(self, links: Mapping[int, int]) -> tuple[list[_Spot], list[_Reverse]]:
        """Return the candidate's phrases that are paraphrases of a phrase of the reference.

        First those in its list, in the list's order, then those that have it in theirs, with its place there.
        """
        hits = links.keys() & self._phrase_set
        if not hits:
            return _NO_PARAPHRASES
        listed = sorted((links[hit] & _AHEAD, hit) for hit in hits)
        ahead = [spot for place, hit in listed if place for spot in self._spots[hit]]
        back = [(*spot, links[hit] >> BACK) for hit in hits if links[hit] >> BACK for spot in self._spots[hit]]
        return ahead, back
