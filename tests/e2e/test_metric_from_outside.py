"""A metric from outside the package, of the fullest kind, gets through every command, the server, a challenge and Ray.

Nothing of the package knows it (``toy/sitecustomize.py``): it is one class and one line in ``METRICS``.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2
from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model.accounts import add_user
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Role
from spicegraph_scorer import METRICS, Item, score
from spicegraph_scorer.metrics import MetricEntry
from spicegraph_service.client import Client, item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer
    from spicegraph_scorer import Result

pytestmark = [pytest.mark.model, pytest.mark.slow]

TOY = Path(__file__).parent / "toy"
ITEMS = [
    Item(
        f"{number}",
        f"a {color} {animal} near a {thing}",
        (f"a {color} {animal} on the grass", f"two {animal}s and a {thing if number % 3 else 'tree'}"),
    )
    for number, (color, animal, thing) in enumerate(
        (color, animal, thing)
        for color in ("brown", "red", "white", "black", "small")
        for animal in ("dog", "cat", "horse", "cow", "bird")
        for thing in ("car", "boat", "bench")
    )
]


@pytest.fixture(scope="module", autouse=True)
def outside() -> Iterator[None]:
    """The metric in this process, and in all that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TOY), *filter(None, sys.path)]))
        known = dict(METRICS)
        runpy.run_path(str(TOY / "sitecustomize.py"))
        yield
        assert isinstance(METRICS, dict)
        METRICS.clear()
        METRICS.update(known)


@pytest.fixture(scope="module")
def truth(outside: None) -> Result:
    assert isinstance(METRICS["rarity"], MetricEntry)
    return score(ITEMS, ["rarity"], explain=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "items.jsonl"
    rows = [{"image_id": i.id, "candidate": i.candidate, "references": list(i.references)} for i in ITEMS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def command(*arguments: str) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "spicegraph_service", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_library_s_result_has_all_its_sides(truth: Result) -> None:
    assert set(truth.corpus) == {"Rarity", "Rarity_categories"}
    assert truth.corpus["Rarity_categories"]["Several"]["items"] == len(ITEMS)
    assert truth.item_rows()[0]["explanation"] == {"Rarity": {"invented": ["car"]}}
    assert 0 < truth.corpus["Rarity"] < 1


@pytest.mark.parametrize(
    "options", [(), ("--workers", "2"), pytest.param(("--engine", "ray"), marks=pytest.mark.full("ray"))], ids=" ".join
)
def test_the_command_gives_the_library_s_scores(options: tuple[str, ...], source: Path, truth: Result) -> None:
    """The same numbers to the bit, from one process, several, and a cluster."""
    found = command("score", str(source), "--metrics", "rarity,rouge", "--format", "json", *options)
    assert found["corpus"]["Rarity"] == truth.corpus["Rarity"]
    assert found["corpus"]["Rarity_categories"] == truth.corpus["Rarity_categories"]
    assert found["signature"]["metrics"]["rarity"] == dict(truth.runs[0].signature)
    rarity = [row["scores"]["Rarity"] for row in found["items"]]
    assert rarity == list(truth.runs[0].scores[0].each)


@pytest.mark.full("ray")
def test_ray_sums_it_without_items(source: Path, truth: Result, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "scores.parquet"
    arguments = ("score", str(source), "--metrics", "rarity", "--engine", "ray", "-o", str(path))
    subprocess.run([sys.executable, "-m", "spicegraph_service", *arguments], capture_output=True, check=True)
    about = json.loads(pq.read_schema(path).metadata[b"spicegraph"])
    assert about["corpus"] == truth.corpus


def test_explanations_intervals_comparisons_and_bounds_have_it(source: Path, truth: Result) -> None:
    rarity = ("--metrics", "rarity", "--format", "json")
    explained = command("score", str(source), *rarity, "--explain", "--confidence")
    assert explained["items"] == truth.item_rows()
    interval = explained["confidence"]["Rarity"]
    assert interval["low"] < truth.corpus["Rarity"] < interval["high"]
    compared = command("compare", f"A={source}", f"B={source}", "--draws", "20", *rarity)
    assert compared["scores"]["Rarity"]["first"] == pytest.approx(truth.corpus["Rarity"], abs=1e-12)
    assert compared["scores"]["Rarity"]["difference"] == 0
    bounds = command("bounds", f"A={source}", "--lower", "none", "--draws", "20", *rarity)
    assert {trial["name"] for trial in bounds["trials"]} >= {"human", "A"}


def test_the_server_answers_with_it(start_server: Callable[..., RunningServer], truth: Result) -> None:
    """In a batch, in a batch of several chunks, and in a stream; with categories."""
    sent = [item(one.id, one.candidate, one.references) for one in ITEMS]
    detail = scores_pb2.DETAIL_TUPLES
    each = {one.id: value for one, value in zip(ITEMS, truth.runs[0].scores[0].each, strict=True)}
    with Client(start_server("--workers=2").address) as client:
        reply = client.score(sent, metrics=["rarity", "spice"], detail=detail)
        assert {result.id: result["Rarity"] for result in reply.items} == each
        assert all({b.metric for b in result.breakdowns} == {"spice", "rarity"} for result in reply.items)
        assert reply["Rarity"] == truth.corpus["Rarity"]
        few = score(ITEMS[:9], ["rarity"])
        small = client.score(sent[:9], metrics=["rarity"], detail=detail)
        assert small["Rarity"] == few.corpus["Rarity"]
        *_, last = client.stream(iter(sent), metrics=["rarity"])
        assert last["Rarity"] == truth.corpus["Rarity"]


def test_a_challenge_has_it(start_server: Callable[..., RunningServer], truth: Result, tmp_path: Path) -> None:
    place = tmp_path / "challenges.db"
    with Database(str(place)) as database, database.writing() as session:
        _, token = add_user(session, "organiser", Role.ORGANISER, database.now(session))
    server = start_server(f"--challenges={place}", f"--challenge-files={tmp_path / 'files'}")
    references, results = tmp_path / "references.json", tmp_path / "captions_val_mine_results.json"
    captions = [{"image_id": int(i.id), "caption": text} for i in ITEMS for text in i.references]
    references.write_text(json.dumps({"images": [{"id": int(i.id)} for i in ITEMS], "annotations": captions}))
    results.write_text(json.dumps([{"image_id": int(i.id), "caption": i.candidate} for i in ITEMS]))
    sets = [challenge_pb2.ChallengeReferenceSet(name="c2")]
    split = challenge_pb2.ChallengeSplit(name="val", reference_sets=sets)
    settings = challenge_pb2.ChallengeSettings(metrics=["rarity"], splits=[split])
    with ChallengeClient(server.address, token) as client:
        client.create_challenge(challenge_pb2.Challenge(name="toy", settings=settings))
        client.upload_references("toy", "val", "c2", references)
        *_, last = client.watch(client.submit("toy", results)[0].id)
    assert last.state == challenge_pb2.SubmissionState.SUBMISSION_STATE_SUCCEEDED, last
    assert {row.name: row.value for row in last.scores[0].scores}["Rarity"] == truth.corpus["Rarity"]
