"""Telemetry: one structured log line per call, and Prometheus metrics."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, start_http_server

if TYPE_CHECKING:
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

_LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_calls = logging.getLogger("spicegraph.calls")


class Telemetry:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix = "spicegraph"
        self.requests = Counter(
            "requests", "Calls answered.", ["method", "code"], namespace=prefix, registry=self.registry
        )
        self.seconds = Histogram(
            "request_seconds",
            "Time from a call's arrival to its end.",
            ["method"],
            namespace=prefix,
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self.in_flight = Gauge("in_flight", "Calls under way.", namespace=prefix, registry=self.registry)
        self.captions = Counter("captions", "Captions accepted.", namespace=prefix, registry=self.registry)
        self.batch_captions = Histogram(
            "batch_captions",
            "Captions and items of a worker's batch.",
            namespace=prefix,
            buckets=_SIZES,
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "batch_seconds",
            "Time of a worker's batch.",
            namespace=prefix,
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self.queue = Gauge(
            "queue_captions",
            "Captions accepted and not answered yet.",
            namespace=prefix,
            registry=self.registry,
        )
        self.parses = Counter(
            "parse_lookups",
            "Parses looked for, by where they were found (memory, store, miss; error: the store failed).",
            ["result"],
            namespace=prefix,
            registry=self.registry,
        )
        self.server = Info("server", "What computes the scores.", namespace=prefix, registry=self.registry)
        self.workers = Gauge("workers", "Workers that are alive.", namespace=prefix, registry=self.registry)
        self.worker_deaths = Gauge(
            "worker_deaths", "Workers that ended unexpectedly.", namespace=prefix, registry=self.registry
        )

    def runs(self, **what: str) -> None:
        """Record what computes the scores: version, pipeline, vectors."""
        self.server.info(what)

    def batch(self, captions: int, seconds: float) -> None:
        """Record a batch."""
        self.batch_captions.observe(captions)
        self.batch_seconds.observe(seconds)

    def lookup(self, result: str, count: int) -> None:
        """Record where parses were found."""
        self.parses.labels(result).inc(count)

    def serve(self, host: str, port: int) -> tuple[WSGIServer, Thread]:
        """Answer Prometheus on an address of its own; the returned server knows its ``server_port``."""
        return start_http_server(port, host, registry=self.registry)


class CallLog:
    """Writes one line per call."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        # Methods and codes are few; to find their counters anew costs more than to count.
        self._requests = cache(telemetry.requests.labels)
        self._seconds = cache(telemetry.seconds.labels)

    def started(self) -> None:
        """Record that a call has come in."""
        self._telemetry.in_flight.inc()

    def ended(
        self,
        *,
        method: str,
        code: str,
        seconds: float,
        captions: int,
        caller: str,
        request_id: str,
        message: str,
    ) -> None:
        """Record how a call ended."""
        telemetry = self._telemetry
        telemetry.in_flight.dec()
        self._requests(method, code).inc()
        self._seconds(method).observe(seconds)
        if captions:
            telemetry.captions.inc(captions)
        if _calls.isEnabledFor(logging.INFO):
            fields = {
                "method": method,
                "code": code,
                "ms": round(1000 * seconds, 2),
                "captions": captions,
                "caller": caller,
                "request_id": request_id,
            }
            if message:
                fields["error"] = message
            # Made by hand: to look for the calling line, which is always this one, takes longest.
            record = _calls.makeRecord(
                _calls.name, logging.INFO, __file__, 0, "call", (), None, extra={"fields": fields}
            )
            _calls.handle(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, a call's fields. No text can break a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            entry |= fields
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class _TextFormatter(logging.Formatter):
    """One line of text per record, for people."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = getattr(record, "fields", None)
        if not isinstance(fields, dict):
            return line
        return line + " " + " ".join(f"{name}={value!a}" for name, value in fields.items())


def set_up_logging(*, level: str, as_json: bool) -> None:
    """Send the log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else _TextFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
