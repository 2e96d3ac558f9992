"""``spicegraph report``: one or several systems' files in, a page about their errors out."""

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

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.cli.options import (
    PagedInputOptions,
    PageOptions,
    ParsingOptions,
    RemoteOptions,
    ScoringOptions,
    system_name,
)
from spicegraph_service.engines import CandidateRule, System
from spicegraph_service.output.terminal import (
    check_output,
    format_by_ending,
    note,
    say_warning,
    warned_progress,
    write_text,
)
from spicegraph_service.report.build import ReportOptions, build_report
from spicegraph_service.report.data import Provenance
from spicegraph_service.report.render import REPORT_FORMATS, ReportFormat, to_html, to_parts
from spicegraph_service.report.sets import system_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_service.report.data import Report


def provenance(paths: Iterable[str | None]) -> Provenance:
    """Return the time, the command and the files (not standard input, say) of a report, without their folders."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(seconds), UTC) if seconds and seconds.isdigit() else datetime.now(UTC)
    files = [path for path in map(Path, filter(None, paths)) if path.is_file()]
    digests = ((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in dict.fromkeys(files))
    inputs = ({"name": name, "sha256": digest} for name, digest in digests)
    called = PurePath(sys.argv[0]).name in {"spicegraph", "__main__.py"}
    words = [word if not word.startswith("/") else f".../{PurePath(word).name}" for word in sys.argv[1:]]
    command = shlex.join(["spicegraph", *words]) if called else None
    return Provenance(moment.isoformat(timespec="seconds"), command, tuple(inputs))


_BY_ENDING: Mapping[str, ReportFormat] = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOptions:
    """What is written.

    Output:
        form: The format; default: the one of -o's file ending, else html.
        output: Write to this file instead of standard output.

    Page:
        title: The heading; default: the names of the systems.
    """

    form: Annotated[ReportFormat | None, typer.Option("--format")] = None
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE")] = None
    title: Annotated[str | None, typer.Option()] = None

    @property
    def format(self) -> ReportFormat:
        """The format of what is written."""
        return self.form or format_by_ending(self.output, _BY_ENDING, ReportFormat.HTML)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOptions:
    """What a report is of, and how its tests are drawn.

    Input:
        candidates: If an image has several candidates: refuse them (one), or show what they say together (set), with
            the mean and the best of each score.

    Metrics:
        human: Also score the first reference of each image against the others.

    Tests:
        draws: Number of resamples for each interval and test.
        seed: The same seed gives the same intervals.
    """

    candidates: Annotated[CandidateRule, typer.Option()] = CandidateRule.ONE
    human: Annotated[bool, typer.Option("--human/--no-human")] = True
    draws: Annotated[int, typer.Option(min=1)] = 1000
    seed: Annotated[int, typer.Option(min=0)] = 12345


def report(
    sources: Annotated[list[str], typer.Argument(metavar="[NAME=]INPUT...")],
    *,
    given: PagedInputOptions,
    scoring: ScoringOptions,
    written: WrittenOptions,
    page: PageOptions,
    of: ReportedOptions,
    parsing: ParsingOptions,
    remote: RemoteOptions,
) -> None:
    """Show what systems get wrong, by category and image: one HTML page, JSON, or Markdown.

    Input:
        sources: One file per system, as for score, all for the same images and references.
    """
    output = written.output
    if output is not None:
        check_output(output)
    _check(written, page, of, remote)
    paths = (system_name(source)[1] for source in sources)
    options = ReportOptions(
        metrics=scoring.names,
        title=written.title,
        images=page.pictures(output),
        resampling=Resampling(of.draws, of.seed),
        human=of.human,
        data=scoring.data("spice"),
        provenance=provenance([*paths, *(given.references or ()), *scoring.files]),
    )
    systems = _systems(sources, given, scoring, of.candidates)
    if remote.server is not None:
        from spicegraph_service.cli.remote import rendered, settings  # noqa: PLC0415 (only who asks a server needs grpc)

        asked = settings(scoring, parsing)
        with warned_progress() as progress:
            text = rendered(systems, written.format, options, asked, remote=remote, progress=progress)
            write_text(text, output)
        _tell(systems, output)
        return
    with parsing.facts() as facts, warned_progress() as progress:
        built = build_report(systems, options, pipeline=facts, progress=progress)
    for warning in built.warnings:
        say_warning(warning)
    if page.split_page and output is not None:
        _write_split(built, output)
    else:
        write_text(REPORT_FORMATS[written.format](built), output)
    _tell(systems, output)


def _check(written: WrittenOptions, page: PageOptions, of: ReportedOptions, remote: RemoteOptions) -> None:
    """Refuse options that contradict each other, and a file whose ending no format has."""
    is_page_in_file = written.output is not None and written.format is ReportFormat.HTML
    if page.split_page and not is_page_in_file:
        raise InputError("--split: only an HTML page written to a file (-o) can be split")
    if of.candidates is CandidateRule.SET and remote.server is not None:
        raise InputError("--candidates set: a server's report is of one caption of each image")
    if page.split_page and remote.server is not None:
        raise InputError("--split: a server gives one page; leave it out with --server")


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


def _tell(systems: Sequence[System], output: str | None) -> None:
    """Say what has been written, to a person who sees nothing of it."""
    if output is not None:
        note(f"{output}: the report of {counted(len(systems), 'system')}")


def _systems(
    sources: Sequence[str], given: PagedInputOptions, scoring: ScoringOptions, candidates: CandidateRule
) -> list[System]:
    if candidates not in {CandidateRule.ONE, CandidateRule.SET}:
        raise InputError(f"--candidates {candidates}: a report is of one caption of each image, or of the set")
    sets = candidates is CandidateRule.SET
    read = [given.read(source, empty=scoring.empty, language=scoring.language, several=sets) for source in sources]
    return [system_of(*each) if sets else System(each[0], each[1].items) for each in read]
