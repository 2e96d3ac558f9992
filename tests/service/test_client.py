"""The Python clients by themselves: what they wait for, and how they travel to other processes."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import evaluation_service_pb2_grpc, reference_service_pb2_grpc, scores_pb2
from spicegraph_service.client import AsyncClient, Client, TlsOptions, item

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


class Silent(
    evaluation_service_pb2_grpc.EvaluationServiceServicer, reference_service_pb2_grpc.ReferenceServiceServicer
):
    """Answers the first message with items, and nothing more until the end of the test."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def ScoreStream(self, request_iterator: Any, context: Any) -> Iterator[pb.ScoreStreamResponse]:
        del context
        for request in request_iterator:
            if request.HasField("items"):
                yield pb.ScoreStreamResponse(items=[scores_pb2.ItemResult(id=one.id) for one in request.items.items])
                break
        self.end.wait(30)

    def CreateReferenceSet(self, request_iterator: Any, context: Any) -> Any:
        del context
        list(request_iterator)
        self.end.wait(30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    silent = Silent()
    server = grpc.server(futures.ThreadPoolExecutor(8))
    evaluation_service_pb2_grpc.add_EvaluationServiceServicer_to_server(silent, server)
    reference_service_pb2_grpc.add_ReferenceServiceServicer_to_server(silent, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    silent.end.set()
    server.stop(0)


def many() -> Iterator[Any]:
    for number in range(128):
        yield item(number, "a dog", ["a cat"])


def test_a_stream_gives_up_and_says_what_it_waits_for(address: str) -> None:
    begun = time.monotonic()
    with Client(address, silence_s=0.5) as client, pytest.raises(grpc.RpcError) as failure:
        for _ in client.stream(many()):
            pass
    error: Any = failure.value
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error.details() == f"{address} has sent nothing for 0.5 s: 64 of 128 items wait for an answer"
    assert 0.4 < time.monotonic() - begun < 10


def test_an_asynchronous_stream_gives_up(address: str) -> None:
    async def stream() -> None:
        async with AsyncClient(address, silence_s=0.5) as client:
            async for _ in client.stream(many()):
                pass

    with pytest.raises(grpc.RpcError, match="64 of 128 items wait for an answer"):
        asyncio.run(stream())


def test_uploads_give_up(address: str) -> None:
    async def upload() -> None:
        async with AsyncClient(address, silence_s=0.5) as client:
            await client.create_reference_set({"1": ["a dog"]})

    with Client(address, silence_s=0.5) as client, pytest.raises(grpc.RpcError, match="2 of 2 messages wait"):
        client.create_reference_set({"1": ["a dog"]})
    with pytest.raises(grpc.RpcError, match="2 of 2 messages wait"):
        asyncio.run(upload())


def broken() -> Iterator[Any]:
    """Items of which a later one is none: gRPC draws it in the middle of the call."""
    for number in range(200):
        yield item(number, "a dog", ["a cat"]) if number != 150 else "a dog"


def entries() -> dict[str, Any]:
    return {str(number): ["a dog"] if number != 150 else "a dog" for number in range(200)}


def test_an_error_of_a_caller_s_own_items_reaches_the_caller(address: str) -> None:
    with Client(address) as client:
        with pytest.raises(TypeError, match=r"items\[150\]: expected an item, .* got the string 'a dog'"):
            list(client.stream(broken()))
        with pytest.raises(TypeError, match=r"entries\['150'\]: expected a list of strings, got the string"):
            client.create_reference_set(entries())
        with pytest.raises(ZeroDivisionError):
            list(client.stream(item(number, "a dog", ["a cat"]) for number in range(1, -1, -1) if 1 / number))

    async def stream() -> None:
        async with AsyncClient(address) as client:
            async for _ in client.stream(broken()):
                pass

    async def upload() -> None:
        async with AsyncClient(address) as client:
            await client.create_reference_set(entries())

    with pytest.raises(TypeError, match=r"items\[150\]: expected an item, .* got the string 'a dog'"):
        asyncio.run(stream())
    with pytest.raises(TypeError, match=r"entries\['150'\]: expected a list of strings, got the string"):
        asyncio.run(upload())


WRONG: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"a": {1: "a dog"}}, {1: "a dog"}, {}, r"references\[1\]: expected a list of strings, got the string 'a dog'"),
    ({"a": {1: "a dog"}}, {1: ["a dog", None]}, {}, r"references\[1\]\[1\]: expected a string, got None"),
    ({"a": {1: None}}, {1: ["a dog"]}, {}, r"systems\['a'\]\[1\]: expected a string, got None"),
    ({"a": {1.5: "a dog"}}, {1.5: ["a dog"]}, {}, "id: expected a string or an integer"),
    ({"a": {1: "a dog"}}, {1: ["a dog"]}, {"metrics": 7}, "metrics: expected a list of strings, got the int 7"),
    ({"a": {1: "a dog"}}, {1: ["a dog"]}, {"gates": ["SPICE < 0", None]}, r"gates\[1\]: expected a string, got None"),
]


@pytest.mark.parametrize(("systems", "references", "options", "message"), WRONG)
def test_reports_refuse_what_is_no_caption_before_they_send(
    systems: Any, references: Any, options: dict[str, Any], message: str
) -> None:
    with Client("localhost:1") as client:  # no server is asked
        for call in (client.analyze, client.render):
            with pytest.raises(TypeError, match=message):
                call(systems, references, **options)

    async def twin(method: str) -> None:
        async with AsyncClient("localhost:1") as client:
            await getattr(client, method)(systems, references, **options)

    for method in ("analyze", "render"):
        with pytest.raises(TypeError, match=message):
            asyncio.run(twin(method))


def test_a_misspelt_option_says_what_is_meant_and_is_not_sent() -> None:
    with Client("localhost:1") as client, pytest.raises(TypeError, match=r"'metric' \(did you mean metrics\?\)"):
        client.score([(1, "a dog", ["a dog"])], metric=["bleu"])  # type: ignore[call-arg]


def test_a_caller_may_take_longer_than_a_server(address: str) -> None:
    """Neither the next item nor the look at a result is the server's doing."""

    def slow() -> Iterator[Any]:
        for number in range(64):
            yield item(number, "a dog", ["a cat"])
        time.sleep(1.2)

    with Client(address, silence_s=0.5) as client:
        results = client.stream(slow())
        first = next(results)
        time.sleep(1.0)
        assert len(first.items) == 64
        begun = time.monotonic()
        with pytest.raises(grpc.RpcError, match="the end of its answer is due"):
            next(results)
        assert time.monotonic() - begun > 0.5


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_that_is_pickled_connects_anew(kind: type[Client] | type[AsyncClient]) -> None:
    async def copy() -> Any:
        made: Any = kind("localhost:1", token="sgt_x", tls=TlsOptions(), timeout_s=7, silence_s=None)
        return pickle.loads(pickle.dumps(made)), made

    copied, made = asyncio.run(copy())
    assert type(copied) is kind
    assert copied._channel is not made._channel
    assert copied.__getstate__() == made.__getstate__()
    assert copied.__getstate__()["timeout_s"] == 7
