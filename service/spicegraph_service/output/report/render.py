"""A report as text, by format: a table of functions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from spicegraph_service.output.report.charts import report_charts
from spicegraph_service.output.report.page import environment, render_page, static
from spicegraph_service.output.report.payload import chunks, index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_service.output.report.data import Report

__all__ = ["REPORT_FORMATS", "ReportFormat", "to_html", "to_json", "to_markdown", "to_parts"]

_GROUPS_SHOWN = 12
_GROUPS_IN_MARKDOWN = 5
_EXAMPLES_SHOWN = 4


class ReportFormat(StrEnum):
    """The output formats of ``report``."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"


def to_html(report: Report, *, parts: str | None = None) -> str:
    """Return one self-contained page: no network, no font, no script but its own, which the page's policy names.

    Args:
        report: what it shows.
        parts: a folder beside the page that holds the details of the images, as :func:`to_parts` gives them;
            ``None``: they are in the page.

    Raises:
        DataError: matplotlib is not installed.
    """
    values = {
        "report": report,
        "human": report.human,
        "index": index(report),
        "chunks": chunks(report) if parts is None else (),
        "parts": parts,
        "changes": _changes(report),
        "groups_shown": _GROUPS_SHOWN,
        "examples_shown": _EXAMPLES_SHOWN,
        "charts": report_charts(report),
    }
    return render_page("report.html.j2", values, script=static("report.js"), images=True, parts=parts is not None)


def to_parts(report: Report) -> dict[str, str]:
    """Return the details of the images as scripts by file name, for a page that is split.

    A page that is opened from a disk may load scripts, but may not read other files.
    """
    return {f"chunk{n}.js": f'spicegraphPart("chunk{n}", "{part}");\n' for n, part in enumerate(chunks(report))}


def to_json(report: Report) -> str:
    """Return everything in the report as JSON, ``tuples`` and ``pictures`` of every image included."""
    return msgspec.json.encode(report).decode() + "\n"


def to_markdown(report: Report) -> str:
    """Return the tables of the report as Markdown, without the images."""
    return (
        environment()
        .get_template("report.md.j2")
        .render(report=report, human=report.human, groups_shown=_GROUPS_IN_MARKDOWN)
    )


REPORT_FORMATS: Mapping[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.HTML: to_html,
    ReportFormat.JSON: to_json,
    ReportFormat.MARKDOWN: to_markdown,
}


def _changes(report: Report) -> list[tuple[str, int, int, int]]:
    """Return how often two systems make each primary kind of error, those with the largest change first."""
    if len(report.systems) != 2:
        return []
    first, second = (system.kinds for system in report.systems)
    rows = [
        (one.title, one.count, other.count, other.count - one.count)
        for one, other in zip(first, second, strict=True)
        if one.primary and one.count + other.count
    ]
    return sorted(rows, key=_largest)


def _largest(row: tuple[str, int, int, int]) -> int:
    return -abs(row[-1])
