"""What the commands under ``agree`` share: which metrics they compute, and numbers in options."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.studies.agreement.values import Scoring
from spicegraph_service.cli.options import cache_at, metric_data, names_of
from spicegraph_service.engines.local import local_facts
from spicegraph_service.output.terminal import warned_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_METRIC = "none"

JudgedMetricsOption = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Metrics to compute, as for score, comma-separated; none: only the scores that the input holds.",
    ),
]


@contextmanager
def scoring_with(
    metrics: str, *, pipeline: str, workers: int, cache: str, frequencies: str | None, vectors: str | None
) -> Iterator[Scoring]:
    """Give what computes the metrics, with a progress bar on a terminal.

    Raises:
        InputError: a metric is unknown, or a file is given that no metric uses.
        DataError: the pipeline is not installed, or a file can't be read.
    """
    names = () if metrics.strip() == NO_METRIC else names_of(metrics)
    told = metric_data(names, frequencies=frequencies, vectors=vectors)
    with warned_progress() as progress, local_facts(pipeline, workers=workers, cache=cache_at(cache)) as facts:
        yield Scoring(names, facts, told.frequencies, progress, told.vectors)


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the numbers of a comma-separated option.

    Raises:
        InputError: something is no whole number from 1.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and int(part) > 0)]
    if wrong or not parts:
        raise InputError(f"{option}: expected whole numbers such as 1,2,5, got {text!a:.60}")
    return tuple(dict.fromkeys(map(int, parts)))
