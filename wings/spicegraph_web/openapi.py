"""The OpenAPI document of a server's methods."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_web.gateway import InnerGateway

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


def openapi(gateway: InnerGateway) -> bytes:
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
