"""The contract: generated code is fresh, everything is explained, and nothing is undefined by accident."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from spicegraph_api.v1 import (
    evaluation_service_pb2,
    reference_service_pb2,
    scene_graph_pb2,
    scores_pb2,
)

ROOT = Path(__file__).parents[2]
FILES: list[FileDescriptor] = [
    module.DESCRIPTOR for module in (evaluation_service_pb2, reference_service_pb2, scene_graph_pb2, scores_pb2)
]


def test_the_generated_code_is_fresh() -> None:
    ended = subprocess.run(
        ["bash", str(ROOT / "tools" / "proto.sh"), "--check"],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if os.environ.get("CI"):
        assert shutil.which("npm"), "CI must lint the contract, which needs npm"


@pytest.mark.parametrize("name", ["evaluation_service", "reference_service", "scene_graph", "scores"])
def test_every_message_and_field_is_explained(name: str) -> None:
    lines = (ROOT / "proto" / "spicegraph_api" / "v1" / f"{name}.proto").read_text().splitlines()
    for before, line in pairwise(lines):
        declares = line.rstrip().endswith((";", "{", "{}")) and not line.startswith(("syntax", "package", "import"))
        if declares and line.strip():
            assert before.strip().startswith("//"), f"{name}.proto: {line.strip()} has no comment"


def test_values_that_may_be_undefined_are_optional() -> None:
    fields: list[FieldDescriptor] = [
        field for file in FILES for message in file.message_types_by_name.values() for field in own(message)
    ]
    doubles = [field for field in fields if field.type == FieldDescriptor.TYPE_DOUBLE]
    assert {field.full_name for field in doubles} >= {
        "spicegraph.v1.Score.value",
        "spicegraph.v1.CategoryScore.f1",
    }
    assert all(field.has_presence for field in doubles)


def own(message: Descriptor) -> list[FieldDescriptor]:
    return list(message.fields)


def test_enums_begin_with_unspecified() -> None:
    for file in FILES:
        for enum in file.enum_types_by_name.values():
            assert enum.values_by_number[0].name.endswith("_UNSPECIFIED")
