"""The contract as an OpenAPI document, made from its descriptors: it cannot say anything else than the server does."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
from google.protobuf.descriptor import FieldDescriptor

from spicegraph_api.v1.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf.descriptor import Descriptor, EnumDescriptor

    from spicegraph_service.web.gateway import Gateway, Method

_TIMESTAMP = "google.protobuf.Timestamp"
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


def openapi(gateway: Gateway) -> bytes:
    """Return the document of a server's methods, as JSON."""
    schemas: dict[str, Any] = {"connect.Error": _ERROR}
    for method in gateway.methods.values():
        _add(method.descriptor.input_type, schemas)
        _add(method.descriptor.output_type, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "spicegraph", "version": version("spicegraph")},
        "paths": {path: {"post": _operation(path, method)} for path, method in gateway.methods.items()}
        | {"/health": {"get": _health()}},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _operation(path: str, method: Method) -> dict[str, Any]:
    service, _, name = path.removeprefix("/").partition("/")
    scope = METHODS[service][name].scope
    kind = method.descriptor
    needs = f"The token needs the scope {scope!r}." if scope else ""
    return {
        "operationId": f"{service.rpartition('.')[2]}_{name}",
        "tags": [service.rpartition(".")[2]],
        "description": " ".join((*_streams(client=kind.client_streaming, server=kind.server_streaming), needs)).strip(),
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


def _streams(*, client: bool, server: bool) -> Iterator[str]:
    if client:
        yield "The request is a stream: one JSON object a line."
    if server:
        yield "The response is a stream: one JSON object a line."


def _content(message: Descriptor, *, lines: bool) -> dict[str, Any]:
    schema = {"schema": {"$ref": f"#/components/schemas/{message.full_name}"}}
    return {"application/x-ndjson" if lines else "application/json": schema}


def _health() -> dict[str, Any]:
    name = {"name": "service", "in": "query", "schema": {"type": "string"}}
    answers = {"200": "It serves.", "404": "There is no such service.", "503": "It does not serve."}
    return {
        "operationId": "health",
        "description": "Says whether a service serves, by its full name; without a name, the server.",
        "parameters": [name],
        "responses": {status: {"description": text} for status, text in answers.items()},
        "security": [],
    }


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
    one = _single(field, kind, schemas)
    return {"type": "array", "items": one} if field.is_repeated else one


def _single(field: FieldDescriptor, kind: Descriptor | None, schemas: dict[str, Any]) -> dict[str, Any]:
    if kind is not None:
        if kind.full_name == _TIMESTAMP:
            return {"type": "string", "format": "date-time"}
        _add(kind, schemas)
        return {"$ref": f"#/components/schemas/{kind.full_name}"}
    if field.enum_type is not None:
        return _names(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "format": "byte"}
    return dict(_SCALARS[field.cpp_type])


def _names(enum: EnumDescriptor) -> dict[str, Any]:
    return {"type": "string", "enum": [value.name for value in enum.values]}
