"""What the server and a process that reads files or makes a report send each other, in MessagePack."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from spicegraph_service.pool import tasks


class ReportItem(msgspec.Struct, frozen=True, array_like=True):
    """An item with each system's candidate."""

    id: str
    candidates: tuple[str, ...]
    references: tuple[str, ...]


class ReportTask(msgspec.Struct, frozen=True):
    """A report to be made: of the items in a file, into another file."""

    items: str
    output: str
    systems: tuple[str, ...]
    pipeline: str  # of the server
    form: Literal["message", "html", "markdown", "json"] = "message"
    metrics: tuple[str, ...] = ()
    given: tasks.RequestData = tasks.NOTHING_GIVEN
    data: bytes = b""  # the server's own, for metrics
    draws: int = 1000
    seed: int = 12345
    human: bool = True
    title: str = ""
    images: bool = True
    groups: bool = True
    examples: int = 12
    integer_ids: bool = False
    command: str | None = None
    inputs: tuple[tuple[str, str], ...] = ()
    gates: tuple[str, ...] = ()
    memory: int = 0  # bytes that the process may take; 0: any


class Working(msgspec.Struct, frozen=True, tag="working"):
    """How far a report is."""

    what: str
    done: int
    of: int


class Made(msgspec.Struct, frozen=True, tag="made"):
    """The report was made."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A task can't be done; ``kind`` is whose fault it is, ``""`` that of a bug."""

    kind: Literal["", "input", "limit", "data"]
    message: str


Step: TypeAlias = Working | Made | Failed
decode_step = msgspec.msgpack.Decoder(Step).decode
encode = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(ReportTask).decode
decode_items = msgspec.msgpack.Decoder(list[ReportItem]).decode
