"""From bytes to records: which format a file has, and its items as plain JSON objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.faults import Fault, input_error, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spicegraph_scorer.readers.source import Limits, Source

__all__ = [
    "COCO_RESULTS",
    "FORMATS",
    "JSON_LINES",
    "SPICE_INPUT",
    "Format",
    "Record",
    "Records",
    "bounded_lines",
    "decode_all",
    "read_records",
]


_ANNOTATIONS_HINT = " (if these are COCO annotations, give them with --references)"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of items: its name, and the keys under which its fields may stand, best first."""

    name: str
    ids: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]


SPICE_INPUT = Format("SPICE input", ("image_id",), ("test",), ("refs",))
COCO_RESULTS = Format("COCO results", ("image_id",), ("caption",), ())
JSON_LINES = Format("JSON Lines", ("image_id", "id"), ("candidate", "caption", "test"), ("references", "refs"))
FORMATS = (SPICE_INPUT, COCO_RESULTS, JSON_LINES)


class Record(NamedTuple):
    """An item as it stands in the file: its place (``item 3``, ``line 3``) and its JSON object."""

    place: str
    fields: Mapping[str, object]


class Records(NamedTuple):
    """A file's format and its records, and the faults of what is no record."""

    format: Format
    records: list[Record]
    faults: list[Fault]


def read_records(source: Source, *, limits: Limits) -> Records:
    """Read all records of a file, in the format that its content shows: a list, or one object a line.

    Raises:
        InputError: the content is neither.
        LimitError: it is larger than the limits.
    """
    start = source.stream.peek(1).lstrip()[:1]
    if start == b"{":
        return _read_lines(source, limits)
    content = decode_all(source, limits=limits)
    if not isinstance(content, list):
        raise InputError(f"{source.name}: holds {shown(content)}, expected a list of objects or one object a line")
    return _read_list(source, content)


def decode_all(source: Source, *, limits: Limits) -> object:
    """Decode a whole file as one JSON value.

    Raises:
        InputError: it is not JSON in UTF-8.
        LimitError: it is larger than the limits.
    """
    content = source.stream.read(limits.content + 1)
    if len(content) > limits.content:
        raise LimitError(f"{source.name}: is larger than {limits.content:,} bytes")
    if not content.strip():
        raise InputError(f"{source.name}: is empty")
    value, reason = _decode(content)
    if reason:
        raise InputError(f"{source.name}: {reason}")
    return value


def _decode(content: bytes) -> tuple[object, str]:
    """Return the JSON value of some bytes, or the reason why they have none."""
    try:
        value: object = msgspec.json.decode(content)
    except UnicodeDecodeError as error:
        return None, f"is not UTF-8 ({error.reason} at byte {error.start})"
    except RecursionError:
        return None, "is JSON nested too deeply"
    except msgspec.MsgspecError as error:
        return None, f"is not JSON ({error})"
    return value, ""


def _read_list(source: Source, content: list[object]) -> Records:
    if not content:
        raise InputError(f"{source.name}: is an empty list, there is nothing to score")
    records = []
    faults = []
    for index, value in enumerate(content, start=1):
        if isinstance(value, dict):
            records.append(Record(f"item {index}", value))
        else:
            faults.append(Fault(f"item {index}", "", f"is {shown(value)}, expected an object"))
    if not records:
        raise input_error(source.name, faults)
    return Records(_list_format(source, records[0]), records, faults)


def _list_format(source: Source, record: Record) -> Format:
    """Return the format of a list by the keys of its first object."""
    keys = record.fields.keys()
    for form in (SPICE_INPUT, COCO_RESULTS):
        if keys & set(form.candidates + form.references):
            return form
    raise InputError(
        f"{source.name}: a list of objects with the keys {_keys(record.fields)}, expected "
        '"image_id", "test", "refs" (SPICE input) or "image_id", "caption" (COCO results)'
    )


def _keys(fields: Mapping[str, object]) -> str:
    return ", ".join(shown(key) for key in list(fields)[:8]) or "none"


def _read_lines(source: Source, limits: Limits) -> Records:
    records: list[Record] = []
    faults: list[Fault] = []
    lines = bounded_lines(source, limits)
    for number, line in enumerate(lines, start=1):
        place = f"line {number}"
        if not line.strip():
            continue
        value, reason = _decode(line)
        if reason and not records and not line.rstrip().endswith(b"}"):
            _refuse_spread_object(source, b"".join([line, *lines]))
        if not reason and not isinstance(value, dict):
            reason = f"is {shown(value)}, expected an object"
        if isinstance(value, dict) and not reason:
            records.append(Record(place, value))
        else:
            faults.append(Fault(place, "", reason))
    if records:
        _refuse_other_objects(source, records[0].fields)
    return Records(JSON_LINES, records, faults)


def _refuse_spread_object(source: Source, content: bytes) -> None:
    """Say what is wrong with a file that begins with an object of several lines."""
    value, reason = _decode(content)
    if isinstance(value, dict):
        _refuse_other_objects(source, value)
    reason = reason or "is one object that is spread over several lines, expected one object a line"
    raise InputError(f"{source.name}: {reason}")


def _refuse_other_objects(source: Source, fields: Mapping[str, object]) -> None:
    if "annotations" in fields:
        raise InputError(
            f"{source.name}: is a COCO annotations file, which holds references; give it with --references"
        )
    if not fields.keys() & set(JSON_LINES.candidates + JSON_LINES.references):
        raise InputError(
            f"{source.name}: an object with the keys {_keys(fields)}, expected one object a line with "
            '"image_id", "candidate" and "references"'
        )


def bounded_lines(source: Source, limits: Limits) -> Iterator[bytes]:
    """Yield the lines of a file with their ends, and never hold more than one of them.

    Raises:
        LimitError: a line or the whole file is larger than the limits.
    """
    total = 0
    number = 0
    while line := source.stream.readline(limits.line + 1):
        number += 1
        total += len(line)
        if len(line) > limits.line:
            hint = _ANNOTATIONS_HINT if number == 1 else ""
            raise LimitError(f"{source.name}, line {number}: is longer than {limits.line:,} bytes{hint}")
        if total > limits.content:
            raise LimitError(f"{source.name}: is larger than {limits.content:,} bytes")
        yield line
