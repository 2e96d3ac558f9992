"""BLEU of every held-out caption: an image's n-grams are counted once, however many of its captions are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.bleu import ORDERS, BleuStatistic
from spicegraph_scorer.metrics.ngram.counts import NgramCounts, count_ngrams, split_at_spaces

if TYPE_CHECKING:
    from spicegraph_scorer.metrics.bleu import Bleu, SentenceBleu
    from spicegraph_scorer.studies.bounds.tables import Batch

__all__ = ["bleu_statistics"]

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class _Captions:
    """The captions of a batch, counted image by image: the row of each one's text, its length and image."""

    rows: Integers
    lengths: Integers
    image: Integers
    pairs: tuple[Integers, Integers]
    """Every caption with every other one of its image."""


@dataclass(frozen=True, slots=True)
class _Most:
    """For each n-gram of an image (sorted): its highest count in a caption, which one, and the highest elsewhere."""

    keys: Integers
    count: Integers
    caption: Integers
    elsewhere: Integers


def bleu_statistics(_metric: Bleu | SentenceBleu, batch: Batch) -> list[list[BleuStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    row = {text: place for place, text in enumerate(texts)}
    tokens = [split_at_spaces(found) for found in tokenize_texts(texts)]
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    _, orders = count_ngrams(tokens, orders=ORDERS)
    captions = _captions([[row[text] for text in image] for image in batch.captions], lengths)
    most = [_most(ngrams, captions) for ngrams in orders]
    found = []
    for trial in batch.trials:
        rows = np.array([row[text] for image in trial for text in image], np.int64)
        columns = [_matched(ngrams, highest, captions, rows) for ngrams, highest in zip(orders, most, strict=True)]
        closest = _closest(captions, lengths[rows])
        table = zip(lengths[rows].tolist(), closest.tolist(), *(column.tolist() for column in columns), strict=True)
        found.append([BleuStatistic(length, near, (a, b, c, d)) for length, near, a, b, c, d in table])
    return found


def _captions(rows: list[list[int]], lengths: Integers) -> _Captions:
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = np.array([row for image in rows for row in image], np.int64)
    starts, repeats = np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)
    one = np.repeat(np.arange(len(flat)), repeats)
    first = np.cumsum(repeats) - repeats
    other = np.arange(len(one)) - np.repeat(first, repeats) + np.repeat(starts, repeats)
    differ = one != other
    return _Captions(flat, lengths[flat], np.repeat(np.arange(len(rows)), sizes), (one[differ], other[differ]))


def _most(ngrams: NgramCounts, captions: _Captions) -> _Most:
    cells = ngrams.matrix[captions.rows].tocoo()
    keys = captions.image[cells.row] * ngrams.matrix.shape[1] + cells.col
    order = np.lexsort((-cells.data, keys))
    keys, count, caption = keys[order], cells.data[order].astype(np.int64), cells.row[order].astype(np.int64)
    first = np.diff(keys, prepend=-1) != 0
    next_count = np.append(count[1:], 0)
    shared = np.append(~first[1:], False)
    return _Most(keys[first], count[first], caption[first], np.where(shared, next_count, 0)[first])


def _matched(ngrams: NgramCounts, most: _Most, captions: _Captions, rows: Integers) -> Integers:
    """Return for each candidate its n-grams that another caption has, each clipped to the most in one of them."""
    cells = ngrams.matrix[rows].tocoo()
    keys = captions.image[cells.row] * ngrams.matrix.shape[1] + cells.col
    place = np.minimum(np.searchsorted(most.keys, keys), max(0, len(most.keys) - 1))
    known = most.keys[place] == keys if len(most.keys) else np.zeros(len(keys), np.bool_)
    row, place = cells.row[known], place[known]
    limit = np.where(most.caption[place] == row, most.elsewhere[place], most.count[place])
    clipped = np.minimum(cells.data[known], limit)
    sums: Integers = np.bincount(row, clipped, minlength=len(rows)).astype(np.int64)
    return sums


def _closest(captions: _Captions, lengths: Integers) -> Integers:
    """Return for each candidate the length closest to its own among the other captions; of two, the shorter."""
    mine, other = captions.pairs
    theirs = captions.lengths[other]
    best = np.lexsort((theirs, np.abs(theirs - lengths[mine]), mine))
    _, first = np.unique(mine[best], return_index=True)
    closest: Integers = theirs[best[first]]
    return closest
