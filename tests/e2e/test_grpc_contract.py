"""The contract: generated code is fresh, everything is explained, and nothing is undefined by accident."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from spicegraph_api.challenge.v1 import challenge_pb2
from spicegraph_api.challenge.v1.methods import METHODS as CHALLENGE_METHODS
from spicegraph_api.challenge.v1.methods import PUBLIC_SCOPE
from spicegraph_api.detail.v1 import detail_pb2
from spicegraph_api.detail.v1.methods import METHODS as DETAIL_METHODS
from spicegraph_api.report.v1 import report_pb2
from spicegraph_api.rewards.v1 import rewards_pb2
from spicegraph_api.rewards.v1.methods import METHODS as REWARD_METHODS
from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2, scene_graph_pb2, scores_pb2
from spicegraph_api.v1.methods import METHODS as OWN_METHODS
from spicegraph_challenge.client import ChallengeClient
from spicegraph_graded import DetailClient, RewardClient
from spicegraph_service.app import Server
from spicegraph_service.config import ServerConfig
from spicegraph_service.rpc import host
from spicegraph_service.rpc.auth import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FILES: list[FileDescriptor] = [
    module.DESCRIPTOR
    for module in (
        challenge_pb2,
        detail_pb2,
        report_pb2,
        rewards_pb2,
        evaluation_service_pb2,
        reference_service_pb2,
        scene_graph_pb2,
        scores_pb2,
    )
]


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_change_that_breaks_clients_is_refused(tmp_path: Path, program: Callable[[str], str]) -> None:
    program("npm")
    for folder in ("proto", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    scores = tmp_path / "proto" / "spicegraph_api" / "v1" / "scores.proto"
    scores.write_text(scores.read_text().replace("string candidate = 2;", "string candidate = 20;"))
    ended = subprocess.run(
        ["bash", str(tmp_path / "tools" / "proto.sh")],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode != 0
    assert 'Previously present field "2" with name "candidate" on message "Item"' in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "name",
    [
        "challenge/v1/challenge",
        "detail/v1/detail",
        "report/v1/report",
        "v1/evaluation_service",
        "v1/reference_service",
        "v1/scene_graph",
        "v1/scores",
    ],
)
def test_every_message_and_field_is_explained(name: str) -> None:
    lines = (ROOT / "proto" / "spicegraph_api" / f"{name}.proto").read_text().splitlines()
    for before, line in pairwise(lines):
        declares = line.rstrip().endswith((";", "{", "{}")) and not line.startswith(
            ("syntax", "package", "import", "option ")
        )
        if declares and line.strip() and not line.strip().startswith("//"):
            assert before.strip().startswith("//"), f"{name}.proto: {line.strip()} has no comment"


def test_values_that_may_be_undefined_are_optional() -> None:
    fields: list[FieldDescriptor] = [
        field for file in FILES for message in file.message_types_by_name.values() for field in own(message)
    ]
    doubles = [field for field in fields if field.type == FieldDescriptor.TYPE_DOUBLE]
    assert {field.full_name for field in doubles} >= {"spicegraph.v1.Score.value", "spicegraph.v1.CategoryScore.f1"}
    assert all(field.has_presence for field in doubles)


def own(message: Descriptor) -> list[FieldDescriptor]:
    return list(message.fields)


def test_enums_begin_with_unspecified() -> None:
    for file in FILES:
        for enum in file.enum_types_by_name.values():
            assert enum.values_by_number[0].name.endswith("_UNSPECIFIED")


METHODS = OWN_METHODS | CHALLENGE_METHODS | DETAIL_METHODS | REWARD_METHODS
SERVICES = {service.full_name: service for file in FILES for service in file.services_by_name.values()}


def test_every_method_states_its_scope_and_whether_it_may_be_repeated() -> None:
    """The server refuses to start without this, and a client would not retry."""
    assert {name: set(methods) for name, methods in METHODS.items()} == {
        name: set(service.methods_by_name) for name, service in SERVICES.items()
    }
    assert {method.scope for methods in METHODS.values() for method in methods.values()} == {
        None,
        PUBLIC_SCOPE,
        *SCOPES,
    }


def test_only_methods_without_effects_of_their_own_need_no_scope() -> None:
    """Users of the evaluation server have roles; of the others' methods one is open to every caller."""
    open_methods = [
        f"{service}/{name}"
        for service, methods in METHODS.items()
        for name, method in methods.items()
        if method.scope is None and service != "spicegraph.challenge.v1.ChallengeService"
    ]
    assert open_methods == ["spicegraph.v1.EvaluationService/GetServerInfo"]


def test_a_method_without_a_line_keeps_the_server_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "spicegraph.v1.EvaluationService"
    rest = {method: line for method, line in METHODS[name].items() if method != "Score"}
    monkeypatch.setattr(host, "METHODS", METHODS | {name: rest})

    async def build() -> None:
        Server(ServerConfig(address="127.0.0.1:0", store="memory"))

    with pytest.raises(KeyError, match="Score"):
        asyncio.run(build())


def test_clients_retry_what_the_table_calls_repeatable() -> None:
    configs = [
        json.loads(config)["methodConfig"]
        for config in (RewardClient._config, DetailClient._config, ChallengeClient._config)
    ]
    retried = {(entry["service"], entry["method"]) for (policy,) in configs for entry in policy["name"]}
    assert retried == {
        (service, name) for service, methods in METHODS.items() for name, method in methods.items() if method.repeatable
    }
    assert ("spicegraph.challenge.v1.ChallengeService", "CreateUser") not in retried
    assert ("spicegraph.v1.EvaluationService", "Score") in retried
