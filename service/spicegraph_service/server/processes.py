"""Child processes that answer frames: started, asked and ended by the server; both ends of the pipe.

A frame is a length (4 bytes, big-endian) and that many bytes. Both ends are of one release, so the format may change
with every release.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = struct.Struct(">I")
_STREAM_LIMIT = 1 << 20
# One core per process: threads of the linear algebra would only compete with the other processes.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class ProcessEndedError(Exception):
    """The process ended, or closed its pipe, before it replied."""


class ChildProcess:
    """A Python process that answers one frame at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, module: str, *arguments: str) -> Self:
        """Run ``python -m module arguments...`` with pipes for frames.

        Raises:
            OSError: no process can be started.
        """
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", module, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_STREAM_LIMIT,
                env=os.environ | _ENVIRONMENT,
            )
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.returncode is None

    async def ask(self, data: bytes) -> bytes:
        """Send a frame and return the frame that the process replies with.

        After a cancelled or failed call, do not ask again: the late reply would be taken for the next one's.

        Raises:
            ProcessEndedError: the process ended, or its pipe broke.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:  # pragma: no cover (start() asks for pipes)
            raise ProcessEndedError("the process has no pipes")
        try:
            stdin.write(frame(data))
            await stdin.drain()
            (length,) = _LENGTH.unpack(await stdout.readexactly(_LENGTH.size))
            return await stdout.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise ProcessEndedError("the process ended before it replied") from error
        except OSError as error:
            raise ProcessEndedError("the pipe to the process broke") from error

    def end_input(self) -> None:
        """Close the process's input, at which it ends by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Return the exit code once the process has ended; negative: the signal that ended it."""
        return await self._process.wait()


@contextmanager
def reply_stream() -> Iterator[IO[bytes]]:
    """Give a child process's stream for replies; what the process prints goes to standard error instead."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        yield stream


def frame(data: bytes) -> bytes:
    """Return the bytes with their length before them."""
    return _LENGTH.pack(len(data)) + data


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Write a frame to a blocking stream, and flush it."""
    stream.write(frame(data))
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame of a blocking stream, ``None`` at its end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None
