"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "spicegraph_parser.caption_pipeline.lemmas",
        "spicegraph_parser.caption_pipeline.encoder",
        "spicegraph_parser.caption_pipeline.layout",
        "spicegraph_parser.caption_pipeline.network",
        "spicegraph_parser.spacy_front",
        "spicegraph_parser.discourse",
        "spicegraph_parser.export",
        "spicegraph_parser.extract",
        "spicegraph_parser.graph",
        "spicegraph_parser.graph_text",
        "spicegraph_parser.lexicon",
        "spicegraph_parser.parse",
        "spicegraph_parser.picture",
        "spicegraph_parser.pipelines",
        "spicegraph_parser.rules",
        "spicegraph_parser.ud2",
        "spicegraph_scorer.adapters.aac_metrics",
        "spicegraph_scorer.adapters.caption_metric",
        "spicegraph_scorer.adapters.torchmetrics",
        "spicegraph_scorer.readers.tables",
        "spicegraph_scorer.readers.records",
        "spicegraph_scorer.scoring",
        "spicegraph_scorer.metrics.cider",
        "spicegraph_scorer.metrics.spice.metric",
    ],
)
def test_examples(name: str) -> None:
    """A module named here has examples, and each gives what it shows."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
