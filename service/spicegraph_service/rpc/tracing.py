"""OpenTelemetry: a span for each call, and the metrics of :mod:`.telemetry`, sent to a collector by OTLP over gRPC."""
# The standard variables say where they go, how often and under which name; attributes follow the conventions for RPC.

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from spicegraph_parser.errors import needs_extra

with needs_extra("otel", "spicegraph serve --opentelemetry"):
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client import CollectorRegistry

_NAME = "spicegraph"
_FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""The statuses that the conventions count as errors of a server."""


class Tracing:
    """Spans and metrics of one server, from its start to :meth:`close`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        resource = Resource({SERVICE_NAME: _NAME}).merge(OTELResourceDetector().detect())
        self._spans = TracerProvider(resource=resource)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._spans.get_tracer(_NAME)
        self._propagator = TraceContextTextMapPropagator()
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        self._metrics = MeterProvider(metric_readers=[reader], resource=resource)
        meter = self._metrics.get_meter(_NAME)
        for family in registry.collect():
            read = partial(_observations, registry, family.name)
            if family.type == "counter":
                meter.create_observable_counter(f"{family.name}_total", [read], description=family.documentation)
            elif family.type == "gauge":
                meter.create_observable_gauge(family.name, [read], description=family.documentation)
            elif family.type == "histogram":
                for end in ("count", "sum"):
                    read = partial(_observations, registry, family.name, end=end)
                    meter.create_observable_counter(f"{family.name}_{end}", [read], description=family.documentation)

    def begin(self, method: str, headers: Mapping[str, str]) -> Span:
        """Begin the span of a call, as a child of the one that a header ``traceparent`` names."""
        service, _, name = method.removeprefix("/").partition("/")
        return self._tracer.start_span(
            f"{service}/{name}",
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": name},
        )

    def headers(self, span: Span) -> dict[str, str]:
        """Return a span's propagation headers: ``traceparent``, and ``tracestate`` if there is one."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context=set_span_in_context(span))
        return carrier

    def end(self, span: Span, *, code: str, number: int, message: str, attributes: Mapping[str, str | int]) -> None:
        """End a call's span with its status."""
        span.set_attribute("rpc.grpc.status_code", number)
        span.set_attributes({f"spicegraph.{name}": value for name, value in attributes.items()})
        if code in _FAULTS:
            span.set_status(StatusCode.ERROR, message or code)
        span.end()

    def close(self) -> None:
        """Flush pending spans and metrics, and shut down."""
        self._spans.shutdown()
        self._metrics.shutdown()


def _observations(
    registry: CollectorRegistry, name: str, _options: CallbackOptions, *, end: str = ""
) -> Iterable[Observation]:
    """Return the present values of a Prometheus metric."""
    wanted = {name, f"{name}_total"} if not end else {f"{name}_{end}"}
    samples = [sample for family in registry.collect() for sample in family.samples if sample.name in wanted]
    return [Observation(sample.value, dict(sample.labels)) for sample in samples]
