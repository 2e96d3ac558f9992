"""Precision at human recall: a system's precision for a word once it finds the word as often as people do.

Source: Chen et al. 2015, section 4.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_scorer.studies.agreement.words.model import Point

if TYPE_CHECKING:
    from spicegraph_scorer.studies.agreement.concordance import Vector

__all__ = ["operating_point", "precision_at_recall", "weights_of"]

Integers = np.ndarray[tuple[int], np.dtype[np.int16]]


def weights_of(counts: Integers, people: int, references: int) -> tuple[Vector, Vector]:
    """Return what saying the word gains and costs for each image, over every choice of reference captions.

    A right word gains the number of reference captions that hold it; a wrong one costs 1.

    Args:
        counts: in how many of the image's captions the word is.
        people: captions of each image.
        references: captions that count as references, as for the human point.
    """
    gains = np.array([references * t / people for t in range(people + 1)])
    costs = np.array([math.comb(people - t, references) / math.comb(people, references) for t in range(people + 1)])
    return gains[counts], costs[counts]


def operating_point(said: Vector, gains: Vector, costs: Vector) -> Point:
    """Return recall and precision of a system that says the word for an image, or does not.

    Args:
        said: 1 where it says the word, else 0; a share where it has several captions of an image.
        gains: from :func:`weights_of`.
        costs: from :func:`weights_of`.
    """
    right, wrong, there = float(said @ gains), float(said @ costs), float(gains.sum())
    return Point(right / there if there else None, right / (right + wrong) if right + wrong else None)


def precision_at_recall(scores: Vector, gains: Vector, costs: Vector, recall: float) -> float | None:
    """Return the precision where a system that ranks images by a word's score reaches a recall.

    Images with equal scores are taken in random order: of a group, as large a part as the recall needs, and its
    expected gains and costs. So a system that says a word or does not has a value, too: if its own recall is
    higher, a random part of what it says; if it is lower, all of it and a random part of all other images.

    Args:
        scores: how sure the system is of the word in each image.
        gains: from :func:`weights_of`.
        costs: from :func:`weights_of`.
        recall: in [0, 1]; 0 leaves nothing to be precise about, and ``None`` is returned.
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
