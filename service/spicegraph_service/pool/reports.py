"""A process that makes one report of items: the server holds neither items nor reports.

The server starts ``python -m spicegraph_service.pool.reports`` and sends one task.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from google.protobuf.struct_pb2 import Struct

from spicegraph_api.report.v1 import report_pb2
from spicegraph_api.v1 import scores_pb2
from spicegraph_parser.errors import DataError, InputError, LimitError
from spicegraph_parser.pipelines import SCENE
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics.spice.categories import make_categories
from spicegraph_service.engines import System
from spicegraph_service.engines.local import local_facts
from spicegraph_service.pool import convert, tasks
from spicegraph_service.pool.processes import do_one_task, limit, read_frame
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
from spicegraph_service.report import REPORT_FORMATS, Report, ReportFormat, ReportOptions, build_report
from spicegraph_service.report.data import GradedView, Provenance
from spicegraph_service.report.render import report_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

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
        message = report_message(report, task)
        output.write_bytes(report_pb2.AnalyzeResponse(report=message).SerializeToString())
    else:
        output.write_text(REPORT_FORMATS[ReportFormat(task.form)](report), encoding="utf-8")
    return Made()


def provenance(task: ReportTask) -> Provenance:
    """Return when a report is made, and what its caller says of it."""
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


def report_message(report: Report, task: ReportTask) -> report_pb2.ErrorReport:
    """Return a report as a message: the record of which its JSON is drawn, by the same names."""
    values = report_values(report)
    values["synsets"] = {number: {"value": readings} for number, readings in report.synsets.items()}
    values["images"] = list(_examples(report, values["verdict"]["telling"], task.examples if task.images else 0))
    message = report_pb2.ErrorReport()
    if not task.images:
        values |= {"gained": (), "lost": (), "synsets": {}}
        values["verdict"] = {**values["verdict"], "telling": ()}
    _fill(message, values)
    for system in () if task.groups else (*message.systems, message.human):
        del system.wrong[:]
        for kind in system.kinds:
            del kind.groups[:]
    return message


def _examples(report: Report, telling: Iterable[Any], most: int) -> Iterable[Mapping[str, Any]]:
    """Yield the images that are shown whole: all, or the examples, those that differ most, and the worst."""
    items: Iterable[int] = range(len(report.images))
    if len(report.images) > most:
        worst = sorted(items, key=lambda item: min(view.scores[0] or 0.0 for view in report.images[item].candidates))
        moved = (change.item for pair in zip(report.gained, report.lost, strict=False) for change in pair)
        items = list(dict.fromkeys((*(error.item for error in telling), *moved, *worst)))[:most]
    for item in items:
        image = report.images[item]
        yield {name: getattr(image, name) for name in ("id", "references", "source", "candidates")} | {"item": item}


def _fill(message: Message, value: Any) -> None:
    """Fill a message from a record, a mapping, or a sequence in the order of the fields; ``None`` stays absent."""
    fields: Sequence[Any] = message.DESCRIPTOR.fields
    for place, field in enumerate(fields):
        if field.name == "spice_category":  # of the name before it
            name = getattr(message, fields[0].name)
            setattr(message, field.name, convert.SPICE_CATEGORIES.get(name, 0))
        if (part := _part(value, field, place)) is None:
            continue
        if field.message_type is not None:
            is_map = field.message_type.GetOptions().map_entry
            _fill_messages(getattr(message, field.name), part, is_map=is_map, is_list=field.is_repeated)
        elif field.is_repeated:
            getattr(message, field.name).extend(part)
        else:
            setattr(message, field.name, _scalar(field, part))


def _fill_messages(target: Any, part: Any, *, is_map: bool, is_list: bool) -> None:
    """Fill the messages of a field: one, several, or those of a map."""
    if isinstance(target, Struct):
        target.update(msgspec.json.decode(msgspec.json.encode(part)))
    elif isinstance(part, GradedView):
        target.score = part.score
        result = scores_pb2.ItemResult()
        convert.add_explanation(result, "spice-g", part.explanation, verdicts=True)
        target.explanation.CopyFrom(result.graded_matches[0])
    elif is_map:
        for key, each in part.items():
            _fill(target[key], each)
    elif is_list:
        for each in part:
            _fill(target.add(), each)
    else:
        target.SetInParent()
        _fill(target, part)


def _part(value: Any, field: FieldDescriptor, place: int) -> Any:
    if isinstance(value, Mapping):
        return value.get(field.name)
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        # A list in place of a message with one field is that field.
        return value if field.is_repeated and field.name == "value" else value[place] if place < len(value) else None
    if isinstance(value, int | float | str):
        return value if place == 0 else None
    return getattr(value, field.name, None)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        return _enum_value(field.enum_type, value)
    return str(value) if field.cpp_type == field.CPPTYPE_STRING else value


def _enum_value(kind: EnumDescriptor, value: Any) -> int:
    """Return the value of an enum whose name ends in a word, or in that of another enum's value."""
    prefix = kind.values[0].name.removesuffix("UNSPECIFIED")
    return int(kind.values_by_name[prefix + (value if isinstance(value, str) else value.name).upper()].number)


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
