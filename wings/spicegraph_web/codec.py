"""Messages of the contract as JSON, by the mapping that Protocol Buffers define (``google.protobuf.json_format``)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from google.protobuf import json_format

if TYPE_CHECKING:
    from google.protobuf.message import Message

WHOLE: Final = "(message)"
M = TypeVar("M", bound="Message")
_IDS: Final = frozenset({"id", "reference_id", "referenceId"})  # of items and entries; COCO's are integers
_NEVER_NULL: Final = frozenset(
    {"id", "candidate", "references", "captions", "items", "entries", "metrics", "categories"}
)
_FIELD: Final = re.compile(r"Failed to parse (\w+) field: ")
_UNKNOWN: Final = re.compile(r".*has no field named \"(\w+)\"")
_PLACE: Final = re.compile(r"\s+at \"?\w+\.?([\w.\[\]]*?)\"?\.*\s*(?:Available Fields.*)?$", re.DOTALL)


class JsonError(ValueError):
    """The text is not JSON, or not of a message of this kind; ``field`` is the path to what is wrong."""

    def __init__(self, reason: str, field: str = WHOLE) -> None:
        super().__init__(reason)
        self.field = field


def to_json(message: Message) -> bytes:
    """Return a message as JSON in UTF-8. Fields that have their default value are left out."""
    return msgspec.json.encode(json_format.MessageToDict(message))


def from_json(text: bytes | memoryview, kind: type[M]) -> M:
    """Read a message; ids may be integers."""
    try:
        plain = json.loads(bytes(text), object_pairs_hook=_read_object) if text else {}
    except (json.JSONDecodeError, UnicodeError, RecursionError) as error:
        raise JsonError(f"is not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise JsonError("expected an object")
    try:
        return json_format.ParseDict(plain, kind())
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _locate(str(error)) from error


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's values; integers in place of ids become strings."""
    plain: dict[str, Any] = {}
    for key, value in pairs:
        if key in plain:
            raise JsonError("appears twice in an object", key)
        if value is None and key in _NEVER_NULL:
            raise JsonError("is null", key)
        plain[key] = str(value) if type(value) is int and key in _IDS else value
    return plain


def _locate(message: str) -> JsonError:
    """Return the fault with the path to its field, as far as the message of ``json_format`` says."""
    fields = _FIELD.findall(message)
    reason = _FIELD.sub("", message)
    place = _PLACE.search(reason)
    path = place[1].strip(".") if place is not None else ".".join(fields[:-1])
    if (unknown := _UNKNOWN.match(reason)) is not None:
        return JsonError("there is no such field", f"{path}.{unknown[1]}".lstrip("."))
    if fields and re.sub(r"\[\d+\]$", "", path).rpartition(".")[2] != fields[-1]:
        path = f"{path}.{fields[-1]}".lstrip(".")
    return JsonError(reason[: place.start()] if place is not None else reason.rstrip("."), path or WHOLE)
