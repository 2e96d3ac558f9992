"""What a service of the contract is to the server: its methods, its callers, its part of the server's life."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import grpc
import grpc.aio
from google.protobuf import descriptor_pool
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from spicegraph_service.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor

    from spicegraph_api.v1.methods import Method
    from spicegraph_service.pool.cache import StoreThread
    from spicegraph_service.pool.tasks import WorkerInfo
    from spicegraph_service.rpc.auth import Authenticator

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_log = logging.getLogger(__name__)


class Caller(Protocol):
    """Who makes a call."""

    @property
    def name(self) -> str:
        """The caller's name, for the log."""

    @property
    def share(self) -> str:
        """Key by which the caller's calls share the workers; empty: by connection."""

    def begin(self) -> None:
        """Count a call as under way until :meth:`end`; RESOURCE_EXHAUSTED where the caller has too many."""

    def end(self) -> None:
        """Count a call as ended."""

    @property
    def tenant(self) -> str:
        """Tenant that owns the data the caller's calls store and look up."""

    def charge(self, captions: int) -> None:
        """Count captions against the caller's rate; RESOURCE_EXHAUSTED with the time to wait."""


class Service(Protocol):
    """A service. The server calls the methods in the order in which they stand here."""

    @property
    def descriptor(self) -> ServiceDescriptor:
        """The service in the contract."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """Settings of each of its methods, by name."""

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the service's methods."""

    async def identify(self, authorization: str | None, scope: str | None) -> Caller:
        """Return the caller of an ``authorization`` header who has the scope: or UNAUTHENTICATED, PERMISSION_DENIED."""

    def start(self, workers: WorkerInfo) -> None:
        """Begin to work: the workers are ready."""

    async def probe(self) -> None:
        """Check that the service's dependencies besides workers are reachable; else a :class:`StoreError`."""

    def reload(self) -> None:
        """Reload data that may have changed since the start, such as tokens."""

    def leave(self) -> None:
        """End the calls that wait for something to happen: the server refuses new calls now."""

    async def stop(self) -> None:
        """Stop working, and release everything; no call is under way."""


@dataclass(frozen=True, slots=True)
class TokenService:
    """A service whose callers have the server's tokens, and which does nothing between calls."""

    descriptor: ServiceDescriptor
    methods: Mapping[str, Method]
    add_to: Callable[[grpc.aio.Server], None]
    authenticator: Authenticator
    needs: StoreThread | None  # the store without which calls fail
    writes: bool = False  # whether calls write it, too

    async def identify(self, authorization: str | None, scope: str | None) -> Caller:
        """See :class:`Service`."""
        return await self.authenticator.authorize(authorization, scope)

    def start(self, workers: WorkerInfo) -> None:
        """Do nothing: calls ask the scheduler whether there are workers."""

    async def probe(self) -> None:
        """See :class:`Service`."""
        if self.needs is not None:
            await self.needs.run(partial(self.needs.store.ping, writing=self.writes))

    def reload(self) -> None:
        """Ask the store for all tokens again."""
        self.authenticator.reload()

    def leave(self) -> None:
        """Do nothing: every call ends by itself."""

    async def stop(self) -> None:
        """Do nothing: the service has no work but its calls."""


_REFLECTION = ("grpc.reflection.v1.ServerReflection", reflection.SERVICE_NAME)  # v1 has the messages of v1alpha


def enable_reflection(services: Iterable[str], server: grpc.aio.Server) -> None:
    """Serve reflection: as v1, and as v1alpha for older clients."""
    pool: Any = _Symbols()
    servicer = reflection.aio.ReflectionServicer((*services, reflection.SERVICE_NAME), pool=pool)
    info = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handlers = [grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": info}) for name in _REFLECTION]
    server.add_generic_rpc_handlers(tuple(handlers))


class _Symbols:
    """The default pool of descriptors. Unlike that, it also finds the file of a method, which some clients ask for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(descriptor_pool.Default(), name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802 (the name that reflection calls)
        """Return the file that declares a symbol."""
        pool = descriptor_pool.Default()
        try:
            return pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service, _, method = symbol.rpartition(".")
            return pool.FindServiceByName(service).methods_by_name[method].containing_service.file


class HealthMonitor:
    """Answers ``grpc.health.v1.Health``; ``observe`` is told when a service's probe begins to succeed or to fail."""

    # A service is SERVING while a worker is alive and the service's probe succeeds; the server itself (``""``) while a
    # worker is alive: to start it again does not help against a store that cannot be reached.

    def __init__(
        self,
        services: Sequence[Service],
        *,
        observe: Callable[[str, bool], None],
        every_s: float = 1.0,
        timeout_s: float = 3.0,
    ) -> None:
        self.servicer = health.aio.HealthServicer()
        self._services = services
        self._observe = observe
        self._every_s = every_s
        self._timeout_s = timeout_s
        self._workers = False
        self._stopping = False
        self._faults: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Report NOT_SERVING, and begin to probe."""
        await self.set_workers(alive=False)
        self._tasks = [asyncio.create_task(self._watch(service)) for service in self._services]

    async def stop(self) -> None:
        """Report NOT_SERVING from now on."""
        self._stopping = True
        await self.servicer.enter_graceful_shutdown()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def serves(self, name: str) -> bool | None:
        """Say whether a service serves, or the server itself (``""``); ``None``: there is no such service."""
        if name and all(service.descriptor.full_name != name for service in self._services):
            return None
        return self._workers and not self._stopping and not self._faults.get(name)

    async def set_workers(self, *, alive: bool) -> None:
        """Record whether a worker is alive."""
        self._workers = alive
        await self.servicer.set("", _SERVING if alive else _NOT_SERVING)
        for service in self._services:
            await self._publish(service.descriptor.full_name)

    async def _publish(self, name: str) -> None:
        await self.servicer.set(name, _SERVING if self._workers and not self._faults.get(name) else _NOT_SERVING)

    async def _watch(self, service: Service) -> None:
        name = service.descriptor.full_name
        self._observe(name, not self._faults.get(name))
        while True:
            probe = asyncio.create_task(service.probe())
            done, _ = await asyncio.wait({probe}, timeout=self._timeout_s)
            if not done:
                await self._record(name, f"no answer for {self._timeout_s:g} s")
            try:
                await probe  # no second one before the first has ended
            except StoreError as error:
                await self._record(name, str(error))
            else:
                await self._record(name, "")
            await asyncio.sleep(self._every_s)

    async def _record(self, name: str, fault: str) -> None:
        before, self._faults[name] = self._faults.get(name, ""), fault
        if bool(before) == bool(fault):
            return
        if fault:
            _log.error("%s does not serve: %s", name, fault)
        else:
            _log.info("%s serves again", name)
        self._observe(name, not fault)
        await self._publish(name)
