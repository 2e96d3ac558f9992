"""OpenTelemetry: a caption's scores as events in the span of the model's call."""

from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from spicegraph_otel import emit_scores

from spicegraph_compat.caption_metric import CaptionMetric

exporter = InMemoryLogRecordExporter()  # in a service: the OTLP exporter
logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
set_logger_provider(logs)

metric = CaptionMetric(("spice", "rouge"), by_category=False)
with TracerProvider().get_tracer("captions").start_as_current_span("chat"):
    caption = "a man rides a brown horse"  # the model's answer
    emit_scores(metric.score_one(caption, ["a man riding a horse", "a man on a brown horse"]))
for log in exporter.get_finished_logs():
    found = log.log_record.attributes
    print(found["gen_ai.evaluation.name"], f"{found['gen_ai.evaluation.score.value']:.3f}")
