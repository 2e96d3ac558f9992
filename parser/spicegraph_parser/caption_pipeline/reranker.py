"""Choosing among whole analyses of a sentence.

That is reranking (Collins and Koo, "Discriminative reranking for natural language parsing", 2005). The network
scores each tag, head and label by itself. The reference parser weighs whole trees: which children a word has, in which
order, and what they hang on. Where the network is in doubt, whole analyses are compared here by a sum of learnt
weights, one for each such pattern that occurs in them, and of the network's own log probabilities.

The patterns are not listed anywhere: a pattern's hash is its row in a table of weights (Weinberger et al., "Feature
hashing for large scale multitask learning", 2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.caption_pipeline.encoder import Vocabulary, Weights
    from spicegraph_parser.caption_pipeline.layout import Floats, Integers

Hashes: TypeAlias = NDArray[np.uint64]

_MOST_DISTANCE: Final = 9  # from a word to its head; farther ones count alike
_MOST_NOUNS, _MOST_VERBS = 4, 3  # between a word and its head
_MOST_CHILDREN: Final = 6
_WORDS_AT_ONCE: Final = 512  # whose patterns are hashed


class Analyses(NamedTuple):
    """Analyses of sentences, several of one sentence one after the other; words of all analyses in one row."""

    sentence: Integers  # (analyses,) the sentence's number; equal ones stand together, the network's own analysis first
    lengths: Integers  # (analyses,) words
    forms: Integers  # (words,) rows of the vocabulary's forms, 0 where it lacks one
    tags: Integers  # (words,) numbers of the vocabulary
    heads: Integers  # (words,) count from 1 in the sentence; 0 is the root
    labels: Integers  # (words,) numbers of the vocabulary
    # (analyses, 4) log probabilities of the tags, of the heads and of the labels, each a sum over the words; 1 for the
    # network's own analysis, else 0
    scores: Floats


class Reranker:
    """Reranker of analyses, with the weights that ``training/rerank.py`` writes."""

    def __init__(self, weights: Weights, vocabulary: Vocabulary) -> None:
        self._table = weights["reranker.table"][:, 0]  # a power of two of 8-bit integers, or floats
        self._scale = weights["reranker.table.scale"][0, 0] if "reranker.table.scale" in weights else np.float32(1.0)
        self._scores = weights["reranker.scores"]
        self.likely = float(weights["reranker.likely"][0])  # probability of a tag or head from which one is analysed
        self._patterns = TreePatterns(vocabulary, len(self._table))

    def best(self, analyses: Analyses) -> Integers:
        """Return the number of the best analysis of each sentence."""
        rows = self._patterns.rows(analyses)
        kind = np.int32 if self._table.dtype == np.int8 else np.float32
        by_word = self._table[rows].sum(axis=0, dtype=kind)
        starts = np.cumsum(analyses.lengths) - analyses.lengths
        totals = np.add.reduceat(by_word, starts) * self._scale + analyses.scores @ self._scores
        order = np.lexsort((-totals, analyses.sentence))
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = np.diff(analyses.sentence[order]) > 0
        best: Integers = order[is_first]
        return best


class TreePatterns:
    """Numbers, below ``rows`` (a power of two), of the patterns that hold for a word in an analysis."""

    def __init__(self, vocabulary: Vocabulary, rows: int) -> None:
        self._shift = np.uint64(64 - (rows.bit_length() - 1))
        self._is_marker = np.array([label in {"case", "mark"} for label in vocabulary.labels])
        self._is_noun = np.array([tag.startswith("NN") or tag == "PRP" for tag in vocabulary.tags])
        self._is_verb = np.array([tag.startswith("VB") for tag in vocabulary.tags])

    def rows(self, analyses: Analyses) -> NDArray[np.int32]:
        """Return the numbers (patterns, words) of all patterns of each word."""
        tree = _Tree(analyses, self._is_marker)
        nouns, verbs = (
            np.minimum(tree.between(columns[analyses.tags]), most)
            for columns, most in ((self._is_noun, _MOST_NOUNS), (self._is_verb, _MOST_VERBS))
        )
        # Below a word stands with its form (f), tag (t) and relation to its head (r); "h" is its head, "g" that one's
        # head, "p" its nearest sister towards the head, "left" and "right" its own outermost children.
        word, head, previous = tree.words, tree.head, tree.previous
        f, t, r, marker = (columns[word] for columns in (tree.forms, tree.tags, tree.labels, tree.markers))
        th, rh, fh, tg = tree.tags[head], tree.labels[head], tree.forms[head], tree.tags[tree.head_of[head]]
        tp, rp, tpp = tree.tags[previous], tree.labels[previous], tree.tags[tree.previous_of[previous]]
        left, right = tree.outermost[0][word], tree.outermost[1][word]
        t_before, t_after = tree.tags[tree.before], tree.tags[tree.after]
        side, distance = tree.side, np.clip(tree.distance, -_MOST_DISTANCE, _MOST_DISTANCE) + _MOST_DISTANCE
        labels = tree.children(tree.labels)
        patterns: Sequence[tuple[Integers | Hashes, ...]] = (
            (f, t),
            (t_before, t),
            (t_before, t, t_after),
            (tree.forms[tree.before], f, t),
            (tree.forms[tree.after], f, t),
            (f, t_before, t),
            (t_after, tree.tags[tree.second_after], t),
            (r, th, t, side),
            (r, th, t, rh, tg, side),
            (th, side, rp, tp, r, t),
            (th, rh, side, rp, tp, r, t, marker),
            (tree.labels[left], tree.tags[left], r, t),
            (t, r, tree.labels[right], tree.tags[right], tree.markers[right]),
            (t, r, th, tree.labels[right], tree.tags[right]),
            (r, marker, th, rh, tg),
            (r, marker, th, rp, nouns, verbs),
            (r, marker, fh),
            (r, marker, f, th),
            (t, r, th, tg, rh, marker),
            (fh, r, t),
            (f, r, th),
            (fh, f, r),
            (r, th, t, distance),
            (t, r, *labels),
            (t, r, th, rh, *labels),
            (f, *labels),
            (t, r, th, *tree.children(tree.labels, tree.tags)),
            (t, r, *tree.children(tree.labels, tree.markers)),
            (t, r, np.minimum(tree.children_of[word], _MOST_CHILDREN), rp, th),
            (r, th, rh, t, nouns, verbs, marker),
            (r, th, rp, tp, tpp, rh),
            (r, t, tree.markers[head], marker, th, rh),
        )
        return (_hashes_of_patterns(patterns) >> self._shift).astype(np.int32)


class _Tree:
    """The analyses' trees as columns; behind the last word stands an empty one: above, before and after all."""

    def __init__(self, analyses: Analyses, is_marker: NDArray[np.bool_]) -> None:
        count = len(analyses.heads)
        starts = np.cumsum(analyses.lengths) - analyses.lengths
        analysis = np.repeat(np.arange(len(starts)), analyses.lengths)
        positions = np.arange(count) - starts[analysis]
        left_over = analyses.lengths[analysis] - 1 - positions
        is_root = analyses.heads == 0
        self.empty = count
        self.words = np.arange(count)
        # These count from 1; 0 is the empty word's alone.
        self.forms, self.tags, self.labels = (
            np.append(column + 1, 0) for column in (analyses.forms, analyses.tags, analyses.labels)
        )
        self.head = np.where(is_root, count, starts[analysis] + analyses.heads - 1)
        self.head_of = np.append(self.head, count)
        self.before = np.where(positions > 0, self.words - 1, count)
        self.after = np.where(left_over > 0, self.words + 1, count)
        self.second_after = np.where(left_over > 1, self.words + 2, count)
        self.distance = np.where(is_root, 0, positions + 1 - analyses.heads)
        self.side = (self.distance > 0).astype(np.intp)
        # Sisters on one side of their head stand together, the nearest to it first.
        longest = int(analyses.lengths.max()) + 1
        above = np.where(is_root, count + analysis, self.head) * 2 + self.side
        self._order = np.argsort(above * longest + np.abs(self.distance), kind="stable")
        is_nearest = np.ones(count, dtype=np.bool_)
        is_nearest[1:] = np.diff(above[self._order]) != 0
        self._nearest = np.flatnonzero(is_nearest)
        self.previous = np.full(count, count)
        self.previous[self._order[1:]] = np.where(is_nearest[1:], count, self._order[:-1])
        self.previous_of = np.append(self.previous, count)
        self.outermost = np.full((2, count + 1), count)
        last = self._order[np.append(self._nearest[1:], count) - 1]
        last = last[~is_root[last]]
        self.outermost[self.side[last], self.head[last]] = last
        self.children_of = np.bincount(self.head[~is_root], minlength=count)
        self.markers = np.zeros(count + 1, dtype=np.intp)
        marking = np.flatnonzero(is_marker[analyses.labels] & ~is_root)[::-1]  # the first one counts
        self.markers[self.head[marking]] = self.forms[marking]

    def between(self, counted: NDArray[np.bool_]) -> Integers:
        """Return how many counted words stand between each word and its head; 0 for a root."""
        before = np.concatenate([[0], np.cumsum(counted)])
        head = np.where(self.head == self.empty, self.words, self.head)
        low, high = np.minimum(self.words, head), np.maximum(self.words, head)
        counts: Integers = before[high] - before[np.minimum(low + 1, high)]
        return counts

    def children(self, *columns: Integers) -> tuple[Hashes, Hashes]:
        """Return two hashes of each word's ordered children: those before it and those behind it."""
        nearest = self._nearest
        rank = np.arange(self.empty) - np.repeat(nearest, np.diff(np.append(nearest, self.empty)))
        values = columns[0][self._order] if len(columns) == 1 else _hash(*columns)[:-1][self._order]
        sums = np.add.reduceat(_hash(values, rank), nearest)
        first = self._order[nearest]
        totals = np.zeros((2, self.empty + 1), dtype=np.uint64)
        totals[self.side[first], self.head[first]] = sums
        return totals[0, :-1], totals[1, :-1]


def _hashes_of_patterns(patterns: Sequence[tuple[Integers | Hashes, ...]]) -> Hashes:
    """Return the hashes (patterns, words) of each pattern's number, from 1, and its columns."""
    # Next columns of all patterns together: a caption has few words, and each call of numpy its price. Some words at a
    # time, whose hashes stay in a core's own cache.
    given = {id(column): column for columns in patterns for column in columns}
    table = np.stack([column.astype(np.uint64) for column in given.values()])
    place = {key: row for row, key in enumerate(given)}
    longest_first = sorted(range(len(patterns)), key=lambda number: -len(patterns[number]))
    steps = [
        [place[id(patterns[number][step])] for number in longest_first if step < len(patterns[number])]
        for step in range(len(patterns[longest_first[0]]))
    ]
    numbers = np.array(longest_first, dtype=np.uint64)[:, None] + np.uint64(1)
    first = _mixed(np.zeros_like(numbers), numbers)
    hashes = np.empty((len(patterns), table.shape[1]), dtype=np.uint64)
    for begin in range(0, table.shape[1], _WORDS_AT_ONCE):
        words = table[:, begin : begin + _WORDS_AT_ONCE]
        mixed = np.repeat(first, words.shape[1], axis=1)
        for rows in steps:
            mixed[: len(rows)] = _mixed(mixed[: len(rows)], words[rows])
        hashes[longest_first, begin : begin + _WORDS_AT_ONCE] = mixed
    return hashes


def _hash(*columns: Integers | Hashes) -> Hashes:
    """Return a hash of each row of columns, the same on every machine."""
    hashes = np.zeros(1, dtype=np.uint64)
    for column in columns:
        hashes = _mixed(hashes, column.astype(np.uint64))
    return hashes


def _mixed(hashes: Hashes, column: Hashes) -> Hashes:
    mixed = hashes << np.uint64(6)
    mixed += hashes >> np.uint64(2)
    mixed = column + mixed
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed ^= hashes
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    return mixed
