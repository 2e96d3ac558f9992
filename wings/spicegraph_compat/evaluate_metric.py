"""SPICE for Hugging Face's ``evaluate``, loaded by this file's path: ``evaluate.load(metric_path())``."""

import datasets

import evaluate
import spicegraph_compat.caption_metric
import spicegraph_parser.pipelines
import spicegraph_scorer.core.data

_CITATION = """\
@inproceedings{spice2016,
  title     = {SPICE: Semantic Propositional Image Caption Evaluation},
  author    = {Peter Anderson and Basura Fernando and Mark Johnson and Stephen Gould},
  booktitle = {ECCV},
  year      = {2016}
}
"""


class Spicegraph(evaluate.Metric):  # type: ignore[misc] # evaluate has no types
    """SPICE and the COCO caption metrics; the configuration's name lists the metrics (default ``spice``)."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description="SPICE by category, and the metrics of the COCO caption evaluation, without Java.",
            citation=_CITATION,
            inputs_description="predictions: a caption each; references: a list of captions each, or one caption.",
            features=[
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
                datasets.Features({"predictions": text, "references": text}),
            ],
        )

    def _compute(
        self,
        *,
        predictions: list[str],
        references: list[str | list[str]],
        pipeline: str = spicegraph_parser.pipelines.DEFAULT_PIPELINE,
        data: spicegraph_scorer.core.data.MetricData | None = None,
        empty: spicegraph_scorer.readers.checks.Empty = "refuse",
        control_tokens: spicegraph_scorer.readers.marks.ControlTokens = "refuse",
    ) -> dict[str, float]:
        names = ("spice",) if self.config_name == "default" else tuple(self.config_name.split(","))
        metric = spicegraph_compat.caption_metric.CaptionMetric(
            names, data=data, pipeline=pipeline, empty=empty, control_tokens=control_tokens
        )
        return metric.compute(predictions=predictions, references=references)
