"""What the commands under ``agree`` share: options, and writing a study."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.agreement.values import Scoring
from spicegraph_service.agreement.formats import BY_ENDING, STUDY_FORMATS, StudyFormat
from spicegraph_service.cli.options import (
    CacheOption,
    FrequenciesOption,
    PipelineOption,
    WorkersOption,
    cache_at,
    frequencies_in,
    names_of,
)
from spicegraph_service.cli.output import check_output, whole_file
from spicegraph_service.cli.terminal import progress_bar, say_warning, write_stdout
from spicegraph_service.engines.local import local_facts
from spicegraph_service.plots import require_charts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spicegraph_service.agreement.model import Study

__all__ = [
    "CacheOption",
    "DrawsOption",
    "FormatOption",
    "FrequenciesOption",
    "JudgedMetricsOption",
    "OutputOption",
    "PipelineOption",
    "SeedOption",
    "WorkersOption",
    "prepare_output",
    "scoring_with",
    "warned_progress",
    "whole_numbers",
    "write_study",
]

NO_METRIC = "none"

FormatOption = Annotated[
    StudyFormat | None,
    typer.Option("--format", help="How to write the result. Default: a table, and for -o what the file's ending says."),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write to this file: .json, .csv, .tex, or .html for a page with charts."
    ),
]
DrawsOption = Annotated[int, typer.Option(min=1, help="Resamples of each interval and test.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same intervals, p-values and draws.")]
JudgedMetricsOption = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Metrics to compute, as for score, comma-separated; none: only the scores that the input holds.",
    ),
]


def prepare_output(form: StudyFormat | None, output: str | None) -> StudyFormat:
    """Say before the work whether the output can be written, and in which format.

    Raises:
        InputError: the file can't be written.
        DataError: matplotlib, which pages need, is not installed.
    """
    if output is not None:
        check_output(output)
    ending = Path(output).suffix.lower() if output is not None else ""
    chosen = form or BY_ENDING.get(ending, StudyFormat.TABLE)
    if chosen is StudyFormat.HTML:
        require_charts()
    return chosen


def write_study(study: Study, form: StudyFormat, output: str | None) -> None:
    """Write a study to a file or to standard output."""
    text = STUDY_FORMATS[form](study)
    if output is None:
        write_stdout(text)
        return
    with whole_file(output) as stream:
        stream.write(text)


@contextmanager
def scoring_with(
    metrics: str, *, pipeline: str, workers: int, cache: str, frequencies: str | None
) -> Iterator[Scoring]:
    """Give what computes the metrics, with a progress bar on a terminal.

    Raises:
        InputError: a metric is unknown.
        DataError: the pipeline is not installed.
    """
    names = () if metrics.strip() == NO_METRIC else names_of(metrics)
    frozen = frequencies_in(frequencies)
    with warned_progress() as progress, local_facts(pipeline, workers=workers, cache=cache_at(cache)) as facts:
        yield Scoring(names, facts, frozen, progress)


@contextmanager
def warned_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Give a progress bar on a terminal, while the library's warnings go to standard error."""
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.showwarning = say_warning
        warnings.filterwarnings("always", module="spicegraph")
        yield progress


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
