"""What is seen of the server from outside: the log, with one line per call, and Prometheus metrics."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Mapping  # noqa: TC003 (a NamedTuple's annotation)
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from threading import Thread
from typing import TYPE_CHECKING, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from spicegraph_service.pool.processes import usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_CORE_LEVELS = {"W": logging.WARNING, "E": logging.ERROR, "F": logging.CRITICAL}
_NAME = "spicegraph"
_calls = logging.getLogger("spicegraph.calls")
_stderr = logging.getLogger("stderr")


class Telemetry:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge, histogram = (
            partial(Counter, namespace=_NAME, registry=self.registry),
            partial(Gauge, namespace=_NAME, registry=self.registry),
            partial(Histogram, namespace=_NAME, registry=self.registry),
        )
        self.requests = counter("requests", "Calls answered.", ["method", "code"])
        self.seconds = histogram(
            "request_seconds", "Time from a call's arrival to its end.", ["method"], buckets=_LATENCIES
        )
        self.refusals = counter(
            "refusals", "Calls refused for want of room or time, by the reason in their error.", ["reason"]
        )
        self.in_flight = gauge("in_flight", "Calls under way.")
        self.captions = counter("captions", "Captions accepted.")
        self.batch_captions = histogram("batch_captions", "Captions and items of a worker's batch.", buckets=_SIZES)
        self.batch_seconds = histogram("batch_seconds", "Time of a worker's batch.", buckets=_LATENCIES)
        self.queue = gauge("queue_captions", "Captions accepted and not answered yet.")
        self.parses = counter(
            "parse_lookups",
            "Parses looked for, by where they were found (memory, store, miss; error: the store failed).",
            ["result"],
        )
        self.server = Info("server", "What computes the scores.", namespace=_NAME, registry=self.registry)
        self.workers = gauge("workers", "Workers that are alive.")
        self.services = gauge(
            "service_up",
            "Whether what the service needs besides workers (its store, its database) can be reached.",
            ["service"],
        )
        self.worker_deaths = counter("worker_deaths", "Workers that ended unexpectedly.")

    def refused(self, reason: str) -> None:
        """Record a refusal."""
        self.refusals.labels(reason).inc()

    def batch(self, captions: int, seconds: float) -> None:
        """Record a batch."""
        self.batch_captions.observe(captions)
        self.batch_seconds.observe(seconds)


class ProcessCollector:
    """Memory and processor time of processes by kind (server, worker), read when asked for, from ``/proc``."""

    def __init__(self, processes: Callable[[], Mapping[str, Iterable[int]]]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, summed over processes of a kind."""
        memory = GaugeMetricFamily(
            "spicegraph_process_resident_memory_bytes", "Resident memory, by kind of process.", labels=["process"]
        )
        seconds = CounterMetricFamily(
            "spicegraph_process_cpu_seconds", "Processor time of the living processes, by kind.", labels=["process"]
        )
        for kind, pids in self._processes().items():
            usages = [usage(pid) for pid in pids]
            memory.add_metric([kind], sum(memory_bytes for memory_bytes, _ in usages))
            seconds.add_metric([kind], sum(cpu_seconds for _, cpu_seconds in usages))
        yield memory
        yield seconds


class CallLog:
    """Writes a line per call, at most ``most`` a second of a method and status (0: all); the next counts others."""

    def __init__(self, telemetry: Telemetry, *, most: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._telemetry = telemetry
        self.refused = telemetry.refused
        self._most = most
        self._clock = clock
        self._written: dict[tuple[str, str], tuple[int, int]] = {}  # the last second with calls, and how many
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
        peer: str = "",
        certificate: str = "",
    ) -> None:
        """Record how a call ended."""
        telemetry = self._telemetry
        telemetry.in_flight.dec()
        self._requests(method, code).inc()
        self._seconds(method).observe(seconds)
        if captions:
            telemetry.captions.inc(captions)
        if not _calls.isEnabledFor(logging.INFO):
            return
        omitted = self._omitted(method, code)
        if omitted is None:
            return
        fields = {
            "method": method,
            "code": code,
            "ms": round(1000 * seconds, 2),
            "captions": captions,
            "caller": caller,
            "peer": peer,
            "request_id": request_id,
        }
        optional = {"certificate": certificate, "error": message, "omitted": omitted}
        fields |= {name: value for name, value in optional.items() if value}
        # Made by hand: to look for the calling line, which is always this one, takes longest.
        record = _calls.makeRecord(_calls.name, logging.INFO, __file__, 0, "call", (), None, extra={"fields": fields})
        _calls.handle(record)

    def _omitted(self, method: str, code: str) -> int | None:
        """Return how many calls were left out before one that is written; ``None``: leave this one out, too."""
        if not self._most:
            return 0
        now = int(self._clock())
        second, calls = self._written.get((method, code), (now, 0))
        self._written[method, code] = (now, calls + 1 if second == now else 1)
        if second == now:
            return None if calls >= self._most else 0
        return max(0, calls - self._most)


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


@contextmanager
def logging_to_stderr(*, level: str, as_json: bool) -> Iterator[None]:
    """Log to standard error; as JSON, including output of libraries, workers and Python's warnings."""
    logging.captureWarnings(True)  # noqa: FBT003 (the library's signature)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if not as_json:
        _set_up(sys.stderr, _TextFormatter("%(asctime)s %(levelname)s %(message)s"), level)
        yield
        return
    with os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8") as stream:
        _set_up(stream, JsonFormatter(), level)
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        reader = Thread(target=_relay, args=(reading,), name="stderr", daemon=True)
        reader.start()
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stream.fileno(), 2)  # the last writing end here is closed; that of a child may still be open
            reader.join(timeout=1)


def _set_up(stream: TextIO, formatter: logging.Formatter, level: str) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _relay(reading: int) -> None:
    """Log the lines that arrive in a pipe."""
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip():
                # A line of gRPC's core begins with its level: E1122 12:34:56.
                level = _CORE_LEVELS.get(line[0], logging.INFO) if line[1:5].isdecimal() else logging.INFO
                _stderr.log(level, "%s", line.rstrip())
