"""The server: put together, started, stopped."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from spicegraph_api.v1 import challenge_pb2, evaluation_service_pb2, reference_service_pb2
from spicegraph_api.v1.challenge_pb2_grpc import add_ChallengeServiceServicer_to_server
from spicegraph_api.v1.evaluation_service_pb2_grpc import add_EvaluationServiceServicer_to_server
from spicegraph_api.v1.reference_service_pb2_grpc import add_ReferenceServiceServicer_to_server
from spicegraph_parser.errors import InputError
from spicegraph_service.server.auth import Authenticator
from spicegraph_service.server.batching import Dispatcher
from spicegraph_service.server.cache import ParseCache, StoreThread
from spicegraph_service.server.config import ServerConfig, TlsFiles, default_workers, host_and_port
from spicegraph_service.server.evaluation import EvaluationServicer
from spicegraph_service.server.interceptor import CallInterceptor
from spicegraph_service.server.limits import Budget
from spicegraph_service.server.references import References, ReferencesServicer
from spicegraph_service.server.scheduler import Scheduler
from spicegraph_service.server.tasks import Setup
from spicegraph_service.server.telemetry import CallLog, Telemetry
from spicegraph_service.server.vectors import pack_vectors
from spicegraph_service.server.workers import WorkerPool
from spicegraph_service.store import MEMORY, open_store, parse_signature

if TYPE_CHECKING:
    from collections.abc import Callable
    from wsgiref.simple_server import WSGIServer

    from spicegraph_service.challenge.host import ChallengeConfig, ChallengeHost
    from spicegraph_service.server.tasks import Hello

SERVICES = (
    evaluation_service_pb2.DESCRIPTOR.services_by_name["EvaluationService"].full_name,
    reference_service_pb2.DESCRIPTOR.services_by_name["ReferenceService"].full_name,
)
"""Full names of our services, as the health service knows them."""

_CHALLENGES = challenge_pb2.DESCRIPTOR.services_by_name["ChallengeService"].full_name
_PRIVATE = " private"  # parses of private references are found by nobody's guesses

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_log = logging.getLogger(__name__)


class Server:
    """A server. It listens from :meth:`start` on, and serves when its workers are ready."""

    def __init__(self, config: ServerConfig) -> None:
        config.check()
        self.config = config
        self.telemetry = Telemetry()
        vectors = pack_vectors(config.vectors)
        self._challenges = _challenge_host(config.challenges, vectors) if config.challenges is not None else None
        self.services = SERVICES if self._challenges is None else (*SERVICES, _CHALLENGES)
        self.port = 0
        self.metrics_port = 0
        self._store = StoreThread(open_store(config.store))
        # New parses are written beside all else, but a store in memory is there once.
        self._writes = self._store if config.store == MEMORY else StoreThread(open_store(config.store))
        count = config.workers or default_workers()
        self.pool = WorkerPool(
            Setup(config.pipeline, vectors),
            count,
            task_timeout_s=config.task_timeout_s,
            growth_bytes=config.worker_growth_bytes,
            changed=self._workers_changed,
        )
        budget = Budget(config.queue_captions, max_wait_s=config.max_wait_s)
        self.telemetry.queue.set_function(lambda: budget.used)
        self._scheduler = Scheduler(budget, chunks_at_once=2 * count)
        self._health = health.aio.HealthServicer()
        self._dispatcher: Dispatcher | None = None
        self._private: tuple[ParseCache, Dispatcher] | None = None
        self._parses: ParseCache | None = None
        self._server: grpc.aio.Server | None = None
        self._metrics_server: WSGIServer | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def start(self) -> None:
        """Listen; workers load in the background.

        Raises:
            InputError: the address cannot be used.
        """
        await self._set_health(_NOT_SERVING)
        self._server = self._listen()
        await self._server.start()
        if self.config.metrics_address is not None:
            self._metrics_server, _ = self.telemetry.serve(*host_and_port(self.config.metrics_address))
            self.metrics_port = self._metrics_server.server_port
            _log.info("metrics on port %d", self.metrics_port)
        _log.info(
            "listening on port %d; %s",
            self.port,
            "tokens needed" if self.config.needs_tokens else "no tokens",
        )

    async def load(self) -> None:
        """Start the workers; return when calls are served.

        Raises:
            DataError: the pipeline is not installed.
        """
        hello = await self.pool.start()
        for name, reason in hello.missing.items():
            _log.warning("the metric %s is not served: %s", name, reason)
        self._parses, self._dispatcher = self._dispatch(hello, parse_signature(hello.pipeline))
        self._scheduler.loaded(hello, self._dispatcher)
        if self._challenges is not None:
            self._start_challenges(self._challenges, hello)
        await self._set_health(_SERVING)
        gc.collect()
        gc.freeze()  # what is here stays: a full collection must not look through it in the middle of calls
        self.telemetry.runs(version=hello.version, pipeline=hello.pipeline, vectors=hello.vectors)
        _log.info(
            "serving: pipeline %s, vectors %s, metrics %s",
            hello.pipeline,
            hello.vectors,
            ", ".join(metric.name for metric in hello.metrics),
        )

    def _dispatch(self, hello: Hello, signature: str) -> tuple[ParseCache, Dispatcher]:
        """Return parses under a signature, and the way from them to the workers."""
        parses = ParseCache(
            self._store,
            self._writes,
            signature,
            max_bytes=self.config.memory_bytes,
            observe=self.telemetry.lookup,
        )
        dispatcher = Dispatcher(
            self.pool,
            parses,
            parsing=frozenset(metric.name for metric in hello.metrics if metric.parses),
            batch_captions=self.config.batch_captions,
            window_s=self.config.window_s,
            observe=self.telemetry.batch,
        )
        return parses, dispatcher

    def _start_challenges(self, challenges: ChallengeHost, hello: Hello) -> None:
        """Let submissions be scored: on a way of their own, so that a call waits behind one chunk of them at most."""
        self._private = self._dispatch(hello, parse_signature(hello.pipeline) + _PRIVATE)
        scheduler = Scheduler(Budget(self.config.queue_captions), chunks_at_once=1)
        scheduler.loaded(hello, self._private[1])
        challenges.start(scheduler, workers=self.config.workers or default_workers())

    async def stop(self, grace_s: float | None = None) -> None:
        """Refuse new calls, let those under way finish, and release everything."""
        self._stopping = True
        await self._health.enter_graceful_shutdown()
        if self._challenges is not None:
            self._challenges.leave()
        if self._server is not None:
            await self._server.stop(self.config.grace_s if grace_s is None else grace_s)
        if self._challenges is not None:
            await self._challenges.stop()
        for dispatcher in (self._dispatcher, self._private and self._private[1]):
            if dispatcher is not None:
                await dispatcher.close()
        for parses in (self._parses, self._private and self._private[0]):
            if parses is not None:
                await parses.flush()
        await self.pool.close()
        if self._metrics_server is not None:
            await asyncio.to_thread(self._metrics_server.shutdown)
            self._metrics_server.server_close()
        for thread in {self._store, self._writes}:
            await thread.close()
        if self._challenges is not None:
            self._challenges.close()

    async def hurry(self) -> None:
        """End the calls that :meth:`stop` still waits for."""
        if self._server is not None:
            await self._server.stop(0)

    def _listen(self) -> grpc.aio.Server:
        config = self.config
        authenticator = Authenticator(self._store, required=config.needs_tokens, rate=config.rate)
        server = grpc.aio.server(
            interceptors=[CallInterceptor(authenticator, CallLog(self.telemetry), self._challenges)],
            options=[
                ("grpc.max_receive_message_length", config.limits.max_message_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", int(config.reuse_port)),
            ],
            maximum_concurrent_rpcs=config.max_calls,
        )
        references = References(self._store, max_bytes=config.memory_bytes)
        add_EvaluationServiceServicer_to_server(EvaluationServicer(self._scheduler, references, config.limits), server)
        add_ReferenceServiceServicer_to_server(
            ReferencesServicer(self._scheduler, references, self._store, config.limits), server
        )
        if self._challenges is not None:
            from spicegraph_service.challenge.servicer import ChallengeServicer  # noqa: PLC0415 (as below)

            add_ChallengeServiceServicer_to_server(ChallengeServicer(self._challenges), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if config.reflection:
            reflection.enable_server_reflection((*self.services, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        try:
            if config.tls is None:
                self.port = server.add_insecure_port(config.address)
            else:
                self.port = server.add_secure_port(config.address, _credentials(config.tls))
        except RuntimeError as error:
            raise InputError(f"cannot listen on {config.address}: {error}") from error
        return server

    def _workers_changed(self, alive: int) -> None:
        """Serve while there is a worker: called when one gets ready or ends."""
        self.telemetry.workers.set(alive)
        self.telemetry.worker_deaths.set(self.pool.deaths)
        if self._dispatcher is None or self._stopping:
            return
        task = asyncio.create_task(self._set_health(_SERVING if alive else _NOT_SERVING))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _set_health(self, status: int) -> None:
        for service in ("", *self.services):
            await self._health.set(service, status)


def _challenge_host(config: ChallengeConfig, vectors: bytes) -> ChallengeHost:
    # Its database takes a third of the time in which a server starts.
    from spicegraph_service.challenge.host import ChallengeHost  # noqa: PLC0415

    return ChallengeHost(config, vectors)


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    try:
        pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
        client_ca = tls.client_ca.read_bytes() if tls.client_ca else None
    except OSError as error:
        raise InputError(f"cannot read the TLS file {error.filename}: {error.strerror}") from error
    return grpc.ssl_server_credentials([pair], client_ca, client_ca is not None)


def serve(config: ServerConfig) -> None:
    """Run :func:`run` in an event loop: uvloop's, where it is to be had, takes a sixth less time for a call."""
    # Workers wait for what the store's threads find: those must not wait long for the event loop's thread.
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(config))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def run(config: ServerConfig, *, started: Callable[[Server], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; a second signal does not wait for calls under way.

    Raises:
        InputError: an option is wrong.
        DataError: the pipeline is not installed, or the vectors can't be read.
        StoreError: the store cannot be opened.
    """
    server = Server(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    if started is not None:
        started(server)
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
