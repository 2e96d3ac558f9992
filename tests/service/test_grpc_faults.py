"""What happens when things break: workers, servers, disks, stores, clients."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from fakeredis import TcpFakeServer
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import reference_service_pb2 as rpb
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_service.client import Client, item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import RunningServer

pytestmark = pytest.mark.model
CODES = grpc.StatusCode
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


def wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_a_killed_worker_is_replaced_and_its_batch_done(server: RunningServer) -> None:
    (worker,) = server.workers()
    with Client(server.address) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.score, fresh_items(1, 300))
        time.sleep(0.15)
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
    server = start_server()
    with Client(server.address) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.score, fresh_items(3, 1500))
        time.sleep(0.2)
        server.process.terminate()
        assert len(call.result(60).items) == 1500
    assert server.process.wait(30) == 0
    with pytest.raises(grpc.RpcError), grpc.insecure_channel(server.address) as channel:
        EvaluationServiceStub(channel).GetServerInfo(pb.GetServerInfoRequest(), timeout=3)


def test_a_killed_server_loses_nothing_acknowledged(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    store = f"--store={tmp_path / 'server.db'}"
    server = start_server(store)
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
        time.sleep(0.7)
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
def small_disk(place: Path, size: str) -> Iterator[None]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_stops_uploads_but_not_scores(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "600k"):
        server = start_server(f"--store={tmp_path / 'disk' / 'server.db'}")
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


def test_scores_go_on_without_redis(start_server: Callable[..., RunningServer]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", int(probe.getsockname()[1]))
    redis = TcpFakeServer(address, server_type="redis")
    threading.Thread(target=redis.serve_forever, daemon=True).start()
    server = start_server(f"--store=redis://{address[0]}:{address[1]}/0")
    other = start_server(f"--store=redis://{address[0]}:{address[1]}/0")
    with Client(server.address) as client, Client(other.address) as second:
        before = client.score(fresh_items(12, 50))
        created = client.create_reference_set({"1": ["a brown dog", "a dog"]})
        assert client.score([item("1", "a dog")], reference_set=created.id) == second.score(
            [item("1", "a dog")], reference_set=created.id
        )
        redis.shutdown()
        redis.server_close()
        _cut_connections(redis)
        assert client.score(fresh_items(12, 50)) == before
        assert len(client.score(fresh_items(13, 50)).items) == 50
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        ReferenceServiceStub(channel).ListReferenceSets(rpb.ListReferenceSetsRequest(), timeout=20)
    assert caught.value.code() is CODES.UNAVAILABLE
    assert "store cannot be reached" in caught.value.details()
    assert server.stop() == 0


def _cut_connections(redis: TcpFakeServer) -> None:
    """End the connections that the fake server still has: a real one's would end with its process."""
    for path in Path("/proc/self/fd").iterdir():
        try:
            duplicate = socket.socket(fileno=os.dup(int(path.name)))
        except OSError:
            continue
        with duplicate:
            try:
                if duplicate.family == socket.AF_INET and duplicate.getsockname() == redis.server_address:
                    duplicate.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


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


def hostile_messages(count: int) -> Iterator[tuple[str, bytes]]:
    """Methods and bytes: noise, broken and odd messages, deep nesting, strings that are not UTF-8."""
    chance = random.Random(11)
    good = pb.ScoreRequest(items=fresh_items(15, 2), metrics=["spice"]).SerializeToString()
    methods = (
        "EvaluationService/Score",
        "EvaluationService/ParseCaptions",
        "ReferenceService/GetReferenceSet",
    )
    nested = b""
    for _ in range(200):
        nested = b"\x0a" + _varint(len(nested)) + nested
    for _ in range(count):
        kind = chance.randrange(7)
        method = methods[chance.randrange(3)]
        if kind == 0:
            data = chance.randbytes(chance.randrange(200))
        elif kind == 1:  # a good message with some bytes changed
            changed = bytearray(good)
            for _ in range(chance.randrange(1, 10)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            data = bytes(changed)
        elif kind == 2:
            data = good[: chance.randrange(len(good))]
        elif kind == 3:
            data = nested
        elif kind == 4:  # a caption that is not UTF-8
            data = b"\x0a" + _varint(4) + chance.choice([b"\xff\xfe\xfd\xfc", b"\xed\xa0\x80a", b"\xc0\x80ab"])
        elif kind == 5:  # a caption of control characters, brackets, and other planes
            odd = "".join(
                chance.choices("\x01\x1b[]()|\u202e\u200b\U0001f468\u200d\ud7ff\U0010ffff \n", k=chance.randrange(300))
            )
            data = pb.ParseCaptionsRequest(captions=[odd]).SerializeToString()
        else:  # a length that lies
            data = b"\x0a" + _varint(chance.randrange(1 << 40)) + b"abc"
        yield f"/spicegraph.v1.{method}", data


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def test_ten_thousand_hostile_messages_each_get_a_status(server: RunningServer) -> None:
    expected = {CODES.OK, CODES.INVALID_ARGUMENT, CODES.NOT_FOUND}

    async def play() -> dict[grpc.StatusCode, int]:
        seen: dict[grpc.StatusCode, int] = {}
        async with grpc.aio.insecure_channel(server.address) as channel:

            async def send(method: str, data: bytes) -> None:
                call = channel.unary_unary(method)(data, timeout=60)
                code = await call.code()
                assert code in expected, (method, data, code, await call.details())
                seen[code] = seen.get(code, 0) + 1

            batch = []
            for method, data in hostile_messages(10_000):
                batch.append(send(method, data))
                if len(batch) == 100:
                    await asyncio.gather(*batch)
                    batch = []
        return seen

    with Client(server.address) as client:
        client.score(fresh_items(16, 100))
        before = server.memory_mb()
        seen = asyncio.run(play())
        assert sum(seen.values()) == 10_000
        assert min(seen.get(code, 0) for code in expected) > 100
        assert len(client.score(fresh_items(17, 20)).items) == 20
    assert server.memory_mb() < before + 150
    assert server.process.poll() is None


def test_hard_captions_are_scored(client: Client) -> None:
    hard = ["dog " * 500, "(" * 2000, "a" * 2000, "the man and " * 160, "\N{DOG FACE}" * 2000, ". " * 1000]
    parsed = client.parse(hard)
    assert [one.text for one in parsed] == hard
    assert len(client.score([item(n, text, hard) for n, text in enumerate(hard)]).items) == len(hard)


def test_a_full_queue_refuses_at_once_with_a_time_to_wait(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--queue=200")
    request = pb.ScoreRequest(items=fresh_items(18, 1000))
    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(1) as pool:
        stub = EvaluationServiceStub(channel)
        accepted = pool.submit(stub.Score, request, timeout=60)
        time.sleep(0.3)
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
        call = stub.Score.future(pb.ScoreRequest(items=fresh_items(20, 2000)), timeout=60)
        time.sleep(0.3)
        call.cancel()
        started = time.monotonic()
        assert len(stub.Score(pb.ScoreRequest(items=fresh_items(21, 1)), timeout=60).items) == 1
        assert time.monotonic() - started < 1.5
    done = [line for line in server.lines() if line["message"] == "call"]
    assert "CANCELLED" in {line["code"] for line in done}
    assert server.stop() == 0
