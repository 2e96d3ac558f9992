"""Calls of the contract that do not come over gRPC; they pass the same interceptor, and have the same handlers."""

from __future__ import annotations

import time
from contextlib import ExitStack, aclosing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import grpc
import grpc.aio

from spicegraph_service.kit import CallInterceptor, Context, FailedCallError, Origin, Refusal, client_headers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

    from spicegraph_service.kit import Handler, Malformed, Requests, Service


class _Context:
    """Stand-in for gRPC's context, as far as handlers and the interceptor use it."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.trailers: tuple[tuple[str, str | bytes], ...] = ()
        self.ended = ExitStack()

    def add_done_callback(self, callback: Callable[[_Context], None]) -> None:
        self.ended.callback(callback, self)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._origin.headers.items())

    def peer(self) -> str:
        return self._origin.peer

    def peer_identities(self) -> tuple[bytes, ...]:
        return self._origin.certificate

    def set_trailing_metadata(self, trailers: tuple[tuple[str, str | bytes], ...]) -> None:
        self.trailers = trailers

    def time_remaining(self) -> float | None:
        deadline = self._origin.deadline
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: tuple[tuple[str, str | bytes], ...] = ()
    ) -> NoReturn:
        raise FailedCallError(code, details, trailing_metadata)


class _Recorder:
    """Stands for a gRPC server while services register their methods."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: the registered ones are the same."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        self.handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


class InnerGateway:
    """The methods of a server's services, to be called inside of its process; failures are :class:`FailedCallError`."""

    def __init__(self, services: Sequence[Service], interceptor: CallInterceptor) -> None:
        recorder = _Recorder()
        for service in services:
            service.add_to(cast("grpc.aio.Server", recorder))
        self._recorded = recorder.handlers
        self.methods: dict[str, MethodDescriptor] = {}
        self.scopes: dict[str, str | None] = {}
        for service in services:
            for method in service.descriptor.methods:
                path = f"/{service.descriptor.full_name}/{method.name}"
                self.methods[path], self.scopes[path] = method, service.methods[method.name].scope
        self._interceptor = interceptor

    async def unary(self, path: str, requests: Requests, origin: Origin) -> tuple[Message, dict[str, str]]:
        """Return a call's response and headers for the client; ``requests`` is an iterator of a stream."""
        context = _Context(origin)
        handler: Any = await self._handler(path, context)
        with context.ended:
            return await handler.stream_unary(_each(requests), context), client_headers(context.trailers)

    async def stream(self, path: str, requests: Requests, origin: Origin) -> AsyncGenerator[Message]:
        """Make a call with a stream of responses; it may fail after any number of them."""
        context = _Context(origin)
        handler: Any = await self._handler(path, context)
        with context.ended:
            async with aclosing(handler.stream_stream(_each(requests), context)) as responses:
                async for response in responses:
                    yield response

    async def admit(self, path: str, origin: Origin) -> None:
        """Check by its headers that a call may be made, before its body is read."""
        await self._handler(path, _Context(origin))

    async def _handler(self, path: str, context: _Context) -> Handler:
        async def recorded(_details: grpc.HandlerCallDetails) -> Handler | None:
            return self._recorded.get(path)

        details: Any = SimpleNamespace(method=path, invocation_metadata=context.invocation_metadata())
        handler = await self._interceptor.intercept_service(recorded, details)
        if handler is None:
            raise FailedCallError(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {path}")
        if isinstance(handler, Refusal):
            await handler.refuse((), cast("Context", context))
        return handler


async def _each(requests: Requests) -> AsyncIterator[Message | Malformed]:
    """Yield the requests of a call, of which there may be one."""
    if not hasattr(requests, "__aiter__"):
        yield requests
        return
    async for request in requests:
        yield request
