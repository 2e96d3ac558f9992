"""Texts to METEOR statistics: each candidate against its references, many items at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import TYPE_CHECKING

from spicegraph_scorer.metrics.meteor.aligner import Match, align
from spicegraph_scorer.metrics.meteor.matches import Probe, Sentence, read_sentences
from spicegraph_scorer.metrics.meteor.phrases import PhraseFinder
from spicegraph_scorer.metrics.meteor.statistics import Counts, counts_line, score
from spicegraph_scorer.metrics.meteor.text import COCO_TEXT, TextOptions, tokenize
from spicegraph_scorer.metrics.meteor.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_scorer.metrics.meteor.data import MeteorData

__all__ = ["NO_ALIGNMENT", "Alignment", "MeteorStatistic", "align_texts", "score_texts", "scored_texts"]

_BATCH = 1000  # items whose phrases are looked up together: bounds the memory, costs nothing


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which words of a candidate were found in a reference, and by which module.

    The texts are as METEOR splits them. Matches are in the order of the reference; no word is in two of them.
    """

    candidate: tuple[str, ...]
    reference: tuple[str, ...]
    matches: tuple[Match, ...]

    def candidate_words(self, match: Match) -> tuple[str, ...]:
        """Return the candidate's words of a match."""
        return self.candidate[match.candidate_start : match.candidate_start + match.candidate_length]

    def reference_words(self, match: Match) -> tuple[str, ...]:
        """Return the reference's words of a match."""
        return self.reference[match.reference_start : match.reference_start + match.reference_length]


NO_ALIGNMENT = Alignment((), (), ())
"""What stands for the alignment of a statistic that is kept without evidence."""


@dataclass(frozen=True, slots=True)
class MeteorStatistic:
    """What METEOR keeps of an item: all of it is about the best reference, the first of several equal ones.

    ``counts``: the 23 numbers of :data:`~.statistics.Counts`; ``score``: the item's METEOR, in [0, 1];
    ``reference``: the index of the best reference; ``alignment``: the evidence.
    """

    counts: Counts
    score: float
    reference: int
    alignment: Alignment

    @property
    def line(self) -> str:
        """The counts as the METEOR program prints them."""
        return counts_line(self.counts)


def _chunks(matches: Sequence[Match]) -> int:
    """Return the number of runs of matches that follow one another on both sides."""
    chunks = 0
    ends = (-1, -1)
    for start, length, other, other_length, _ in matches:
        chunks += ends != (start, other)
        ends = (start + length, other + other_length)
    return chunks


def _counts(matches: Sequence[Match], candidate: Sentence, reference: Sentence, words: Words) -> Counts:
    is_function = words.is_function
    candidate_functions = [is_function[word] for word in candidate.words]
    reference_functions = [is_function[word] for word in reference.words]
    counts = [len(candidate_functions), len(reference_functions)]
    counts += [sum(candidate_functions), sum(reference_functions), *(0,) * 16]
    for start, length, other, other_length, module in matches:
        first = 4 + 4 * module
        for function in candidate_functions[other : other + other_length]:
            counts[first + 2 * function] += 1
        for function in reference_functions[start : start + length]:
            counts[first + 1 + 2 * function] += 1
    return (*counts, _chunks(matches), sum(counts[4:20:2]), sum(counts[5:20:2]))


class _Scorer:
    """Holds what texts share: the numbers of words, the hashes of phrases."""

    def __init__(self, data: MeteorData, options: TextOptions) -> None:
        self._prefixes = data.sources.prefixes
        self._options = options
        self._words = Words(data)
        self._finder = PhraseFinder(data)

    def statistics(self, items: Sequence[tuple[str, Sequence[str]]]) -> Iterator[MeteorStatistic]:
        """Yield the statistic of each item: a candidate and one or more references."""
        texts = chain.from_iterable((candidate, *references) for candidate, references in items)
        tokens = [tokenize(text, prefixes=self._prefixes, options=self._options) for text in texts]
        sentences, book = read_sentences(tokens, self._words, self._finder)
        cuts = accumulate((1 + len(references) for _, references in items), initial=0)
        for first, end in pairwise(cuts):
            yield self._best(Probe(sentences[first], self._words, book), sentences[first + 1 : end])

    def _best(self, probe: Probe, references: Sequence[Sentence]) -> MeteorStatistic:
        candidate = probe.candidate
        best: tuple[float, int, Counts, list[Match]] | None = None
        for index, reference in enumerate(references):
            matches = align(probe.possible(reference), len(candidate.words))
            counts = _counts(matches, candidate, reference, self._words)
            value = score(counts)
            if best is None or value > best[0]:
                best = value, index, counts, matches
        if best is None:
            msg = "METEOR needs a reference"
            raise ValueError(msg)
        value, index, counts, matches = best
        alignment = Alignment(self._texts(candidate), self._texts(references[index]), tuple(matches))
        return MeteorStatistic(counts, value, index, alignment)

    def _texts(self, sentence: Sentence) -> tuple[str, ...]:
        return tuple([self._words.texts[word] for word in sentence.words])


def score_texts(
    items: Sequence[tuple[str, Sequence[str]]],
    *,
    data: MeteorData,
    options: TextOptions = COCO_TEXT,
) -> list[MeteorStatistic]:
    """Return METEOR's statistics for items, each a candidate with one or more references.

    Raises:
        ValueError: an item has no reference.

    Example:
        >>> data = load_data()  # doctest: +SKIP
        >>> score_texts([("a man", ["man a"])], data=data)[0].score  # doctest: +SKIP
        0.4
    """
    return list(scored_texts(items, data=data, options=options))


def scored_texts(
    items: Iterable[tuple[str, Sequence[str]]],
    *,
    data: MeteorData,
    options: TextOptions = COCO_TEXT,
) -> Iterator[MeteorStatistic]:
    """Yield what :func:`score_texts` returns; few items are held at a time.

    Raises:
        ValueError: an item has no reference.
    """
    scorer = _Scorer(data, options)
    stream = iter(items)
    while batch := list(islice(stream, _BATCH)):
        yield from scorer.statistics(batch)


def align_texts(candidate: str, reference: str, *, data: MeteorData, options: TextOptions = COCO_TEXT) -> Alignment:
    """Return the alignment of a candidate with one reference.

    Example:
        >>> align_texts("a man", "man a", data=load_data()).matches[0]  # doctest: +SKIP
        Match(reference_start=0, reference_length=1, candidate_start=1, candidate_length=1,
        module=<Module.EXACT: 0>)
    """
    return score_texts([(candidate, [reference])], data=data, options=options)[0].alignment
