"""The error report of a submission, which shows references: for organisers. Runs in a child process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_scorer.core.items import Item
from spicegraph_service.challenge.files import read_references, read_results
from spicegraph_service.output.report import REPORT_FORMATS, ReportFormat, ReportOptions, build_report
from spicegraph_service.output.report.data import SystemInput
from spicegraph_service.server.tasks import unpack_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_service.challenge.tasks import Report


def write_report(task: Report) -> None:
    """Write the page to the task's output."""
    captions = read_results(Path(task.results))
    items = [Item(key, captions[key], texts) for key, texts in read_references(Path(task.references))]
    shown = tuple(_spread(items, task.limit))
    part = f" ({len(shown):,} of {len(items):,} images, evenly spread)" if len(shown) < len(items) else ""
    options = ReportOptions(metrics=task.metrics, title=task.title + part, data=unpack_data(task.data))
    system = SystemInput(task.name, shown)
    report = build_report([system], options, pipeline=task.pipeline)
    Path(task.output).write_text(REPORT_FORMATS[ReportFormat.HTML](report), encoding="utf-8")


def _spread(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Return at most so many items, evenly spread.

    Example:
        >>> _spread(range(10), 3)
        [0, 3, 6]
    """
    if len(items) <= most:
        return items
    return [items[index * len(items) // most] for index in range(most)]
