"""``spicegraph compare``: two systems' files in, every difference with its interval and p-values out."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.spice.difference import differences
from spicegraph_scorer.metrics.spice.metric import JAR_METRICS, Spice
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import compare_systems, resources
from spicegraph_service.cli.options import InputOptions, ParsingOptions, ScoringOptions, system_name
from spicegraph_service.cli.report import PageOptions, made, write_report
from spicegraph_service.output.report import ReportFormat, ReportOptions
from spicegraph_service.output.results import (
    COMPARISON_BY_ENDING,
    COMPARISON_FORMATS,
    DIFFERENCE_FORMATS,
    ComparisonFormat,
)
from spicegraph_service.output.terminal import check_output, format_by_ending, warned_progress, write_text


def compare(
    first: Annotated[str, typer.Argument(metavar="[NAME=]A", help="One system's captions, as for score.")],
    second: Annotated[str, typer.Argument(metavar="[NAME=]B", help="The other system's, for the same images.")],
    *,
    given: InputOptions,
    scoring: ScoringOptions,
    form: Annotated[
        ComparisonFormat | None,
        typer.Option(
            "--format",
            help="The format of the result; html is a report with the errors and images that differ. Default: the "
            "one of -o's file ending, else a table.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead: .json, or .html for a page."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Number of resamples for each test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same p-values.")] = 12345,
    page: PageOptions,
    changes: Annotated[
        bool,
        typer.Option(
            "--changes",
            help="Show instead which tuples B adds and removes, image by image, and which of them the references "
            "support; with --metrics spice or spice-exact.",
        ),
    ] = False,
    parsing: ParsingOptions,
) -> None:
    """Compare two systems by every score: paired bootstrap and approximate randomisation over the images."""
    names = scoring.names
    if output is not None:
        check_output(output)
    chosen = form or format_by_ending(output, COMPARISON_BY_ENDING, ComparisonFormat.TABLE)
    if chosen is not ComparisonFormat.HTML and page.shown(output) is not None:
        raise InputError("--images: only an HTML page (-o FILE.html) shows images")
    if page.split and (output is None or chosen is not ComparisonFormat.HTML):
        raise InputError("--split: only an HTML page (-o FILE.html) can be split")
    if changes and chosen not in DIFFERENCE_FORMATS:
        raise InputError(f"--changes: can be written as {' or '.join(DIFFERENCE_FORMATS)}")
    data = scoring.data(*(("spice",) if chosen is ComparisonFormat.HTML else ()))  # a report always has SPICE
    one, other = (
        given.system(source, name=name, empty=scoring.empty)
        for source, name in zip((first, second), _names(first, second), strict=True)
    )
    with parsing.facts() as facts:
        if changes:
            with warned_progress() as progress:
                metric, *more = make_metrics(names, resources(facts, progress, data)).values()
                if more or not isinstance(metric, Spice):
                    raise InputError(f"--changes: shows the tuples of one metric, {' or '.join(JAR_METRICS)}")
                different = differences(check_items(one.items), check_items(other.items), metric)
            write_text(DIFFERENCE_FORMATS[chosen](different, (one.name, other.name)), output)
            return
        if chosen is ComparisonFormat.HTML:
            options = ReportOptions(
                metrics=names,
                title=f"{other.name} against {one.name}",
                resampling=Resampling(draws, seed),
                data=data,
                images=page.shown(output),
                made=made([*(system_name(source)[1] for source in (first, second)), *given.files, *scoring.files]),
            )
            write_report([one, other], options, form=ReportFormat.HTML, output=output, facts=facts, split=page.split)
            return
        with warned_progress() as progress:
            found = compare_systems(
                one.items,
                other.items,
                names,
                pipeline=facts,
                resampling=Resampling(draws, seed),
                progress=progress,
                data=data,
            )
    write_text(COMPARISON_FORMATS[chosen](found, (one.name, other.name)), output)


def _names(first: str, second: str) -> tuple[str, str]:
    """Return what the systems are called, or the whole arguments where that is the same."""
    names = system_name(first)[0], system_name(second)[0]
    return names if names[0] != names[1] else (first, second)
