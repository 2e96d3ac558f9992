"""Scores of image captions: SPICE with its categories and evidence, and the COCO n-gram metrics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.facts import FactCache, FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Metric, Needs, Score
    from spicegraph_scorer.core.ngrams import DocumentFrequencies
    from spicegraph_scorer.core.results import Result, Run
    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_scorer.core.tokens import Corpus
    from spicegraph_scorer.metrics import METRICS
    from spicegraph_scorer.metrics.graded.vectors import Vectors, VectorTable
    from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories, read_categories
    from spicegraph_scorer.metrics.spice.metric import TupleResult, score_tuples
    from spicegraph_scorer.readers import Dataset, read_items
    from spicegraph_scorer.readers.parses import read_parses
    from spicegraph_scorer.scoring import SystemComparison, choose_best, compare_systems, credit, score, score_captions

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
    "score_captions",
    "score_tuples",
]

_PLACES = {
    "core.credit": ("Credit",),
    "core.facts": ("FactCache", "FactSource"),
    "core.items": ("Item",),
    "core.metric": ("Metric", "Needs", "Score"),
    "core.results": ("Result", "Run"),
    "core.significance": ("Resampling",),
    "core.tokens": ("Corpus",),
    "core.data": ("MetricData",),
    "metrics": ("METRICS",),
    "metrics.graded.vectors": ("VectorTable", "Vectors"),
    "core.ngrams": ("DocumentFrequencies",),
    "metrics.spice.categories": ("CategoryDefinition", "make_categories", "read_categories"),
    "metrics.spice.metric": ("TupleResult", "score_tuples"),
    "readers": ("Dataset", "read_items"),
    "readers.parses": ("read_parses",),
    "scoring": ("SystemComparison", "choose_best", "compare_systems", "credit", "score", "score_captions"),
}
"""The names by the module that has them: it is loaded when a name is first asked for.

The imports above are for type checkers and editors; a test checks that they and this table agree.
"""


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for one of ours

    def __getattr__(name: str) -> object:
        for module, names in _PLACES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
                return value
        if name in {
            module.partition(".")[0] for module in _PLACES
        }:  # a module, which the imports above show to checkers
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
