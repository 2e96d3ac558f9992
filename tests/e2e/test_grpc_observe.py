"""What is seen from outside: logs, Prometheus metrics, coalescing, reflection."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from spicegraph_service.client import AsyncClient, Client
from spicegraph_service.rpc.telemetry import CallLog, JsonFormatter, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer

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


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_finds_services_methods_and_messages(server: RunningServer, version: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        ask = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        symbols = ["EvaluationService", "EvaluationService.Score", "ScoreRequest", "EvaluationService.Nope", "nope"]
        requests = [
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=f"spicegraph.v1.{symbol}")
            for symbol in symbols
        ]
        answers = list(ask(iter(requests), timeout=10))
    assert [answer.WhichOneof("message_response") for answer in answers] == [
        *["file_descriptor_response"] * 3,
        *["error_response"] * 2,
    ]
    assert answers[0].file_descriptor_response == answers[1].file_descriptor_response


def test_reflection_lists_the_services(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (reply,) = stub.ServerReflectionInfo(iter([request]), timeout=20)
    names = {service.name for service in reply.list_services_response.service}
    assert {"spicegraph.v1.EvaluationService", "spicegraph.v1.ReferenceService", "grpc.health.v1.Health"} <= names


def test_the_request_id_comes_back(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        method = channel.unary_unary("/spicegraph.v1.EvaluationService/ParseCaptions")
        for request, code in ((b"\x0a\x05a dog", grpc.StatusCode.OK), (b"", grpc.StatusCode.INVALID_ARGUMENT)):
            call = method.future(request, metadata=(("x-request-id", "mine"),), timeout=20)
            assert call.code() is code
            assert dict(call.trailing_metadata())["x-request-id"] == "mine"
        call = method.future(b"\x0a\x05a dog", timeout=20)
        assert len(dict(call.trailing_metadata())["x-request-id"]) == 16


def test_processes_have_memory_and_time(server: RunningServer) -> None:
    for kind in ("server", "worker"):
        assert sample(server, "spicegraph_process_resident_memory_bytes", process=kind) > 1 << 20
        assert sample(server, "spicegraph_process_cpu_seconds_total", process=kind) > 0
    assert sample(server, "spicegraph_service_up", service="spicegraph.v1.EvaluationService") == 1


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.fields: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append(record.fields)  # type: ignore[attr-defined]


def test_the_log_names_so_many_calls_a_second_and_counts_the_others() -> None:
    now, lines = 7.5, Lines()
    log = CallLog(Telemetry(), most=3, clock=lambda: now)

    def call(code: str) -> None:
        log.started()
        log.ended(method="m", code=code, seconds=0.1, captions=1, caller="c", request_id="r", message="")

    logger = logging.getLogger("spicegraph.calls")
    logger.addHandler(lines)
    level, logger.level = logger.level, logging.INFO
    try:
        for _ in range(10):
            call("RESOURCE_EXHAUSTED")
        call("OK")
        now = 8.1
        for _ in range(2):
            call("RESOURCE_EXHAUSTED")
    finally:
        logger.removeHandler(lines)
        logger.level = level
    assert [(line["code"], line.get("omitted", 0)) for line in lines.fields] == [
        *[("RESOURCE_EXHAUSTED", 0)] * 3,
        ("OK", 0),
        ("RESOURCE_EXHAUSTED", 7),
        ("RESOURCE_EXHAUSTED", 0),
    ]


LOUD = """
import logging, os, sys, warnings
from spicegraph_service.rpc.telemetry import logging_to_stderr
with logging_to_stderr(level="info", as_json=True):
    os.write(2, b"E1122 12:00:00.000000 12 ssl_transport.cc:1] handshake failed\\n")
    print("from a library", file=sys.stderr)
    warnings.warn("two\\nlines")
    logging.getLogger("x").info("ours")
    os.write(2, b"\\xff not text\\n")
print("afterwards", file=sys.stderr)
"""


def test_every_line_of_the_log_is_one_object() -> None:
    done = subprocess.run([sys.executable, "-c", LOUD], capture_output=True, text=True, check=True, timeout=60)
    *lines, last = done.stderr.splitlines()
    assert last == "afterwards"
    found = [json.loads(line) for line in lines]
    messages = {str(line["message"]): (line["level"], line["logger"]) for line in found}
    assert messages["E1122 12:00:00.000000 12 ssl_transport.cc:1] handshake failed"] == ("error", "stderr")
    assert messages["from a library"] == ("info", "stderr")
    assert messages["ours"] == ("info", "x")
    assert messages["\ufffd not text"] == ("info", "stderr")
    assert [line for line in found if line["logger"] == "py.warnings" and "two\nlines" in str(line["message"])]


def test_a_real_server_s_log_holds_nothing_else(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--grace=1")
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.sendall(b"not HTTP/2 " * 20)
    os.kill(server.workers()[0], signal.SIGKILL)
    with Client(server.address) as client:
        client.parse(["a dog"])
    assert server.stop() == 0
    assert all(json.loads(line)["message"] for line in server.log.read_text().splitlines())


def test_a_log_line_is_one_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nb %s", ("c\r\n\x1b[2J",), None)
    record.fields = {"caller": "evil\n{}"}
    line = JsonFormatter().format(record)
    assert line.isprintable()


def test_health_waits_for_a_server_that_is_starting_and_not_for_ever(
    start_server: Callable[..., RunningServer],
) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
    ask = [sys.executable, "-m", "spicegraph_service", "health", address]
    done = subprocess.run([*ask, "--wait", "1", "--timeout", "0.3"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition(":")[0]) == (1, "UNAVAILABLE")
    with subprocess.Popen([*ask, "--wait", "60"], stdout=subprocess.PIPE, text=True) as waiting:
        start_server(f"--address={address}", "--workers=1", "--store=memory")
        assert waiting.stdout is not None
        assert waiting.stdout.read() == "SERVING\n"
