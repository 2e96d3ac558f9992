"""CIDEr of every round: all captions are counted once; each round has document frequencies of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.cider import statistics_of_counts
from spicegraph_scorer.metrics.ngram.counts import CorpusCounts, count_ngrams, split_at_spaces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.metrics.cider import Cider, CiderStatistic
    from spicegraph_scorer.studies.bounds.study import Candidates, Study

__all__ = ["cider_rounds"]

_ORDERS = 4


def cider_rounds(metric: Cider, study: Study, candidates: Candidates) -> Iterator[list[CiderStatistic]]:
    """Yield the statistics of each round; its document frequencies come from the captions that are not held out."""
    flat = [text for texts in (*study.captions, *candidates) for text in texts]
    row = {text: place for place, text in enumerate(dict.fromkeys(flat))}
    tokens = [split_at_spaces(found) for found in tokenize_texts(list(row))]
    vocabulary, orders = count_ngrams(tokens, orders=_ORDERS)
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    rows = np.array([row[text] for text in flat], np.int64)
    captions, mine = np.split(rows, 2)
    image = np.repeat(np.arange(len(study.ids)), study.sizes)
    for held in study.held:
        left = np.ones(len(captions), np.bool_)
        left[held] = False
        chosen = np.concatenate([mine[held], captions[left]])
        counts = CorpusCounts(
            vocabulary,
            tuple(replace(ngrams, matrix=ngrams.matrix[chosen]) for ngrams in orders),
            lengths[chosen],
            image[left],
        )
        yield statistics_of_counts(counts, variant=metric.variant, frequencies=metric.frequencies)
