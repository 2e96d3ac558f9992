"""The packages of examples/, built and installed as a stranger's are: metrics, a command and a service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf import struct_pb2, wrappers_pb2

from spicegraph_service.client import Client, item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import RunningServer

pytestmark = [pytest.mark.model, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = [
    {"image_id": "1", "candidate": "a brown dog", "references": ["a dog", "the dog runs"]},  # 2 of 4 words
    {"image_id": "2", "candidate": "a cat", "references": ["a cat"]},
]
RECALL = 0.75


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The wheels, installed in a folder that this process's children have on their path."""
    folder = tmp_path_factory.mktemp("plugin")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    for package in ("plugin", "historic"):
        subprocess.run([*build, str(EXAMPLES / package)], check=True, capture_output=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target"]
    wheels = list(map(str, folder.glob("*.whl")))
    subprocess.run([*install, str(folder / "site"), *wheels], check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "site"), *filter(None, sys.path)]))
        yield folder / "site"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("items") / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


def command(*arguments: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "spicegraph_service", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=" ".join)
def test_the_metric_is_scored_beside_ours(source: str, options: tuple[str, ...]) -> None:
    scored = json.loads(command("score", source, "--metrics", "word-recall,rouge", "--format", "json", *options))
    assert scored["corpus"]["WordRecall"] == RECALL
    assert [row["scores"]["WordRecall"] for row in scored["items"]] == [0.5, 1.0]
    assert scored["signature"]["metrics"]["word-recall"]["version"] == "1"


def test_metrics_of_older_studies_are_scored_beside_ours(source: str) -> None:
    """A caption that equals its reference has ROUGE-1 1 and METEOR of 2005 1 minus the penalty of one chunk."""
    scored = json.loads(command("score", source, "--metrics", "rouge-1.5.5,meteor-2005,rouge", "--format", "json"))
    assert scored["corpus"].keys() >= {"ROUGE-1", "ROUGE-SU4", "METEOR_2005", "ROUGE_L"}
    assert scored["items"][1]["scores"]["ROUGE-1"] == 1.0
    assert scored["items"][1]["scores"]["METEOR_2005"] == pytest.approx(1 - 0.5 / 2**3)
    assert set(scored["signature"]["metrics"]) == {"rouge-1.5.5", "meteor-2005", "rouge"}


def test_the_metric_stands_in_a_report(source: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command("report", source, "--metrics", "word-recall", "-o", str(report))
    assert '"WordRecall"' in report.read_text()


def test_the_command_is_listed_and_runs(source: str) -> None:
    assert "frequent-words" in command("--help")
    assert command("frequent-words", source, "--most", "1") == "2\ta\n"


def test_the_server_has_metric_and_service(start_server: Callable[..., RunningServer]) -> None:
    address = start_server().address
    with Client(address) as client:
        sent = [item(row["image_id"], row["candidate"], row["references"]) for row in ROWS]  # type: ignore[arg-type]
        reply = client.score(sent, metrics=["word-recall"])
    assert reply.corpus.scores == {"WordRecall": RECALL}
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            "/sample.v1.RecallService/Recall",
            request_serializer=struct_pb2.ListValue.SerializeToString,
            response_deserializer=wrappers_pb2.DoubleValue.FromString,
        )
        texts = struct_pb2.ListValue()
        texts.extend([ROWS[0]["candidate"], *ROWS[0]["references"]])
        assert call(texts, timeout=20).value == 0.5
        with pytest.raises(grpc.RpcError, match="expected a candidate and its references"):
            call(struct_pb2.ListValue(), timeout=20)
