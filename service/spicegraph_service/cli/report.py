"""``spicegraph report`` and ``compare``: systems' files in; a page about their errors, or every difference, out."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.spice.difference import differences
from spicegraph_scorer.metrics.spice.metric import JAR_METRICS, Spice
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import compare_systems, resources
from spicegraph_service.cli.options import InputOptions, ParsingOptions, ScoringOptions, system_name
from spicegraph_service.output.report import REPORT_FORMATS, ReportFormat, ReportOptions, build_report
from spicegraph_service.output.report.data import InputFile, Made
from spicegraph_service.output.report.images import Shown
from spicegraph_service.output.report.render import to_html, to_parts
from spicegraph_service.output.results import (
    COMPARISON_BY_ENDING,
    COMPARISON_FORMATS,
    DIFFERENCE_FORMATS,
    ComparisonFormat,
)
from spicegraph_service.output.terminal import check_output, format_by_ending, warned_progress, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_service.output.report import Report
    from spicegraph_service.output.report.data import SystemInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What only an HTML page has."""

    images: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="Show the images: a folder, or an address with {id} or {id:012} in it.",
        ),
    ] = None
    images_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the files of the folder of --images will stand. Default: where they are, relative to the page.",
        ),
    ] = None
    embed_images: Annotated[
        bool, typer.Option("--embed-images", help="Put the files of the folder of --images into the page.")
    ] = False
    split: Annotated[
        bool,
        typer.Option(
            "--split", help="Put the details of the images into a folder next to the page, for very large sets."
        ),
    ] = False

    def shown(self, output: str | None) -> Shown | None:
        """Return how the page shows images; ``None``: it shows none.

        Raises:
            InputError: there is no folder of images that could be embedded, or stand elsewhere.
        """
        if self.embed_images and self.images_url is not None:
            raise InputError("--embed-images, --images-url: images stand in the page or at an address, choose one")
        if self.images is None:
            if self.embed_images or self.images_url is not None:
                option = "--embed-images" if self.embed_images else "--images-url"
                raise InputError(f"{option}: which images? Name their folder with --images")
            return None
        return Shown(self.images, self.images_url, self.embed_images, Path(output).parent if output else Path())


def made(paths: Iterable[str | None]) -> Made:
    """Return the time, the command and the files of a report, without the folders of absolute paths.

    Args:
        paths: what was read; what is not a file, such as standard input, is left out.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(seconds), UTC) if seconds and seconds.isdigit() else datetime.now(UTC)
    files = [path for path in map(Path, filter(None, paths)) if path.is_file()]
    inputs = (InputFile(path.name, _digest(path)) for path in dict.fromkeys(files))
    called = PurePath(sys.argv[0]).name in {"spicegraph", "__main__.py"}
    words = [word if not word.startswith("/") else f".../{PurePath(word).name}" for word in sys.argv[1:]]
    command = shlex.join(["spicegraph", *words]) if called else None
    return Made(moment.isoformat(timespec="seconds"), command, tuple(inputs))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_BY_ENDING: Mapping[str, ReportFormat] = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
}


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]INPUT...",
            help="One file per system, as for score, all for the same images and references.",
        ),
    ],
    *,
    given: InputOptions,
    scoring: ScoringOptions,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="The format; default: the one of -o's file ending, else html."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading; default: the names of the systems.")] = None,
    page: PageOptions,
    human: Annotated[
        bool,
        typer.Option("--human/--no-human", help="Also score the first reference of each image against the others."),
    ] = True,
    draws: Annotated[int, typer.Option(min=1, help="Number of resamples for each interval and test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same intervals.")] = 12345,
    parsing: ParsingOptions,
) -> None:
    """Show what systems get wrong, by category and image: one HTML page, JSON, or Markdown."""
    if output is not None:
        check_output(output)
    options = ReportOptions(
        metrics=scoring.names,
        title=title,
        images=page.shown(output),
        resampling=Resampling(draws, seed),
        human=human,
        data=scoring.data("spice"),
        made=made([*(system_name(source)[1] for source in sources), *given.files, *scoring.files]),
    )
    chosen = form or format_by_ending(output, _BY_ENDING, ReportFormat.HTML)
    check_split(split=page.split, form=chosen, output=output)
    systems = [given.system(source, empty=scoring.empty) for source in sources]
    with parsing.facts() as facts:
        write_report(systems, options, form=chosen, output=output, facts=facts, split=page.split)


def write_report(
    systems: Sequence[SystemInput],
    options: ReportOptions,
    *,
    form: ReportFormat,
    output: str | None,
    facts: FactSource,
    split: bool = False,
) -> None:
    """Build a report and write it to a file or to standard output."""
    with warned_progress() as progress:
        built = build_report(systems, options, pipeline=facts, progress=progress)
    if split and output is not None:
        _write_split(built, output)
        return
    write_text(REPORT_FORMATS[form](built), output)


def check_split(*, split: bool, form: ReportFormat, output: str | None) -> None:
    """Say before the work that only a page in a file can be split.

    Raises:
        InputError: it is another format, or goes to standard output.
    """
    if split and (output is None or form is not ReportFormat.HTML):
        raise InputError("--split: only an HTML page written to a file (-o) can be split")


def _write_split(built: Report, output: str) -> None:
    """Write a page, and the details of its images into a folder beside it: ``report_files`` for ``report.html``."""
    folder = Path(output).with_name(PurePath(output).stem + "_files")
    parts = to_parts(built)
    try:
        folder.mkdir(exist_ok=True)
        for stale in folder.glob("chunk*.js"):
            if stale.name not in parts:
                stale.unlink()
    except OSError as error:
        raise InputError(f"{folder}: can't be written ({error.strerror})") from error
    for name, text in parts.items():
        write_text(text, str(folder / name))
    write_text(to_html(built, parts=folder.name), output)


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
