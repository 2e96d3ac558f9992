"""Processes for one task each: strangers' files under limits on memory and time, and long computations.

The server starts ``python -m spicegraph_challenge.sandbox.processes``, which reads one task and writes one reply, at a
lower priority than the workers that answer calls.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from spicegraph_challenge.sandbox.files import NO_ROOM
from spicegraph_challenge.sandbox.tasks import LIMITS, WORK, SandboxReply, SandboxTask, TaskFailed
from spicegraph_service.kit import ChildProcess, ProcessEndedError, StoreFullError, open_replies, read_frame

_NICE = 10
_KILLED_FOR_TIME = {-24, -9}  # SIGXCPU, and what the system sends when memory or the hard limit is used up
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
        async with self._turns:
            process = await ChildProcess.start("spicegraph_challenge.sandbox.processes")
            try:
                async with asyncio.timeout(2 * seconds):
                    # Its input stays open until it is ended: the task sees by that that the server is there.
                    reply: Answer | TaskFailed = msgspec.msgpack.decode(
                        await process.ask(msgspec.msgpack.encode(task)), type=expected | TaskFailed
                    )
            except TimeoutError as error:
                raise OverAllowanceError(f"a task took more than {seconds} s") from error
            except ProcessEndedError as error:
                code = await process.wait()
                if code in _KILLED_FOR_TIME:
                    raise OverAllowanceError("a task took too much processor time") from error
                raise SandboxError(f"a task's process ended with code {code}") from error
            finally:
                process.kill()
                await process.wait()
        if isinstance(reply, TaskFailed):
            if reply.lacks == "memory":
                raise OverAllowanceError("a task needed too much memory")
            if reply.lacks == "disk":
                raise StoreFullError("a task: no room left on the disk")
            raise SandboxError(f"a task failed with {reply.kind}")
        return reply


def main() -> int:
    """Do the task that stands on standard input, write the reply to standard output; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="sandbox %(process)d: %(message)s")
    if hasattr(os, "nice"):
        os.nice(_NICE)
    task_bytes = read_frame(sys.stdin.buffer)
    if task_bytes is None:
        return 1

    def end_with_the_server() -> None:
        """End at once when the server does: the reply would be lost, and another server does the task again."""
        sys.stdin.buffer.read(1)
        os._exit(1)

    threading.Thread(target=end_with_the_server, daemon=True).start()
    with open_replies() as replies:
        task = msgspec.msgpack.decode(task_bytes, type=SandboxTask)
        reply: SandboxReply
        try:
            _limit(*LIMITS[type(task)])
            reply = WORK[type(task)](task)
        except MemoryError:
            reply = TaskFailed("memory", kind="MemoryError")
        except Exception as error:  # noqa: BLE001 (the server says which submission it was, and goes on)
            lacks: Literal["", "disk"] = "disk" if isinstance(error, OSError) and error.errno in NO_ROOM else ""
            if not lacks:
                _log.error("a task failed", exc_info=error)
            reply = TaskFailed(lacks, kind=type(error).__name__)
        replies.send(msgspec.msgpack.encode(reply))
    return 0


def _limit(memory_bytes: int, seconds: int) -> None:
    """Bound what the task may take beyond what the process has already, where the system can do that."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    used = Path("/proc/self/statm")
    if memory_bytes and used.exists():
        most = int(used.read_text(encoding="ascii").split()[0]) * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


if __name__ == "__main__":
    sys.exit(main())
