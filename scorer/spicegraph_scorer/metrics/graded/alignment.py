"""How many of its words a candidate's text shares with the most similar reference, whatever a parse made of them.

As in METEOR (Denkowski and Lavie 2014), words match by their stems, function words count less, recall counts more, and
the best reference decides; there are no synonyms and no penalty for chunks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.metrics.graded.order import words_of_text
from spicegraph_scorer.metrics.porter import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FUNCTION_WORDS: Final = """
    a an the of in on at to with and is are by for from as it its his her their this that there some while up down out
    into over be being has have one s t
"""
_FUNCTION_WEIGHT: Final = 0.2
_PRECISION_SHARE: Final = 0.25
_REMEMBERED: Final = 100_000

Weights = tuple["Mapping[str, float]", float]


@lru_cache(maxsize=_REMEMBERED)
def _stem(word: str) -> tuple[str, float]:
    return (word, _FUNCTION_WEIGHT) if word in _FUNCTION_WORDS.split() else (stem(word), 1.0)


def weighed_words(text: str) -> Weights:
    """Return the weight of each stem of a text, as often as it stands there, and their sum."""
    weights: dict[str, float] = {}
    total = 0.0
    for word in words_of_text(text):
        form, weight = _stem(word)
        weights[form] = weights.get(form, 0.0) + weight
        total += weight
    return weights, total


def alignment(candidate: Weights, references: Iterable[Weights]) -> float:
    """Return the best weighted harmonic mean of precision and recall over the references, in [0, 1].

    With P and R the shares of the candidate's and the reference's weight that match: P R / (.75 P + .25 R).

    Args:
        candidate: from :func:`weighed_words`.
        references: the same of each reference.
    """
    mine, said = candidate
    best = 0.0
    for theirs, length in references:
        matched = sum([min(weight, theirs[form]) for form, weight in mine.items() if form in theirs])
        if matched:
            # P = matched / said, R = matched / length, so that matched cancels out once
            best = max(best, matched / ((1 - _PRECISION_SHARE) * length + _PRECISION_SHARE * said))
    return best
