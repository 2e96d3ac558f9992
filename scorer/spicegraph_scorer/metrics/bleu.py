"""BLEU: as the COCO toolkit computes it, and smoothed for single sentences.

Source: Papineni, Roukos, Ward and Zhu 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from spicegraph_scorer.core.metric import Matrix, Metric, Score, Working
from spicegraph_scorer.core.ngrams import CorpusCounts, Floats, NgramCounts, count_slices
from spicegraph_scorer.core.tokens import TOKENIZER, Corpus, TokenizedItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ORDERS: Final = 4

# What the COCO toolkit adds to a numerator and a denominator; its published numbers contain them.
_TINY: Final = 1e-15
_SMALL: Final = 1e-9


class BleuStatistic(NamedTuple):
    """What BLEU needs of one item: counts that add up over items."""

    length: int
    """Words of the candidate."""
    closest: int
    """Words of the reference whose length is closest to the candidate's; of two, the shorter."""
    matched: tuple[int, int, int, int]
    """N-grams of the candidate, n = 1 to 4, that a reference has; each counts as often as it is in the
    reference that has it most often."""

    @property
    def total(self) -> tuple[int, ...]:
        """N-grams of the candidate, n = 1 to 4."""
        return tuple(max(0, self.length - n) for n in range(ORDERS))


@dataclass(frozen=True, slots=True)
class Bleu(Metric[BleuStatistic]):
    """BLEU-1 to BLEU-4 of a corpus, from summed counts, exactly as the COCO toolkit gives them.

    The reference length is the closest one, nothing is smoothed. Scores are in [0, 1]. The items' scores
    follow the same formula from the counts of one item; they do not average to the corpus score.
    """

    means: ClassVar[bool] = False

    name = "bleu"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two values to be comparable."""
        return {"variant": "coco", "tokenizer": TOKENIZER, "reference length": "closest", "smoothing": "none"}

    def collect(self, corpus: Corpus) -> list[BleuStatistic]:
        """Return the counts of each item, in the order of ``corpus.items``."""
        return bleu_statistics(corpus.tokens)

    def total(self, statistics: Sequence[BleuStatistic]) -> tuple[Score, ...]:
        """Return the scores ``Bleu_1`` to ``Bleu_4``."""
        table = _CountTable.of(statistics)
        corpus = _coco_scores(table.summed())
        each = _coco_scores(table)
        return tuple(
            Score(f"Bleu_{n + 1}", float(corpus[n, 0]) if statistics else None, tuple(each[n].tolist()))
            for n in range(ORDERS)
        )

    def workings(self, corpus: Corpus, statistics: Sequence[BleuStatistic]) -> list[tuple[Working, ...]]:
        """Return matched n-grams of each order, and the brevity penalty."""
        del corpus
        return [_working(f"Bleu_{ORDERS}", statistic) for statistic in statistics]

    def columns(self, statistics: Sequence[BleuStatistic]) -> Matrix:
        """Return what the corpus scores sum, (items, 10): lengths, matched and total n-grams."""
        table = _CountTable.of(statistics)
        return np.vstack([table.length, table.closest, table.matched, table.total]).T

    def from_sums(self, sums: Matrix) -> dict[str, Floats]:
        """Return the corpus scores of rows of sums."""
        length, closest = sums[:, 0], sums[:, 1]
        scores = _coco_scores(_CountTable(length, closest, sums[:, 2 : 2 + ORDERS].T, sums[:, 2 + ORDERS :].T))
        return {f"Bleu_{n + 1}": scores[n] for n in range(ORDERS)}


def _working(score: str, statistic: BleuStatistic) -> tuple[Working, ...]:
    counts = tuple(chain.from_iterable(zip(statistic.matched, statistic.total, strict=True)))
    brevity = float(_brevity(np.array([statistic.length / statistic.closest]))[0]) if statistic.closest else 1.0
    return (Working(score, _TEXT, (*counts, statistic.length, statistic.closest, brevity)),)


_TEXT: Final = (
    "in a reference are {} of {} words, {} of {} pairs, {} of {} triples and {} of {} quadruples of words; {} words "
    "against {} of the closest reference: brevity penalty {}"
)


@dataclass(frozen=True, slots=True)
class SentenceBleu(Metric[BleuStatistic]):
    """BLEU-1 to BLEU-4 of single sentences, smoothed; the corpus value is the mean over the items.

    The k-th order without a match counts 1/2^k matches, as in mteval-v13a (the third technique of Chen and
    Cherry 2014): so every candidate with a word scores above 0. A candidate shorter than n has a
    denominator of 1 instead of 0, so that it does not gain by being short (Wang and Gaizauskas 2016,
    footnote 4). The reference length is the closest one. Scores are in [0, 1]; an empty candidate has 0.
    """

    name = "bleu-sentence"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two values to be comparable."""
        return {
            "variant": "sentence",
            "tokenizer": TOKENIZER,
            "reference length": "closest",
            "smoothing": "geometric (mteval-v13a), short candidates smoothed",
        }

    def collect(self, corpus: Corpus) -> list[BleuStatistic]:
        """Return the counts of each item, in the order of ``corpus.items``."""
        return bleu_statistics(corpus.tokens)

    def total(self, statistics: Sequence[BleuStatistic]) -> tuple[Score, ...]:
        """Return the scores ``SentenceBleu_1`` to ``SentenceBleu_4``."""
        table = _CountTable.of(statistics)
        unmatched = table.matched == 0
        halves = 0.5 ** np.cumsum(unmatched, axis=0)
        precisions = np.where(unmatched, halves, table.matched) / np.maximum(table.total, 1.0)
        ratio = np.divide(table.length, table.closest, out=np.ones_like(table.length), where=table.closest > 0)
        each = np.where(table.length > 0, _means(np.log(precisions)) * _brevity(ratio), 0.0)
        return tuple(Score.mean(f"SentenceBleu_{n + 1}", each[n].tolist()) for n in range(ORDERS))

    def workings(self, corpus: Corpus, statistics: Sequence[BleuStatistic]) -> list[tuple[Working, ...]]:
        """Return matched n-grams of each order, and the brevity penalty."""
        del corpus
        return [_working(f"SentenceBleu_{ORDERS}", statistic) for statistic in statistics]


class _CountTable(NamedTuple):
    """Statistics as columns: one column for each item, or a single one of sums."""

    length: Floats
    closest: Floats
    matched: Matrix
    total: Matrix

    @classmethod
    def of(cls, statistics: Sequence[BleuStatistic]) -> _CountTable:
        rows = [(length, closest, *matched) for length, closest, matched in statistics]
        columns = np.array(rows, np.float64).reshape(-1, 2 + ORDERS).T
        total = np.maximum(columns[0] - np.arange(ORDERS)[:, None], 0.0)
        return cls(columns[0], columns[1], columns[2:], total)

    def summed(self) -> _CountTable:
        return _CountTable(*(column.sum(axis=-1, keepdims=True) for column in self))


def _coco_scores(table: _CountTable) -> Matrix:
    """Return BLEU-1 to BLEU-4 (rows) of each column, with the toolkit's small additions."""
    precisions = (table.matched + _TINY) / (table.total + _SMALL)
    ratio = (table.length + _TINY) / (table.closest + _SMALL)
    return _means(np.log(precisions)) * _brevity(ratio)


def _means(logarithms: Matrix) -> Matrix:
    """Return the geometric means of the first 1, 2, 3 and 4 rows."""
    orders = np.arange(1, ORDERS + 1)[:, None]
    means: Matrix = np.exp(np.cumsum(logarithms, axis=0) / orders)
    return means


def _brevity(ratio: Floats) -> Floats:
    """Return the penalty of candidates shorter than their reference by the ratio of the lengths."""
    with np.errstate(divide="ignore"):
        penalty: Floats = np.exp(np.minimum(0.0, 1.0 - 1.0 / ratio))
    return penalty


def bleu_statistics(items: Sequence[TokenizedItem]) -> list[BleuStatistic]:
    """Return what BLEU needs of each item."""
    statistics: list[BleuStatistic] = []
    for counts in count_slices(items, orders=ORDERS):
        matched = [_matches(counts, order) for order in counts.orders]
        candidate, reference = counts.lengths[: counts.items], counts.lengths[counts.items :]
        # For each item the reference length closest to the candidate's; of two, the shorter.
        distance = np.abs(reference - candidate[counts.item])
        best = np.lexsort((reference, distance, counts.item))
        _, first = np.unique(counts.item[best], return_index=True)
        rows = zip(candidate.tolist(), reference[best[first]].tolist(), *matched, strict=True)
        statistics += [BleuStatistic(length, closest, (m1, m2, m3, m4)) for length, closest, m1, m2, m3, m4 in rows]
    return statistics


def _matches(counts: CorpusCounts, ngrams: NgramCounts) -> list[int]:
    """Return for each item the candidate's n-grams that a reference has, each clipped to the most in one."""
    cells = ngrams.matrix.tocoo()
    of_candidate = cells.row < counts.items
    columns = ngrams.matrix.shape[1]
    row, column, count = cells.row[~of_candidate], cells.col[~of_candidate], cells.data[~of_candidate]
    key = counts.item[row - counts.items] * columns + column
    order = np.argsort(key, kind="stable")
    key, first = np.unique(key[order], return_index=True)
    most = np.maximum.reduceat(count[order], first) if len(first) else count
    row, column, count = cells.row[of_candidate], cells.col[of_candidate], cells.data[of_candidate]
    wanted = row * columns + column
    position = np.minimum(np.searchsorted(key, wanted), max(0, len(key) - 1))
    is_known = key[position] == wanted if len(key) else np.zeros(len(wanted), bool)
    clipped = np.minimum(count[is_known], most[position[is_known]])
    sums: list[int] = np.bincount(row[is_known], clipped, minlength=counts.items).astype(np.int64).tolist()
    return sums
