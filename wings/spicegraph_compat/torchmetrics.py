"""SPICE in the shape of torchmetrics: ``update``, ``compute``, ``reset``; torch is not imported.

Where torchmetrics is installed and its own base class is wanted (for ``MetricCollection``, Lightning, or
synchronization over processes): :class:`spicegraph_compat.torch_metric.TorchSpice`.

Only SPICE is offered in this shape. CIDEr's document frequencies belong to the whole corpus, so that its
state does not add up; collect the captions and call :func:`spicegraph_scorer.score`.

The state is sums that add up exactly, in any order and over any number of processes. A mean is a sum divided by a
count. Floats that are added in another order give another last bit; so each score is split into three integers of
34 bits, whose sums are exact, and whose total is rounded once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from spicegraph_compat.caption_metric import References, paired_items
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer.core.facts import FactSource


Sums: TypeAlias = "NDArray[np.int64]"
"""A row for each category: the sums of F1, precision and recall, three limbs each, and of the items that have these."""

SPICE_CATEGORIES = (ALL, *CATEGORIES)  # The rows of the state.


def batch_sums(source: FactSource, preds: Sequence[str], target: References) -> Sums:
    """Return the sums of a batch."""
    return sums_of(Spice(source).collect(Corpus(paired_items(preds, target))), SPICE_CATEGORIES)


class SpiceMetric:
    """SPICE with its categories over batches; the state is sums, so that states of processes add up exactly.

    >>> metric = SpiceMetric()
    >>> metric.update(["a dog"], [["a brown dog", "the dog"]])
    >>> metric.compute()["spice"]
    0.6666666666666666
    """

    def __init__(self, *, pipeline: str | FactSource = DEFAULT_PIPELINE) -> None:
        """Take the pipeline; it is loaded now, so that a missing one fails before the training does."""
        self._source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        self.reset()

    def reset(self) -> None:
        """Forget every batch."""
        self.sums = sums_of((), SPICE_CATEGORIES)

    def update(self, preds: Sequence[str], target: References) -> None:
        """Add a batch: a candidate each, and its reference or list of references; nothing of a faulty one."""
        self.sums = self.sums + batch_sums(self._source, preds, target)

    def compute(self) -> dict[str, float]:
        """Return the scores of all batches under flat keys (``spice``, ``spice_color_f`` ...), NaN if undefined."""
        return means_of_sums(self.sums, SPICE_CATEGORIES)

    def forward(self, preds: Sequence[str], target: References) -> dict[str, float]:
        """Add a batch and return its own scores."""
        sums = batch_sums(self._source, preds, target)
        self.sums = self.sums + sums
        return means_of_sums(sums, SPICE_CATEGORIES)

    def __call__(self, preds: Sequence[str], target: References) -> dict[str, float]:
        """Add a batch and return its own scores."""
        return self.forward(preds, target)

    def merge_state(self, incoming: SpiceMetric) -> None:
        """Add another metric's state."""
        self.sums = self.sums + incoming.sums


_LIMBS: Final = 3
_LIMB_BITS: Final = 34
_SCORES: Final = ("f", "precision", "recall")


def sums_of(statistics: Iterable[SpiceStatistic], categories: Sequence[str]) -> Sums:
    """Return the sums of up to 2 ** 29 items' statistics (then an int64 is full), ``All`` first."""
    sums = np.zeros((len(categories), len(_SCORES) * _LIMBS + 1), np.int64)
    for statistic in statistics:
        for row, name in enumerate(categories):
            counts = statistic.counts[name]
            if counts.reference or name == ALL:
                values = counts.f1, counts.precision, counts.recall
                sums[row] += np.array([*chain.from_iterable(map(_split, values)), 1], np.int64)
    return sums


def _split(value: float) -> list[int]:
    """Return a value of [0, 1] as limbs, the highest first: whole multiples of 2 ** -34, 2 ** -68, 2 ** -102."""
    scaled = Fraction(value) * 2 ** (_LIMBS * _LIMB_BITS)
    if scaled.denominator != 1:  # below 2 ** -49: no F1 of fewer than a hundred million tuples is
        raise OverflowError(f"{value!r} is too small to be summed exactly")
    low_bits = 2**_LIMB_BITS - 1
    return [scaled.numerator >> 2 * _LIMB_BITS, scaled.numerator >> _LIMB_BITS & low_bits, scaled.numerator & low_bits]


def means_of_sums(sums: Sums, categories: Sequence[str]) -> dict[str, float]:
    """Return the means of :func:`spicegraph_scorer.score`, to the last bit, under flat keys; NaN without items."""
    flat: dict[str, float] = {}
    for row, category in enumerate(categories):
        items = int(sums[row, -1])
        prefix = "spice" if category == ALL else f"spice_{category.lower()}"
        for name, (high, middle, low) in zip(_SCORES, sums[row, :-1].reshape(-1, _LIMBS).tolist(), strict=True):
            key = "spice" if (category, name) == (ALL, "f") else f"{prefix}_{name}"
            total = (high << 2 * _LIMB_BITS) + (middle << _LIMB_BITS) + low  # the sum, rounded once to a float
            flat[key] = float(Fraction(total, 2 ** (_LIMBS * _LIMB_BITS))) / items if items else math.nan
    return flat
