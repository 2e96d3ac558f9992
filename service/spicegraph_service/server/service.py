"""What a service of the contract is to the server: its methods, its callers, its part of the server's life.

Clients without the contract's files learn through reflection which services there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import grpc
import grpc.aio
from google.protobuf import descriptor_pool
from grpc_reflection.v1alpha import reflection, reflection_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor

    from spicegraph_service.server.auth import Authenticator
    from spicegraph_service.server.cache import StoreThread
    from spicegraph_service.server.tasks import WorkerInfo


class Caller(Protocol):
    """Who makes a call."""

    @property
    def name(self) -> str:
        """The caller's name, for the log."""
        ...

    @property
    def share(self) -> str:
        """What the caller's calls have in common when callers share the workers; empty: each connection is its own."""
        ...

    def begin(self) -> None:
        """Count a call as under way until :meth:`end`.

        Raises:
            CallError: RESOURCE_EXHAUSTED, since the caller has too many.
        """
        ...

    def end(self) -> None:
        """Count a call as ended."""
        ...

    @property
    def tenant(self) -> str:
        """Who owns what the caller's calls store and look up."""
        ...

    def charge(self, captions: int) -> None:
        """Count captions against the caller's rate.

        Raises:
            CallError: RESOURCE_EXHAUSTED with the time to wait.
        """
        ...


class Service(Protocol):
    """A service. The server calls the methods in the order in which they stand here."""

    @property
    def descriptor(self) -> ServiceDescriptor:
        """The service in the contract."""
        ...

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the service's methods."""
        ...

    async def identify(self, authorization: str | None, scope: str | None) -> Caller:
        """Return the caller of an ``authorization`` header, who may make a call that needs the scope.

        Raises:
            CallError: UNAUTHENTICATED, or PERMISSION_DENIED.
            StoreError: the callers cannot be read.
        """
        ...

    def start(self, workers: WorkerInfo) -> None:
        """Begin to work: the workers are ready."""
        ...

    async def probe(self) -> None:
        """Check that what the service needs besides workers can be reached.

        Raises:
            StoreError: it cannot.
        """
        ...

    def reload(self) -> None:
        """Read anew what may have changed since the start."""
        ...

    def leave(self) -> None:
        """End the calls that wait for something to happen: the server refuses new calls now."""
        ...

    async def stop(self) -> None:
        """Stop working, and release everything; no call is under way."""
        ...


@dataclass(frozen=True, slots=True)
class TokenService:
    """A service whose callers have the server's tokens, and which does nothing between calls.

    ``needs`` is the store without which its calls fail; ``None``: they do without one.
    """

    descriptor: ServiceDescriptor
    add_to: Callable[[grpc.aio.Server], None]
    authenticator: Authenticator
    needs: StoreThread | None

    async def identify(self, authorization: str | None, scope: str | None) -> Caller:
        """See :class:`Service`."""
        return await self.authenticator.authorize(authorization, scope)

    def start(self, workers: WorkerInfo) -> None:
        """Do nothing: calls ask the scheduler whether there are workers."""

    async def probe(self) -> None:
        """See :class:`Service`."""
        if self.needs is not None:
            await self.needs.run(self.needs.store.ping)

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
        """Return the file that declares a symbol.

        Raises:
            KeyError: there is none.
        """
        pool = descriptor_pool.Default()
        try:
            return pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service, _, method = symbol.rpartition(".")
            return pool.FindServiceByName(service).methods_by_name[method].containing_service.file
