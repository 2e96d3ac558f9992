"""What happens when things break: workers, servers, disks, stores, clients."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import reference_service_pb2 as rpb
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_service.client import Client, item
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

pytestmark = pytest.mark.model
CODES = grpc.StatusCode
KILLS = int(os.environ.get("SPICEGRAPH_TEST_KILLS", "2"))
WORDS = [
    *"abcdefgh",
    "man",
    "woman",
    "dog",
    "cat",
    "bus",
    "street",
    "red",
    "small",
    "riding",
    "with",
    "on",
    "two",
    "the",
]


def captions(seed: int, count: int) -> list[str]:
    """Captions that no other test has sent."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=12)) + f" {seed} {n}" for n in range(count)]


def fresh_items(seed: int, count: int) -> list[scores_pb2.Item]:
    return [item(n, text, ["a man riding a bus", text[:20]]) for n, text in enumerate(captions(seed, count))]


def test_a_killed_worker_is_replaced_and_its_batch_done(server: RunningServer) -> None:
    (worker,) = server.workers()
    with Client(server.address) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.score, fresh_items(1, 300))
        wait_until(lambda: server.calls_under_way() == 1)
        os.kill(worker, signal.SIGKILL)
        reply = call.result(60)
        assert len(reply.items) == 300
        assert [result.id for result in reply.items] == [str(n) for n in range(300)]
        wait_until(lambda: len(server.workers()) == 1 and server.workers() != [worker])
        assert len(client.score(fresh_items(2, 5)).items) == 5
    wait_until(lambda: server.health() == health_pb2.HealthCheckResponse.SERVING)


def test_health_says_when_there_is_no_worker(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(wait=False)
    wait_until(lambda: "listening" in server.log.read_text())
    seen = {server.health("spicegraph.v1.EvaluationService")}
    server.wait_serving()
    seen.add(server.health("spicegraph.v1.EvaluationService"))
    assert seen == {health_pb2.HealthCheckResponse.NOT_SERVING, health_pb2.HealthCheckResponse.SERVING}
    assert server.health("spicegraph.v1.ReferenceService") == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        server.health("no.such.Service")
    assert caught.value.code() is CODES.NOT_FOUND
    assert server.stop() == 0


def test_sigterm_lets_calls_finish_and_refuses_new_ones(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--grace=100", "--metrics-address=127.0.0.1:0")

    with Client(server.address, timeout_s=100) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.score, fresh_items(3, 1500))
        wait_until(lambda: server.calls_under_way() == 1)
        server.process.terminate()
        assert len(call.result(100).items) == 1500
    assert server.process.wait(30) == 0
    with pytest.raises(grpc.RpcError), grpc.insecure_channel(server.address) as channel:
        EvaluationServiceStub(channel).GetServerInfo(pb.GetServerInfoRequest(), timeout=3)


def test_a_killed_server_loses_nothing_acknowledged(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    store = f"--store={tmp_path / 'server.db'}"
    server = start_server(store, "--metrics-address=127.0.0.1:0")
    workers = server.workers()
    with Client(server.address) as client:
        kept = client.create_reference_set({str(n): [text] for n, text in enumerate(captions(4, 300))})

    def endless() -> Iterator[rpb.CreateReferenceSetRequest]:
        for n in range(10_000):
            texts = captions(100 + n, 20)
            entries = [rpb.ReferenceEntry(id=f"{n}-{m}", references=[text]) for m, text in enumerate(texts)]
            yield rpb.CreateReferenceSetRequest(entries=rpb.ReferenceEntryBatch(entries=entries))

    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(2) as pool:
        upload = pool.submit(lambda: ReferenceServiceStub(channel).CreateReferenceSet(endless(), timeout=60))
        scoring = pool.submit(
            lambda: EvaluationServiceStub(channel).Score(pb.ScoreRequest(items=fresh_items(5, 1500)), timeout=60)
        )
        wait_until(lambda: server.calls_under_way() == 2)
        server.stop(signal.SIGKILL)
        for call in (upload, scoring):
            with pytest.raises(grpc.RpcError) as caught:
                call.result(60)
            assert caught.value.code() is CODES.UNAVAILABLE
    wait_until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))
    again = start_server(store)
    with Client(again.address) as client:
        assert [one.id for one in client.list_reference_sets()] == [kept.id]
        assert len(client.score([item("7", "a dog")], reference_set=kept.id).items) == 1
    assert again.stop() == 0


@contextmanager
def small_disk(place: Path) -> Iterator[dict[str, str]]:
    """A file system with room for a few hundred kB."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield {}
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def small_database(place: Path) -> Iterator[dict[str, str]]:
    """Where nobody can mount a disk: SQLite itself is told to find no room after so many pages."""
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import sqlite3\n"
        "connect = sqlite3.connect\n"
        "def connect_small(*args, **options):\n"
        "    connection = connect(*args, **options)\n"
        "    connection.execute('PRAGMA max_page_count = 60')\n"
        "    return connection\n"
        "sqlite3.connect = connect_small\n"
    )
    yield {"PYTHONPATH": os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))}


@pytest.mark.parametrize("small", [small_disk, small_database])
def test_a_full_disk_stops_uploads_but_not_scores(
    start_server: Callable[..., RunningServer],
    tmp_path: Path,
    small: Callable[[Path], AbstractContextManager[dict[str, str]]],
) -> None:
    with small(tmp_path / "disk") as env:
        server = start_server(f"--store={tmp_path / 'disk' / 'server.db'}", env=env)
        with Client(server.address) as client:
            first = client.create_reference_set({"1": ["a dog"]})
            large = {str(n): [f"{text} {'x' * 500}"] for n, text in enumerate(captions(6, 1500))}
            with pytest.raises(grpc.RpcError) as caught:
                client.create_reference_set(large)
            assert caught.value.code() is CODES.RESOURCE_EXHAUSTED
            assert "no room left" in caught.value.details()
            for seed in range(7, 12):
                assert len(client.score(fresh_items(seed, 200)).items) == 200
            assert [one.id for one in client.list_reference_sets()] == [first.id]
            assert len(client.score([item("1", "a dog")], reference_set=first.id).items) == 1
        assert server.stop() == 0


@contextmanager
def redis_server(program: str, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    durable = ["--appendonly", "yes", "--appendfsync", "always"]
    with subprocess.Popen([*command, *durable], stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: accepts(port))
            yield process
        finally:
            process.kill()


class Uploader(threading.Thread):
    """Stores sets and deletes some, through all crashes; remembers what was acknowledged."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.over = threading.Event()
        self.stored: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.acknowledged = 0

    def work(self) -> None:
        """Wait until another set is acknowledged: on a busy machine a client needs a while to find a new server."""
        before, end = self.acknowledged, time.monotonic() + 60
        while self.acknowledged == before:
            assert time.monotonic() < end
            time.sleep(0.01)

    def run(self) -> None:
        chance = random.Random(0)
        for number in count():
            if self.over.is_set():
                return
            texts = [f"{number} {text}" for text in captions(number, chance.randrange(1, 40))]
            with suppress(grpc.RpcError), Client(self.address, timeout_s=20) as client:
                made = client.create_reference_set({str(n): [text] for n, text in enumerate(texts)})
                self.stored[made.id] = len(texts)
                self.acknowledged += 1
                if chance.random() < 0.2:
                    # An answer that was lost leaves open whether it is deleted.
                    del self.stored[made.id]
                    client.delete_reference_set(made.id)
                    self.deleted.add(made.id)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["file", "redis"])
def test_killed_servers_and_stores_lose_no_set(
    kind: str, start_server: Callable[..., RunningServer], tmp_path: Path, program: Callable[[str], str]
) -> None:
    """`kill -9` at random moments of the server, and of every second Redis; SPICEGRAPH_TEST_KILLS=50 makes it hard."""
    chance, port = random.Random(1), free_port()
    store = str(tmp_path / "server.db") if kind == "file" else f"redis://127.0.0.1:{port}/0"
    options = (f"--address=127.0.0.1:{free_port()}", f"--store={store}")
    with ExitStack() as stack:

        def start_store() -> None:
            if kind == "redis":
                stack.enter_context(redis_server(program("redis-server"), tmp_path, port))

        start_store()
        server = start_server(*options)
        uploader = Uploader(server.address)
        uploader.start()
        for number in range(KILLS):
            uploader.work()
            time.sleep(chance.uniform(0, 1))
            server.stop(signal.SIGKILL)
            if number % 2:
                stack.close()
                start_store()
            server = start_server(*options)
        uploader.work()
        uploader.over.set()
        uploader.join(60)
        with Client(server.address) as client:
            left = {one.id: one.entry_count for one in client.list_reference_sets()}
            assert uploader.stored.items() <= left.items()
            assert not uploader.deleted & left.keys()
            for one, size in left.items():  # whole
                assert len(client.score([item(n, "a dog") for n in range(size)], reference_set=one).items) == size
        assert server.stop() == 0


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_scores_go_on_without_redis(
    start_server: Callable[..., RunningServer], tmp_path: Path, program: Callable[[str], str]
) -> None:
    """Two servers share a Redis, which is killed and comes back."""
    redis, port = program("redis-server"), free_port()
    with redis_server(redis, tmp_path, port):
        servers = [start_server(f"--store=redis://127.0.0.1:{port}/0") for _ in range(2)]
        with Client(servers[0].address) as client, Client(servers[1].address) as other:
            before = client.score(fresh_items(12, 50))
            created = client.create_reference_set({"1": ["a brown dog", "a dog"]})
            shared = client.score([item("1", "a dog")], reference_set=created.id)
            assert other.score([item("1", "a dog")], reference_set=created.id) == shared
    with Client(servers[0].address) as client:
        assert client.score(fresh_items(12, 50)) == before
        assert len(client.score(fresh_items(13, 50)).items) == 50
    with grpc.insecure_channel(servers[0].address) as channel, pytest.raises(grpc.RpcError) as caught:
        ReferenceServiceStub(channel).ListReferenceSets(rpb.ListReferenceSetsRequest(), timeout=20)
    assert caught.value.code() is CODES.UNAVAILABLE
    assert "store cannot be reached" in caught.value.details()
    with redis_server(redis, tmp_path, port):
        for server in servers:
            with Client(server.address) as client:
                assert [one.id for one in client.list_reference_sets()] == [created.id]
                assert client.score([item("1", "a dog")], reference_set=created.id) == shared
    assert [server.stop() for server in servers] == [0, 0]


def test_without_any_worker_calls_are_refused(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    """The pipeline is gone and so is the worker: no call waits for what may never come. Then the pipeline is back."""
    pipeline = shutil.copytree(pipeline_path(), tmp_path / "pipeline")
    server = start_server(f"--pipeline={pipeline}")
    with grpc.insecure_channel(server.address) as channel:
        stub = EvaluationServiceStub(channel)
        assert len(stub.Score(pb.ScoreRequest(items=fresh_items(24, 3))).items) == 3
        pipeline.rename(tmp_path / "gone")
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: server.health() == health_pb2.HealthCheckResponse.NOT_SERVING)
        calls = [
            lambda: stub.Score(pb.ScoreRequest(items=fresh_items(25, 3))),
            lambda: stub.Score(pb.ScoreRequest(items=fresh_items(25, 300))),
            lambda: stub.ParseCaptions(pb.ParseCaptionsRequest(captions=["a dog"])),
            lambda: list(stub.ScoreStream(iter([pb.ScoreStreamRequest(items=pb.ItemBatch(items=fresh_items(25, 3)))]))),
        ]
        for call in calls:  # without a deadline
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() is CODES.UNAVAILABLE
            assert "no worker" in caught.value.details()
        (tmp_path / "gone").rename(pipeline)
        wait_until(lambda: server.health() == health_pb2.HealthCheckResponse.SERVING, 40)
        assert len(stub.Score(pb.ScoreRequest(items=fresh_items(26, 3))).items) == 3
    assert server.stop() == 0


def test_a_client_that_does_not_read_is_not_read_from(server: RunningServer) -> None:
    """Its items wait with itself; the server keeps a few chunks, and others are served."""

    async def play() -> int:
        sent = 0

        async def requests() -> object:
            nonlocal sent
            yield pb.ScoreStreamRequest(settings=pb.ScoreStreamSettings(detail=scores_pb2.DETAIL_TUPLES))
            texts = [f"{', '.join(captions(23, 40))} {n}" for n in range(64)]
            for n in range(3000):
                batch = [item(f"{n}-{m}", text, texts[:2]) for m, text in enumerate(texts)]
                yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=batch))
                sent += 1

        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = EvaluationServiceStub(channel)
            call = stub.ScoreStream(requests())
            stuck = -1
            while sent > stuck or not sent:
                stuck = sent
                await asyncio.sleep(3)
            with Client(server.address) as client:
                reply = await asyncio.to_thread(client.score, fresh_items(14, 20))
            assert len(reply.items) == 20
            await asyncio.sleep(1)
            assert sent == stuck
            call.cancel()
        return sent

    before = server.memory_mb()
    assert asyncio.run(play()) < 1000
    assert server.memory_mb() < before + 150


UNARY = (
    "EvaluationService/Score",
    "EvaluationService/ParseCaptions",
    "EvaluationService/GetServerInfo",
    "ReferenceService/GetReferenceSet",
    "ReferenceService/ListReferenceSets",
    "ReferenceService/DeleteReferenceSet",
)
STREAMS = ("EvaluationService/ScoreStream", "ReferenceService/CreateReferenceSet")


def hostile_messages(count: int) -> Iterator[bytes]:
    """Noise, broken and odd messages, deep nesting, strings that are not UTF-8, large ones."""
    chance = random.Random(11)
    good = [
        pb.ScoreRequest(items=fresh_items(15, 2), metrics=["spice"]).SerializeToString(),
        pb.ScoreStreamRequest(items=pb.ItemBatch(items=fresh_items(15, 2))).SerializeToString(),
        rpb.CreateReferenceSetRequest(
            entries=rpb.ReferenceEntryBatch(entries=[rpb.ReferenceEntry(id="1", references=["a dog"])])
        ).SerializeToString(),
    ]
    nested = b""
    for _ in range(200):
        nested = b"\x0a" + _varint(len(nested)) + nested

    def changed() -> bytes:
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 10)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data)

    def cut() -> bytes:
        data = chance.choice(good)
        return data[: chance.randrange(len(data))]

    def odd() -> bytes:
        marks = "\x01\x1b[]()|\u202e\u200b\U0001f468\u200d\ud7ff\U0010ffff \n"
        caption = "".join(chance.choices(marks, k=chance.randrange(300)))
        return pb.ParseCaptionsRequest(captions=[caption]).SerializeToString()

    kinds: list[Callable[[], bytes]] = [
        lambda: chance.randbytes(chance.randrange(200)),
        changed,
        cut,
        odd,
        lambda: nested,
        lambda: b"\x0a" + _varint(4) + chance.choice([b"\xff\xfe\xfd\xfc", b"\xed\xa0\x80a", b"\xc0\x80ab"]),
        lambda: b"\x0a" + _varint(chance.randrange(1 << 40)) + b"abc",  # a length that lies
        lambda: b"\x0a" + _varint(60_000) + b"x" * 60_000,
    ]
    for _ in range(count):
        yield chance.choice(kinds)()


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def test_ten_thousand_hostile_messages_each_get_a_status(start_server: Callable[..., RunningServer]) -> None:
    """Every third one in a stream or an upload, some of them behind good messages."""
    server = start_server("--max-items=300", "--max-wait=60")  # long captions cost much, and none is refused for that
    expected = {CODES.OK, CODES.INVALID_ARGUMENT, CODES.NOT_FOUND}
    entries = rpb.ReferenceEntryBatch(entries=[rpb.ReferenceEntry(id="good", references=["a dog"])])
    before_it = {
        STREAMS[0]: pb.ScoreStreamRequest(items=pb.ItemBatch(items=fresh_items(27, 1))).SerializeToString(),
        STREAMS[1]: rpb.CreateReferenceSetRequest(entries=entries).SerializeToString(),
    }

    async def play() -> dict[str, dict[grpc.StatusCode, int]]:
        seen: dict[str, dict[grpc.StatusCode, int]] = {method: {} for method in (*UNARY, *STREAMS)}
        uploads = asyncio.Semaphore(2)  # the server takes four at a time
        async with grpc.aio.insecure_channel(server.address) as channel:

            async def send(number: int, data: bytes) -> None:
                method = STREAMS[number // 3 % 2] if number % 3 == 0 else UNARY[number // 3 % len(UNARY)]
                path = f"/spicegraph.v1.{method}"
                messages = [before_it[method], data] if method in before_it and number // 6 % 2 else [data]
                if method == STREAMS[0]:
                    call = channel.stream_stream(path)(iter(messages), timeout=60)
                    with suppress(grpc.aio.AioRpcError):
                        async for _ in call:
                            pass
                elif method == STREAMS[1]:
                    async with uploads:
                        call = channel.stream_unary(path)(iter(messages), timeout=60)
                        await call.code()
                else:
                    call = channel.unary_unary(path)(data, timeout=60)
                code = await call.code()
                assert code in expected, (method, data, code, await call.details())
                seen[method][code] = seen[method].get(code, 0) + 1

            numbered = enumerate(hostile_messages(10_000))
            while batch := list(islice(numbered, 60)):
                await asyncio.gather(*(send(number, data) for number, data in batch))
        return seen

    with Client(server.address) as client, ThreadPoolExecutor(32) as pool:
        client.score(fresh_items(16, 100))
        small = [[f"a man {number} and {text} beside {text}"] for number, text in enumerate(captions(30, 600))]
        list(pool.map(client.parse, small))
        before = server.memory_mb()
        seen = asyncio.run(play())
        assert sum(sum(codes.values()) for codes in seen.values()) == 10_000
        assert all(codes[CODES.INVALID_ARGUMENT] > 200 for codes in seen.values()), seen
        assert sum(codes.get(CODES.NOT_FOUND, 0) for codes in seen.values()) > 100
        assert len(client.score(fresh_items(17, 20)).items) == 20
        assert not any(line.get("code") == "INTERNAL" for line in server.lines())
    assert server.memory_mb() < before + 150
    assert server.process.poll() is None


def test_hard_captions_are_scored(client: Client) -> None:
    hard = ["dog " * 500, "(" * 2000, "a" * 2000, "the man and " * 160, "\N{DOG FACE}" * 2000, ". " * 1000]
    parsed = client.parse(hard)
    assert [one.text for one in parsed] == hard
    assert len(client.score([item(n, text, hard) for n, text in enumerate(hard)]).items) == len(hard)


def test_a_full_queue_refuses_at_once_with_a_time_to_wait(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--queue=200", "--metrics-address=127.0.0.1:0")
    request = pb.ScoreRequest(items=fresh_items(18, 1000))
    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(1) as pool:
        stub = EvaluationServiceStub(channel)
        accepted = pool.submit(stub.Score, request, timeout=60)
        wait_until(lambda: server.calls_under_way() == 1)
        started = time.monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            stub.Score(pb.ScoreRequest(items=fresh_items(19, 10)), timeout=60)
        assert time.monotonic() - started < 1
        assert caught.value.code() is CODES.RESOURCE_EXHAUSTED
        status = rpc_status.from_call(caught.value)
        assert status is not None
        retry = error_details_pb2.RetryInfo()
        assert any(packed.Unpack(retry) for packed in status.details)
        assert 0 < retry.retry_delay.ToMilliseconds() <= 30_000
        assert len(accepted.result(60).items) == 1000
        assert len(stub.Score(pb.ScoreRequest(items=fresh_items(19, 10)), timeout=60).items) == 10
    assert server.stop() == 0


def test_cancelled_work_stops(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--metrics-address=127.0.0.1:0")
    with grpc.insecure_channel(server.address) as channel:
        stub = EvaluationServiceStub(channel)
        stub.Score(pb.ScoreRequest(items=fresh_items(19, 1)), timeout=60)  # connected, and the workers have loaded
        call = stub.Score.future(pb.ScoreRequest(items=fresh_items(20, 2000)), timeout=60)
        wait_until(lambda: server.calls_under_way() == 1)
        call.cancel()
        started = time.monotonic()
        assert len(stub.Score(pb.ScoreRequest(items=fresh_items(21, 1)), timeout=60).items) == 1
        assert time.monotonic() - started < 1.5
    done = [line for line in server.lines() if line["message"] == "call"]
    assert "CANCELLED" in {line["code"] for line in done}
    assert server.stop() == 0
