"""Starts child processes for what must not disturb the server: strangers' files, and long computations."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from spicegraph_service.challenge.tasks import ChildError, decode_reply, encode
from spicegraph_service.server.tasks import frame

if TYPE_CHECKING:
    from spicegraph_service.challenge.tasks import ChildReply, ChildTask

__all__ = ["Allowance", "ChildFailedError", "Children", "OverAllowanceError"]

Answer = TypeVar("Answer", bound="ChildReply")


class ChildFailedError(Exception):
    """A child process ended without a reply, or said that it failed; the message is for the log."""


class OverAllowanceError(Exception):
    """The task needed more memory or time than it may have."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a task may take: bytes beyond the process's own (0: any), and seconds."""

    memory_bytes: int
    seconds: int


class Children:
    """Runs tasks, a few at a time."""

    def __init__(self, at_once: int) -> None:
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, task: ChildTask, expected: type[Answer], allowance: Allowance) -> Answer:
        """Do a task; if the caller is cancelled, the process is ended.

        Raises:
            OverAllowanceError: it needed more than its allowance.
            ChildFailedError: it failed.
        """
        async with self._turns:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "spicegraph_service.challenge.child"),
                *(str(allowance.memory_bytes), str(allowance.seconds)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            )
            try:
                async with asyncio.timeout(2 * allowance.seconds or None):
                    reply = await _talk(process, encode(task))
            except TimeoutError as error:
                raise OverAllowanceError(f"a task took more than {allowance.seconds} s") from error
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if isinstance(reply, ChildError):
            if reply.memory:
                raise OverAllowanceError("a task needed too much memory")
            raise ChildFailedError(f"a child process failed with {reply.kind}")
        if not isinstance(reply, expected):
            raise ChildFailedError("a child process gave the wrong kind of reply")
        return reply


async def _talk(process: asyncio.subprocess.Process, task: bytes) -> ChildReply:
    """Send the task and return the reply; the child's input stays open, which tells it that we are here."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:  # pragma: no cover (we ask for pipes)
        raise ChildFailedError("a child process has no pipes")
    try:
        stdin.write(frame(task))
        await stdin.drain()
        head = await stdout.readexactly(4)
        reply: ChildReply = decode_reply(await stdout.readexactly(int.from_bytes(head, "big")))
    except (asyncio.IncompleteReadError, OSError) as error:
        code = await process.wait()
        if code in _KILLED_FOR_TIME:
            raise OverAllowanceError("a task took too much processor time") from error
        raise ChildFailedError(f"a child process ended with code {code}") from error
    return reply


_KILLED_FOR_TIME = {-24, -9}  # SIGXCPU, and what the system sends when memory or the hard limit is used up
