"""METEOR 1.5: texts to the 23 counts of each item, their score, and the metric as the COCO evaluation computes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice, pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spicegraph_parser.errors import LimitError
from spicegraph_scorer.core.metric import Matrix, Metric, Score, Vector, Working
from spicegraph_scorer.metrics.meteor.aligner import Probe, WordMatch, align
from spicegraph_scorer.metrics.meteor.data import MeteorData, load_data
from spicegraph_scorer.metrics.meteor.paraphrases import PhraseFinder
from spicegraph_scorer.metrics.meteor.text import (
    COCO_TEXT,
    SEPARATOR,
    Sentence,
    TextOptions,
    TextWords,
    read_sentences,
    split_line,
    tokenize,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.tokens import Corpus

# METEOR's statistics of one item, in the order in which the program prints them: candidate length, reference length,
# their function words (candidate, reference); for each of exact, stem, synonym and paraphrase the matched words
# (candidate content, reference content, candidate function, reference function); chunks, matched candidate words,
# matched reference words.
Counts = tuple[float, ...]
_NO_COUNTS: Counts = (0,) * 23
_MOST_MATCHES = 60_000  # of an item's words and phrases with those of its references: a quarter of a second's work
_BATCH = 1000  # items whose phrases are looked up together: bounds the memory, costs nothing

# The parameters of the "ranking" task for English, the program's default.
_ALPHA = 0.85
_BETA = 0.2
_GAMMA = 0.6
_DELTA = 0.75
_MODULE_WEIGHTS = (1.0, 0.6, 0.8, 0.6)

_CHUNKS, _CANDIDATE_MATCHED, _REFERENCE_MATCHED = 20, 21, 22


def _divide(numerator: float, denominator: float) -> float:
    """Divide as IEEE 754 says, where Python raises."""
    if denominator:
        return numerator / denominator
    if not numerator or math.isnan(numerator) or math.isnan(denominator):
        return math.nan
    return math.copysign(math.inf, numerator)


def _share(counts: Sequence[float], side: int) -> float:
    """Return the weighted share of matched words: precision for side 0, the candidate, recall for side 1."""
    # The order of the additions is the program's: another one changes last digits.
    functions = counts[2 + side]
    length = _DELTA * (counts[side] - functions) + (1.0 - _DELTA) * functions
    matched = 0.0
    for module, weight in enumerate(_MODULE_WEIGHTS):
        matched += counts[4 + 4 * module + side] * weight * _DELTA
    for module, weight in enumerate(_MODULE_WEIGHTS):
        matched += counts[6 + 4 * module + side] * weight * (1.0 - _DELTA)
    return _divide(matched, length)


def _is_perfect(counts: Sequence[float]) -> bool:
    """Whether all words of both sides are matched, in one chunk."""
    return (
        counts[_CHUNKS] == 1
        and sum(counts[4:20:4]) + sum(counts[6:20:4]) == counts[0]
        and sum(counts[5:20:4]) + sum(counts[7:20:4]) == counts[1]
    )


def score(counts: Sequence[float]) -> float:
    """Return the METEOR score, in [0, 1], of one item's counts or of a corpus's sums."""
    # Source: Denkowski and Lavie 2014, "Meteor Universal", section 2, with the weights for English.
    precision, recall = _share(counts, 0), _share(counts, 1)
    mean = _divide(1.0, _divide(1.0 - _ALPHA, precision) + _divide(_ALPHA, recall))
    fragmentation = 0.0
    if not _is_perfect(counts):
        matched = (counts[_CANDIDATE_MATCHED] + counts[_REFERENCE_MATCHED]) / 2
        fragmentation = _divide(counts[_CHUNKS], matched)
    penalty = fragmentation**_BETA if fragmentation >= 0 else math.nan
    value = mean * (1.0 - _GAMMA * penalty)
    return value if value > 0 else 0.0  # NaN included


def add_counts(items: Iterable[Counts]) -> Counts:
    """Return the sums that the corpus score is computed from."""
    # A perfect item adds no chunks: the program does so, and the corpus score of perfect items is 1 only thus.
    kept = [(*counts[:_CHUNKS], 0, *counts[_CHUNKS + 1 :]) if _is_perfect(counts) else counts for counts in items]
    return tuple(map(sum, zip(*kept, strict=True))) if kept else _NO_COUNTS


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which words of a candidate were found in a reference, and by which module, in the order of the reference."""

    candidate: tuple[str, ...]
    reference: tuple[str, ...]
    matches: tuple[WordMatch, ...]


NO_ALIGNMENT = Alignment((), (), ())  # What stands for the alignment of a statistic that is kept without evidence.


@dataclass(frozen=True, slots=True)
class MeteorStatistic:
    """METEOR statistic of an item, for its best reference (the first on ties)."""

    counts: Counts  # the 23 numbers of Counts
    score: float  # the item's METEOR, in [0, 1]
    reference: int  # the index of the best reference
    alignment: Alignment  # the evidence


def _counts(matches: Sequence[WordMatch], candidate: Sentence, reference: Sentence, words: TextWords) -> Counts:
    is_function = words.is_function
    candidate_functions = [is_function[word] for word in candidate.words]
    reference_functions = [is_function[word] for word in reference.words]
    counts = [len(candidate_functions), len(reference_functions)]
    counts += [sum(candidate_functions), sum(reference_functions), *(0,) * 16]
    chunks, ends = 0, (-1, -1)  # runs of matches that follow one another on both sides
    for start, length, other, other_length, module in matches:
        chunks += ends != (start, other)
        ends = (start + length, other + other_length)
        first = 4 + 4 * module
        for function in candidate_functions[other : other + other_length]:
            counts[first + 2 * function] += 1
        for function in reference_functions[start : start + length]:
            counts[first + 1 + 2 * function] += 1
    return (*counts, chunks, sum(counts[4:20:2]), sum(counts[5:20:2]))


class _MeteorScorer:
    """METEOR scorer with word numbers and phrase hashes shared between texts."""

    def __init__(self, data: MeteorData, options: TextOptions) -> None:
        self._prefixes = data.sources.prefixes
        self._options = options
        self._words = TextWords(data)
        self._finder = PhraseFinder(data.paraphrases)

    def statistics(self, items: Sequence[tuple[str, Sequence[str]]]) -> Iterator[MeteorStatistic]:
        """Yield the statistic of each item: a candidate and one or more references."""
        texts = chain.from_iterable((candidate, *references) for candidate, references in items)
        tokens = [tokenize(text, prefixes=self._prefixes, options=self._options) for text in texts]
        sentences, links = read_sentences(tokens, self._words, self._finder)
        cuts = accumulate((1 + len(references) for _, references in items), initial=0)
        for first, end in pairwise(cuts):
            candidate, item_references = sentences[first], sentences[first + 1 : end]
            probe = Probe(candidate, self._words, links)
            # Texts of ordinary lengths cannot have so many matches of words, and those are not counted.
            if len(candidate.words) * sum(len(reference.words) for reference in item_references) > _MOST_MATCHES:
                _check_matches(sum(map(probe.count, item_references)))
            best: tuple[float, int, Counts, list[WordMatch]] | None = None
            matched = 0
            for index, reference in enumerate(item_references):
                possible = probe.possible(reference)
                matched += sum(map(len, possible))
                _check_matches(matched)
                matches = align(possible, len(candidate.words))
                counts = _counts(matches, candidate, reference, self._words)
                value = score(counts)
                if best is None or value > best[0]:
                    best = value, index, counts, matches
            if best is None:
                raise ValueError("METEOR needs a reference")
            value, index, counts, matches = best
            alignment = Alignment(self._texts(candidate), self._texts(item_references[index]), tuple(matches))
            yield MeteorStatistic(counts, value, index, alignment)

    def _texts(self, sentence: Sentence) -> tuple[str, ...]:
        return tuple([self._words.texts[word] for word in sentence.words])


def _check_matches(matches: int) -> None:
    """Raise a :class:`LimitError` if the search for the best of the matches of an item would take too long."""
    if matches > _MOST_MATCHES:
        raise LimitError(
            f"METEOR finds {matches:,} matches or more between the words of the caption and of its references; the "
            f"limit is {_MOST_MATCHES:,}"
        )


def score_texts(
    items: Sequence[tuple[str, Sequence[str]]], *, data: MeteorData, options: TextOptions = COCO_TEXT
) -> list[MeteorStatistic]:
    """Return METEOR's statistics for items, each a candidate with one or more references."""
    return list(scored_texts(items, data=data, options=options))


def scored_texts(
    items: Iterable[tuple[str, Sequence[str]]], *, data: MeteorData, options: TextOptions = COCO_TEXT
) -> Iterator[MeteorStatistic]:
    """Yield the statistics of :func:`score_texts`, holding few items at a time."""
    scorer = _MeteorScorer(data, options)
    stream = iter(items)
    while batch := list(islice(stream, _BATCH)):
        yield from scorer.statistics(batch)


def coco_texts(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    """Return the texts that METEOR gets from the COCO evaluation for one item's tokens."""
    # The evaluation writes tokens with spaces between them, all on one line with ||| between texts. It removes ||| and
    # the first of two adjacent spaces from the candidate alone; a reference that holds ||| therefore counts as two.
    text = " ".join(candidate).replace(SEPARATOR, "").replace("  ", " ")
    others = [" ".join(reference) for reference in references]
    if any(SEPARATOR in other for other in others):
        _, *others, text = split_line(f" {SEPARATOR} ".join(["", *others, text]))
    return text, others


_TEXT = (
    "against the best reference, {} of {} words match (also by stem, synonym or paraphrase): weighted P {}, R {}; the "
    "matches fall into chunks, which lower the score: {}"
)


@dataclass(frozen=True, slots=True)
class Meteor(Metric[MeteorStatistic]):
    """METEOR 1.5 for English: exact, stem, synonym and paraphrase matches, parameters of the ranking task.

    The corpus value is computed from the summed statistics; it is not the mean of the items' values. Source: Denkowski
    and Lavie 2014, "Meteor Universal: Language Specific Translation Evaluation for Any Target Language"; parity with
    ``meteor-1.5.jar -l en -norm`` as pycocoevalcap runs it.
    """

    english: ClassVar[bool] = True
    means: ClassVar[bool] = False

    data: MeteorData | None = field(default=None, repr=False)
    evidence: bool = True

    name = "meteor"

    @classmethod
    def of(cls, given: Resources) -> Meteor:
        """Return the metric ``meteor``; its index is built if it is not there yet."""

        def building(share: float) -> None:
            if given.progress:
                given.progress("building METEOR's index", round(100 * share), 100)

        return cls(load_data(progress=building), evidence=given.evidence)

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two METEOR values to be comparable; a DataError if METEOR is not installed."""
        data = self._open()
        return {
            "variant": "1.5",
            "language": "en",
            "task": "rank",
            "modules": "exact+stem+synonym+paraphrase",
            "normalization": "norm",
            "data": data.sources.fingerprint,
            "lexicon": data.lexicon.signature,
        }

    def collect(self, corpus: Corpus) -> list[MeteorStatistic]:
        """Return each item's statistic; a LimitError if words repeat so often that an alignment takes many seconds."""
        items = (coco_texts(item.candidate, item.references) for item in corpus.tokens)
        statistics: list[MeteorStatistic] = []
        try:
            for statistic in scored_texts(items, data=self._open()):
                statistics.append(statistic if self.evidence else self.compact(statistic))  # noqa: PERF401 (counted below)
        except LimitError as error:
            raise LimitError(f"item {corpus.items[len(statistics)].id!r}: {error}") from error
        return statistics

    def compact(self, statistic: MeteorStatistic) -> MeteorStatistic:
        """Return the statistic without its alignment."""
        return replace(statistic, alignment=NO_ALIGNMENT)

    def total(self, statistics: Sequence[MeteorStatistic]) -> tuple[Score, ...]:
        """Return the score ``METEOR``; its corpus value is ``None`` where there are no items."""
        value = score(add_counts(statistic.counts for statistic in statistics)) if statistics else None
        return (Score("METEOR", value, tuple(statistic.score for statistic in statistics)),)

    def working(self, statistic: MeteorStatistic) -> tuple[Working, ...]:
        """Return matched words, weighted precision and recall, and chunks, all against the best reference."""
        counts = statistic.counts
        values = counts[_CANDIDATE_MATCHED], counts[0], _share(counts, 0), _share(counts, 1), counts[_CHUNKS]
        return (Working("METEOR", _TEXT, values),)

    def columns(self, statistics: Sequence[MeteorStatistic]) -> Matrix:
        """Return the columns to sum for the corpus score, (items, 23)."""
        return np.array([add_counts([statistic.counts]) for statistic in statistics], dtype=np.float64)

    def from_sums(self, sums: Matrix) -> dict[str, Vector]:
        """Return the corpus score of rows of sums."""
        return {"METEOR": np.array([score(row) for row in sums.tolist()], dtype=np.float64)}

    def _open(self) -> MeteorData:
        return self.data or load_data()
