"""A report as text, by format: a table of functions."""

from __future__ import annotations

import base64
import hashlib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import jinja2
import msgspec

from spicegraph_service.report.charts import category_chart, count_chart, mean_chart
from spicegraph_service.report.payload import CHUNK, chunks, index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_service.report.charts import BarChart
    from spicegraph_service.report.data import Report

__all__ = ["REPORT_FORMATS", "ReportFormat", "to_html", "to_json", "to_markdown"]

UNDEFINED = "–"
_HERE = "spicegraph_service.report"
_GROUPS_SHOWN = 12
_GROUPS_IN_MARKDOWN = 5
_EXAMPLES_SHOWN = 4


class ReportFormat(StrEnum):
    """The output formats of ``report``."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"


def to_html(report: Report) -> str:
    """Return one self-contained page: no network, no font, no script but its own, which the page's policy names."""
    style, script = _static("report.css"), _static("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            human=report.human,
            style=style,
            script=script,
            style_hash=_digest(style),
            script_hash=_digest(script),
            index=index(report),
            chunks=chunks(report),
            chunk=CHUNK,
            groups_shown=_GROUPS_SHOWN,
            examples_shown=_EXAMPLES_SHOWN,
            charts=_charts(report),
        )
    )


def to_json(report: Report) -> str:
    """Return everything in the report as JSON, ``tuples`` and ``pictures`` of every image included."""
    return msgspec.json.encode(report).decode() + "\n"


def to_markdown(report: Report) -> str:
    """Return the tables of the report as Markdown, without the images."""
    return (
        _environment()
        .get_template("report.md.j2")
        .render(report=report, human=report.human, groups_shown=_GROUPS_IN_MARKDOWN)
    )


REPORT_FORMATS: Mapping[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.HTML: to_html,
    ReportFormat.JSON: to_json,
    ReportFormat.MARKDOWN: to_markdown,
}


def _charts(report: Report) -> dict[str, BarChart]:
    shown = [*report.systems, *([report.human] if report.human else [])]
    names = [view.name for view in report.systems]
    charts = {
        "category": category_chart(shown),
        "distribution": count_chart(names, [view.distribution for view in report.systems]),
        "length": mean_chart(names, [view.by_length for view in report.systems]),
    }
    if len(report.systems[0].by_references) > 1:
        charts["references"] = mean_chart(names, [view.by_references for view in report.systems])
    return charts


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        # Markdown has no markup to escape for; its cells go through a filter of their own.
        loader=jinja2.PackageLoader(_HERE, "templates"),
        autoescape=jinja2.select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(number=_number, percent=_percent, signed=_signed, p=_p, cell=_cell)
    return environment


def _static(name: str) -> str:
    return (files(_HERE) / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:+.3f}".replace("-", "−")


def _percent(value: float | None) -> str:
    """Return a share in per cent; 0 % and 100 % are never rounded to.

    Example:
        >>> _percent(0.9999), _percent(1.0)
        ('99.9 %', '100 %')
    """
    if value is None:
        return UNDEFINED
    if value in {0.0, 1.0}:
        return f"{100 * value:.0f} %"
    return f"{min(max(100 * value, 0.1), 99.9):.1f} %"


def _p(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _cell(text: object) -> str:
    """Return text that stays in its cell of a Markdown table and is no markup there."""
    flat = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~" else c for c in flat).replace("&", "&amp;")
