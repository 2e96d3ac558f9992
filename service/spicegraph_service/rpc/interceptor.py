"""What every call passes through, in one place: decoding, token, scope, errors to statuses, log and metrics."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from spicegraph_service.rpc.status import (
    CallError,
    Violation,
    exhausted,
    invalid,
    stalled,
    to_call_error,
    to_trailers,
    too_long,
    unavailable,
    unread,
)
from spicegraph_service.store import DEFAULT_TENANT, StoreError

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from spicegraph_api.v1.methods import Method
    from spicegraph_service.rpc.service import Caller, Service
    from spicegraph_service.rpc.telemetry import CallLog
    from spicegraph_service.rpc.tracing import Tracing

    _HandlerBase: TypeAlias = grpc.RpcMethodHandler[Any, Any]
else:
    _HandlerBase = grpc.RpcMethodHandler

_REQUEST_ID = "x-request-id"
_LONGEST_REQUEST_ID = 100
_RETRY_HEADER = "grpc-previous-rpc-attempts"  # set by gRPC itself where a client has a retry policy
_MOST_RETRIES = 4
_LOOK_EVERY_S = 1.0  # whether the caller of a stream may still make it
_REQUEST_S = 20.0  # until the one request of a call has come
_IDLE_S = 0.2  # a stream that waits for its client's next message for so long does not hold up the server's stop
_FROZEN_S = 1.0  # nor does one whose client takes no response for so long
_RETRY_S = 1.0
_REFUSED = frozenset({grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED})

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Metadata: TypeAlias = Mapping[str, str | bytes]
_Identify: TypeAlias = "Callable[[], Awaitable[Caller]]"

_SHAPES: Mapping[tuple[bool, bool], str] = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}  # Kinds of methods, by whether requests and responses are streams: the handler's attribute.


@dataclass(slots=True)
class Call:
    """The call under way: who makes it, how many captions it has brought so far, how often it was refused before."""

    method: str
    request_id: str
    refusals: int = 0
    share: str = ""  # who shares the workers: a token, else a certificate or connection
    peer: str = ""  # the caller's address
    certificate: str = ""
    caller: Caller | None = None
    captions: int = 0
    unanswered: int = 0  # pieces of a stream
    waits_since: float = math.inf  # for the next message of a stream
    gives_since: float = math.inf  # a response of a stream, to a client that takes it
    patience_s: float = math.inf  # with a client that takes no response

    @property
    def tenant(self) -> str:
        """Tenant that owns the data this call stores and looks up."""
        return self.caller.tenant if self.caller is not None else DEFAULT_TENANT

    def charge(self, captions: int, cost: int) -> None:
        """Count captions, and charge their cost to the caller's rate limit."""
        if self.caller is not None:
            self.caller.charge(cost)
        self.captions += captions

    @property
    def is_idle(self) -> bool:
        """Whether it has waited for its client for a while, and the client waits for nothing or takes no response."""
        now = time.monotonic()
        return now - self.gives_since >= _FROZEN_S or (not self.unanswered and now - self.waits_since >= _IDLE_S)


_current: ContextVar[Call] = ContextVar("spicegraph_call")


def current_call() -> Call:
    """Return the call that the running task serves."""
    return _current.get()


@dataclass(frozen=True, slots=True)
class Malformed:
    """Stands for bytes that are not a message of the method."""

    reason: str
    field: str = "(message)"


class CallInterceptor(grpc.aio.ServerInterceptor):
    """The interceptor, for ``most`` calls under way, of messages of ``largest`` bytes. It leaves health alone."""

    def __init__(
        self,
        services: Sequence[Service],
        log: CallLog,
        tracing: Tracing | None = None,
        *,
        most: int = 1_024,
        largest: int | None = None,
    ) -> None:
        self.methods: Mapping[str, tuple[Service, Method]] = {
            f"/{service.descriptor.full_name}/{name}": (service, service.methods[name])
            for service in services
            for name in service.descriptor.methods_by_name
        }
        self._log = log
        self._tracing = tracing
        self._handlers: dict[str, Handler] = {}  # by method
        self._most = most
        self._largest = largest
        self.under_way = 0  # calls, until the last of their bytes is on its way
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End the streams that wait for their clients, and go on to: the server stops."""
        self._leaving.set()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the call's handler. Callers are identified by headers, before the body is read."""
        method = handler_call_details.method
        if method not in self.methods:
            other = await continuation(handler_call_details)
            unknown = CallError(grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", f"there is no method {method:.200}")
            return other if other is not None else Refusal(partial(self._refuse, "(unknown)", unknown))
        handler = self._handlers.get(method) or await continuation(handler_call_details)
        if handler is None:
            return None
        self._handlers[method] = handler
        service, (scope, _) = self.methods[method]
        authorization = _text(dict(handler_call_details.invocation_metadata or ()).get("authorization"))
        identify = partial(service.identify, authorization, scope)
        try:
            return self._answering(handler, method, await identify(), identify)
        except Exception as error:  # noqa: BLE001 (the caller gets it as a status)
            return Refusal(partial(self._refuse, method, error))

    async def _refuse(self, method: str, error: Exception, _requests: object, context: Context) -> NoReturn:
        async with _CallRecord(method, context, self._log, self._tracing):
            raise error

    def _answering(self, handler: Handler, method: str, caller: Caller, identify: _Identify) -> Handler:
        # A call with one request is answered as one with a stream of them: so it counts from its headers on, and its
        # request is waited for here. The stubs of handlers know only synchronous servicers: hence Any.
        inner: Any = getattr(handler, _SHAPES[handler.request_streaming, handler.response_streaming])

        async def answer(requests: AsyncIterator[Any], context: Context) -> Any:
            async with _CallRecord(method, context, self._log, self._tracing) as record:
                self._admit(record, caller, context)
                if not handler.request_streaming:
                    return await inner(await _in_time(requests), context)
                async with _while_allowed(identify, record.call, self._leaving):
                    return await inner(checked(requests, record.call), context)

        async def answers(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async with _CallRecord(method, context, self._log, self._tracing) as record:
                self._admit(record, caller, context)
                async with _while_allowed(identify, record.call, self._leaving):
                    own = checked(requests, record.call) if handler.request_streaming else await _in_time(requests)
                    async with aclosing(inner(own, context)) as responses:
                        async for response in responses:
                            record.call.gives_since = time.monotonic()
                            yield response
                            record.call.gives_since = math.inf

        make: Any = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        serve = answers if handler.response_streaming else answer
        answering: Handler = make(
            serve, decoder(handler.request_deserializer, self._largest), handler.response_serializer
        )
        return answering

    def _admit(self, record: _CallRecord, caller: Caller, context: Any) -> None:
        """Count a call as under way, or refuse it."""
        # The stubs of contexts take no function as a callback: hence Any.
        record.admit(caller)
        if self.under_way >= self._most:
            raise exhausted("TOO_MANY_CALLS", "the server has too many calls under way", _RETRY_S)
        self.under_way += 1
        context.add_done_callback(self._ended)

    def _ended(self, _context: object) -> None:
        self.under_way -= 1


class Refusal(_HandlerBase):
    """Handler that refuses a call, without reading any of its requests."""

    request_streaming = True
    response_streaming = False
    request_deserializer = None
    response_serializer = None
    unary_unary = unary_stream = stream_stream = None

    def __init__(self, refuse: Callable[[object, Context], Awaitable[NoReturn]]) -> None:
        self.refuse = refuse
        self.stream_unary: Any = refuse  # the stubs of handlers know only synchronous servicers


@asynccontextmanager
async def _while_allowed(identify: _Identify, call: Call, leaving: asyncio.Event) -> AsyncIterator[None]:
    """Look again and again whether a stream may go on; end it where its caller may not, or it holds up a stop."""
    ended: list[CallError] = []

    async def look(limit: asyncio.Timeout) -> None:
        while not ended:
            if leaving.is_set():
                await asyncio.sleep(_IDLE_S / 4)
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(leaving.wait(), _LOOK_EVERY_S)
            try:
                if leaving.is_set() and call.is_idle:
                    raise unavailable("STOPPING", "the server is stopping", _RETRY_S)
                if time.monotonic() - call.gives_since >= call.patience_s:
                    raise unread(call.patience_s)
                await identify()
            except CallError as error:
                ended.append(error)
                limit.reschedule(asyncio.get_running_loop().time())
            except StoreError:
                continue  # nobody has taken the token away

    looking: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(None) as limit:
            looking = asyncio.create_task(look(limit))
            yield
    except TimeoutError:
        if not ended:
            raise
        raise ended[0] from None
    finally:
        if looking is not None:
            looking.cancel()


class _CallRecord:
    """Record of one call: turns its errors into a status, and logs the outcome."""

    __slots__ = ("_begun", "_context", "_log", "_metadata", "_span", "_started", "_tracing", "_trailers", "call")

    def __init__(self, method: str, context: Context, log: CallLog, tracing: Tracing | None) -> None:
        self._context = context
        self._log = log
        self._metadata: Metadata = {str(key): value for key, value in context.invocation_metadata() or ()}
        self._started = time.monotonic()
        self._begun = False
        self._tracing = tracing
        self._span: Span | None = None
        self._trailers: tuple[tuple[str, str], ...] = ()
        names: Iterable[bytes] = context.peer_identities() or ()
        # The client's own request id, if it is sensible.
        request_id = _text(self._metadata.get(_REQUEST_ID)) or ""
        is_sensible = 0 < len(request_id) <= _LONGEST_REQUEST_ID and request_id.isprintable()
        self.call = Call(
            method,
            request_id if is_sensible else f"{random.getrandbits(64):016x}",
            earlier_tries(self._metadata),
            peer=context.peer(),
            certificate=", ".join(name.decode("utf-8", "replace") for name in names),  # "" without mutual TLS
        )

    def admit(self, caller: Caller) -> None:
        """Record who calls."""
        self.call.caller = caller
        caller.begin()
        self._begun = True
        self.call.share = caller.share or self.call.certificate or self.call.peer

    async def __aenter__(self) -> Self:
        _current.set(self.call)
        self._trailers = ((_REQUEST_ID, self.call.request_id),)
        if self._tracing is not None:
            headers = {key: value for key, value in self._metadata.items() if isinstance(value, str)}
            self._span = self._tracing.begin(self.call.method, headers)
            self._trailers += tuple(self._tracing.headers(self._span).items())
        self._context.set_trailing_metadata(self._trailers)
        self._log.started()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        code, message, refused = "OK", "", ""
        try:
            if isinstance(error, asyncio.CancelledError | GeneratorExit):
                left = cast("float | None", self._context.time_remaining())  # None: no deadline
                code = "DEADLINE_EXCEEDED" if left is not None and left <= 0 else "CANCELLED"
            elif isinstance(error, Exception):
                failure = to_call_error(error)
                code, message, refused = failure.code.name, failure.message, failure.caller
                if failure.code in _REFUSED:
                    self._log.refused(failure.reason)
                trailers = (*self._trailers, *to_trailers(failure, request_id=self.call.request_id))
                await self._context.abort(failure.code, failure.message, trailers)
        finally:
            call = self.call
            if call.caller is not None and self._begun:
                call.caller.end()
            caller = call.caller.name if call.caller is not None else refused
            if self._tracing is not None and self._span is not None:
                facts: dict[str, str | int] = {
                    "request_id": call.request_id,
                    "caller": caller,
                    "captions": call.captions,
                }
                number = grpc.StatusCode[code].value[0]
                self._tracing.end(self._span, code=code, number=number, message=message, attributes=facts)
            self._log.ended(
                method=call.method.rpartition(".")[2],  # SERVICE/METHOD
                code=code,
                seconds=time.monotonic() - self._started,
                captions=call.captions,
                caller=caller,
                request_id=call.request_id,
                message=message,
                peer=call.peer,
                certificate=call.certificate,
            )


def decoder(decode: Callable[[bytes], Any] | None, most: int | None = None) -> Callable[[bytes], Any]:
    """Return a decoder that marks malformed requests; gRPC would answer INTERNAL without a reason."""

    def decoded(data: bytes) -> Any:
        if most is not None and len(data) > most:
            return too_long(most)
        try:
            return decode(data) if decode is not None else data
        except (DecodeError, RecursionError) as error:
            return Malformed(str(error))

    return decoded


def _checked(request: Any) -> Any:
    if isinstance(request, CallError):
        raise request
    if isinstance(request, Malformed):
        reason = request.reason.encode("ascii", "backslashreplace").decode()
        what = reason if reason.startswith(("expected", "is ")) else f"is not a message of this method: {reason}"
        raise invalid([Violation(request.field, what)], reason="MALFORMED")
    return request


async def checked(requests: AsyncIterator[Any], call: Call | None = None) -> AsyncIterator[Any]:
    """Yield the requests of a stream, and record when its call waits for them."""
    call = call or Call("", "")
    call.waits_since = time.monotonic()
    async for request in requests:
        call.waits_since = math.inf
        yield _checked(request)
        call.waits_since = time.monotonic()
    call.waits_since = math.inf


async def only(requests: AsyncIterator[Any]) -> Any:
    """Return the request of a call with one."""
    async for request in requests:
        return request
    raise invalid([Violation("(message)", "is missing")], reason="MALFORMED")


async def _in_time(requests: AsyncIterator[Any]) -> Any:
    try:
        async with asyncio.timeout(_REQUEST_S):
            return await only(checked(requests))
    except TimeoutError as error:
        raise stalled(_REQUEST_S) from error


def _text(value: str | bytes | None) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def earlier_tries(metadata: Metadata) -> int:
    """Return how often the client's gRPC has tried this call before."""
    text = _text(metadata.get(_RETRY_HEADER)) or ""
    return min(int(text), _MOST_RETRIES) if text.isdecimal() and len(text) == 1 else 0
