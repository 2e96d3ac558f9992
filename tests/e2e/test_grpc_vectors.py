"""A server with vectors of its own for SPICE-G: they are in its scores, in signatures, metrics and challenges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_graded.chair import read_instances
from spicegraph_graded.spice_g.building import build_table
from spicegraph_graded.spice_g.vectors import Vectors
from spicegraph_scorer import score
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, make_categories
from spicegraph_service.client import Client, category, item

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers import RunningServer
    from spicegraph_graded.spice_g.vectors import VectorTable

pytestmark = pytest.mark.model

ITEMS = [
    Item("1", "a puppy runs on grass", ("a dog runs on a lawn", "the dog on the grass")),
    Item("2", "a man rides a horse", ("a man is riding a brown horse", "a rider on a horse")),
]
SENT = [item(each.id, each.candidate, each.references) for each in ITEMS]


def made_table(name: str) -> VectorTable:
    words = [[frozenset(text.split()) for text in (each.candidate, *each.references)] for each in ITEMS] * 3
    return build_table(words, name=name, dimensions=6, fewest=2, order=None)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VectorTable]:
    path, table = tmp_path_factory.mktemp("vectors") / "own.npz", made_table("own")
    table.write(path)
    return path, table


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("instances") / "instances.json"
    content = {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 63, "name": "couch"}],
        "annotations": [{"image_id": 1, "category_id": 63}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def own_server(
    start_server: Callable[..., RunningServer], table: tuple[Path, VectorTable], instances: Path
) -> RunningServer:
    return start_server(f"--vectors={table[0]}", f"--instances={instances}", "--metrics-address=127.0.0.1:0")


def signatures(client: Client) -> dict[str, str]:
    return {metric.name: metric.signature.fields.get("vectors", "") for metric in client.server_info().metrics}


def test_scores_are_the_library_s_with_the_same_vectors(
    own_server: RunningServer, table: tuple[Path, VectorTable]
) -> None:
    mine = Vectors.of(table[1])
    own = [category("Pet", words=["dog", "puppy"])]
    same = make_categories([CategoryDefinition("Pet", words=("dog", "puppy"))])
    with Client(own_server.address) as client:
        for definitions, categories in ((), None), (own, same):
            expected = score(ITEMS, ["spice-g"], data=MetricData(categories=categories, vectors=mine))
            reply = client.score(SENT, metrics=["spice-g"], categories=definitions, detail=scores_pb2.DETAIL_TUPLES)
            found = reply.corpus.scores
            assert found == {each.name: each.value for run in expected.runs for each in run.scores}
            (signature,) = reply.corpus.signatures
            assert signature.fields["vectors"] == mine.signature
        supports = [found.support for found in reply.items[0].graded_matches[0].candidate]
    bundled = score(ITEMS, ["spice-g"], explain=True)
    assert found["SPICE-G"] != bundled.corpus["SPICE-G"]
    assert supports != [each.support for each in bundled.runs[0].explanations[0].candidate]


def test_chair_knows_the_instances_and_sends_its_evidence(own_server: RunningServer, instances: Path) -> None:
    mine = [Item("1", "a puppy on a sofa", ("a dog on grass",)), Item("2", "a cat on a sofa", ("a man and a dog",))]
    sent = [item(each.id, each.candidate, each.references) for each in mine]
    expected = score(mine, ["chair"], data=MetricData(instances=read_instances(str(instances))))
    with Client(own_server.address) as client:
        reply = client.score(sent, metrics=["chair"], detail=scores_pb2.DETAIL_TUPLES)
        assert reply.corpus.scores == expected.corpus
        (signature,) = reply.corpus.signatures
        assert dict(signature.fields) == dict(expected.runs[0].signature)
        (first,), (second,) = (each.chair_matches for each in reply.items)
        assert [(one.object, one.words, one.hallucinated) for one in first.mentions] == [
            ("dog", "puppy", False),
            ("couch", "sofa", False),
        ]
        assert [(one.object, one.hallucinated) for one in second.mentions] == [("cat", True), ("couch", True)]
        assert (second.mentions[1].span.start, second.mentions[1].span.end) == (11, 15)
        assert (first.metric, list(first.missing), list(second.missing)) == ("chair", [], ["dog", "person"])
        assert not client.score(sent, metrics=["chair"]).items[0].chair_matches
        with pytest.raises(grpc.RpcError) as error:
            client.score([item("9", "a dog", ["a dog"])], metrics=["chair"])
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "the instances lack 1 of the images that are scored: '9'" in error.value.details()


def test_the_vectors_are_listed(own_server: RunningServer, table: tuple[Path, VectorTable]) -> None:
    signature = table[1].signature
    with Client(own_server.address) as client:
        found = signatures(client)
    assert found["spice-g"] == signature
    assert set(found.values()) == {"", signature}
    with urllib.request.urlopen(own_server.metrics_url, timeout=5) as reply:
        (line,) = [line for line in reply.read().decode().splitlines() if line.startswith("spicegraph_server_info{")]
    assert f'vectors="{signature}"' in line
    assert any(f"vectors {signature}" in str(line["message"]) for line in own_server.lines())


def test_a_worker_that_starts_later_has_the_same_vectors(
    own_server: RunningServer, table: tuple[Path, VectorTable]
) -> None:
    """The file has changed meanwhile: a server that answered with two tables would compare what is not alike."""
    path, first = table
    made_table("another").write(path)
    (worker,) = own_server.workers()
    os.kill(worker, signal.SIGKILL)
    end = time.monotonic() + 30
    while own_server.workers() in ([], [worker]) and time.monotonic() < end:
        time.sleep(0.1)
    with Client(own_server.address) as client:
        (signature,) = client.score(SENT, metrics=["spice-g"]).corpus.signatures
    assert signature.fields["vectors"] == first.signature
    assert own_server.workers() not in ([], [worker])


@pytest.mark.parametrize("content", [None, b"not a table"])
def test_a_table_that_cannot_be_read_is_one_line_at_the_start(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    if content is not None:
        path.write_bytes(content)
    command = [sys.executable, "-m", "spicegraph_service", "serve", "--address", "127.0.0.1:0", "--store", "memory"]
    done = subprocess.run([*command, "--vectors", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {path}: cannot be read as a table of vectors")
