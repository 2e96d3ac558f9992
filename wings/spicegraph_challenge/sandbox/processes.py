"""Processes for one task each: strangers' files under limits on memory and time, and long computations.

The server starts ``python -m spicegraph_challenge.sandbox.processes``, which reads one task and writes one reply, at a
lower priority than the workers that answer calls.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Literal, TypeVar

import msgspec

from spicegraph_challenge.sandbox.files import NO_ROOM
from spicegraph_challenge.sandbox.tasks import LIMITS, WORK, SandboxReply, SandboxTask, TaskFailed
from spicegraph_service.kit import ChildProcess, ProcessEndedError, StoreFullError, do_one_task, limit

_NICE = 10
_KILLED_FOR_TIME = {-24, -9}  # SIGXCPU, and what we and the system send: for time, memory or the hard limit
_log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=SandboxReply)


class SandboxError(Exception):
    """A task failed, or its process ended without a reply; the message is for the log."""


class OverAllowanceError(Exception):
    """The task needed more memory or time than it may have."""


class Sandbox:
    """Runs tasks, a few at a time."""

    def __init__(self, at_once: int) -> None:
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, task: SandboxTask, expected: type[Answer]) -> Answer:
        """Do a task; if the caller is cancelled, the process is ended."""
        _, seconds = LIMITS[type(task)]
        async with self._turns, ChildProcess.running("spicegraph_challenge.sandbox.processes") as process:
            try:
                data = await process.ask(msgspec.msgpack.encode(task), timeout_s=2 * seconds)
            except ProcessEndedError as error:
                code = await process.wait()
                if code in _KILLED_FOR_TIME:
                    raise OverAllowanceError("a task took too much time") from error
                raise SandboxError(f"a task's process ended with code {code}") from error
        reply: Answer | TaskFailed = msgspec.msgpack.decode(data, type=expected | TaskFailed)
        if isinstance(reply, TaskFailed):
            if reply.lacks == "memory":
                raise OverAllowanceError("a task needed too much memory")
            if reply.lacks == "disk":
                raise StoreFullError("a task: no room left on the disk")
            raise SandboxError(f"a task failed with {reply.kind}")
        return reply


def main() -> int:
    """Do the task that stands on standard input, write the reply to standard output; return the exit code."""
    return do_one_task(_answer, name="sandbox", nice=_NICE)


def _answer(given: bytes, _report: object) -> bytes:
    task = msgspec.msgpack.decode(given, type=SandboxTask)
    memory, seconds = LIMITS[type(task)]
    reply: SandboxReply
    try:
        limit(0, beyond=memory, seconds=seconds)
        reply = WORK[type(task)](task)
    except MemoryError:
        reply = TaskFailed("memory", kind="MemoryError")
    except Exception as error:  # noqa: BLE001 (the server says which submission it was, and goes on)
        lacks: Literal["", "disk"] = "disk" if isinstance(error, OSError) and error.errno in NO_ROOM else ""
        if not lacks:
            _log.error("a task failed", exc_info=error)
        reply = TaskFailed(lacks, kind=type(error).__name__)
    return msgspec.msgpack.encode(reply)


if __name__ == "__main__":
    sys.exit(main())
