"""``spicegraph compare``: two systems' files in, every difference with its interval and p-values out."""

from __future__ import annotations

import warnings
from pathlib import PurePath
from typing import Annotated

import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.comparing import compare_systems
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.significance import Resampling
from spicegraph_service.cli.formats import COMPARISON_FORMATS, ComparisonFormat
from spicegraph_service.cli.options import MetricsOption, PipelineOption, ReferencesOption, names_of
from spicegraph_service.cli.output import check_output, whole_file
from spicegraph_service.cli.report import write_report
from spicegraph_service.cli.terminal import progress_bar, say_warning, write_stdout
from spicegraph_service.report import ReportFormat, ReportOptions
from spicegraph_service.report.data import SystemInput

__all__ = ["compare"]

_PAGES = frozenset({".html", ".htm"})


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="One system's captions, as for score.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other system's, for the same images.")],
    *,
    references: ReferencesOption = None,
    metrics: MetricsOption = "spice",
    form: Annotated[
        ComparisonFormat, typer.Option("--format", help="How to write the result.")
    ] = ComparisonFormat.TABLE,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file instead; .html gives a report with the errors and images that differ.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Compare only the images of --references that have a result.")
    ] = False,
    draws: Annotated[int, typer.Option(min=1, help="Resamples of each test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same p-values.")] = 12345,
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Compare two systems by every score: paired bootstrap and approximate randomisation over the images."""
    names = names_of(metrics)
    if output is not None:
        check_output(output)
    one = read_items(first, references=references, partial=partial)
    other = read_items(second, references=references, partial=partial)
    page = output is not None and PurePath(output).suffix.lower() in _PAGES
    if page and form is ComparisonFormat.TABLE:
        systems = [
            SystemInput(name, dataset.items) for name, dataset in zip(_names(first, second), (one, other), strict=True)
        ]
        options = ReportOptions(
            metrics=names,
            title=f"{systems[1].name} against {systems[0].name}",
            resampling=Resampling(draws, seed),
        )
        write_report(systems, options, form=ReportFormat.HTML, output=output, pipeline=pipeline)
        return
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.showwarning = say_warning
        found = compare_systems(
            one.items,
            other.items,
            names,
            pipeline=pipeline,
            resampling=Resampling(draws, seed),
            progress=progress,
        )
    text = COMPARISON_FORMATS[form](found)
    if output is None:
        write_stdout(text)
        return
    with whole_file(output) as stream:
        stream.write(text)


def _names(first: str, second: str) -> tuple[str, str]:
    """Return the files' names without folder and ending, or the whole paths where those are equal."""
    stems = PurePath(first).stem, PurePath(second).stem
    return stems if stems[0] != stems[1] else (first, second)
