"""What systems get wrong, as a value that writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.data import DataFields, MetricData, merged_data
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.readers.checks import GivenItem, check_items
from spicegraph_service.engines import System
from spicegraph_service.report import REPORT_FORMATS, Report, ReportFormat, ReportOptions, build_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_service.report import Pictures


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """Error report as HTML, Markdown or JSON; notebooks display the page."""

    report: Report

    def to_html(self) -> str:
        """Return the page, which needs no network and no other file."""
        return self._written("html")

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return self._written("markdown")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, the same as ``spicegraph report --format json`` writes."""
        values: dict[str, Any] = msgspec.json.decode(self._written("json"))
        return values

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report to a file; its ending (.html, .htm, .md, .markdown or .json) decides the format.

        Raises:
            InputError: the ending is another one, or the file can't be written.
        """
        endings = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
        place = Path(path)
        if place.suffix not in endings:
            raise InputError(f"{place}: a report is written as {', '.join(endings)}")
        try:
            place.write_text(self._written(endings[place.suffix]), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{place}: can't be written ({error.strerror})") from error

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" width="100%" height="700"></iframe>'

    def _written(self, form: str) -> str:
        return REPORT_FORMATS[ReportFormat(form)](self.report)


def report(
    systems: Mapping[str, Iterable[GivenItem]] | Iterable[GivenItem],
    metrics: Sequence[str] = ("spice",),
    *,
    title: str | None = None,
    human: bool = True,
    images: Pictures | None = None,
    resampling: Resampling | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
    data: MetricData | None = None,
    **fields: Unpack[DataFields],
) -> ErrorReport:
    """Return the error report of systems: error rates by kind, and each image's tuples.

    Args:
        systems: items by the name of their system; or the items of one system. All have the same ids and references.
        metrics: as for :func:`spicegraph.score`; SPICE always belongs to them.
        title: the heading; by default the names of the systems.
        human: also score the first reference of each image against the others.
        images: where pictures of the images are; ``None``: they are not shown.
        resampling: how intervals and tests are drawn.
        pipeline: what parses, as for :func:`spicegraph.score`.
        progress: as for :func:`spicegraph.score`.
        data: as for :func:`spicegraph.score`, as are further fields.

    Raises:
        InputError: an item is faulty, or the systems do not have the same items.

    Example:
        >>> from spicegraph_scorer import Item
        >>> made = report([Item(1, "a brown dog", ("a black dog", "a dog"))])
        >>> made.to_dict()["items"]
        1
    """
    named = systems if isinstance(systems, Mapping) else {"captions": systems}
    options = ReportOptions(
        metrics=tuple(metrics),
        title=title,
        data=merged_data(data, fields),
        images=images,
        resampling=resampling or Resampling(),
        human=human,
    )
    given = [System(name, check_items(items)) for name, items in named.items()]
    return ErrorReport(build_report(given, options, pipeline=pipeline, progress=progress))
