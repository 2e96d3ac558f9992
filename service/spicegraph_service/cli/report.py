"""``spicegraph report``: one or several systems' files in, a page about their errors out."""

from __future__ import annotations

import warnings
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.significance import Resampling
from spicegraph_scorer.spice.categories import CATEGORIES
from spicegraph_scorer.spice.custom import read_categories
from spicegraph_service.cli.options import MetricsOption, PipelineOption, ReferencesOption, names_of
from spicegraph_service.cli.output import check_output, whole_file
from spicegraph_service.cli.terminal import progress_bar, say_warning, write_stdout
from spicegraph_service.report import REPORT_FORMATS, ReportFormat, ReportOptions, build_report
from spicegraph_service.report.data import SystemInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["report", "system_input", "write_report"]

_BY_ENDING: Mapping[str, ReportFormat] = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
}


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]INPUT...",
            help="One file a system, as for score, all for the same images and references.",
        ),
    ],
    *,
    references: ReferencesOption = None,
    metrics: MetricsOption = "spice",
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="Default: what the ending of -o says, else html."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading; default: the systems' names.")] = None,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="Show the images: a folder, or an address with {id} or {id:012} in it.",
        ),
    ] = None,
    categories: Annotated[str | None, typer.Option(metavar="FILE", help="TOML with categories of your own.")] = None,
    human: Annotated[
        bool,
        typer.Option("--human/--no-human", help="Score each first reference against the others, too."),
    ] = True,
    partial: Annotated[
        bool, typer.Option("--partial", help="Only the images of --references that have a result.")
    ] = False,
    draws: Annotated[int, typer.Option(min=1, help="Resamples of each interval and test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same intervals.")] = 12345,
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Show what systems get wrong, by category and image: one HTML page, JSON, or Markdown."""
    names = names_of(metrics)
    if output is not None:
        check_output(output)
    options = ReportOptions(
        metrics=names,
        title=title,
        categories=read_categories(categories) if categories else CATEGORIES,
        images=images,
        resampling=Resampling(draws, seed),
        human=human,
    )
    systems = [system_input(source, references=references, partial=partial) for source in sources]
    ending = PurePath(output).suffix.lower() if output else ""
    chosen = form or _BY_ENDING.get(ending, ReportFormat.HTML)
    write_report(systems, options, form=chosen, output=output, pipeline=pipeline)


def write_report(
    systems: Sequence[SystemInput],
    options: ReportOptions,
    *,
    form: ReportFormat,
    output: str | None,
    pipeline: str,
) -> None:
    """Build a report and write it to a file or to standard output."""
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.showwarning = say_warning
        built = build_report(systems, options, pipeline=pipeline, progress=progress)
    text = REPORT_FORMATS[form](built)
    if output is None:
        write_stdout(text)
        return
    with whole_file(output) as stream:
        stream.write(text)


def system_input(source: str, *, references: str | None, partial: bool) -> SystemInput:
    """Read a system; its name stands before the file (``mine=results.json``) or is the file's own."""
    name, equals, path = source.partition("=")
    if not equals or not name or "/" in name:
        name, path = PurePath(source).stem, source
    return SystemInput(name, read_items(path, references=references, partial=partial).items)
