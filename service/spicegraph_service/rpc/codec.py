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

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

WHOLE = "(message)"
_KEYS = re.compile(rb'"\s*:')
M = TypeVar("M", bound="Message")
_LONG = frozenset(
    {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
)  # JSON writes them as strings, since JavaScript's numbers are too short
_REFUSED = (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError)
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
        raise JsonError(str(error)) from error
    if not isinstance(plain, dict):
        raise JsonError("expected an object")
    # Every key is followed by a colon, as other quotes may be within texts: only then are keys looked at one by one.
    if len(_KEYS.findall(text)) > _count_keys(plain):
        json.loads(bytes(text), object_pairs_hook=_distinct)
    try:
        return kind(**_reader(kind.DESCRIPTOR)(plain))
    except (*_REFUSED, KeyError):
        pass
    try:
        return json_format.ParseDict(plain, kind())
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
        raise JsonError("stands twice in an object", twice)
    return plain


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
            inner = field.message_type
            if inner is not None and isinstance(element, dict) and not _special(inner):
                fault = _located(element, inner, where + ".")
            else:
                try:
                    json_format.ParseDict({key: [element] if listed else element}, GetMessageClass(kind)())
                    continue
                except _REFUSED as error:
                    reason = str(error).rpartition("field: ")[2].rstrip(".")
                    fault = JsonError(reason or type(error).__name__, where)
            if fault is not None:
                return fault
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
        name: (field.name, _value_reader(field)) for field in kind.fields for name in (field.json_name, field.name)
    }
    oneofs = tuple(frozenset(field.name for field in oneof.fields) for oneof in kind.oneofs if len(oneof.fields) > 1)

    def read(plain: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for key, value in plain.items():
            name, convert = readers[key]
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
        read = None  # the constructor takes strings alone
    if read is None or not field.is_repeated:
        return read
    return lambda value: [read(each) for each in value]


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
