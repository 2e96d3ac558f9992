"""What the server asks of a child process, and what it hears back."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgspec


class Validate(msgspec.Struct, frozen=True, tag="validate"):
    """Check a submitted file.

    ``splits`` holds, for every split of the challenge, the paths of its reference sets; ``output`` is a folder that
    takes the results.
    """

    path: str
    file_name: str
    split: str
    splits: dict[str, tuple[str, ...]]
    output: str
    caption_characters: int


class Validated(msgspec.Struct, frozen=True, tag="validated"):
    """What came out: the path of the results of each split, or the path and number of the faults."""

    results: dict[str, str] = {}
    faults: str = ""
    fault_count: int = 0


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Read COCO annotations, and write them to ``output`` as a reference set."""

    path: str
    output: str


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The numbers of images with references and of references; or ``faults``, what is wrong with the file."""

    image_count: int = 0
    caption_count: int = 0
    faults: tuple[str, ...] = ()


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """Make scores and intervals of the statistics of all items; ``statistics`` is a file with a frame per chunk.

    ``data`` is the server's own for the metrics: that with which the statistics were collected.
    """

    metrics: tuple[str, ...]
    statistics: str
    data: bytes = b""


class ScoreRow(NamedTuple):
    """A corpus score with its interval."""

    name: str
    value: float | None
    low: float | None
    high: float | None


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The scores, in the order of the metrics."""

    scores: tuple[ScoreRow, ...]


class Report(msgspec.Struct, frozen=True, tag="report"):
    """Make an error report of the results at ``results`` against the references at ``references``.

    ``data`` is the server's own for the metrics, if it has any.
    """

    results: str
    references: str
    name: str
    title: str
    metrics: tuple[str, ...]
    pipeline: str
    limit: int
    output: str
    data: bytes = b""


class Reported(msgspec.Struct, frozen=True, tag="reported"):
    """The report is written."""


class TaskFailed(msgspec.Struct, frozen=True, tag="error"):
    """The task failed: ``memory`` says that the file needed too much of it, ``kind`` is the error's name."""

    memory: bool
    kind: str


SandboxTask: TypeAlias = Validate | Prepare | Finish | Report
SandboxReply: TypeAlias = Validated | Prepared | Finished | Reported | TaskFailed

_encoder = msgspec.msgpack.Encoder()
_tasks: msgspec.msgpack.Decoder[SandboxTask] = msgspec.msgpack.Decoder(SandboxTask)
_replies: msgspec.msgpack.Decoder[SandboxReply] = msgspec.msgpack.Decoder(SandboxReply)


def encode(value: SandboxTask | SandboxReply) -> bytes:
    """Return the bytes of a message."""
    return _encoder.encode(value)


def decode_task(data: bytes) -> SandboxTask:
    """Return the task that the server sent."""
    return _tasks.decode(data)


def decode_reply(data: bytes) -> Any:
    """Return the reply that a child sent: the kind that belongs to its task, or a :class:`TaskFailed`."""
    return _replies.decode(data)
