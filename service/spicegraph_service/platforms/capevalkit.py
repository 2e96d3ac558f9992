"""CapEvalKit: the plug-in contract of its benchmarks, predictions and references in, one JSON file out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.adapters.evalai import score_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.metrics import MetricData
    from spicegraph_scorer.readers.checks import Empty


def plugin_output(
    predictions: str | Path,
    references: str | Path,
    *,
    metrics: Sequence[str] = ("spice",),
    empty: Empty = "refuse",
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
) -> dict[str, Json]:
    """Return a plug-in's output: corpus scores by name, and ``per_item`` scores by id.

    An undefined score is ``None``. SPICE's categories stand in each item under ``SPICE_categories``.

    Args:
        predictions: JSON Lines of ``{"id", "caption"}``, or any format of ``spicegraph score``.
        references: JSON Lines of ``{"id", "references"}``, or any format of ``--references``; images without
            a prediction are left out, and a warning says how many.
        metrics: names from ``METRICS``.
        empty: ``refuse`` an empty candidate, or score it as ``zero``.
        pipeline: the spaCy pipeline that parses captions.
        data: as for :func:`spicegraph_scorer.score`.

    Raises:
        InputError: a file is missing or faulty.
    """
    result = score_files(
        str(predictions), str(references), metrics=metrics, partial=True, empty=empty, pipeline=pipeline, data=data
    )
    rows = zip(result.items, result.item_scores(), strict=True)
    return {**result.corpus, "per_item": {str(item.id): scores for item, scores in rows}}
