"""From the supports of tuples, and the words of texts, to precision, recall and F1.

Weights are added up in total and by category. A fifth of the total's F1 is how many of its words a candidate's text
shares with the most similar reference, whatever a parse made of them. As in METEOR (Denkowski and Lavie 2014), words
match by their stems, function words count less, recall counts more, and the best reference decides; there are no
synonyms and no penalty for chunks.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, chain, starmap
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.metrics.graded.matching import precision_weights, ranges
from spicegraph_scorer.metrics.graded.order import words_of_text
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.metrics.graded.matching import Integers, Sides, Supports, Weights
    from spicegraph_scorer.metrics.spice.categories import Category


_PRECISION_EXPONENT: Final = 0.75
_WORDS_SHARE: Final = 0.5
_ALIGNED_SHARE: Final = 0.2


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'.

    ``aligned`` is the alignment of the texts, which has a fifth of F1: of the total alone, and where texts were read.
    """

    supported: float
    candidate: float
    found: float
    reference: float
    aligned: float | None = None

    @property
    def precision(self) -> float:
        """Supported share of the candidate's weight, in [0, 1]; 0 without any."""
        return self.supported / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 where both are 0; four fifths of it and a fifth of ``aligned``."""
        precision, recall = self.precision, self.recall
        found = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return found if self.aligned is None else found + _ALIGNED_SHARE * (self.aligned - found)

    def mixed(self, words: Weighed, aligned: float | None) -> Weighed:
        """Return the total: half of the support is that of the words alone, if there are any, on either side."""
        supported, found = self.supported, self.found
        if words.candidate:
            supported += _WORDS_SHARE * (words.precision * self.candidate - supported)
        if words.reference:
            found += _WORDS_SHARE * (words.recall * self.reference - found)
        return Weighed(supported, self.candidate, found, self.reference, aligned)


def weigh(
    sides: Sides,
    precision: Supports,
    recall: Supports,
    categories: Mapping[str, Category],
    order: Sequence[float],
) -> list[dict[str, Weighed]]:
    """Add up the weights of each comparison in total (``All``) and by category.

    The supported part of a candidate's weight is the power mean, with exponent 3/4, of its tuples' support: two tuples
    with half of their support cost less than one without any. (Formula 3 had 1/2, which costs longer captions more than
    people think.)

    A category holds its own tuples; what supports them may be of another. ``order`` is, for each comparison, the share
    of every support that the order of the candidate's words leaves.
    """
    left = np.array(order, np.float64)
    mine = precision_weights(sides, precision)
    theirs = sides.weights[recall.tuples]
    powers = (precision.found.support * np.repeat(left, precision.counts)) ** _PRECISION_EXPONENT * mine
    found = recall.found.support * np.repeat(left, recall.counts) * theirs
    columns = [_weighed(_sums(precision, powers, mine), _sums(recall, found, theirs))]
    for takes in _members(sides, categories):
        own, other = takes[precision.tuples], takes[recall.tuples]
        columns.append(
            _weighed(_sums(precision, powers * own, mine * own), _sums(recall, found * other, theirs * other))
        )
    names = ALL, *categories
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _sums(side: Supports, *values: Weights) -> list[Weights]:
    """Return the sum of values of each comparison, added up in order."""
    comparison: Integers = np.repeat(np.arange(len(side.counts)), side.counts)
    # of nothing, bincount returns integers
    return [np.bincount(comparison, one, len(side.counts)).astype(np.float64, copy=False) for one in values]


def _weighed(mine: Sequence[Weights], theirs: Sequence[Weights]) -> list[Weighed]:
    powers, weights = mine
    shares = np.divide(powers, weights, out=np.zeros_like(powers), where=weights > 0)
    supported = weights * shares ** (1 / _PRECISION_EXPONENT)
    return list(starmap(Weighed, np.stack([supported, weights, *theirs], axis=1).tolist()))


def _members(sides: Sides, categories: Mapping[str, Category]) -> Iterator[Weights]:
    """Yield for each category 1 for each tuple of the graphs that belongs to it, and 0 for others."""
    concepts = list(chain.from_iterable(graph.concepts for graph in sides.nodes)) if categories else []
    places = [np.flatnonzero(sides.kinds == kind) for kind in range(3)]
    of_kind = [[concepts[place] for place in of] for of in places] if concepts else [[], [], []]
    for category in categories.values():
        takes = np.zeros(len(sides.kinds))
        kind = category.length - 1
        takes[places[kind]] = 1 if category.takes_all else category.takes(of_kind[kind])
        yield takes


_FUNCTION_WORDS: Final = """
    a an the of in on at to with and is are by for from as it its his her their this that there some while up down out
    into over be being has have one s t
"""
_FUNCTION_WEIGHT: Final = 0.2
_PRECISION_SHARE: Final = 0.25
_REMEMBERED: Final = 100_000


@lru_cache(maxsize=_REMEMBERED)
def _stem(word: str) -> tuple[str, float]:
    return (word, _FUNCTION_WEIGHT) if word in _FUNCTION_WORDS.split() else (stem(word), 1.0)


def alignments(items: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
    """Return how well each candidate is aligned with its best reference, in [0, 1].

    That is the best weighted harmonic mean of precision and recall over the references: with P and R the shares of the
    candidate's and the reference's weight that match, P R / (.75 P + .25 R). A word matches as often as both have it.

    Args:
        items: each candidate with its references.
    """
    numbers = {text: number for number, text in enumerate(dict.fromkeys(_texts(items)))}
    words = list(map(words_of_text, numbers))
    known = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
    forms = list(map(_stem, known))
    # sorted, so that a text's sums are added up in the same order whatever else is in the batch
    stems = {form: number for number, form in enumerate(sorted({form for form, _ in forms}))}
    size = max(len(stems), 1)
    of_words = np.fromiter(map(known.__getitem__, chain.from_iterable(words)), np.intp)
    weights = np.array([weight for _, weight in forms])[of_words]
    of_words = np.array([stems[form] for form, _ in forms], np.intp)[of_words]
    texts = np.repeat(np.arange(len(words)), list(map(len, words)))
    totals = np.bincount(texts, weights, len(words))
    said, place = np.unique(texts * size + of_words, return_inverse=True)  # each text's stems, text by text
    said_weights = np.bincount(place, weights, len(said))
    ends = np.searchsorted(said, np.arange(len(words) + 1) * size)

    reference_counts = [len(references) for _, references in items]
    candidates = np.repeat([numbers[candidate] for candidate, _ in items], reference_counts)
    references = np.fromiter(map(numbers.__getitem__, chain.from_iterable(own for _, own in items)), np.intp)
    lengths = ends[references + 1] - ends[references]
    theirs = ranges(ends[references], lengths)
    wanted = np.repeat(candidates, lengths) * size + said[theirs] % size
    mine = np.searchsorted(said, wanted).clip(max=max(len(said) - 1, 0))
    common = np.where(said[mine] == wanted, np.minimum(said_weights[mine], said_weights[theirs]), 0)
    matched = np.bincount(np.repeat(np.arange(len(references)), lengths), common, len(references))
    # P = matched / said, R = matched / length, so that matched cancels out once
    both = (1 - _PRECISION_SHARE) * totals[references] + _PRECISION_SHARE * totals[candidates]
    values = np.divide(matched, both, out=np.zeros_like(both), where=both > 0).tolist()
    ends_of_items = accumulate(reference_counts)
    return [
        max(values[end - count : end], default=0.0) for count, end in zip(reference_counts, ends_of_items, strict=True)
    ]


def _texts(items: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    for candidate, references in items:
        yield candidate
        yield from references
