"""Scores of image captions: SPICE with its categories and evidence, and the COCO n-gram metrics."""

from spicegraph_scorer.items import Corpus, Item
from spicegraph_scorer.metric import Metric, Score
from spicegraph_scorer.metrics import METRICS
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.results import Result, Run
from spicegraph_scorer.scoring import score
from spicegraph_scorer.spice.ready import TupleResult, score_tuples

__all__ = [
    "METRICS",
    "Corpus",
    "Item",
    "Metric",
    "Result",
    "Run",
    "Score",
    "TupleResult",
    "read_items",
    "score",
    "score_tuples",
]
