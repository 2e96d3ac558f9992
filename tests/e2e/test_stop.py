"""What a server waits for when it stops: for answers that clients take, not for those that nobody takes."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_service import app
from spicegraph_service.client import item
from spicegraph_service.config import ServerConfig
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

pytestmark = [pytest.mark.model, pytest.mark.slow]

STREAM = "/spicegraph.v1.EvaluationService/ScoreStream"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


def test_a_client_that_takes_no_response_holds_up_no_stop(start_server: Callable[..., RunningServer]) -> None:
    """It is there, as its answers to pings show, but reads nothing of its stream."""
    server = start_server("--grace=300")
    sent: list[int] = []

    def requests() -> Iterator[bytes]:
        yield pb.ScoreStreamRequest(settings=pb.ScoreStreamSettings(metrics=["rouge"])).SerializeToString()
        for number in itertools.count():
            items = [item(f"{number}-{one}", "a dog", ["a brown dog"]) for one in range(64)]
            sent.append(number)
            yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=items)).SerializeToString()

    with grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream(STREAM)(requests())
        wait_until(lambda: len(sent) > 10)
        server.process.terminate()
        assert server.process.wait(120) == 0
        call.cancel()


def test_a_connection_without_calls_that_answers_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a proxy's is whose client has gone, until its own limit; gRPC would wait for it for 20 s."""
    monkeypatch.setattr(app, "_GOODBYE_S", 0.05)

    async def connect() -> float:
        server = app.Server(ServerConfig(address="127.0.0.1:0", store="memory"), {})
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(PREFACE)
        await reader.readexactly(9)  # of the server's settings: it knows the connection
        begun = time.monotonic()
        await server.stop(300)
        writer.close()
        return time.monotonic() - begun

    assert asyncio.run(connect()) < 15
