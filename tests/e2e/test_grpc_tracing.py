"""Traces and metrics for OpenTelemetry, as a collector receives them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer

pytestmark = pytest.mark.slow
pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc", reason="needs the extra otel")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def collector() -> tuple[grpc.Server, int, list[Any], list[Any]]:
    """A server that keeps the spans and metrics that it is sent."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

    spans: list[Any] = []
    measured: list[Any] = []

    def take_spans(request: Any, _context: object) -> Any:
        spans.extend(span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans)
        return traces.ExportTraceServiceResponse()

    def take_metrics(request: Any, _context: object) -> Any:
        measured.extend(m for one in request.resource_metrics for scope in one.scope_metrics for m in scope.metrics)
        return metrics.ExportMetricsServiceResponse()

    def handler(service: str, take: Any, request: Any, response: Any) -> grpc.GenericRpcHandler:
        method = grpc.unary_unary_rpc_method_handler(take, request.FromString, response.SerializeToString)
        return grpc.method_handlers_generic_handler(f"opentelemetry.proto.collector.{service}", {"Export": method})

    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (
            handler(
                "trace.v1.TraceService", take_spans, traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse
            ),
            handler(
                "metrics.v1.MetricsService",
                take_metrics,
                metrics.ExportMetricsServiceRequest,
                metrics.ExportMetricsServiceResponse,
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port, spans, measured


def test_calls_are_spans_of_their_callers_traces(start_server: Callable[..., RunningServer]) -> None:
    receiving, port, spans, measured = collector()
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    server = start_server("--opentelemetry", env=settings)
    trace = (("traceparent", f"00-{TRACE}-{PARENT}-01"), ("x-request-id", "mine"))
    with grpc.insecure_channel(server.address) as channel:
        stub = EvaluationServiceStub(channel)
        call = stub.ParseCaptions.future(pb.ParseCaptionsRequest(captions=["a dog"]), metadata=trace, timeout=60)
        assert call.code() is grpc.StatusCode.OK
        back = dict(call.trailing_metadata())["traceparent"]
        wrong = stub.ParseCaptions.future(pb.ParseCaptionsRequest(), timeout=60)
        assert wrong.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert dict(wrong.trailing_metadata())["traceparent"][3:35] != TRACE
    end = time.monotonic() + 60
    while len(spans) < 2 or not any(metric.name == "spicegraph_requests_total" for metric in measured):
        assert time.monotonic() < end, "nothing arrived"
        time.sleep(0.1)
    assert server.stop() == 0
    receiving.stop(None)
    span, refused = spans[:2]
    assert span.name == "spicegraph.v1.EvaluationService/ParseCaptions"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert back == f"00-{TRACE}-{span.span_id.hex()}-01"
    attributes = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    assert attributes["spicegraph.request_id"] == "mine"
    assert (attributes["spicegraph.captions"], attributes["rpc.grpc.status_code"]) == (1, 0)
    assert {one.key: one.value.int_value for one in refused.attributes}["rpc.grpc.status_code"] == 3
    names = {metric.name for metric in measured}
    assert {"spicegraph_workers", "spicegraph_request_seconds_count", "spicegraph_process_cpu_seconds_total"} <= names
