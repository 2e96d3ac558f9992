"""The options that several commands share, and what they are read as."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_scorer.metrics import GROUPS, METRICS, metric_names

__all__ = ["MetricsOption", "PipelineOption", "ReferencesOption", "names_of"]

ReferencesOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="COCO annotations with the reference captions.")
]
MetricsOption = Annotated[
    str, typer.Option(metavar="NAMES", help=f"Comma-separated: {', '.join((*METRICS, *GROUPS))}.")
]
PipelineOption = Annotated[str, typer.Option(metavar="NAME", help="The spaCy pipeline that parses captions.")]


def names_of(metrics: str) -> tuple[str, ...]:
    """Return the metrics that a comma-separated option names.

    Raises:
        InputError: a name is unknown, or there is none.
    """
    return metric_names(name.strip() for name in metrics.split(",") if name.strip())
