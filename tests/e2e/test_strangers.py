"""What strangers can't do: be read before they have said who they are, go on with an ended token, break a reply."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_service import app
from spicegraph_service.client import Client, item
from spicegraph_service.config import ServerConfig
from spicegraph_service.rpc import interceptor, open_calls
from spicegraph_service.rpc.auth import create_token
from spicegraph_service.rpc.limits import MOST_CONNECTIONS
from spicegraph_service.store.places import open_store
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from servers import RunningServer

pytestmark = [pytest.mark.model, pytest.mark.slow]

SCORE = "/spicegraph.v1.EvaluationService/Score"
STREAM = "/spicegraph.v1.EvaluationService/ScoreStream"
MULTIPART = "Content-Type: multipart/form-data; boundary=b\r\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strangers") / "server.db"


@pytest.fixture(scope="module")
def server(start_server: Callable[..., RunningServer], store: Path) -> RunningServer:
    return start_server(
        "--tokens=always", f"--store={store}", "--http=127.0.0.1:0", f"--challenges={store.parent / 'c.db'}"
    )


def new_token(store: Path, name: str = "somebody") -> tuple[str, str]:
    with closing(open_store(str(store))) as opened:
        token, record = create_token(opened, name, ("score",))
    return token, record.id


def exchange(server: RunningServer, data: bytes) -> bytes:
    """Send bytes over HTTP, and return the answer as far as it comes in two seconds."""
    host, _, port = server.http_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=2) as stranger:
        stranger.sendall(data)
        reply = b""
        try:
            while piece := stranger.recv(1 << 16):
                reply += piece
                if b"\r\n\r\n" in reply:
                    break
        except TimeoutError:
            pass
    return reply


@pytest.mark.parametrize(("path", "kind"), [(SCORE, "application/json"), (STREAM, "application/x-ndjson")])
def test_over_http_a_token_is_asked_for_before_the_body(server: RunningServer, path: str, kind: str) -> None:
    """The body never comes."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 8000000\r\n\r\n"
    assert exchange(server, head.encode()).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", [SCORE, STREAM])
def test_over_grpc_a_token_is_asked_for_before_the_message(server: RunningServer, path: str) -> None:
    """The message never comes."""
    ended = threading.Event()

    def nothing() -> Iterator[bytes]:
        ended.wait(20)
        yield from ()

    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as failure:
        channel.stream_unary(path)(nothing(), timeout=10)
    ended.set()
    error: Any = failure.value
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    request_id = dict(error.trailing_metadata())["x-request-id"]
    wait_until(lambda: server.logged(request_id))
    assert server.logged(request_id)[0]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_stream_ends_with_its_token(server: RunningServer, store: Path, how: str) -> None:
    token, token_id = new_token(store, how)
    revoked: list[float] = []
    go_on = threading.Event()

    def items() -> Iterator[Any]:
        yield item(1, "a dog", ["a brown dog"])
        with closing(open_store(str(store))) as opened:
            if how == "revoked":
                opened.revoke_token(token_id)
            else:
                opened.expire_token(token_id, time.time())
        revoked.append(time.monotonic())
        go_on.wait(30)

    with Client(server.address, token=token) as client, pytest.raises(grpc.RpcError) as failure:
        for _ in client.stream(items(), metrics=["rouge"]):
            pass
    go_on.set()
    assert time.monotonic() - revoked[0] <= 5
    error: Any = failure.value
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_stream_whose_token_stands_goes_on(server: RunningServer, store: Path) -> None:
    token, _ = new_token(store)

    def items() -> Iterator[Any]:
        for number in range(3):
            yield item(number, "a dog", ["a brown dog"])
            time.sleep(1.2)

    with Client(server.address, token=token) as client:
        assert sum(len(reply.items) for reply in client.stream(items(), metrics=["rouge"])) == 3


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f"POST {SCORE} HTTP/1.1\r\nContent-Type: application/json\r\n", "[" * 100_000),
        (f"POST {SCORE} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Encoding: deflate\r\n", "plain"),
        ("POST /sign-in HTTP/1.1\r\n" + MULTIPART, ""),
        ("POST /sign-in HTTP/1.1\r\n" + MULTIPART, "no boundary"),
        ("POST /sign-in HTTP/1.1\r\n" + MULTIPART, '--b\r\nContent-Disposition: form-data; name="a'),
        ("GET /\0 HTTP/1.1\r\n", ""),
        ("GET / HTTP/9.9\r\n", ""),
        ("\x01\x02\x03\r\n", ""),
    ],
)
def test_malformed_requests_are_refused_without_a_traceback(
    server: RunningServer, store: Path, head: str, body: str
) -> None:
    token, _ = new_token(store)
    headers = (
        f"Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reply = exchange(server, (head + headers + body).encode())
    assert reply[9:10] == b"4", reply[:200]
    assert b"aiohttp" not in reply
    assert "Traceback" not in server.log.read_text()


def test_bodies_that_come_too_slowly_or_are_too_many_are_refused() -> None:
    from spicegraph_service.rpc.limits import ByteBudget, FullError

    budget = ByteBudget(100, 60)
    with budget.account("a") as count:
        count(60)
        with pytest.raises(FullError):
            count(1)
        with budget.account("b") as other:
            other(40)
            with pytest.raises(FullError):
                other(1)
    with budget.account("c") as count:
        count(60)


def test_connections_over_grpc_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MOST_CONNECTIONS", 3)

    async def connect() -> None:
        server = app.Server(ServerConfig(address="127.0.0.1:0", store="memory"), {})
        await server.start()
        options = [("grpc.use_local_subchannel_pool", 1)]  # a connection for each
        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options) for _ in range(5)]
        waiting = {asyncio.create_task(channel.channel_ready()): channel for channel in channels}

        async def next_ready() -> grpc.aio.Channel:
            done, _ = await asyncio.wait(waiting, timeout=60, return_when=asyncio.FIRST_COMPLETED)
            return waiting.pop(done.pop())

        inside = [await next_ready() for _ in range(3)]
        assert not any(task.done() for task in waiting)
        await inside[0].close()
        await next_ready()  # takes the place of the one that left
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        for channel in channels:
            await channel.close()
        await server.stop(1)

    asyncio.run(connect())


@pytest.mark.full("floods")
def test_floods_of_strangers_starve_nobody() -> None:
    """Open calls, resets, lists of words, refused files, pings, a frozen server and a stop: in the short form."""
    assert attacks_held() == 7


def test_a_client_of_many_calls_at_once_has_none_refused(server: RunningServer, store: Path) -> None:
    # More than a connection's streams: the rest waits in the client, which is told the bound.
    token, _ = new_token(store, "many")
    request = pb.ScoreRequest(items=[item("1", "a dog", ["a dog runs"])], metrics=["rouge"]).SerializeToString()

    async def ask() -> set[int]:
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = channel.unary_unary(SCORE)

            async def one_after_another() -> list[int]:
                metadata = (("authorization", f"Bearer {token}"),)
                return [len(pb.ScoreResponse.FromString(await call(request, metadata=metadata)).items) for _ in "12345"]

            return set(itertools.chain(*await asyncio.gather(*(one_after_another() for _ in range(200)))))

    assert asyncio.run(ask()) == {1}


@pytest.mark.full("floods")
def test_behind_a_proxy_a_stop_waits_for_no_client_that_has_gone(program: Callable[[str], str]) -> None:
    """The proxy keeps the connection of a client that left a frozen server, and reads nothing of it."""
    program("haproxy")
    assert attacks_held("--proxy", "--only", "frozen", "stop") == 2


def attacks_held(*options: str) -> int:
    """Attack in the short form; return how many attacks held, which all must."""
    bench = Path(__file__).parents[2] / "bench" / "strangers.py"
    command = [sys.executable, str(bench), "--short", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT HELD" not in done.stdout
    return done.stdout.count(": held")


@pytest.mark.parametrize(
    ("method", "code", "reason"),
    [
        (SCORE, "ABORTED", "REQUEST_STALLED"),
        ("/grpc.health.v1.Health/Check", "ABORTED", "REQUEST_STALLED"),
        ("/grpc.health.v1.Health/Watch", "ABORTED", "REQUEST_STALLED"),
    ],
)
def test_a_request_that_does_not_come_ends_its_call(
    monkeypatch: pytest.MonkeyPatch, method: str, code: str, reason: str
) -> None:
    monkeypatch.setattr(interceptor, "_REQUEST_S", 0.2)
    monkeypatch.setattr(open_calls, "_REQUEST_S", 0.2)
    asyncio.run(in_process(lambda server, channel: refused(server, channel, method, code, reason)))


def test_calls_count_from_their_headers_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls without a request take all room there is; a third is told when to come again, and a probe is answered."""
    monkeypatch.setattr(app, "_MOST_CALLS", 2)

    async def attack(server: app.Server, channel: grpc.aio.Channel) -> None:
        held = [asyncio.create_task(never_sent(channel, SCORE)) for _ in range(2)]
        while server.telemetry.registry.get_sample_value("spicegraph_in_flight") != 2:
            await asyncio.sleep(0.01)
        await refused(server, channel, SCORE, "RESOURCE_EXHAUSTED", "TOO_MANY_CALLS", retry=True)
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await check(b"", timeout=10)
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(in_process(attack))


def test_watches_are_bounded_by_connection(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(open_calls, "MOST_OF_CONNECTION", 2)

    async def attack(server: app.Server, channel: grpc.aio.Channel) -> None:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        watching = [watch(b""), watch(b"")]
        for one in watching:
            await one.read()
        await refused(server, channel, "/grpc.health.v1.Health/Watch", "RESOURCE_EXHAUSTED", "OPEN_STREAMS", retry=True)
        assert "calls without a token ended, the last of ipv" in caplog.text
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", OWN) as other:
            assert await other.unary_stream("/grpc.health.v1.Health/Watch")(b"").read()
        watching[0].cancel()
        while server._open_calls._streams.total() > 1:
            await asyncio.sleep(0.01)
        assert await watch(b"").read()  # it takes the place of the one that left

    asyncio.run(in_process(attack))


def test_of_too_many_calls_that_wait_for_a_request_the_oldest_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "MOST", 3)

    async def attack(server: app.Server, channel: grpc.aio.Channel) -> None:
        del server
        check = "/grpc.health.v1.Health/Check"
        held = [asyncio.create_task(never_sent(channel, check)) for _ in range(5)]
        done, waiting = await asyncio.wait(held, timeout=2)
        assert len(done) == 2
        assert await channel.unary_unary(check)(b"", timeout=10)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(in_process(attack))


@pytest.mark.parametrize(("accepted", "lives"), [(0.2, True), (300.0, False)])
def test_a_client_that_pings_keeps_its_stream(monkeypatch: pytest.MonkeyPatch, *, accepted: float, lives: bool) -> None:
    monkeypatch.setattr(app, "_PINGS_S", accepted)
    options = [*OWN, ("grpc.keepalive_time_ms", 500), ("grpc.http2.max_pings_without_data", 0)]

    async def attack(server: app.Server, _: grpc.aio.Channel) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options) as channel:
            watching = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
            await watching.read()
            ended = asyncio.create_task(watching.code())
            await asyncio.wait({ended}, timeout=5)
            assert ended.done() is not lives

    asyncio.run(in_process(attack))


OWN = [("grpc.use_local_subchannel_pool", 1)]  # a connection for each channel


async def in_process(attack: Callable[[app.Server, grpc.aio.Channel], Awaitable[None]]) -> None:
    """Attack a server of this process, whose workers do not run."""
    server = app.Server(ServerConfig(address="127.0.0.1:0", store="memory"), {})
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", OWN) as channel:
            await attack(server, channel)
    finally:
        await server.stop(0)


async def never_sent(channel: grpc.aio.Channel, method: str) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    await channel.stream_unary(method)(nothing())


async def refused(
    server: app.Server, channel: grpc.aio.Channel, method: str, code: str, reason: str, *, retry: bool = False
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await asyncio.wait_for(never_sent(channel, method), 10)
    assert failure.value.code().name == code
    status = rpc_status.from_call(failure.value)  # type: ignore[arg-type]
    names = {detail.type_url.rpartition(".")[2]: detail for detail in status.details}  # type: ignore[union-attr]
    info = ErrorInfo()
    assert names["ErrorInfo"].Unpack(info)
    assert info.reason == reason
    assert ("RetryInfo" in names) is retry
    assert server.telemetry.registry.get_sample_value("spicegraph_refusals_total", {"reason": reason})


async def open_from(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))


def test_a_server_has_descriptors_for_its_connections() -> None:
    program = (
        "import resource as r; from spicegraph_service.rpc.limits import allow_descriptors\n"
        "_, hard = r.getrlimit(r.RLIMIT_NOFILE); r.setrlimit(r.RLIMIT_NOFILE, (256, hard))\n"
        "allow_descriptors(); print(r.getrlimit(r.RLIMIT_NOFILE)[0], hard)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    soft, hard = map(int, done.stdout.split())
    assert soft == (3 * MOST_CONNECTIONS if hard < 0 else min(3 * MOST_CONNECTIONS, hard))


def test_a_locked_store_holds_no_call(server: RunningServer, store: Path) -> None:
    token, _ = new_token(store, "patient")
    with closing(sqlite3.connect(store, isolation_level=None)) as holder, Client(server.address, token=token) as client:
        holder.execute("BEGIN EXCLUSIVE")
        begun = time.monotonic()
        client.score([item(1, "a dog", ["a brown dog"])], metrics=["rouge"])
        assert time.monotonic() - begun < 2
        wait_until(lambda: server.health("spicegraph.v1.ReferenceService") == 2)
        assert server.health("spicegraph.v1.EvaluationService") == 1
        holder.execute("ROLLBACK")
    with Client(server.address, token=token) as client:
        reply = client.score([item(1, "a dog", ["a brown dog"])], metrics=["rouge"])
    assert reply.items[0].scores["ROUGE_L"]
