"""A scorer for W&B Weave: ``weave.Evaluation(dataset=rows, scorers=[CaptionScorer()])``.

A row of the dataset has its references under ``references``, one string or a list; ``column_map`` names another column.
"""

from __future__ import annotations

import weave
from pydantic import PrivateAttr

from spicegraph_compat.caption_metric import CaptionMetric, per_caption_metric
from spicegraph_parser.pipelines import DEFAULT_PIPELINE


class CaptionScorer(weave.Scorer):
    """Scores each output, a caption; Weave's summary has the mean of every score.

    Attributes:
        metrics: names, with commas between them.
        idf: a file of document frequencies, for CIDEr and SPIDEr.
        pipeline: what parses captions.

    Raises:
        InputError: a metric is unknown, or needs document frequencies.
    """

    metrics: str = "spice"
    idf: str | None = None
    pipeline: str = DEFAULT_PIPELINE
    _metric: CaptionMetric = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Check the options before anything is scored."""
        super().model_post_init(context)
        self._metric = per_caption_metric(self.metrics, idf=self.idf, pipeline=self.pipeline)

    @weave.op
    def score(self, *, output: str, references: str | list[str]) -> dict[str, float]:
        """Return the scores of one caption by name."""
        return self._metric.score_one(output, references)
