"""``sample.v1.RecallService``: word recall as a call of the server.

A larger service would have a ``.proto`` file and its generated modules; this one has a single method between types that
protobuf brings along, so its contract is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2, wrappers_pb2

from spicegraph_api.v1.methods import Method
from spicegraph_sample.metric import recall
from spicegraph_scorer import Item
from spicegraph_service.kit import TokenService, Violation, invalid

if TYPE_CHECKING:
    from spicegraph_service.kit import Context, Host, NoOptions

_CONTRACT: Final = descriptor_pb2.FileDescriptorProto(
    name="sample/v1/recall.proto",
    package="sample.v1",
    syntax="proto3",
    dependency=["google/protobuf/struct.proto", "google/protobuf/wrappers.proto"],
    service=[
        descriptor_pb2.ServiceDescriptorProto(
            name="RecallService",
            method=[
                descriptor_pb2.MethodDescriptorProto(
                    name="Recall", input_type=".google.protobuf.ListValue", output_type=".google.protobuf.DoubleValue"
                )
            ],
        )
    ],
)


def open_service(_options: NoOptions, host: Host) -> TokenService:
    """Open the service; its callers have the server's tokens."""
    descriptor_pool.Default().AddSerializedFile(_CONTRACT.SerializeToString())
    descriptor = descriptor_pool.Default().FindServiceByName("sample.v1.RecallService")
    handler = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=struct_pb2.ListValue.FromString,
        response_serializer=wrappers_pb2.DoubleValue.SerializeToString,
    )
    handlers = grpc.method_handlers_generic_handler(descriptor.full_name, {"Recall": handler})
    return TokenService(
        descriptor,
        {"Recall": Method("score")},
        lambda server: server.add_generic_rpc_handlers((handlers,)),
        host.authenticator,
        None,
    )


async def answer(request: struct_pb2.ListValue, _context: Context) -> wrappers_pb2.DoubleValue:
    """Return the word recall of the first text against the others.

    Raises:
        CallError: INVALID_ARGUMENT, since there are fewer than two texts.
    """
    texts = [value.string_value for value in request.values]
    if len(texts) < 2 or not all(texts):
        raise invalid([Violation("values", "expected a candidate and its references, as strings")])
    candidate, *references = texts
    return wrappers_pb2.DoubleValue(value=recall(Item(1, candidate, tuple(references))))
