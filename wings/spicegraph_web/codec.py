"""Messages of the contract as JSON, by the mapping that Protocol Buffers define."""
# ``google.protobuf.json_format`` is the authority, and reads what the fast way does not understand. What it takes 3 ms
# for in a batch of 64 items takes a quarter of that here: a plan for each kind of message is made once.

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from spicegraph_parser.errors import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

WHOLE = "(message)"
_KEYS = re.compile(rb'"\s*:')
M = TypeVar("M", bound="Message")
_LONG = frozenset(
    {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
)  # JSON writes them as strings, since JavaScript's numbers are too short
_REFUSED = (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError)
_WHOLE_NUMBERS = _LONG | {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32}
_IDS = frozenset({"id", "reference_id", "referenceId"})  # of items and entries; COCO's are integers
_SHOWN = 60
_REAL = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})


class JsonError(ValueError):
    """The text is not JSON, or not of a message of this kind; ``field`` is the path to what is wrong."""

    def __init__(self, reason: str, field: str = WHOLE) -> None:
        super().__init__(reason)
        self.field = field


def to_json(message: Message) -> bytes:
    """Return a message as JSON in UTF-8. Fields that have their default value are left out."""
    return msgspec.json.encode(to_plain(message))


def to_plain(message: Message) -> Any:
    """Return a message as JSON's own kinds of values."""
    return _writer(message.DESCRIPTOR)(message)


def from_json(text: bytes | memoryview, kind: type[M]) -> M:
    """Read a message."""
    try:
        plain = msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise JsonError(f"is not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise JsonError("expected an object")
    # Every key is followed by a colon, as other quotes may be within texts: only then are keys looked at one by one.
    if len(_KEYS.findall(text)) > _count_keys(plain):
        json.loads(bytes(text), object_pairs_hook=_distinct)
    try:
        return kind(**_reader(kind.DESCRIPTOR)(plain))
    except (*_REFUSED, KeyError):
        pass
    if fault := next(_shape_faults(plain, kind.DESCRIPTOR, ""), None):
        raise fault
    try:
        return json_format.ParseDict(_with_text_ids(plain), kind())
    except _REFUSED as error:
        raise _located(plain, kind.DESCRIPTOR, "") or JsonError(str(error)) from error


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonError("appears twice in an object", twice)
    return plain


def _shape_faults(plain: dict[str, Any], kind: Any, path: str) -> Iterator[JsonError]:
    """Yield where a value is not of a field's kind: what the mapping reads all the same, or names without a path."""
    fields = {name: field for field in kind.fields for name in (field.json_name, field.name)}
    for key, value in plain.items():
        field = fields.get(key)
        if field is None or (value is None and field.has_presence) or _is_map(field):
            continue
        where = path + key
        if not field.is_repeated:
            yield from _element_faults(value, field, where)
        elif not isinstance(value, list):
            yield _unexpected(value, f"a list of {_kind_name(field)}s", where)
        else:
            for number, element in enumerate(value):
                yield from _element_faults(element, field, f"{where}[{number}]")


def _element_faults(value: Any, field: FieldDescriptor, where: str) -> Iterator[JsonError]:
    name = _kind_name(field)
    if _has_fields(field):
        if isinstance(value, dict):
            yield from _shape_faults(value, field.message_type, where + ".")
        else:
            yield _unexpected(value, f"an {name}", where)
    elif value is None or (_is_text(field) and not (isinstance(value, str) or _is_id(value, field.name))):
        yield _unexpected(value, f"a {name}", where)


def _has_fields(field: FieldDescriptor) -> bool:
    """Say whether JSON has objects for a field's values, with their fields as keys."""
    return field.message_type is not None and not _special(field.message_type)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _is_text(field: FieldDescriptor) -> bool:
    return field.cpp_type == FieldDescriptor.CPPTYPE_STRING


def _kind_name(field: FieldDescriptor) -> str:
    """Return what JSON calls a field's values."""
    if field.message_type is not None:
        return "object"
    if field.cpp_type in _REAL or field.cpp_type in _WHOLE_NUMBERS:
        return "number"
    return "truth value" if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else "string"


def _unexpected(value: Any, expected: str, where: str) -> JsonError:
    given = kind_of(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        given = f"the {given.removeprefix('a ')} {ascii(value)[:_SHOWN]}"
    return JsonError(f"expected {expected}, got {given}", where)


def _is_id(value: object, name: str) -> bool:
    """Say whether a value is a number that stands for an id: COCO's ids are integers."""
    return name in _IDS and isinstance(value, int) and not isinstance(value, bool)


def _with_text_ids(value: Any, name: str = "") -> Any:
    """Return plain values in which ids are strings."""
    if isinstance(value, dict):
        return {key: _with_text_ids(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_text_ids(each) for each in value]
    return str(value) if _is_id(value, name) else value


def _located(plain: dict[str, Any], kind: Any, path: str) -> JsonError | None:
    """Return the first fault with the path to it, which ``json_format`` does not say."""
    fields = {name: field for field in kind.fields for name in (field.json_name, field.name)}
    for key, value in plain.items():
        field = fields.get(key)
        if field is None:
            return JsonError("there is no such field", path + key)
        listed = field.is_repeated and isinstance(value, list)
        for number, element in enumerate(value if listed else [value]):
            where = f"{path}{key}[{number}]" if listed else path + key
            if isinstance(element, dict) and _has_fields(field):
                fault = _located(element, field.message_type, where + ".")
            else:
                fault = _refused({key: [element] if listed else element}, kind, where)
            if fault is not None:
                return fault
    return None


def _refused(plain: dict[str, Any], kind: Any, where: str) -> JsonError | None:
    """Return what ``json_format`` has against a message with a single field."""
    try:
        json_format.ParseDict(plain, GetMessageClass(kind)())
    except _REFUSED as error:
        reason = str(error).rpartition("field: ")[2].rstrip(".")
        return JsonError(reason or type(error).__name__, where)
    return None


@cache
def _writer(kind: Descriptor) -> Callable[[Any], Any]:
    """Return what turns messages of a kind into plain values."""
    if _special(kind):
        return json_format.MessageToDict
    writers: dict[int, tuple[str, Callable[[Any], Any] | None]] = {}

    def write(message: Message) -> dict[str, Any]:
        plain = {}
        for field, value in message.ListFields():
            known = writers.get(field.number)
            if known is None:
                known = writers[field.number] = (field.json_name, _value_writer(field))
            name, convert = known
            plain[name] = value if convert is None else convert(value)
        return plain

    return write


def _value_writer(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """Return what turns a field's value into a plain one; ``None``: it is one."""
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        inner = _value_writer(kind.fields_by_name["value"])
        return dict if inner is None else lambda value: {str(key): inner(write) for key, write in value.items()}
    write = _writer(kind) if kind is not None else _scalar_writer(field)
    if not field.is_repeated:
        return write
    return list if write is None else lambda value: [write(each) for each in value]


def _scalar_writer(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: b64encode(value).decode()
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return lambda value: names[value].name if value in names else value
    if field.cpp_type in _LONG:
        return str
    return _real if field.cpp_type in _REAL else None


def _real(value: float) -> float | str:
    """JSON has no word for what is not a number, so that the mapping writes one as a string."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@cache
def _reader(kind: Descriptor) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what turns JSON's names and values into arguments of a message's constructor."""
    readers = {
        name: (field.name, _value_reader(field), field.has_presence)
        for field in kind.fields
        for name in (field.json_name, field.name)
    }
    oneofs = tuple(frozenset(field.name for field in oneof.fields) for oneof in kind.oneofs if len(oneof.fields) > 1)

    def read(plain: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for key, value in plain.items():
            name, convert, nullable = readers[key]
            if value is None and not nullable:
                raise TypeError
            arguments[name] = value if convert is None or value is None else convert(value)
        if len(arguments) < len(plain) or any(len(oneof & arguments.keys()) > 1 for oneof in oneofs):
            raise ValueError("a field is there twice")
        return arguments

    return read


def _value_reader(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    kind = field.message_type
    if kind is not None and _special(kind):
        return _refuse
    read: Callable[[Any], Any] | None = _refuse
    if kind is not None:
        read = _reader(kind)
    elif field.enum_type is not None:
        read = _string
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and field.type != FieldDescriptor.TYPE_BYTES:
        read = _id if field.name in _IDS else None  # the constructor takes strings alone
    return _listed(read) if field.is_repeated else read


def _listed(read: Callable[[Any], Any] | None) -> Callable[[Any], list[Any]]:
    """Return what reads a list, and nothing that would be taken for one: a string is one of its letters."""

    def listed(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise TypeError
        return value if read is None else [read(each) for each in value]

    return listed


def _id(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _special(kind: Descriptor) -> bool:
    """Say whether JSON has a form of its own for messages of a kind: times, and the entries of maps."""
    return kind.full_name.startswith("google.protobuf.") or kind.GetOptions().map_entry


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _refuse(_value: Any) -> Any:
    """Leave what is rare or easily mistaken (numbers, bytes, times, maps) to ``json_format``."""
    raise TypeError
