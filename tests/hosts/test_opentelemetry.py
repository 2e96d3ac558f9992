"""OpenTelemetry: one event per defined score, in the span of the call that is scored."""

from __future__ import annotations

import math

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from spicegraph_otel import emit_scores

from conftest import ROWS
from spicegraph_compat.caption_metric import CaptionMetric


def test_events(expected: list[dict[str, float]]) -> None:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    scores = CaptionMetric(("spice", "rouge")).score_one(*ROWS[0])
    assert any(math.isnan(value) for value in scores.values())  # references without a size
    with TracerProvider().get_tracer("model").start_as_current_span("chat") as span:
        emit_scores(scores, response_id="resp-1", provider=provider)
    records = [log.log_record for log in exporter.get_finished_logs()]
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert {record.span_id for record in records} == {span.get_span_context().span_id}
    assert {record.trace_id for record in records} == {span.get_span_context().trace_id}
    assert {record.attributes["gen_ai.response.id"] for record in records} == {"resp-1"}
    found = {r.attributes["gen_ai.evaluation.name"]: r.attributes["gen_ai.evaluation.score.value"] for r in records}
    assert found == {name: value for name, value in scores.items() if not math.isnan(value)}
    assert found.items() >= expected[0].items()
