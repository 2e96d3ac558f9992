"""Scores of image captions: SPICE with its categories and evidence, and the COCO n-gram metrics."""

from spicegraph_scorer.core.credit import Credit
from spicegraph_scorer.core.facts import FactCache, FactSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.core.results import Result, Run
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import METRICS, MetricData
from spicegraph_scorer.metrics.graded.vectors import Vectors, VectorTable
from spicegraph_scorer.metrics.ngram import DocumentFrequencies
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories, read_categories
from spicegraph_scorer.metrics.spice.metric import TupleResult, score_tuples
from spicegraph_scorer.readers import Dataset, read_items
from spicegraph_scorer.readers.parses import read_parses
from spicegraph_scorer.scoring import SystemComparison, choose_best, compare_systems, credit, score

__all__ = [
    "METRICS",
    "CategoryDefinition",
    "Corpus",
    "Credit",
    "Dataset",
    "DocumentFrequencies",
    "FactCache",
    "FactSource",
    "Item",
    "Metric",
    "MetricData",
    "Needs",
    "Resampling",
    "Result",
    "Run",
    "Score",
    "SystemComparison",
    "TupleResult",
    "VectorTable",
    "Vectors",
    "choose_best",
    "compare_systems",
    "credit",
    "make_categories",
    "read_categories",
    "read_items",
    "read_parses",
    "score",
    "score_tuples",
]
