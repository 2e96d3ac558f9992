"""BLEU: as the COCO toolkit computes it, and smoothed for single sentences."""
# Papineni, Roukos, Ward and Zhu 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation".

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
    """BLEU statistic of one item: counts that add up over items."""

    length: int  # words of the candidate
    closest: int  # words of the reference whose length is closest to the candidate's; of two, the shorter
    matched: tuple[int, int, int, int]  # n-grams, n = 1 to 4, that a reference has, each as often as one has it


class _OfCounts(Metric[BleuStatistic]):
    """What both kinds of BLEU have in common: the counts, and what people are told of them."""

    __slots__ = ()

    shown: ClassVar[str]  # The score of which people are told.

    def collect(self, corpus: Corpus) -> list[BleuStatistic]:
        """Return the counts of each item, in the order of ``corpus.items``."""
        return bleu_statistics(corpus.tokens)

    def working(self, statistic: BleuStatistic) -> tuple[Working, ...]:
        """Return matched n-grams of each order, and the brevity penalty."""
        length, closest, matched = statistic
        counts = chain.from_iterable((number, max(0, length - n)) for n, number in enumerate(matched))
        brevity = float(_brevity(np.array([length / closest]))[0]) if closest else 1.0
        return (Working(self.shown, _TEXT, (*counts, length, closest, brevity)),)


@dataclass(frozen=True, slots=True)
class Bleu(_OfCounts):
    """BLEU-1 to BLEU-4 of a corpus, in [0, 1], from summed counts, exactly as the COCO toolkit gives them.

    The reference length is the closest one, nothing is smoothed. The items' scores follow the same formula from the
    counts of one item; they do not average to the corpus score.
    """

    means: ClassVar[bool] = False

    name = "bleu"
    shown = f"Bleu_{ORDERS}"

    def signature(self) -> Mapping[str, str]:
        """Return the settings that must match for two values to be comparable."""
        return {"variant": "coco", "tokenizer": TOKENIZER, "reference length": "closest", "smoothing": "none"}

    def total(self, statistics: Sequence[BleuStatistic]) -> tuple[Score, ...]:
        """Return the scores ``Bleu_1`` to ``Bleu_4``."""
        columns = _count_table(statistics)
        each = self.from_sums(columns)
        corpus = self.from_sums(columns.sum(axis=0, keepdims=True))
        return tuple(
            Score(name, float(corpus[name][0]) if statistics else None, tuple(values.tolist()))
            for name, values in each.items()
        )

    def columns(self, statistics: Sequence[BleuStatistic]) -> Matrix:
        """Return the columns to sum, (items, 10): lengths, matched and total n-grams."""
        return _count_table(statistics)

    def from_sums(self, sums: Matrix) -> dict[str, Floats]:
        """Return the corpus scores of rows of sums, with the toolkit's small additions."""
        length, closest, matched, total = sums[:, 0], sums[:, 1], sums[:, 2 : 2 + ORDERS].T, sums[:, 2 + ORDERS :].T
        precisions, ratio = (matched + _TINY) / (total + _SMALL), (length + _TINY) / (closest + _SMALL)
        scores = _means(np.log(precisions)) * _brevity(ratio)
        return {f"Bleu_{n + 1}": scores[n] for n in range(ORDERS)}


_TEXT: Final = (
    "in a reference are {} of {} words, {} of {} pairs, {} of {} triples and {} of {} quadruples of words; {} words "
    "against {} of the closest reference: brevity penalty {}"
)


@dataclass(frozen=True, slots=True)
class SentenceBleu(_OfCounts):
    """BLEU-1 to BLEU-4 of single sentences, in [0, 1], smoothed; the corpus value is the mean over the items."""

    # The k-th order without a match counts 1/2^k matches, as in mteval-v13a (the third technique of Chen and Cherry
    # 2014). A candidate shorter than n has a denominator of 1 instead of 0, so that it does not gain by being short
    # (Wang and Gaizauskas 2016, footnote 4). The reference length is the closest one; an empty candidate has 0.

    name = "bleu-sentence"
    shown = f"SentenceBleu_{ORDERS}"

    def signature(self) -> Mapping[str, str]:
        """Return the settings that must match for two values to be comparable."""
        return {
            "variant": "sentence",
            "tokenizer": TOKENIZER,
            "reference length": "closest",
            "smoothing": "geometric (mteval-v13a), short candidates smoothed",
        }

    def total(self, statistics: Sequence[BleuStatistic]) -> tuple[Score, ...]:
        """Return the scores ``SentenceBleu_1`` to ``SentenceBleu_4``."""
        length, closest, *counts = _count_table(statistics).T
        matched, total = np.split(np.array(counts), 2)
        unmatched = matched == 0
        precisions = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=0), matched) / np.maximum(total, 1.0)
        ratio = np.divide(length, closest, out=np.ones_like(length), where=closest > 0)
        each = np.where(length > 0, _means(np.log(precisions)) * _brevity(ratio), 0.0)
        return tuple(Score.mean(f"SentenceBleu_{n + 1}", each[n].tolist()) for n in range(ORDERS))


def _count_table(statistics: Sequence[BleuStatistic]) -> Matrix:
    rows = [(length, closest, *matched) for length, closest, matched in statistics]
    columns = np.array(rows, np.float64).reshape(-1, 2 + ORDERS)
    return np.hstack([columns, np.maximum(columns[:, :1] - np.arange(ORDERS), 0.0)])


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
    """Return the BLEU statistic of each item."""
    statistics: list[BleuStatistic] = []
    for counts in count_slices(items, orders=ORDERS):
        matched = [_matches(counts, order) for order in counts.orders]
        candidate, reference = counts.lengths[: counts.items], counts.lengths[counts.items :]
        # For each item the reference length closest to the candidate's; of two, the shorter.
        distance = np.abs(reference - candidate[counts.item])
        best = np.lexsort((reference, distance, counts.item))
        first = np.flatnonzero(np.diff(counts.item, prepend=-1))  # the best are in the order of the items, too
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
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    key = key[first]
    most = np.maximum.reduceat(count[order], first) if len(first) else count
    row, column, count = cells.row[of_candidate], cells.col[of_candidate], cells.data[of_candidate]
    wanted = row * columns + column
    position = np.minimum(np.searchsorted(key, wanted), max(0, len(key) - 1))
    is_known = key[position] == wanted if len(key) else np.zeros(len(wanted), bool)
    clipped = np.minimum(count[is_known], most[position[is_known]])
    sums: list[int] = np.bincount(row[is_known], clipped, minlength=counts.items).astype(np.int64).tolist()
    return sums
