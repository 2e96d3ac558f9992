"""How many of its words a candidate's text shares with the most similar reference, whatever a parse made of them.

As in METEOR (Denkowski and Lavie 2014), words match by their stems, function words count less, recall counts more, and
the best reference decides; there are no synonyms and no penalty for chunks.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_scorer.metrics.graded.matching import ranges
from spicegraph_scorer.metrics.graded.order import words_of_text
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    stems = {form: number for number, form in enumerate(dict.fromkeys(form for form, _ in forms))}
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
