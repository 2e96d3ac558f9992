"""From JSON to records: a list of objects, one object a line, or one object of captions by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.faults import Fault, input_error, shown
from spicegraph_scorer.readers.formats import (
    CAPTION_MAPPING,
    COCO_RESULTS,
    JSON_LINES,
    JSON_LIST,
    SPICE_INPUT,
    VDTK,
    Format,
    Record,
    Records,
    untyped_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spicegraph_scorer.readers.source import Limits, Source

__all__ = ["bounded_lines", "decode", "decode_all", "is_mapping", "mapping_records", "read_all", "read_json"]

_ANNOTATIONS_HINT = " (if these are COCO annotations, give them with --references)"
_LIST_FORMS: tuple[tuple[frozenset[str], Format], ...] = (
    (frozenset({"test"}), SPICE_INPUT),
    (frozenset({"candidates"}), VDTK),
    (frozenset({"candidate"}), JSON_LIST),
    (frozenset({"references"}), JSON_LIST),
    (frozenset({"caption", "refs"}), JSON_LIST),
    (frozenset({"refs"}), SPICE_INPUT),
    (frozenset({"caption"}), COCO_RESULTS),
)
_SHOWN_KEYS = 8


def read_json(source: Source, *, limits: Limits) -> Records:
    """Read all records of a JSON file: a list, one object a line, or one object of captions by id.

    Raises:
        InputError: the content is none of them.
        LimitError: it is larger than the limits.
    """
    if source.stream.peek(1).lstrip()[:1] == b"{":
        return _read_lines(source, limits)
    content = decode_all(source, limits=limits)
    if not isinstance(content, list):
        raise InputError(f"{source.name}: holds {shown(content)}, expected a list of objects or one object a line")
    return _read_list(source, content)


def read_all(source: Source, *, limits: Limits) -> bytes:
    """Read a whole file.

    Raises:
        InputError: it is empty.
        LimitError: it is larger than the limits.
    """
    content = source.stream.read(limits.content + 1)
    if len(content) > limits.content:
        raise LimitError(f"{source.name}: is larger than {limits.content:,} bytes")
    if not content.strip():
        raise InputError(f"{source.name}: is empty")
    return content


def decode_all(source: Source, *, limits: Limits) -> object:
    """Decode a whole file as one JSON value.

    Raises:
        InputError: it is not JSON in UTF-8.
        LimitError: it is larger than the limits.
    """
    value, reason = decode(read_all(source, limits=limits))
    if reason:
        raise InputError(f"{source.name}: {reason}")
    return value


def decode(content: bytes) -> tuple[object, str]:
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
    for keys, form in _LIST_FORMS:
        if keys <= record.fields.keys():
            return form
    raise InputError(
        f"{source.name}: a list of objects with the keys {_keys(record.fields)}, expected "
        '"image_id", "test", "refs" (SPICE input) or "image_id", "caption" (COCO results)'
    )


def _keys(fields: Mapping[str, object]) -> str:
    return ", ".join(shown(key) for key in list(fields)[:_SHOWN_KEYS]) or "none"


def _read_lines(source: Source, limits: Limits) -> Records:
    records: list[Record] = []
    faults: list[Fault] = []
    lines = bounded_lines(source, limits)
    for number, line in enumerate(lines, start=1):
        place = f"line {number}"
        if not line.strip():
            continue
        value, reason = decode(line)
        if reason and not records and not line.rstrip().endswith(b"}"):
            return _read_spread_object(source, b"".join([line, *lines]))
        if not reason and not isinstance(value, dict):
            reason = f"is {shown(value)}, expected an object"
        if isinstance(value, dict) and not reason:
            records.append(Record(place, value))
        else:
            faults.append(Fault(place, "", reason))
    if len(records) == 1 and not faults and is_mapping(records[0].fields):
        return mapping_records(records[0].fields)
    if records:
        _refuse_other_objects(source, records[0].fields)
    return Records(JSON_LINES, records, faults)


def _read_spread_object(source: Source, content: bytes) -> Records:
    """Read a file that begins with an object of several lines: captions by id."""
    value, reason = decode(content)
    if isinstance(value, dict):
        if is_mapping(value):
            return mapping_records(value)
        _refuse_other_objects(source, value)
    reason = reason or "is one object that is spread over several lines, expected one object a line"
    raise InputError(f"{source.name}: {reason}")


def is_mapping(fields: Mapping[str, object]) -> bool:
    """Say whether an object holds captions by id, and is no record; its first value decides."""
    known = {"annotations", *JSON_LINES.candidates, *JSON_LINES.references}
    first = next(iter(fields.values()), None)
    is_caption = isinstance(first, str) or (isinstance(first, list) and first and isinstance(first[0], str))
    return bool(is_caption) and not fields.keys() & known


def mapping_records(fields: Mapping[str, object]) -> Records:
    """Return the records of an object of captions by id: ``{"img1": "a dog"}`` or ``{"img1": ["a dog", ...]}``."""
    records = [
        Record(f"entry {index}", {"id": untyped_id(key), "captions" if isinstance(value, list) else "caption": value})
        for index, (key, value) in enumerate(fields.items(), start=1)
    ]
    return Records(CAPTION_MAPPING, records, [])


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
