"""The ROUGE family as the program ROUGE-1.5.5 gives it."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from spicegraph_scorer import Metric, Score
from spicegraph_scorer.metrics.porter import stem
from spicegraph_scorer.metrics.rouge import common_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer import Corpus

_WEIGHT: Final = 1.2
_LARGE_TABLE: Final = 4_096
_WORD: Final = re.compile("[a-z0-9]+")

_KEPT: Final = 1024
"""Captions whose profiles are kept for the next item that has them: 10 kB each."""

Tokens: TypeAlias = "Sequence[str]"
Measure: TypeAlias = Literal["recall", "precision", "f"]


class Overlap(NamedTuple):
    """What a candidate and a reference share, and what each has; such counts add up over references."""

    common: float
    candidate: float
    reference: float


class Measures(NamedTuple):
    """Recall, precision and their F-score, each in [0, 1]."""

    recall: float
    precision: float
    f: float


class Profile(NamedTuple):
    """A text as one member of the family sees it: its words, and how often it has each unit that is counted."""

    words: Tokens
    units: Counter[tuple[str, ...]]


class RougeKind(NamedTuple):
    """A member of the family: how two texts overlap, and the exponent that its shares are brought back by."""

    overlap: Callable[[Profile, Profile], Overlap]
    units: Callable[[Tokens], Iterator[tuple[str, ...]]] | None = None
    exponent: float = 1.0


class Rouge155Statistic(NamedTuple):
    """The measures of one item, in the order of the metric's ``kinds``."""

    measures: tuple[Measures, ...]


@dataclass(frozen=True, slots=True)
class Rouge155(Metric[Rouge155Statistic]):
    """The ROUGE family as the program ROUGE-1.5.5 gives it; the corpus value is the mean over the items.

    Scores are in [0, 1]. ``kinds`` are keys of :data:`KINDS`. ``stem`` is the program's ``-m``.
    ``combine`` says what several references give: ``average`` (the program's default ``-f A``) adds up
    their counts, ``best`` (``-f B``) takes the one with the highest recall. ``alpha`` weighs precision (1)
    against recall (0) in F. A text without a word scores 0, as in the program.
    """

    kinds: tuple[str, ...] = ("1", "2", "L", "W-1.2", "S4", "SU4")
    stem: bool = True
    combine: Literal["average", "best"] = "average"
    alpha: float = 0.5
    measure: Measure = "f"

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not 0 <= self.alpha <= 1:
            reason = f"no ROUGE-{unknown[0]}; there are {', '.join(KINDS)}" if unknown else "alpha is not in [0, 1]"
            raise ValueError(f"ROUGE-1.5.5: {reason}")

    name = "rouge-1.5.5"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two values to be comparable."""
        return {
            "variant": "1.5.5",
            "tokenizer": "letters and digits",
            "stemmer": "porter-1.5.5, wordnet exceptions" if self.stem else "none",
            "references": self.combine,
            "alpha": f"{self.alpha:g}",
            "measure": self.measure,
        }

    def collect(self, corpus: Corpus) -> list[Rouge155Statistic]:
        """Return the measures of each item, in the order of ``corpus.items``."""
        profile = lru_cache(_KEPT)(partial(self._profile, stems=_Stems() if self.stem else None))
        return [
            self.statistic([self.overlaps(profile(item.candidate), profile(text)) for text in item.references])
            for item in corpus.items
        ]

    def total(self, statistics: Sequence[Rouge155Statistic]) -> tuple[Score, ...]:
        """Return one score for each kind, e.g. ``ROUGE-1`` and ``ROUGE-SU4``.

        >>> from spicegraph_scorer import Corpus, Item
        >>> rouge = Rouge155(kinds=("1", "SU4"))
        >>> corpus = Corpus((Item(1, "Police killed the gunman", ("The gunman kills policemen",)),))
        >>> [(score.name, round(score.value, 5)) for score in rouge.total(rouge.collect(corpus))]
        [('ROUGE-1', 0.75), ('ROUGE-SU4', 0.33333)]
        """
        return tuple(
            Score.mean(f"ROUGE-{kind}", [getattr(s.measures[index], self.measure) for s in statistics])
            for index, kind in enumerate(self.kinds)
        )

    def _profile(self, text: str, stems: _Stems | None) -> tuple[Profile, ...]:
        words = rouge_words(text, stems)
        units = [KINDS[kind].units for kind in self.kinds]
        return tuple(Profile(words, Counter(units_of(words) if units_of else ())) for units_of in units)

    def overlaps(self, candidate: Sequence[Profile], reference: Sequence[Profile]) -> tuple[Overlap, ...]:
        """Return what a candidate and a reference share, by each of the metric's kinds."""
        return tuple(KINDS[kind].overlap(candidate[index], reference[index]) for index, kind in enumerate(self.kinds))

    def statistic(self, overlaps: Sequence[Sequence[Overlap]]) -> Rouge155Statistic:
        """Return the measures of a candidate from its overlaps with each reference."""
        measures = []
        for kind, shared in zip(self.kinds, zip(*overlaps, strict=True), strict=True):
            root = 1 / KINDS[kind].exponent
            if self.combine == "best":
                # The lengths that the program chooses by are not yet weighted twice.
                recalls = [_share(each.common, each.reference**root) for each in shared]
                overlap = shared[recalls.index(max(recalls))]
            else:
                overlap = Overlap(*(math.fsum(counts) for counts in zip(*shared, strict=True)))
            recall = _share(overlap.common, overlap.reference) ** root
            precision = _share(overlap.common, overlap.candidate) ** root
            weighted = (1 - self.alpha) * precision + self.alpha * recall
            measures.append(Measures(recall, precision, _share(recall * precision, weighted)))
        return Rouge155Statistic(tuple(measures))


class _Stems(dict[str, str]):
    """Stems of the words of one corpus: each word is stemmed once."""

    def __missing__(self, word: str) -> str:
        self[word] = stem(word)
        return self[word]


def rouge_words(text: str, stems: Mapping[str, str] | None = None) -> list[str]:
    """Return the words that ROUGE-1.5.5 compares: lower-cased runs of ASCII letters and digits.

    ``stems`` gives what to put in place of each word.

    >>> rouge_words("A man's well-known café")
    ['a', 'man', 's', 'well', 'known', 'caf']
    """
    words = _WORD.findall(text.lower())
    return words if stems is None else [stems[word] for word in words]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _counted(candidate: Profile, reference: Profile) -> Overlap:
    """Overlap of counted units: each counts as often as it is in both texts."""
    candidate_units, reference_units = candidate.units, reference.units
    common = sum(
        [min(candidate_units[unit], reference_units[unit]) for unit in candidate_units.keys() & reference_units.keys()]
    )
    return Overlap(common, candidate_units.total(), reference_units.total())


def _ngrams(words: Tokens, *, n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + n]) for start in range(len(words) - n + 1))


def _skip_bigrams(words: Tokens, *, gap: int | None, unigrams: bool) -> Iterator[tuple[str, ...]]:
    """Yield pairs of words with at most ``gap`` words between them.

    With ``unigrams`` also the single words, but not the last one: the program takes a word only where pairs
    begin.
    """
    for index, word in enumerate(words[:-1]):
        stop = None if gap is None else index + gap + 2
        for other in words[index + 1 : stop]:
            yield word, other
        if unigrams:
            yield (word,)


def _subsequence(candidate: Profile, reference: Profile) -> Overlap:
    common = common_length(candidate.words, reference.words)
    return Overlap(common, len(candidate.words), len(reference.words))


def _weighted_subsequence(candidate: Profile, reference: Profile) -> Overlap:
    """Overlap by the weighted longest common subsequence: a run of k words counts k^1.2.

    The program looks for the subsequence whose runs are longest in both texts, but then counts the runs in
    the reference. It weighs the reference's length twice, so that even a repeated text has a recall below
    1.
    """
    positions = _best_places(candidate.words, reference.words)
    lengths = len(candidate.words), len(reference.words)
    starts = [position for position in positions if position - 1 not in positions]
    runs = [next(k for k in range(1, lengths[1] + 1) if start + k not in positions) for start in starts]
    common = math.fsum(run**_WEIGHT for run in runs)
    return Overlap(common, lengths[0] ** _WEIGHT, lengths[1] ** _WEIGHT**2)


def _best_places(candidate: Tokens, reference: Tokens) -> frozenset[int]:
    """Return the places in the reference of the weighted longest common subsequence."""
    large = len(candidate) * len(reference) >= _LARGE_TABLE
    table = _filled_by_rows(candidate, reference) if large else _filled(candidate, reference)
    positions: set[int] = set()
    row_number, position = len(candidate), len(reference)
    while row_number and position:
        if candidate[row_number - 1] == reference[position - 1]:
            row_number, position = row_number - 1, position - 1
            positions.add(position)
        elif table[row_number - 1][position] > table[row_number][position - 1]:
            row_number -= 1
        else:
            position -= 1
    return frozenset(positions)


def _filled(candidate: Tokens, reference: Tokens) -> Sequence[Sequence[float]]:
    """Return the table of weighted lengths: a row for each beginning of the candidate, a column for the reference's."""
    weights = [k**_WEIGHT for k in range(len(candidate) + 1)]
    table = [[0.0] * (len(reference) + 1)]
    runs = [0] * (len(reference) + 1)
    for word in candidate:
        runs = [0] + [runs[position] + 1 if word == other else 0 for position, other in enumerate(reference)]
        above, row = table[-1], [0.0]
        for position, run in enumerate(runs[1:]):
            matched = above[position] + weights[run] - weights[run - 1] if run else 0.0
            row.append(matched or max(above[position + 1], row[position]))
        table.append(row)
    return table


def _filled_by_rows(candidate: Tokens, reference: Tokens) -> NDArray[np.float64]:
    """Return the same table, to the bit, a row at a time: long texts take a tenth of the time.

    Between two matches a row is the running maximum of the row above, beginning with the first match's own value.
    Complex numbers are ordered by their real parts first: with a match's number as real part one maximum does all.
    """
    weights = np.array([k**_WEIGHT for k in range(len(candidate) + 1)])
    numbers: dict[str, int] = {}
    reference_numbers = np.array([numbers.setdefault(word, len(numbers)) for word in reference])
    table = np.zeros((len(candidate) + 1, len(reference) + 1))
    runs = np.zeros(len(reference) + 1, dtype=np.int64)
    keys = np.zeros(len(reference) + 1, dtype=np.complex128)
    for number, word in enumerate(candidate):
        same = reference_numbers == numbers.get(word, -1)
        runs[1:] = np.where(same, runs[:-1] + 1, 0)
        above, run = table[number], runs[1:]
        keys.real[1:] = np.cumsum(same)
        keys.imag[1:] = np.where(same, above[:-1] + weights[run] - weights[run - 1], above[1:])
        table[number + 1] = np.maximum.accumulate(keys).imag
    return table


def _ngram_kind(n: int) -> RougeKind:
    return RougeKind(_counted, partial(_ngrams, n=n))


def _skip_kind(gap: int | None, *, unigrams: bool) -> RougeKind:
    return RougeKind(_counted, partial(_skip_bigrams, gap=gap, unigrams=unigrams))


KINDS: Final[Mapping[str, RougeKind]] = {
    "1": _ngram_kind(1),
    "2": _ngram_kind(2),
    "3": _ngram_kind(3),
    "4": _ngram_kind(4),
    "L": RougeKind(_subsequence),
    "W-1.2": RougeKind(_weighted_subsequence, exponent=_WEIGHT),
    "S": _skip_kind(None, unigrams=False),
    "S4": _skip_kind(4, unigrams=False),
    "SU": _skip_kind(None, unigrams=True),
    "SU4": _skip_kind(4, unigrams=True),
}
"""The members of the family; 4 is the largest gap within a skip-bigram."""
