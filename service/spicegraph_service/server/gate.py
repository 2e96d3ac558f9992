"""What every call passes through: decoding, token, scope, errors to statuses, log and metrics.

One interceptor does it all, so that the servicers see checked callers and raise plain exceptions.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from spicegraph_service.server.auth import REFERENCES_SCOPE, SCORE_SCOPE, Authenticator, Caller, require_scope
from spicegraph_service.server.status import CallError, Violation, invalid, to_call_error, to_status

if TYPE_CHECKING:
    from spicegraph_service.server.observe import CallLog

__all__ = ["Call", "Gate", "current_call"]

_OURS = "/spicegraph.v1."
_SCOPES: Mapping[str, str | None] = {
    "/spicegraph.v1.EvaluationService/ParseCaptions": SCORE_SCOPE,
    "/spicegraph.v1.EvaluationService/Score": SCORE_SCOPE,
    "/spicegraph.v1.EvaluationService/ScoreStream": SCORE_SCOPE,
    "/spicegraph.v1.EvaluationService/GetServerInfo": None,
    "/spicegraph.v1.ReferenceService/CreateReferenceSet": REFERENCES_SCOPE,
    "/spicegraph.v1.ReferenceService/GetReferenceSet": REFERENCES_SCOPE,
    "/spicegraph.v1.ReferenceService/ListReferenceSets": REFERENCES_SCOPE,
    "/spicegraph.v1.ReferenceService/DeleteReferenceSet": REFERENCES_SCOPE,
}
_LONGEST_REQUEST_ID = 100

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Metadata: TypeAlias = Mapping[str, str | bytes]


@dataclass(slots=True)
class Call:
    """The call under way: who makes it, and how many captions it has brought so far."""

    method: str
    request_id: str
    caller: Caller | None = None
    captions: int = 0

    def charge(self, captions: int) -> None:
        """Count captions, against the caller's rate too.

        Raises:
            CallError: RESOURCE_EXHAUSTED.
        """
        if self.caller is not None:
            self.caller.charge(captions)
        self.captions += captions


_current: ContextVar[Call] = ContextVar("spicegraph_call")


def current_call() -> Call:
    """Return the call that the running task serves."""
    return _current.get()


@dataclass(frozen=True, slots=True)
class _Malformed:
    """Stands for a message that is none."""

    reason: str


class Gate(grpc.aio.ServerInterceptor):
    """The interceptor. Health and reflection pass by it."""

    def __init__(self, authenticator: Authenticator, log: CallLog) -> None:
        self._authenticator = authenticator
        self._log = log

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(_OURS):
            return handler
        metadata = {str(key): value for key, value in handler_call_details.invocation_metadata or ()}
        return self._wrapped(handler, method, metadata)

    def _wrapped(self, handler: Handler, method: str, metadata: Metadata) -> Handler:
        # The stubs of handlers know only synchronous servicers: hence Any.
        make: Any
        serve: Any
        if handler.response_streaming:
            make, serve = (
                grpc.stream_stream_rpc_method_handler,
                self._stream(handler.stream_stream, method, metadata),
            )
        elif handler.request_streaming:
            make, serve = (
                grpc.stream_unary_rpc_method_handler,
                self._upload(handler.stream_unary, method, metadata),
            )
        else:
            make, serve = (
                grpc.unary_unary_rpc_method_handler,
                self._unary(handler.unary_unary, method, metadata),
            )
        wrapped: Handler = make(serve, _decoder(handler.request_deserializer), handler.response_serializer)
        return wrapped

    def _unary(self, inner: Any, method: str, metadata: Metadata) -> Any:
        async def serve(request: Any, context: Context) -> Any:
            async with self._around(method, metadata, context):
                return await inner(_checked(request), context)

        return serve

    def _upload(self, inner: Any, method: str, metadata: Metadata) -> Any:
        async def serve(requests: AsyncIterator[Any], context: Context) -> Any:
            async with self._around(method, metadata, context):
                return await inner(_all_checked(requests), context)

        return serve

    def _stream(self, inner: Any, method: str, metadata: Metadata) -> Any:
        async def serve(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async with self._around(method, metadata, context):
                async for response in inner(_all_checked(requests), context):
                    yield response

        return serve

    @asynccontextmanager
    async def _around(self, method: str, metadata: Metadata, context: Context) -> AsyncIterator[None]:
        """Identify the caller, run the call, turn what it raises into a status, and record how it ended."""
        call = Call(method, _request_id(metadata.get("x-request-id")))
        _current.set(call)
        started = time.monotonic()
        code, message = "OK", ""
        self._log.started()
        try:
            call.caller = await self._authenticator.identify(_text(metadata.get("authorization")))
            scope = _SCOPES[method]
            if scope is not None:
                require_scope(call.caller, scope)
            yield
        except (asyncio.CancelledError, GeneratorExit):
            left = cast("float | None", context.time_remaining())  # None: no deadline
            code = "DEADLINE_EXCEEDED" if left is not None and left <= 0 else "CANCELLED"
            raise
        except Exception as error:  # noqa: BLE001 (every error becomes a status)
            told = to_call_error(error)
            code, message = told.code.name, told.message
            await context.abort_with_status(to_status(told, request_id=call.request_id))
        finally:
            self._log.ended(
                method=method.removeprefix(_OURS),
                code=code,
                seconds=time.monotonic() - started,
                captions=call.captions,
                caller=call.caller.name if call.caller is not None else "",
                request_id=call.request_id,
                message=message,
            )


def _decoder(decode: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """Return a decoder that marks what it cannot decode: gRPC itself would answer INTERNAL."""

    def decoded(data: bytes) -> Any:
        try:
            return decode(data) if decode is not None else data
        except (DecodeError, RecursionError) as error:
            return _Malformed(str(error))

    return decoded


def _checked(request: Any) -> Any:
    if isinstance(request, _Malformed):
        raise _malformed(request)
    return request


async def _all_checked(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _checked(request)


def _malformed(request: _Malformed) -> CallError:
    reason = request.reason.encode("ascii", "backslashreplace").decode()
    return invalid([Violation("(message)", f"is not a message of this method: {reason}")], reason="MALFORMED")


def _text(value: str | bytes | None) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _request_id(value: str | bytes | None) -> str:
    """Return the client's own request id, if it is sensible, or a new one."""
    text = _text(value)
    if text and len(text) <= _LONGEST_REQUEST_ID and text.isprintable():
        return text
    return secrets.token_hex(8)
