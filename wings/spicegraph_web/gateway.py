"""Calls of the contract that do not come over gRPC; they pass the same interceptor, and have the same handlers."""

from __future__ import annotations

import time
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import grpc
import grpc.aio
import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from spicegraph_service.rpc.interceptor import CallInterceptor, Context, Handler, Malformed, Refusal
from spicegraph_service.rpc.status import CallError, to_trailers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from google.protobuf.message import Message

    from spicegraph_service.rpc.service import Service

Requests: TypeAlias = "Message | Malformed | AsyncIterator[Message | Malformed]"
_INTERNAL = "grpc-"  # of gRPC's own; what else is in the trailers is for the client


class FailedCallError(Exception):
    """A call that failed: its status, the details of ``google.rpc``, and headers for the client."""

    def __init__(self, code: grpc.StatusCode, message: str, trailers: Sequence[tuple[str, str | bytes]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        packed = dict(trailers).get("grpc-status-details-bin", b"")
        self.details = tuple(Status.FromString(packed).details) if isinstance(packed, bytes) and packed else ()
        self.headers = _headers(trailers)

    @classmethod
    def of(cls, error: CallError) -> FailedCallError:
        """Return the failure of a call that was refused before it began."""
        return cls(error.code, error.message, to_trailers(error, request_id=""))

    def said(self, names: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
        """Return what went wrong, and which fields are wrong and why; ``names``: what they are called for people."""
        faults, bad = [], BadRequest()
        for detail in self.details:
            if detail.Unpack(bad):
                faults += [(names.get(each.field, each.field), each.description) for each in bad.field_violations]
        if len(faults) == 1 and self.message.endswith(faults[0][1]):
            return ": ".join(faults[0]), []
        return self.message, faults

    @property
    def retry_after_s(self) -> float | None:
        """When to try again; ``None``: the server does not say."""
        for detail in self.details:
            retry = RetryInfo()
            if detail.Unpack(retry):
                return retry.retry_delay.ToTimedelta().total_seconds()
        return None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from."""

    headers: Mapping[str, str]  # by lower-cased names
    peer: str = "web"  # its address, as gRPC writes it: ``ipv4:HOST:PORT``
    certificate: tuple[bytes, ...] = ()  # the names in the client's certificate
    deadline: float | None = None  # by :func:`time.monotonic`


class _Context:
    """What handlers and the interceptor ask of gRPC's context."""

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


class Gateway:
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
            return await handler.stream_unary(_each(requests), context), _headers(context.trailers)

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


def _headers(trailers: Sequence[tuple[str, str | bytes]]) -> dict[str, str]:
    return {name: value for name, value in trailers if isinstance(value, str) and not name.startswith(_INTERNAL)}


_UNDEFINED = {"enum": ["NaN", "Infinity", "-Infinity"]}
_SCALARS: Mapping[int, Mapping[str, object]] = {
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"oneOf": [{"type": "number", "format": "double"}, _UNDEFINED]},
    FieldDescriptor.CPPTYPE_FLOAT: {"oneOf": [{"type": "number", "format": "float"}, _UNDEFINED]},
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.CPPTYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer", "format": "uint32"},
    FieldDescriptor.CPPTYPE_UINT64: {"type": "string", "format": "uint64"},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
}
_OWN_FORMS: Mapping[str, Mapping[str, object]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Struct": {"type": "object"},
}
_ERROR = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "value": {"type": "string"}, "debug": {"type": "object"}},
            },
        },
    },
}


_ANSWERS = {"200": "It serves.", "404": "There is no such service.", "503": "It does not serve."}
_HEALTH = {
    "operationId": "health",
    "description": "Says whether a service serves, by its full name; without a name, the server.",
    "parameters": [{"name": "service", "in": "query", "schema": {"type": "string"}}],
    "responses": {status: {"description": text} for status, text in _ANSWERS.items()},
    "security": [],
}


def openapi(gateway: Gateway) -> bytes:
    """Return the document of a server's methods, as JSON."""
    schemas: dict[str, Any] = {"connect.Error": _ERROR}
    for method in gateway.methods.values():
        _add(method.input_type, schemas)
        _add(method.output_type, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "spicegraph", "version": version("spicegraph")},
        "paths": {
            path: {"post": _operation(path, kind, gateway.scopes[path])} for path, kind in gateway.methods.items()
        }
        | {"/health": {"get": _HEALTH}},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _operation(path: str, kind: MethodDescriptor, scope: str | None) -> dict[str, Any]:
    service, _, name = path.removeprefix("/").partition("/")
    sides = (("request", kind.client_streaming), ("response", kind.server_streaming))
    said = [f"The {side} is a stream: one JSON object a line." for side, is_stream in sides if is_stream]
    needs = [f"The token needs the scope {scope!r}."] if scope else []
    return {
        "operationId": f"{service.rpartition('.')[2]}_{name}",
        "tags": [service.rpartition(".")[2]],
        "description": " ".join((*said, *needs)),
        "requestBody": {"required": True, "content": _content(kind.input_type, lines=kind.client_streaming)},
        "responses": {
            "200": {
                "description": kind.output_type.name,
                "content": _content(kind.output_type, lines=kind.server_streaming),
            },
            "default": {
                "description": "An error; streams have it in their last line or envelope",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/connect.Error"}}},
            },
        },
    }


def _content(message: Descriptor, *, lines: bool) -> dict[str, Any]:
    schema = {"schema": {"$ref": f"#/components/schemas/{message.full_name}"}}
    return {"application/x-ndjson" if lines else "application/json": schema}


def _add(message: Descriptor, schemas: dict[str, Any]) -> None:
    if message.full_name in schemas:
        return
    schemas[message.full_name] = {"type": "object", "additionalProperties": False, "properties": {}}
    properties = schemas[message.full_name]["properties"]
    for field in message.fields:
        properties[field.json_name] = _schema(field, schemas)


def _schema(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return {"type": "object", "additionalProperties": _schema(kind.fields_by_name["value"], schemas)}
    element: dict[str, Any]
    if kind is not None and kind.full_name in _OWN_FORMS:
        element = dict(_OWN_FORMS[kind.full_name])
    elif kind is not None:
        _add(kind, schemas)
        element = {"$ref": f"#/components/schemas/{kind.full_name}"}
    elif field.enum_type is not None:
        element = {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    elif field.type == FieldDescriptor.TYPE_BYTES:
        element = {"type": "string", "format": "byte"}
    else:
        element = dict(_SCALARS[field.cpp_type])
    return {"type": "array", "items": element} if field.is_repeated else element
