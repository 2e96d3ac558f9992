"""SPICE in the shape of torchmetrics: ``update``, ``compute``, ``reset``; torch is not imported.

Where torchmetrics is installed and its own base class is wanted (for ``MetricCollection``, Lightning, or
synchronization over processes): :class:`spicegraph_scorer.adapters.torch_metric.TorchSpice`.

Only SPICE is offered in this shape. CIDEr's document frequencies belong to the whole corpus, so that its
state does not add up; collect the captions and call :func:`spicegraph_scorer.score`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.adapters.caption_metric import References, paired_items
from spicegraph_scorer.adapters.sums import SpiceSums, means_of_sums, sums_of
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.metrics.spice.metric import Spice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.facts import FactSource


SPICE_CATEGORIES = (ALL, *CATEGORIES)
"""The rows of the state."""


def batch_sums(source: FactSource, preds: Sequence[str], target: References) -> SpiceSums:
    """Return the sums of a batch.

    Raises:
        InputError: the lists differ in length, or a caption is faulty.
    """
    statistics = Spice(source).collect(Corpus(paired_items(preds, target)))
    return sums_of(statistics, SPICE_CATEGORIES)


class SpiceMetric:
    """SPICE with its categories over batches; the state is sums, so that states of processes add up exactly.

    Example:
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
        """Add a batch: a candidate each, and its reference or list of references.

        Raises:
            InputError: the lists differ in length, or a caption is faulty; nothing is added then.
        """
        self.sums = self.sums.plus(batch_sums(self._source, preds, target))

    def compute(self) -> dict[str, float]:
        """Return the scores of all batches under flat keys (``spice``, ``spice_color_f`` ...), NaN if undefined."""
        return means_of_sums(self.sums, SPICE_CATEGORIES)

    def forward(self, preds: Sequence[str], target: References) -> dict[str, float]:
        """Add a batch and return its own scores."""
        sums = batch_sums(self._source, preds, target)
        self.sums = self.sums.plus(sums)
        return means_of_sums(sums, SPICE_CATEGORIES)

    def __call__(self, preds: Sequence[str], target: References) -> dict[str, float]:
        """Add a batch and return its own scores."""
        return self.forward(preds, target)

    def merge_state(self, incoming: SpiceMetric) -> None:
        """Add what another metric has seen."""
        self.sums = self.sums.plus(incoming.sums)
