"""A process that reads the files of a form: the server holds none of their items.

The server starts ``python -m spicegraph_web.reading`` and sends one task.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.source import ReadLimits
from spicegraph_service.kit import ChildProcess, ProcessEndedError, do_one_task, frame, limit

if TYPE_CHECKING:
    from collections.abc import Callable

_NICE = 5
_MEMORY = 4 << 30  # bytes that the process may take
_BATCH = 200  # items in a frame
_LIMITS = ReadLimits(content=256 << 20)
_TOO_LARGE = "the files take more memory than the server has for them: send fewer items"
_log = logging.getLogger(__name__)


class FilesToRead(msgspec.Struct, frozen=True):
    """Files of a stranger, and the file of items to write; without ``references`` the first has its own."""

    candidates: str
    references: str | None
    output: str


class _Outcome(msgspec.Struct, frozen=True):
    """Whether all ids are integers; or the fault, and whose it is."""

    integer_ids: bool = False
    fault: Literal["", "input", "limit", "bug"] = ""
    message: str = ""


async def read_in_process(task: FilesToRead) -> bool:
    """Write the items of files as frames of ``SystemsBatch``; return whether all ids are integers."""
    try:
        async with ChildProcess.running(__name__) as process:
            answer = await process.ask(msgspec.msgpack.encode(task))
    except ProcessEndedError as error:
        raise LimitError(_TOO_LARGE) from error
    outcome = msgspec.msgpack.decode(answer, type=_Outcome)
    if outcome.fault == "bug":
        raise RuntimeError(f"the files can't be read: an unexpected {outcome.message}")
    if outcome.fault:
        raise {"input": InputError, "limit": LimitError}[outcome.fault](outcome.message)
    return outcome.integer_ids


def _read(task: FilesToRead) -> _Outcome:
    """Read the items of files, as the command does, and write them."""
    limit(_MEMORY)
    try:
        items = read_items(task.candidates, references=task.references, limits=_LIMITS).items
        with Path(task.output).open("wb") as stream:
            for start in range(0, len(items), _BATCH):
                batch = [
                    pb.SystemsItem(id=str(item.id), candidates=[item.candidate], references=item.references)
                    for item in items[start : start + _BATCH]
                ]
                stream.write(frame(pb.SystemsBatch(items=batch).SerializeToString()))
    except InputError as error:
        return _Outcome(fault="input", message=str(error))
    except (LimitError, MemoryError) as error:
        return _Outcome(fault="limit", message=str(error) or _TOO_LARGE)
    except Exception as error:  # noqa: BLE001 (the server answers the form, and goes on)
        _log.exception("files can't be read")
        return _Outcome(fault="bug", message=type(error).__name__)
    return _Outcome(all(isinstance(item.id, int) for item in items))


def _answer(given: bytes, _report: Callable[[bytes], None]) -> bytes:
    return msgspec.msgpack.encode(_read(msgspec.msgpack.decode(given, type=FilesToRead)))


if __name__ == "__main__":
    sys.exit(do_one_task(_answer, name="reader", nice=_NICE))
