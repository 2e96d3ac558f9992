"""What is seen from outside: logs, Prometheus metrics, coalescing, reflection."""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from spicegraph_service.client import AsyncClient, Client
from spicegraph_service.server.telemetry import JsonFormatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import RunningServer

pytestmark = pytest.mark.model


def sample(server: RunningServer, name: str, **labels: str) -> float:
    """One number of the server's metrics."""
    with urllib.request.urlopen(server.metrics_url, timeout=5) as reply:
        text = reply.read().decode()
    wanted = name + ("{" + ",".join(f'{k}="{v}"' for k, v in sorted(labels.items())) + "}" if labels else "")
    for line in text.splitlines():
        if line.startswith(wanted + " "):
            return float(line.rpartition(" ")[2])
    return 0.0


def test_calls_are_counted_and_logged(server: RunningServer) -> None:
    labels = {"method": "EvaluationService/ParseCaptions", "code": "OK"}
    before = sample(server, "spicegraph_requests_total", **labels)
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary("/spicegraph.v1.EvaluationService/ParseCaptions")
        call(b"\x0a\x05a dog", metadata=(("x-request-id", "from-the-test"),), timeout=20)
    assert sample(server, "spicegraph_requests_total", **labels) == before + 1
    assert sample(server, "spicegraph_workers") == 1
    (line,) = [line for line in server.lines() if line.get("request_id") == "from-the-test"]
    assert (line["method"], line["code"], line["captions"], line["caller"]) == (
        "EvaluationService/ParseCaptions",
        "OK",
        1,
        "anonymous",
    )


def test_small_calls_share_batches(server: RunningServer) -> None:
    async def many() -> None:
        async with AsyncClient(server.address) as client:
            await asyncio.gather(*(client.parse([f"a dog that nobody has seen, number {n}"]) for n in range(200)))

    batches = sample(server, "spicegraph_batch_captions_count")
    asyncio.run(many())
    assert sample(server, "spicegraph_batch_captions_count") - batches < 50


def test_what_was_parsed_is_not_parsed_again(server: RunningServer) -> None:
    with Client(server.address) as client:
        client.parse(["a caption for the cache"])
        misses = sample(server, "spicegraph_parse_lookups_total", result="miss")
        hits = sample(server, "spicegraph_parse_lookups_total", result="memory")
        client.parse(["a caption for the cache"])
    assert sample(server, "spicegraph_parse_lookups_total", result="miss") == misses
    assert sample(server, "spicegraph_parse_lookups_total", result="memory") == hits + 1


def test_parses_outlive_the_server(start_server: Callable[..., RunningServer], tmp_path: object) -> None:
    options = (f"--store={tmp_path}/server.db", "--metrics-address=127.0.0.1:0")
    first = start_server(*options)
    with Client(first.address) as client:
        parsed = list(client.parse(["a dog on a long journey"]))
    assert first.stop() == 0
    second = start_server(*options)
    with Client(second.address) as client:
        assert list(client.parse(["a dog on a long journey"])) == parsed
    assert sample(second, "spicegraph_parse_lookups_total", result="store") == 1
    assert second.stop() == 0


def test_reflection_lists_the_services(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (reply,) = stub.ServerReflectionInfo(iter([request]), timeout=20)
    names = {service.name for service in reply.list_services_response.service}
    assert {
        "spicegraph.v1.EvaluationService",
        "spicegraph.v1.ReferenceService",
        "grpc.health.v1.Health",
    } <= names


def test_a_log_line_is_one_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nb %s", ("c\r\n\x1b[2J",), None)
    record.fields = {"caller": "evil\n{}"}
    line = JsonFormatter().format(record)
    assert line.isprintable()
