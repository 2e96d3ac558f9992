"""``spicegraph compare``: every difference between two systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.spice.difference import differences
from spicegraph_scorer.metrics.spice.metric import JAR_METRICS, Spice
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import compare_systems, resources
from spicegraph_service.cli import options
from spicegraph_service.output.results import COMPARISON_BY_ENDING, ComparisonFormat, pair_text
from spicegraph_service.output.tables import comparison_tables, difference_tables
from spicegraph_service.output.terminal import (
    check_output,
    format_by_ending,
    say_error,
    say_warning,
    warned_progress,
    write_text,
)

if TYPE_CHECKING:
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_service.engines import System


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOptions:
    """What is written, and how tests are drawn.

    Output:
        form: The format of the result; html is the page that report writes. Default: the one of -o's file ending, else
            a table.
        output: Write to this file instead: .json, or .html for a page.

    Tests:
        draws: Number of resamples for each test.
        seed: The same seed gives the same p-values.
    """

    form: Annotated[ComparisonFormat | None, typer.Option("--format")] = None
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE")] = None
    draws: Annotated[int, typer.Option(min=1)] = 1000
    seed: Annotated[int, typer.Option(min=0)] = 12345

    @property
    def format(self) -> ComparisonFormat:
        """The format of what is written."""
        return self.form or format_by_ending(self.output, COMPARISON_BY_ENDING, ComparisonFormat.TABLE)

    @property
    def resampling(self) -> Resampling:
        """How the tests are drawn."""
        return Resampling(self.draws, self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceOptions:
    """What is shown of the differences, or made of them.

    Output:
        fail_if: Exit with 1 where B minus A fulfils one of these conditions: "SPICE < -0.005, Color.f < -0.02,
            object_invented.rate > +0.01": scores, categories (.f, .pr, .re) and rates of kinds of errors.
            "sure Color.f < 0" counts only a significant difference.
        changes: Show instead which tuples B adds and removes, image by image, and which of them the references support;
            with --metrics spice or spice-exact.
    """

    changes: Annotated[bool, typer.Option("--changes")] = False
    fail_if: Annotated[str | None, typer.Option(metavar="CONDITIONS")] = None


def compare(
    first: Annotated[str, typer.Argument(metavar="[NAME=]A")],
    second: Annotated[str, typer.Argument(metavar="[NAME=]B")],
    *,
    given: options.PagedInputOptions,
    scoring: options.ScoringOptions,
    written: ComparedOptions,
    page: options.PageOptions,
    shown: DifferenceOptions,
    parsing: options.ParsingOptions,
) -> None:
    """Compare two systems by every score: paired bootstrap and approximate randomisation over the images.

    Input:
        first: One system's captions, as for score.
        second: The other system's, for the same images.
    """
    names = scoring.names
    _check(written, page, shown)
    if written.format is ComparisonFormat.HTML:
        _write_page([first, second], given, scoring, written, page=page, parsing=parsing)
        return
    data = scoring.data()
    systems = _systems(first, second, given, scoring)
    a, b = systems
    if shown.changes:
        with parsing.facts() as facts, warned_progress() as progress:
            metric, *more = make_metrics(names, resources(facts, progress, data)).values()
            if more or not isinstance(metric, Spice):
                raise InputError(f"--changes: shows the tuples of one metric, {' or '.join(JAR_METRICS)}")
            different = differences(check_items(a.items), check_items(b.items), metric)
        write_text(pair_text(different, (a.name, b.name), written.format, difference_tables), written.output)
        return
    with parsing.facts() as facts, warned_progress() as progress:
        broken = _broken(shown.fail_if, systems, scoring, written.resampling, facts=facts, progress=progress)
        comparison = compare_systems(
            a.items, b.items, names, pipeline=facts, resampling=written.resampling, progress=progress, data=data
        )
    for system, empty in zip(systems, comparison.empty_graphs, strict=True):
        for note in empty.notes():
            say_warning(f"{system.name}: {note}")
    write_text(pair_text(comparison, (a.name, b.name), written.format, comparison_tables), written.output)
    if broken:
        say_error("\n".join(broken))
        raise typer.Exit(1)


def _check(written: ComparedOptions, page: options.PageOptions, shown: DifferenceOptions) -> None:
    """Refuse options that contradict each other, and an output that can't be written; a page has its own checks."""
    is_page = written.format is ComparisonFormat.HTML
    if shown.fail_if is not None and (shown.changes or is_page):
        raise InputError("--fail-if: goes with the formats table and json")
    if shown.changes and is_page:
        raise InputError("--changes: can be written as table or json")
    if is_page:
        return
    if written.output is not None:
        check_output(written.output)
    if page.pictures(written.output) is not None:
        raise InputError("--images: only an HTML page (-o FILE.html) shows images")
    if page.split_page:
        raise InputError("--split: only an HTML page (-o FILE.html) can be split")


def _write_page(
    sources: list[str],
    given: options.PagedInputOptions,
    scoring: options.ScoringOptions,
    written: ComparedOptions,
    *,
    page: options.PageOptions,
    parsing: options.ParsingOptions,
) -> None:
    """Write the page of two systems, which is their report."""
    from spicegraph_service.cli.report import ReportedOptions, WrittenOptions, report  # noqa: PLC0415
    from spicegraph_service.report import ReportFormat  # noqa: PLC0415 (most runs write no page)

    report(
        sources,
        given=given,
        scoring=scoring,
        written=WrittenOptions(form=ReportFormat.HTML, output=written.output),
        page=page,
        of=ReportedOptions(draws=written.draws, seed=written.seed),
        parsing=parsing,
        remote=options.RemoteOptions(),
    )


def _systems(
    first: str, second: str, given: options.PagedInputOptions, scoring: options.ScoringOptions
) -> tuple[System, System]:
    """Read two systems, which are called by their files or, where these have one name, as they were given."""
    called = options.system_name(first)[0], options.system_name(second)[0]
    names = called if called[0] != called[1] else (first, second)
    a, b = (
        given.system(source, name=name, empty=scoring.empty, language=scoring.language)
        for source, name in zip((first, second), names, strict=True)
    )
    return a, b


def _broken(
    conditions: str | None,
    systems: tuple[System, System],
    scoring: options.ScoringOptions,
    draws: Resampling,
    *,
    facts: FactSource,
    progress: Progress | None,
) -> list[str]:
    """Return the conditions of ``--fail-if`` that two systems fulfil, with what came out: a report's answer."""
    if conditions is None:
        return []
    from spicegraph_service.report import ReportOptions, build_report, gates  # noqa: PLC0415 (most runs need none)

    texts = tuple(conditions.split(","))
    wanted = ReportOptions(scoring.names, data=scoring.data("spice"), resampling=draws, human=False, gates=texts)
    results = build_report(systems, wanted, pipeline=facts, progress=progress).gates
    return [gates.broken_line(result) for result in results if not result.passed]
