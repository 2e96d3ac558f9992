"""All matches that an alignment of a candidate with a reference may choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer.metrics.meteor.phrases import BACK, Occurrence, PhraseBook, PhraseFinder
from spicegraph_scorer.metrics.meteor.words import Module, Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.metrics.meteor.aligner import Possible

__all__ = ["Probe", "Sentence", "read_sentences"]

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

    def possible(self, reference: Sentence) -> list[list[Possible]]:
        """Return, for each word of the reference, the matches that start there, in METEOR's order."""
        rows: list[list[Possible]] = []
        for start, word in enumerate(reference.words):
            near = self._near.get(word)
            if near is None:
                near = self._near[word] = self._matching(word)
            rows.append([(start, 1, place, 1, module) for place, module in near])
        if reference.hashes == self.candidate.hashes:  # METEOR takes a short way when both sides are equal
            return [[match for match in row if match[4] is Module.EXACT] for row in rows]
        self._add_paraphrases(reference, rows)
        return rows

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
