"""Bytes of a judgements file, and what they decode to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.faults import Fault, shown
from spicegraph_scorer.readers.records import decode
from spicegraph_scorer.readers.source import Limits, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Content", "Records", "read_content", "records_of", "text_of"]

Records: TypeAlias = "Sequence[tuple[str, Mapping[str, object]]]"
"""Objects and where they stand."""


class Content:
    """A file's name and bytes; decoded as one JSON value if it is one."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.value: object = None
        self.reason = ""
        if data.lstrip()[:1] in {b"{", b"["}:
            self.value, self.reason = decode(data)


def read_content(path: str, limits: Limits) -> Content:
    """Read a whole file, standard input or the one file of a zip.

    Raises:
        InputError: it can't be read, or is empty.
        LimitError: it is larger than the limits.
    """
    with open_source(path, limits=limits) as source:
        data = source.stream.read(limits.content + 1)
        name = source.name
    if len(data) > limits.content:
        raise LimitError(f"{name}: is larger than {limits.content:,} bytes")
    if not data.strip():
        raise InputError(f"{name}: is empty")
    return Content(name, data)


def text_of(content: Content) -> str:
    """Return a file's text.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return content.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{content.name}: is not UTF-8 ({error.reason} at byte {error.start})") from error


def records_of(content: Content, faults: list[Fault]) -> Records:
    """Return the objects of a JSON list, or of one object a line."""
    if isinstance(content.value, list):
        values = [(f"item {index}", value, "") for index, value in enumerate(content.value, start=1)]
    else:
        lines = [(number, line) for number, line in enumerate(content.data.split(b"\n"), start=1) if line.strip()]
        values = [(f"line {number}", *decode(line)) for number, line in lines]
    records: list[tuple[str, Mapping[str, object]]] = []
    for place, value, reason in values:
        if isinstance(value, dict) and not reason:
            records.append((place, value))
        else:
            faults.append(Fault(place, "", reason or f"is {shown(value)}, expected an object"))
    return records
