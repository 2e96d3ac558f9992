"""SPICE as sums that add up exactly, in any order and over any number of processes.

A mean is a sum divided by a count. Floats that are added in another order give another last bit; so each
score is split into three integers of 34 bits, whose sums are exact, and whose total is rounded once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spicegraph_scorer.core.categories import ALL, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic


_LIMBS: Final = 3
_LIMB_BITS: Final = 34
_SCORES: Final = ("f", "precision", "recall")


class SpiceSums(NamedTuple):
    """Sums over items, as int64: every field adds up item by item and process by process.

    Attributes:
        scores: of every category the sums of F1, precision and recall, three limbs each; shape
            (categories, 3, 3).
        items: of every category the items whose references have such tuples; shape (categories,).
    """

    scores: NDArray[np.int64]
    items: NDArray[np.int64]

    def plus(self, other: SpiceSums) -> SpiceSums:
        """Return the sums over both sets of items."""
        return SpiceSums(self.scores + other.scores, self.items + other.items)


def sums_of(statistics: Iterable[SpiceStatistic], categories: Sequence[str]) -> SpiceSums:
    """Return the sums of some items' statistics; ``categories`` begins with ``All``.

    At most 2 ** 29 items (536 million) can be summed before an int64 is full.
    """
    sums = SpiceSums(
        np.zeros((len(categories), len(_SCORES), _LIMBS), np.int64),
        np.zeros(len(categories), np.int64),
    )
    for statistic in statistics:
        for row, name in enumerate(categories):
            counts = statistic.counts[name]
            if counts.reference or name == ALL:
                sums.items[row] += 1
                sums.scores[row] += _limbs(counts)
    return sums


def _limbs(counts: Counts) -> NDArray[np.int64]:
    return np.array([_split(value) for value in (counts.f1, counts.precision, counts.recall)], np.int64)


def _split(value: float) -> list[int]:
    """Return a value of [0, 1] as limbs, the highest first: whole multiples of 2 ** -34, 2 ** -68, 2 ** -102."""
    scaled = Fraction(value) * 2 ** (_LIMBS * _LIMB_BITS)
    if scaled.denominator != 1:  # below 2 ** -49: no F1 of fewer than a hundred million tuples is
        raise OverflowError(f"{value!r} is too small to be summed exactly")
    low_bits = 2**_LIMB_BITS - 1
    return [
        scaled.numerator >> 2 * _LIMB_BITS,
        scaled.numerator >> _LIMB_BITS & low_bits,
        scaled.numerator & low_bits,
    ]


def means_of_sums(sums: SpiceSums, categories: Sequence[str]) -> dict[str, float]:
    """Return the means under flat keys, as :func:`spicegraph_scorer.adapters.caption_metric.flat_scores` has them.

    They are those of :func:`spicegraph_scorer.score` to the last bit; without items they are NaN.
    """
    flat: dict[str, float] = {}
    for row, category in enumerate(categories):
        items = int(sums.items[row])
        prefix = "spice" if category == ALL else f"spice_{category.lower()}"
        for name, limbs in zip(_SCORES, sums.scores[row].tolist(), strict=True):
            key = "spice" if (category, name) == (ALL, "f") else f"{prefix}_{name}"
            flat[key] = _sum(limbs) / items if items else math.nan
    return flat


def _sum(limbs: Sequence[int]) -> float:
    """Return the sum that limbs stand for, rounded to the nearest float."""
    high, middle, low = limbs
    total = (high << 2 * _LIMB_BITS) + (middle << _LIMB_BITS) + low
    return float(Fraction(total, 2 ** (_LIMBS * _LIMB_BITS)))
