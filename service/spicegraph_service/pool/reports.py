"""A process that makes one report of items: the server holds neither items nor reports.

The server starts ``python -m spicegraph_service.pool.reports`` and sends one task.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spicegraph_api.report.v1 import report_pb2
from spicegraph_parser.errors import DataError, InputError, LimitError
from spicegraph_parser.pipelines import SCENE
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics.spice.categories import make_categories
from spicegraph_service.engines import System
from spicegraph_service.engines.local import local_facts
from spicegraph_service.pool import tasks
from spicegraph_service.pool.processes import do_one_task, limit, read_frame
from spicegraph_service.pool.report_message import convert_report
from spicegraph_service.pool.report_tasks import (
    Failed,
    Made,
    ReportTask,
    Step,
    Working,
    decode_items,
    decode_task,
    encode,
)
from spicegraph_service.report import REPORT_FORMATS, ReportFormat, ReportOptions, build_report
from spicegraph_service.report.data import Provenance

if TYPE_CHECKING:
    from collections.abc import Callable

_NICE = 5
_EVERY_S = 0.25  # between two frames of progress
_log = logging.getLogger(__name__)


def make(task: ReportTask, progress: Any = None) -> Made:
    """Make a report and write it."""
    systems = _systems(task)
    data = replace(tasks.unpack_data(task.data), spice_text=task.given.spice_text)
    if task.given.categories:
        data = replace(data, categories=make_categories(task.given.categories))
    options = ReportOptions(
        metrics=task.metrics or ("spice",),
        title=task.title or None,
        data=data,
        resampling=Resampling(task.draws, task.seed),
        human=task.human,
        provenance=provenance(task),
        gates=task.gates,
    )
    pipeline = SCENE if task.given.graph_style == "scene" else task.pipeline
    with local_facts(pipeline) as facts, rare_collections():
        report = build_report(systems, options, pipeline=facts, progress=progress)
    del systems
    output = Path(task.output)
    if task.form == "message":
        message = convert_report(report, images=task.images, groups=task.groups, examples=task.examples)
        output.write_bytes(report_pb2.AnalyzeResponse(report=message).SerializeToString())
    else:
        output.write_text(REPORT_FORMATS[ReportFormat(task.form)](report), encoding="utf-8")
    return Made()


def provenance(task: ReportTask) -> Provenance:
    """Return a report's provenance: its time, and the caller's command and inputs."""
    inputs = tuple({"name": name, "sha256": digest} for name, digest in task.inputs)
    return Provenance(time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), task.command, inputs)


def _systems(task: ReportTask) -> list[System]:
    items: list[list[Item]] = [[] for _ in task.systems]
    with Path(task.items).open("rb") as stream:
        while (part := read_frame(stream)) is not None:
            for item in decode_items(part):
                name = int(item.id) if task.integer_ids else item.id
                for of_system, candidate in zip(items, item.candidates, strict=True):
                    of_system.append(Item(name, candidate, item.references))
    return [System(name, tuple(of_system)) for name, of_system in zip(task.systems, items, strict=True)]


def main() -> int:
    """Do the task that stands on standard input; return the exit code."""
    return do_one_task(_answer, name="report", nice=_NICE)


def _answer(given: bytes, report: Callable[[bytes], None]) -> bytes:
    last = time.monotonic()

    def progress(what: str, done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            report(encode(Working(what, done, of)))
            last = time.monotonic()

    return encode(_tried(decode_task(given), progress))


def _tried(task: ReportTask, progress: Any) -> Step:
    limit(task.memory)
    try:
        return make(task, progress)
    except InputError as error:
        return Failed("input", str(error))
    except LimitError as error:
        return Failed("limit", str(error))
    except DataError as error:
        return Failed("data", str(error))
    except MemoryError:
        return Failed("limit", "it takes more memory than a report may: send fewer items, or fewer systems")
    except Exception as error:  # noqa: BLE001 (the server answers the call, and goes on)
        _log.exception("a report can't be made")
        return Failed("", type(error).__name__)


if __name__ == "__main__":
    sys.exit(main())
