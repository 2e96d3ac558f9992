"""The composition root: the server built from its options and its services, its start and its stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2_grpc

from spicegraph_parser.errors import InputError
from spicegraph_service.config import ServerConfig, default_store, host_and_port
from spicegraph_service.pool.batching import Dispatcher
from spicegraph_service.pool.cache import Lru, ParseCache, StoreThread
from spicegraph_service.pool.tasks import pack_data
from spicegraph_service.pool.workers import WorkerPool
from spicegraph_service.registry import open_http, services
from spicegraph_service.rpc.auth import Authenticator, Certificates
from spicegraph_service.rpc.host import Door, DoorParts, Host
from spicegraph_service.rpc.interceptor import CallInterceptor
from spicegraph_service.rpc.limits import MOST_CONNECTIONS, Budget, Limits, allow_descriptors
from spicegraph_service.rpc.metrics_port import serve_metrics
from spicegraph_service.rpc.open_calls import OpenCalls
from spicegraph_service.rpc.references import References
from spicegraph_service.rpc.scheduler import Scheduler
from spicegraph_service.rpc.service import HealthMonitor, Service, enable_reflection
from spicegraph_service.rpc.telemetry import CallLog, ProcessCollector, Telemetry
from spicegraph_service.store import MEMORY, StoreError, parse_signature
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from wsgiref.simple_server import WSGIServer

    from spicegraph_service.rpc.tracing import Tracing

_PRIVATE = " private"  # parses of private references are not found by guesses
_KEEPALIVE_S = 60.0  # without a sign of life of a client before it is asked for one
_UNANSWERED_S = 20.0  # keepalives, and handshakes
_MOST_CALLS = 2_048  # under way
_STREAMS = 100  # of a connection: it can't open and reset thousands of calls before the first is looked at
_COUNTED_S = 0.3  # in which a call that has come is counted
_GOODBYE_S = 0.6  # for connections whose calls have ended, when the server stops
_PINGS_S = 5.0  # of a client, one in so many seconds at most, with calls and without
# Refused calls leave reference cycles (errors with their frames). Python looks for them in the middle of calls: after
# 50,000 values, as other commands have it, that takes tens of milliseconds, after 2,000 one or two.
_COLLECTIONS = (2_000, 20, 100)
_STORE_S = 30.0  # at the start, until a store must answer
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})
_log = logging.getLogger(__name__)


class Server:
    """A server: it listens from :meth:`start` on, and serves when its workers are ready (:meth:`load`)."""

    def __init__(self, config: ServerConfig, options: Mapping[str, object] = _NO_OPTIONS) -> None:
        config.check()
        if config.needs_tokens and config.store == MEMORY:
            _log.warning(
                "calls need a token, but a store in memory has none: give --store, or --tokens never with mTLS"
            )
        self.config = config
        self._options = options
        self._limits = _limits(config)
        self._place = config.store or default_store()
        self.telemetry = Telemetry()
        self.port = self.metrics_port = self.web_port = 0
        data = pack_data(
            vectors=config.vectors, meaning=config.meaning, instances=config.instances, frequencies=config.idf
        )
        self._open_stores()
        count = config.workers or max(1, _cores() - 1)  # one core serves the calls
        self._make_pools((config.pipeline, data), count)
        # Ways to the workers, each a queue with a bound and the suffix of the signature that its parses have; they are
        # open, with a dispatcher and a cache, when the workers are ready.
        self._ways: list[tuple[Scheduler, str]] = []
        self._memory = Lru(config.memory << 20)  # of all caches together
        self._open_ways: list[tuple[Dispatcher, ParseCache]] = []
        self.services = tuple(self._build_services(data, workers=count))
        self._health = HealthMonitor(
            self.services, observe=lambda name, up: self.telemetry.services.labels(name).set(up)
        )
        self._tracing: Tracing | None = None
        if config.opentelemetry:
            # The exporters take longer to import than all the rest of the server.
            from spicegraph_service.rpc.tracing import Tracing  # noqa: PLC0415

            self._tracing = Tracing(self.telemetry.registry)
        self._certificates = _certificates(config)
        self._interceptor = CallInterceptor(
            self.services,
            CallLog(self.telemetry, most=config.log_calls),
            self._tracing,
            most=_MOST_CALLS,
            largest=self._limits.max_message_bytes,
        )
        self._open_calls = OpenCalls(
            self._interceptor.methods, silence_s=config.silence, refused=self.telemetry.refused
        )
        self._web = self._open_web() if config.http is not None else None
        self._server: grpc.aio.Server | None = None
        self._metrics_server: WSGIServer | None = None
        self._background: set[asyncio.Task[object]] = set()
        self._serving = False

    def _open_stores(self) -> None:
        self._store = StoreThread(open_store(self._place, private=True))
        # New parses are written beside all else, and neither probes nor tokens wait for a large upload or a locked
        # store; but a store in memory exists only once.
        self._writes, self._probes, self._tokens = (
            self._store if self._place == MEMORY else StoreThread(open_store(self._place, private=True))
            for _ in range(3)
        )

    def _make_pools(self, loaded: tuple[str, bytes], count: int) -> None:
        """Make the workers, which load a pipeline and the metrics' data when they start."""
        self.pool = WorkerPool(loaded, count, task_timeout_s=120.0, growth_bytes=1 << 30, changed=self._workers_changed)
        self._deaths = 0

        def processes() -> dict[str, list[int]]:
            return {"server": [os.getpid()], "worker": self.pool.pids}

        self.telemetry.registry.register(ProcessCollector(processes))

    def _build_services(self, data: bytes, *, workers: int) -> Iterator[Service]:
        """Yield the services that are registered and asked for; nothing else knows which ones there are."""
        config, store = self.config, self._store
        budget = Budget(config.queue, max_wait_s=config.max_wait)
        self.telemetry.queue.set_function(lambda: budget.used)
        host = Host(
            limits=self._limits,
            pipeline=config.pipeline,
            data=data,
            workers=workers,
            scheduler=self._open_way(Scheduler(budget, chunks_at_once=2 * workers)),
            open_scheduler=lambda: self._open_way(Scheduler(Budget(config.queue), chunks_at_once=1), suffix=_PRIVATE),
            authenticator=Authenticator(
                self._tokens, self._writes, required=config.needs_tokens, rate=config.rate, max_calls=config.token_calls
            ),
            references=References(store, self._memory),
            store=store,
            probes=self._probes,
            telemetry=self.telemetry,
        )
        for name, entry in services().items():
            options = self._options.get(name) or entry.options()
            if not entry.needs or getattr(options, entry.needs) is not None:
                yield resolve_name(entry.opens)(options, host)
        self._pages = host.pages

    def _open_web(self) -> Door:
        door: Door = open_http()(
            DoorParts(
                self.config,
                self.services,
                self._interceptor,
                self._limits,
                self._health,
                self._pages,
                self._certificates.context() if self._certificates is not None else None,
            )
        )
        return door

    def _open_way(self, scheduler: Scheduler, *, suffix: str = "") -> Scheduler:
        self._ways.append((scheduler, suffix))
        return scheduler

    async def start(self) -> None:
        """Listen; workers load in the background."""
        await self._health.start()
        self._server = self._listen()
        await self._server.start()
        allow_descriptors()
        if self._web is not None:
            self.web_port = await self._web.start()
            _log.info("HTTP on port %d", self.web_port)
        if self.config.metrics_address is not None:
            host, port = host_and_port(self.config.metrics_address)
            try:
                self._metrics_server = serve_metrics(host, port, self.telemetry.registry)
            except OSError as error:
                address = self.config.metrics_address
                raise InputError(f"cannot listen on {address}: {error.strerror or error}") from error
            self.metrics_port = self._metrics_server.server_port
            _log.info("metrics on port %d", self.metrics_port)
        _log.info("listening on port %d; %s", self.port, "tokens needed" if self.config.needs_tokens else "no tokens")

    async def load(self) -> None:
        """Start the workers; return when calls are served."""
        info = await self.pool.start()
        for name, reason in info.missing.items():
            _log.warning("the metric %s is not served: %s", name, reason)
        for scheduler, suffix in self._ways:
            lasting = self._place != MEMORY  # what is in memory alone is bounded by --memory alone
            parses = ParseCache(
                self._store if lasting else None,
                self._writes if lasting else None,
                parse_signature(info.pipeline) + suffix,
                scenes=parse_signature(info.scene_pipeline) + suffix,
                memory=self._memory,
                observe=lambda result, count: self.telemetry.parses.labels(result).inc(count),
            )
            dispatcher = Dispatcher(
                self.pool,
                parses,
                parsing=info.parsing,
                batch_captions=256,
                window_s=self.config.window_ms / 1000,
                observe=self.telemetry.batch,
            )
            scheduler.loaded(info, dispatcher)
            self._open_ways.append((dispatcher, parses))
        for service in self.services:
            service.start(info)
        self._serving = True
        await self._health.set_workers(alive=self.pool.alive > 0)
        self._in_background(self._reload_regularly())
        gc.collect()
        gc.freeze()  # what is here stays: a full collection must not look through it in the middle of calls
        self.telemetry.server.info({"version": info.version, "pipeline": info.pipeline, "vectors": info.vectors})
        _log.info(
            "serving: pipeline %s, vectors %s, metrics %s",
            info.pipeline,
            info.vectors,
            ", ".join(metric.name for metric in info.metrics),
        )

    async def stop(self, grace_s: float | None = None) -> None:
        """Refuse new calls, let those under way finish, and release everything."""
        self._serving = False
        await self._health.stop()
        self._open_calls.leave()
        self._interceptor.leave()
        for service in self.services:
            service.leave()
        leaving = asyncio.create_task(self._leave(self.config.grace if grace_s is None else grace_s))
        endings: list[Coroutine[None, None, object]] = [self._calls_end(leaving)]
        if self._web is not None:
            endings.append(self._web.stop())
        await asyncio.gather(*endings)
        for service in self.services:
            await service.stop()
        for task in self._background:
            task.cancel()
        for dispatcher, parses in self._open_ways:
            await dispatcher.close()
            await parses.flush()
        closing: list[Coroutine[None, None, object]] = [self.pool.close()]
        closing.append(self._end_connections(leaving))
        if self._metrics_server is not None:
            closing.append(asyncio.to_thread(self._metrics_server.shutdown))  # it looks up twice a second
        await asyncio.gather(*closing)
        if self._metrics_server is not None:
            self._metrics_server.server_close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        for thread in {self._store, self._writes, self._probes, self._tokens}:
            await thread.close()

    async def _leave(self, grace_s: float) -> None:
        if self._server is not None:
            await self._server.stop(grace_s)

    async def _calls_end(self, leaving: asyncio.Task[None]) -> None:
        """Wait until no call is under way; those that have just come are counted in a moment."""
        while not (await asyncio.wait((leaving,), timeout=_COUNTED_S))[0] and self._interceptor.under_way:
            pass

    async def _end_connections(self, leaving: asyncio.Task[None]) -> None:
        """End connections whose clients do not answer, now that none has a call."""
        # gRPC waits for 20 s for an answer to its goodbye. Clients that are frozen never give it, nor does a proxy that
        # still has bytes for a client that has gone.
        if not (await asyncio.wait((leaving,), timeout=_GOODBYE_S))[0]:
            _log.info("connections whose clients do not answer are ended")
            await self._leave(0)
        await leaving

    def reload(self) -> None:
        """Reload certificates and tokens; those that cannot be read stay unchanged."""
        self._reload_certificates()
        for service in self.services:
            service.reload()
        _log.info("reloaded")

    def _reload_certificates(self) -> None:
        if self._certificates is not None:
            self._certificates.reload()

    async def _reload_regularly(self) -> None:
        """Find new certificates without a signal, which those who renew them cannot always send."""
        while True:
            await asyncio.sleep(2.0)
            self._reload_certificates()

    async def hurry(self) -> None:
        """End the calls that :meth:`stop` still waits for."""
        await self._leave(0)
        if self._web is not None:
            await self._web.hurry()

    def _listen(self) -> grpc.aio.Server:
        config = self.config
        server = grpc.aio.server(
            interceptors=[self._open_calls, self._interceptor],
            options=[
                # What is not much too long is refused by us, with a reason and the call's id.
                ("grpc.max_receive_message_length", 4 * self._limits.max_message_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.http2.bdp_probe", 0),  # a stranger's bytes wait outside until they are asked for
                ("grpc.max_concurrent_streams", _STREAMS),
                # Only what is open counts: else a client that keeps to the bound has calls refused, as the streams of
                # its last answers still count until they are cleared away.
                ("grpc.http.overload_protection", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", round(1000 * _PINGS_S)),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.so_reuseport", int(config.reuse_port)),
                ("grpc.keepalive_time_ms", round(1000 * _KEEPALIVE_S)),
                ("grpc.keepalive_timeout_ms", round(1000 * _UNANSWERED_S)),
                ("grpc.server_handshake_timeout_ms", round(1000 * _UNANSWERED_S)),
                ("grpc.max_connection_idle_ms", round(1000 * config.silence)),
                ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
                *([("grpc.max_connection_age_ms", round(1000 * age))] if (age := config.connection_age) else []),
            ],
        )
        for service in self.services:
            service.add_to(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, server)
        if config.reflection:
            names = (service.descriptor.full_name for service in self.services)
            enable_reflection((*names, health.SERVICE_NAME), server)
        try:
            if self._certificates is None:
                self.port = server.add_insecure_port(config.address)
            else:
                self.port = server.add_secure_port(config.address, self._certificates.credentials())
        except RuntimeError as error:
            raise InputError(f"cannot listen on {config.address}: {_why_taken(config.address) or error}") from error
        return server

    def _workers_changed(self) -> None:
        """Serve while there is a worker: called when one gets ready or ends."""
        self.telemetry.workers.set(self.pool.alive)
        self.telemetry.worker_deaths.inc(self.pool.deaths - self._deaths)
        self._deaths = self.pool.deaths
        if self._serving:
            self._in_background(self._health.set_workers(alive=self.pool.alive > 0))

    def _in_background(self, work: Coroutine[None, None, object]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _limits(config: ServerConfig) -> Limits:
    return Limits(
        max_items=config.max_items,
        max_caption_characters=config.max_caption,
        max_item_characters=config.max_item,
        max_message_bytes=config.max_message << 20,
        max_sets=config.max_sets,
        max_calls=config.token_calls,
        max_silence_s=config.silence,
        max_unanswered_bytes=config.max_bodies << 20,
    )


def _certificates(config: ServerConfig) -> Certificates | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    return Certificates(config.tls_cert, config.tls_key, config.tls_client_ca)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _why_taken(address: str) -> str:
    """Say why nothing can listen on an address, which gRPC does not; nothing: the system does not say either."""
    if address.startswith("unix:"):
        return ""
    host, port = host_and_port(address)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def serve(config: ServerConfig, options: Mapping[str, object] = _NO_OPTIONS) -> None:
    """Run :func:`run` in an event loop: uvloop's where it is installed, which takes a sixth less time per call."""
    # Workers wait for the answers of the store's threads, which must not wait long for the event loop's thread.
    sys.setswitchinterval(0.0005)
    gc.set_threshold(*_COLLECTIONS)
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):  # not on Windows
        import uvloop  # noqa: PLC0415

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(run(config, options))


async def _made(config: ServerConfig, options: Mapping[str, object]) -> Server:
    """Make a server; a store that does not answer yet, as when all start together, is tried again for a while."""
    pause, end = 0.5, time.monotonic() + _STORE_S
    while True:
        try:
            return Server(config, options)
        except StoreError as error:
            if time.monotonic() + pause > end:
                raise
            _log.warning("the store does not answer (next try in %.1f s): %s", pause, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 5.0)


async def run(config: ServerConfig, options: Mapping[str, object] = _NO_OPTIONS) -> None:
    """Serve until SIGTERM or SIGINT; a second signal does not wait for calls under way. SIGHUP reloads."""
    server = await _made(config, options)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, server.reload)
    await server.start()
    loading = asyncio.create_task(server.load())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((loading, stopped), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            await loading
            await stopped
    finally:
        stop.clear()
        loading.cancel()
        _log.info("stopping")
        ending = asyncio.create_task(server.stop())
        hurry = asyncio.create_task(stop.wait())
        await asyncio.wait((ending, hurry), return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await server.hurry()
        hurry.cancel()
        await ending
