"""Prints the comments on the fields of messages as JSON: {"MESSAGE": {"FIELD": "comment"}}.

Usage: python tools/proto_comments.py DESCRIPTOR_SET MESSAGE...
The set holds one file, as protoc --include_source_info --descriptor_set_out writes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

MESSAGE, FIELD = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER, 2  # numbers of descriptor.proto in a location's path


def main(path: str, *names: str) -> None:
    """Print the comments."""
    (file,) = FileDescriptorSet.FromString(Path(path).read_bytes()).file
    comments = {tuple(place.path): " ".join(place.leading_comments.split()) for place in file.source_code_info.location}
    by_message = {
        message.name: {
            field.name: comments[MESSAGE, number, FIELD, position] for position, field in enumerate(message.field)
        }
        for number, message in enumerate(file.message_type)
        if message.name in names
    }
    print(json.dumps(by_message, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
