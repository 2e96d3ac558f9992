"""Word prediction: the model of human recall and precision, and a system at the recall of people.

The model: an object is in an image with probability q. A person uses its word with probability p if it is in the
image, and never otherwise; people do so independently. Then the number of people out of n who use the word is 0
with probability 1 - q, and binomial with p otherwise.

Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", section 4.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_studies.agreement.coefficients import Vector

_GRID = 8193


class GridPoint(NamedTuple):
    """Human recall and precision, in [0, 1]; ``None`` where nobody could be right."""

    recall: float | None
    precision: float | None


class Fit(NamedTuple):
    """The most likely p and q, both in [0, 1]."""

    p: float
    q: float


def expected_point(p: float, references: int) -> GridPoint:
    """Return the model's human recall and precision for so many reference captions.

    Recall is p; precision is pk / (pk + (1 - p)^k). Images where the word is right weigh as much as reference
    captions that hold it, others 1. For p = 0 precision is undefined.

    Example:
        >>> expected_point(0.5, 4).precision  # 2 / (2 + 1/16)
        0.9696969696969697
    """
    right = p * references
    wrong = (1 - p) ** references
    return GridPoint(p, right / (right + wrong) if p else None)


def observed_point(counts: Sequence[float], references: int) -> GridPoint:
    """Return the human recall and precision that people showed.

    Each caption of an image in turn is the prediction, held against every choice of ``references`` others; what
    comes out is the exact mean of all of these.

    Example:
        >>> observed_point([90, 5, 5], 1)  # 5 images with one of two captions, 5 with both
        GridPoint(recall=0.6666666666666666, precision=0.6666666666666666)
    """
    people = len(counts) - 1
    used = range(people + 1)
    right = sum(h * references * t * (t - 1) / (people * (people - 1)) for t, h in zip(used, counts, strict=True))
    said = sum(h * references * t / people for t, h in zip(used, counts, strict=True))
    wrong = sum(
        h * t / people * math.comb(people - t, references) / math.comb(people - 1, references)
        for t, h in zip(used, counts, strict=True)
    )
    return GridPoint(right / said if said else None, right / (right + wrong) if right + wrong else None)


def fit(counts: Sequence[float]) -> Fit | None:
    """Return the p and q under which the counts are most likely; ``None`` if the word is never used.

    Given that somebody uses the word, the count is a binomial without its zero; p is where that distribution's
    mean is the observed one, and q makes up for images in which nobody used it. Where that would take q above 1,
    or where nobody ever repeats a word, the maximum lies at q = 1.

    Example:
        >>> fit([0, 0, 10])
        Fit(p=1.0, q=1.0)
    """
    people = len(counts) - 1
    images, seen = float(sum(counts)), float(sum(counts[1:]))
    if not seen:
        return None
    uses = float(sum(t * h for t, h in enumerate(counts)))
    mean = uses / seen
    if mean >= people:
        return Fit(1.0, seen / images)
    if mean > 1:
        p = optimize.brentq(_excess, 1e-12, 1.0, args=(people, mean), xtol=1e-14)
        q = seen / images / _seen_share(p, people)
        if q <= 1:
            return Fit(float(p), float(q))
    return Fit(uses / (people * images), 1.0)


def _excess(p: float, people: int, mean: float) -> float:
    return people * p / _seen_share(p, people) - mean


def _seen_share(p: float, people: int) -> float:
    """Return the probability that at least one person names an object that is there."""
    return -math.expm1(people * math.log1p(-p)) if p < 1 else 1.0


def truncated_probability(means: Vector, people: int) -> Vector:
    """Return p for many means of counts without zeros, to four digits: for resamples."""
    grid = np.linspace(0.0, 1.0, _GRID)[1:]
    of_grid = people * grid / (1 - (1 - grid) ** people)
    probabilities: Vector = np.interp(means, of_grid, grid)
    return probabilities


Integers = np.ndarray[tuple[int], np.dtype[np.int16]]


def weights_of(counts: Integers, people: int, references: int) -> tuple[Vector, Vector]:
    """Return what saying the word gains and costs for each image, over every choice of reference captions.

    A right word gains the number of reference captions that hold it; a wrong one costs 1.
    """
    gains = np.array([references * t / people for t in range(people + 1)])
    costs = np.array([math.comb(people - t, references) / math.comb(people, references) for t in range(people + 1)])
    return gains[counts], costs[counts]


def operating_point(said: Vector, gains: Vector, costs: Vector) -> GridPoint:
    """Return recall and precision of a system that says the word for an image, or does not."""
    right, wrong, there = float(said @ gains), float(said @ costs), float(gains.sum())
    return GridPoint(right / there if there else None, right / (right + wrong) if right + wrong else None)


def precision_at_recall(scores: Vector, gains: Vector, costs: Vector, recall: float) -> float | None:
    """Return the precision where a system that ranks images by a word's score reaches a recall.

    Images with equal scores are taken in random order: of a group, as large a part as the recall needs, and its
    expected gains and costs. So a system that says a word or does not has a value, too: if its own recall is
    higher, a random part of what it says; if it is lower, all of it and a random part of all other images.
    """
    wanted = recall * float(gains.sum())
    if wanted <= 0:
        return None
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.inf))
    gained = np.cumsum(np.add.reduceat(gains[order], starts))
    paid = np.cumsum(np.add.reduceat(costs[order], starts))
    group = min(int(np.searchsorted(gained, wanted * (1 - 1e-12))), len(gained) - 1)
    before = (float(gained[group - 1]), float(paid[group - 1])) if group else (0.0, 0.0)
    part = (wanted - before[0]) / (float(gained[group]) - before[0])
    cost = before[1] + part * (float(paid[group]) - before[1])
    return wanted / (wanted + cost)
