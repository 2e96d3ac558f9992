"""Scores of image captions: SPICE with its categories and evidence, and the COCO n-gram metrics."""

from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.core.metric import Metric, Score
from spicegraph_scorer.core.results import Result, Run
from spicegraph_scorer.metrics import METRICS, MetricData
from spicegraph_scorer.metrics.spice.ready import TupleResult, score_tuples
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score

__all__ = [
    "METRICS",
    "Corpus",
    "Item",
    "Metric",
    "MetricData",
    "Result",
    "Run",
    "Score",
    "TupleResult",
    "read_items",
    "score",
    "score_tuples",
]
