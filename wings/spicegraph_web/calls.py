"""The contract over HTTP: ``POST /SERVICE/METHOD`` with JSON, as the Connect protocol defines it."""
# A stream is a sequence of Connect's envelopes, or of lines of JSON (``application/x-ndjson``). What a client sends to
# a method with two streams is read whole before the first result: over HTTP/1.1 clients may send all before they read.

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
from base64 import b64encode
from contextlib import aclosing, asynccontextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import grpc
from aiohttp import web
from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from spicegraph_service.kit import (
    HTTP_STATUSES,
    TOO_LONG,
    ByteBudget,
    CallError,
    FailedCallError,
    FullError,
    Limits,
    Malformed,
    Origin,
    Violation,
    exhausted,
    format_peer,
    invalid,
    too_long,
)
from spicegraph_web import codec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from google.protobuf.descriptor import MethodDescriptor

    from spicegraph_service.kit import Requests
    from spicegraph_web.gateway import InnerGateway

_JSON = "application/json"
_PROTO = "application/proto"
_LINES = "application/x-ndjson"
_CONNECT = "application/connect+"
_HEADER_BYTES = 5
_END = 2  # the flag of Connect's last envelope
_COMPRESSED = 1
_PIECE = 1 << 16
_LONGEST_TIMEOUT = 10  # digits
_LEAST_RATE = 64  # bytes per second of a body, on average
_PATIENCE_S = 30.0  # before the rate counts
_MALFORMED = "MALFORMED"
_FULL = "too many bytes of calls are not answered yet"

_WRITERS: Mapping[str, Callable[[Message], bytes]] = {
    "json": codec.to_json,
    "proto": lambda message: message.SerializeToString(),
}  # How messages are written: as JSON, or as the bytes of Protocol Buffers.


class Framing(NamedTuple):
    """How a stream is cut into messages, which are written by ``codec``, a key of ``_WRITERS``."""

    content_type: str
    codec: str
    enveloped: bool

    def message(self, data: bytes) -> bytes:
        """Return the encoded frame of one message."""
        return _envelope(0, data) if self.enveloped else data + b"\n"

    def end(self, failure: FailedCallError | None) -> bytes:
        """Return the last frame of a stream, with the error if it failed."""
        plain = {"error": error_plain(failure)} if failure is not None else {}
        if self.enveloped:
            return _envelope(_END, json.dumps(plain).encode())
        return json.dumps(plain).encode() + b"\n" if plain else b""

    async def cut(self, chunks: AsyncIterator[bytes], *, most: int) -> AsyncIterator[bytes]:
        """Yield the messages of a stream."""
        buffer = bytearray()
        async for chunk in chunks:
            buffer += chunk
            while (span := self._first(buffer, most)) is not None:
                start, end, used = span
                data = bytes(buffer[start:end])
                del buffer[:used]
                if self.enveloped or data.strip():
                    yield data
        if self.enveloped and buffer:
            raise codec.JsonError("the stream ends in the middle of a message")
        if buffer.strip():
            yield bytes(buffer)

    def _first(self, buffer: bytearray, most: int) -> tuple[int, int, int] | None:
        """Return where the first whole message begins and ends, and how many bytes it takes."""
        if not self.enveloped:
            end = buffer.find(b"\n", 0, most + 1)
            if end < 0 and len(buffer) > most:
                raise too_long(most)
            return (0, end, end + 1) if end >= 0 else None
        if len(buffer) < _HEADER_BYTES:
            return None
        size = int.from_bytes(buffer[1:_HEADER_BYTES])
        if buffer[0] & _COMPRESSED:
            raise codec.JsonError("compressed messages are not read")
        if size > most:
            raise too_long(most)
        end = _HEADER_BYTES + size
        return (_HEADER_BYTES, end, end) if len(buffer) >= end else None


def _envelope(flags: int, data: bytes) -> bytes:
    return bytes((flags,)) + len(data).to_bytes(4) + data


def error_plain(failure: FailedCallError) -> dict[str, Any]:
    """Return Connect's JSON of an error."""
    name = "canceled" if failure.code is grpc.StatusCode.CANCELLED else failure.code.name.lower()
    details = []
    for packed in failure.details:
        kind = packed.type_url.rpartition("/")[2]
        detail: dict[str, Any] = {"type": kind, "value": b64encode(packed.value).decode().rstrip("=")}
        try:
            message = GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(kind))()
        except KeyError:
            pass
        else:
            message.ParseFromString(packed.value)
            detail["debug"] = json_format.MessageToDict(message)
        details.append(detail)
    return {"code": name, "message": failure.message, **({"details": details} if details else {})}


def error_response(failure: FailedCallError, *, status: int | None = None) -> web.Response:
    """Return an error as a response."""
    headers = dict(failure.headers)
    if (wait := failure.retry_after_s) is not None:
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
    if failure.code is grpc.StatusCode.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return web.json_response(error_plain(failure), status=status or HTTP_STATUSES[failure.code], headers=headers)


class CallRoutes:
    """The methods of a gateway as routes."""

    def __init__(self, gateway: InnerGateway, limits: Limits) -> None:
        self._gateway = gateway
        self._limits = limits
        self._budget = ByteBudget(limits.max_unanswered_bytes, limits.max_unanswered_bytes // 2)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """Yield a route for each method."""
        for path in self._gateway.methods:
            yield web.post(path, self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = self._gateway.methods[request.path]
        streams = method.client_streaming or method.server_streaming

        async def answer(origin: Origin) -> web.StreamResponse:
            async with _deadline(origin):
                await self._gateway.admit(request.path, origin)
                return await (self._stream if streams else self._unary)(request, method, origin)

        return await _answered(request, answer)

    async def _unary(self, request: web.Request, method: MethodDescriptor, origin: Origin) -> web.Response:
        used = {_JSON: "json", _PROTO: "proto"}.get(request.content_type)
        if used is None:
            raise _wrong_type(_JSON, _PROTO)
        with self._budget.account(str(request.remote)) as count:
            data = await self._whole_body(request, count)
            message, headers = await self._gateway.unary(request.path, _decoded(used, data, method), origin)
        return web.Response(body=_WRITERS[used](message), content_type=request.content_type, headers=headers)

    async def _stream(self, request: web.Request, method: MethodDescriptor, origin: Origin) -> web.StreamResponse:
        framing = _framing(request)
        body = self._body(request, most=256 << 20 if method.server_streaming else None)
        if not method.client_streaming:
            requests = [message async for message in self._messages(body, framing, method)]
            if len(requests) != 1:
                raise invalid([Violation("(message)", f"expected one message, got {len(requests)}")], reason=_MALFORMED)
            return await self._respond(request, framing, self._gateway.stream(request.path, requests[0], origin))
        if not method.server_streaming:
            messages = self._messages(body, framing, method)
            if framing.enveloped:
                return await self._respond(request, framing, self._one(request.path, messages, origin))
            message, headers = await self._gateway.unary(request.path, messages, origin)
            return web.Response(body=codec.to_json(message), content_type=_JSON, headers=headers)
        with tempfile.SpooledTemporaryFile(1 << 20) as spool, self._budget.account(str(request.remote)) as count:
            async for chunk in body:
                count(len(chunk))
                spool.write(chunk)
            spool.seek(0)
            messages = self._messages(_pieces(spool), framing, method)
            return await self._respond(request, framing, self._gateway.stream(request.path, messages, origin))

    async def _one(self, path: str, requests: Requests, origin: Origin) -> AsyncGenerator[Message]:
        yield (await self._gateway.unary(path, requests, origin))[0]

    async def _respond(
        self, request: web.Request, framing: Framing, responses: AsyncGenerator[Message]
    ) -> web.StreamResponse:
        """Write responses. An error before the first is a response of its own, but with Connect's envelopes."""
        response = web.StreamResponse(headers={"Content-Type": framing.content_type})
        failure: FailedCallError | None = None
        async with aclosing(responses):
            try:
                async for message in responses:
                    if not response.prepared:
                        await response.prepare(request)
                    await response.write(framing.message(_WRITERS[framing.codec](message)))
            except FailedCallError as error:
                if not (response.prepared or framing.enveloped):
                    raise
                failure = error
        if not response.prepared:
            await response.prepare(request)
        await response.write(framing.end(failure))
        await response.write_eof()
        return response

    async def _messages(
        self, chunks: AsyncIterator[bytes], framing: Framing, method: MethodDescriptor
    ) -> AsyncIterator[Message | Malformed]:
        try:
            async for data in framing.cut(chunks, most=self._limits.max_message_bytes):
                yield _decoded(framing.codec, data, method)
        except codec.JsonError as error:
            yield Malformed(str(error))

    async def _whole_body(self, request: web.Request, count: Callable[[int], None]) -> bytes:
        data = bytearray()
        async for chunk in self._body(request, most=self._limits.max_message_bytes):
            count(len(chunk))
            data += chunk
        return bytes(data)

    async def _body(self, request: web.Request, *, most: int | None) -> AsyncIterator[bytes]:
        """Yield the bytes of a request."""
        read = 0
        waited = 0.0
        while True:
            begun = time.monotonic()
            try:
                async with asyncio.timeout(self._limits.max_silence_s):
                    chunk = await request.content.readany()
            except TimeoutError as error:
                message = f"nothing came for {self._limits.max_silence_s:g} s"
                raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "STREAM_STALLED", message) from error
            except web.RequestPayloadError as error:
                raise invalid(
                    [Violation("(message)", f"the body can't be read: {error}")], reason=_MALFORMED
                ) from error
            waited += time.monotonic() - begun
            if waited > _PATIENCE_S and read < _LEAST_RATE * waited:
                message = f"the body comes with less than {_LEAST_RATE} bytes per second"
                raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "STREAM_STALLED", message)
            if not chunk:
                return
            read += len(chunk)
            if most is not None and read > most:
                raise too_long(most)
            yield chunk


async def _answered(
    request: web.Request, answer: Callable[[Origin], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Return the answer to a request, or the error that it fails with."""
    try:
        return await answer(origin_of(request))
    except CallError as error:
        return error_response(FailedCallError.of(error), status=413 if error.reason == TOO_LONG else None)
    except FullError as error:
        return error_response(FailedCallError.of(exhausted("BODIES_FULL", _FULL, error.retry_after_s)))
    except FailedCallError as failure:
        return error_response(failure)


def _wrong_type(*accepted: str) -> web.HTTPUnsupportedMediaType:
    return web.HTTPUnsupportedMediaType(
        text=f"expected the content type {' or '.join(accepted)}\n", headers={"Accept-Post": ", ".join(accepted)}
    )


def _framing(request: web.Request) -> Framing:
    kind = request.content_type
    if kind in {_LINES, _JSON}:
        return Framing(_LINES, "json", enveloped=False)
    used = kind.removeprefix(_CONNECT)
    if used == kind or used not in _WRITERS:
        raise _wrong_type(_LINES, *(_CONNECT + name for name in _WRITERS))
    return Framing(kind, used, enveloped=True)


def _decoded(used: str, data: bytes, method: MethodDescriptor) -> Message | Malformed:
    """Return the decoded message, or a ``Malformed`` for the interceptor to refuse and record."""
    message = GetMessageClass(method.input_type)
    try:
        return codec.from_json(data, message) if used == "json" else message.FromString(data)
    except codec.JsonError as error:
        return Malformed(str(error), error.field)
    except (DecodeError, RecursionError) as error:
        return Malformed(str(error))


async def _pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := spool.read(_PIECE):
        yield piece


def origin_of(request: web.Request) -> Origin:
    """Return where a request comes from, without its cookies."""
    headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != "cookie"}
    timeout = headers.get("connect-timeout-ms")
    if timeout is not None and not (timeout.isascii() and timeout.isdigit() and len(timeout) <= _LONGEST_TIMEOUT):
        raise invalid([Violation("connect-timeout-ms", "expected up to 10 digits")], reason=_MALFORMED)
    deadline = time.monotonic() + int(timeout) / 1000 if timeout is not None else None
    return Origin(headers, format_peer(request.get_extra_info("peername")), _certified_names(request), deadline)


def _certified_names(request: web.Request) -> tuple[bytes, ...]:
    """Return the names in a client's certificate: its alternative names, otherwise its common name."""
    certificate = request.get_extra_info("peercert") or {}
    names = [name for _, name in certificate.get("subjectAltName", ())]
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return tuple(name.encode() for name in names or common)


@asynccontextmanager
async def _deadline(origin: Origin) -> AsyncIterator[None]:
    remaining = None if origin.deadline is None else origin.deadline - time.monotonic()
    try:
        async with asyncio.timeout(remaining):
            yield
    except TimeoutError as error:
        raise FailedCallError(grpc.StatusCode.DEADLINE_EXCEEDED, "the time for an answer is over") from error
