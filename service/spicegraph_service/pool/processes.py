"""Child processes that answer frames: started, asked and ended by the server; both ends of the pipe.

The workers are such processes, and those that do one task each: strangers' files, reports, long computations.
"""
# A frame is a length (4 bytes, big-endian) and that many bytes; an empty one is a heartbeat. On a busy machine
# heartbeats come late, so a silent process that waits for a processor is told from one that hangs. The server never
# unpickles what a process sends: processes read what strangers wrote.

from __future__ import annotations

import asyncio
import logging
import os
import struct
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_LENGTH = struct.Struct(">I")
_WAITING = "RD"  # states of a thread
_LONGEST_WAIT_S = 30.0  # for a processor or a disk
_UNKNOWN = -1  # uvloop's number for whatever keeps a process from being started
_DESCRIPTORS = 8  # that a process takes while it is started
# One core per process: threads of the linear algebra would only compete with the other processes.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class ProcessEndedError(Exception):
    """The process ended, closed its pipe, or was ended for taking too long, before it replied."""


class ChildProcess:
    """A Python process that answers one frame at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._killed = False
        self._reply: asyncio.Future[bytes] | None = None
        self._heard = time.monotonic()
        self._looked_at: tuple[float, float] = (0.0, 0.0)  # last frame, and processor time when it was first looked at
        self._suspected = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, module: str, *arguments: str) -> Self:
        """Run ``python -m module arguments...`` with pipes for frames."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", module, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=1 << 20,
                env=os.environ | _ENVIRONMENT,
            )
        except OSError as error:
            if error.errno == _UNKNOWN:
                _look_for_descriptors()
            raise
        return cls(process)

    @classmethod
    @asynccontextmanager
    async def running(cls, module: str, *arguments: str) -> AsyncIterator[Self]:
        """Give a process that ends with the block."""
        process = await cls.start(module, *arguments)
        try:
            yield process
        finally:
            process.kill()
            await process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process can be asked: the end of one that was killed is known only later."""
        return not self._killed and self._process.returncode is None and not self._reader.done()

    @property
    def silent_s(self) -> float:
        """Seconds since the last frame, heartbeats included."""
        return time.monotonic() - self._heard

    def hangs(self, silence_s: float) -> bool:
        """Say whether the process sends no heartbeats although it could; to be asked a few times a second."""
        heard, computed = self._looked_at
        if heard != self._heard:
            heard, computed = self._looked_at = self._heard, usage(self.pid)[1]
        silent_s = self.silent_s
        if silent_s <= silence_s:
            self._suspected = False
            return False
        if not self._suspected:
            self._suspected = True
            return False
        return silent_s > _LONGEST_WAIT_S or not _waits(self.pid) or usage(self.pid)[1] - computed > silence_s

    async def ask(self, data: bytes, *, timeout_s: float | None = None) -> bytes:
        """Send a frame and return the reply. A process that is given up is killed: it would answer the next question.

        Raises:
            ProcessEndedError: There is no reply, or none in time.
        """
        stdin = self._process.stdin
        if stdin is None or not self.alive:
            raise ProcessEndedError("the process has ended")
        framed = frame(data)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._reply = reply
        try:
            async with asyncio.timeout(timeout_s):
                stdin.write(framed)
                await stdin.drain()
                return await reply
        except OSError as error:  # of the pipe, or without a text: time is over
            raise ProcessEndedError(str(error) or f"a task took more than {timeout_s} s") from error
        finally:
            reply.cancel()
            if reply.cancelled():
                self.kill()

    async def _read(self) -> None:
        """Hand replies to :meth:`ask` until the process closes its output."""
        stdout = self._process.stdout
        try:
            while stdout is not None:
                (length,) = _LENGTH.unpack(await stdout.readexactly(_LENGTH.size))
                data = await stdout.readexactly(length)
                self._heard = time.monotonic()
                if data and self._reply is not None and not self._reply.done():
                    self._reply.set_result(data)
        except (asyncio.IncompleteReadError, OSError):
            if self._reply is not None and not self._reply.done():
                self._reply.set_exception(ProcessEndedError("the process ended before it replied"))

    def end_input(self) -> None:
        """Close the process's input, at which it ends by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End the process at once."""
        self._killed = True
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Return the exit code once the process has ended; negative: the signal that ended it."""
        return await self._process.wait()


def _look_for_descriptors() -> None:
    """Raise the system's error where too few descriptors are left to start a process."""
    taken: list[int] = []
    try:
        for _ in range(_DESCRIPTORS):
            taken.append(os.dup(2))  # noqa: PERF401 (those taken before an error are given back)
    finally:
        for descriptor in taken:
            os.close(descriptor)


def usage(pid: int) -> tuple[int, float]:
    """Return a process's bytes of memory and seconds of processor time; 0 without /proc, or when it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except (OSError, IndexError):
        return 0, 0.0
    return pages * os.sysconf("SC_PAGE_SIZE"), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _waits(pid: int) -> bool:
    """Say whether a thread of a process runs or waits for a processor or a disk, where the system says so."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended
            if path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] in _WAITING:
                return True
    return False


class Replies:
    """A child process's stream for replies. Threads may share it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._heard = threading.Semaphore(0)

    def send(self, data: bytes) -> None:
        """Send a frame."""
        with self._lock:
            self._stream.write(frame(data))
            self._stream.flush()

    def beat(self, every_s: float) -> None:
        """Send heartbeats from a thread until the process ends, or the server has gone."""

        def beat() -> None:
            with suppress(OSError, ValueError):  # ValueError: the stream was closed at the process's end
                while True:
                    self.send(b"")
                    time.sleep(every_s)

        threading.Thread(target=beat, daemon=True).start()

    def report(self, data: bytes) -> None:
        """Send a frame, and wait for the server's answer: whoever waits for the task is still there."""
        self.send(data)
        self._heard.acquire()

    def end_with_the_server(self, stream: IO[bytes]) -> None:
        """End the process when its input ends: the server is gone, or has no use for the reply."""

        def listen() -> None:
            while read_frame(stream) is not None:
                self._heard.release()
            os._exit(1)

        threading.Thread(target=listen, daemon=True).start()


@contextmanager
def open_replies() -> Iterator[Replies]:
    """Yield a child process's reply stream; its printed output goes to standard error instead."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        yield Replies(stream)


def do_one_task(answer: Callable[[bytes, Callable[[bytes], None]], bytes], *, name: str, nice: int) -> int:
    """Do the task that stands on standard input, at a lower priority; return the exit code.

    Args:
        answer: Makes the reply to a task; it may send what :meth:`Replies.report` sends before.
        name: What the process is called in the log.
        nice: How much less the process matters than the workers, which answer calls.
    """
    logging.basicConfig(level=logging.INFO, format=f"{name} %(process)d: %(message)s")
    if hasattr(os, "nice"):
        os.nice(nice)
    task = read_frame(sys.stdin.buffer)
    if task is None:
        return 1
    with open_replies() as replies:
        replies.end_with_the_server(sys.stdin.buffer)
        replies.send(answer(task, replies.report))
    return 0


def limit(memory: int, *, beyond: int = 0, seconds: int = 0) -> None:
    """Limit this process's memory and processor time, where supported; 0: no limit.

    Args:
        memory: Bytes of addresses.
        beyond: The same, beyond those that the process has.
        seconds: Processor time; the system ends the process after it.
    """
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    used = Path("/proc/self/statm")
    if beyond and used.exists():
        memory = int(used.read_text(encoding="ascii").split()[0]) * resource.getpagesize() + beyond
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def frame(data: bytes) -> bytes:
    """Return the bytes with their length before them."""
    return _LENGTH.pack(len(data)) + data


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame of a blocking stream, ``None`` at its end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None
