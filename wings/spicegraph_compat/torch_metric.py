"""SPICE as a torchmetrics ``Metric``; importing this module imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torchmetrics import Metric

from spicegraph_compat.torchmetrics import SPICE_CATEGORIES, batch_sums, means_of_sums, sums_of
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_compat.caption_metric import References
    from spicegraph_scorer.core.facts import FactSource


class TorchSpice(Metric):  # type: ignore[misc] # torchmetrics is not installed where types are checked
    """SPICE with its categories; states are int64 sums (``dist_reduce_fx="sum"``), exact on any number of ranks."""

    sums: torch.Tensor
    full_state_update = False
    is_differentiable = False
    higher_is_better = True

    def __init__(self, *, pipeline: str = DEFAULT_PIPELINE, **options: Any) -> None:
        """Take the pipeline's name, and torchmetrics' own options."""
        super().__init__(**options)
        self.pipeline = pipeline
        self._source: FactSource | None = None
        self.add_state("sums", torch.from_numpy(sums_of((), SPICE_CATEGORIES)), dist_reduce_fx="sum")

    def update(self, preds: Sequence[str], target: References) -> None:
        """Add a batch: a candidate each, and its reference or list of references."""
        if self._source is None:
            self._source = load_pipeline(self.pipeline)
        self.sums = self.sums + torch.from_numpy(batch_sums(self._source, preds, target)).to(self.sums.device)

    def compute(self) -> dict[str, torch.Tensor]:
        """Return the scores under flat keys (``spice``, ``spice_color_f`` ...) as float64; undefined ones are NaN."""
        means = means_of_sums(self.sums.cpu().numpy(), SPICE_CATEGORIES)
        return {key: torch.tensor(value, dtype=torch.float64) for key, value in means.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Leave the loaded pipeline behind: a copy loads it again."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"_source": None}
