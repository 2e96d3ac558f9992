"""Clients in other languages, made from the .proto files alone, against a real server.

Each needs its language on the machine. Without it the test is skipped, but in CI it fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.errors import ErrorSide
from spicegraph_service.client.evaluation import settings_message
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer
    from spicegraph_scorer.core.results import Result
    from spicegraph_service.report import Report

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "examples" / "clients"
GRPCURL = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.1"
ITEMS = [
    Item("1", "a man rides a brown horse", ("a man riding a horse", "a brown horse")),
    Item("2", "two dogs on a bed", ("a cat sleeping on a bed",)),
]


def run(command: list[str], *, cwd: Path, env: dict[str, str] | None = None) -> str:
    ended = subprocess.run(
        command, cwd=cwd, env=os.environ | (env or {}), capture_output=True, text=True, timeout=800, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def truth() -> Result:
    return score(ITEMS)


@pytest.fixture(scope="module")
def truth_of_scenes() -> Result:
    return score(ITEMS, pipeline="scene")


def item_values(truth: Result) -> dict[str, dict[str, float | None]]:
    return {str(one.id): {s.name: s.each[n] for run in truth.runs for s in run.scores} for n, one in enumerate(ITEMS)}


def corpus_values(truth: Result) -> dict[str, float | None]:
    return {s.name: s.value for run in truth.runs for s in run.scores}


def color_of(report: Report) -> dict[str, float | None]:
    row = next(row for row in report.systems[0].categories if row.name == "Color")
    return {name: getattr(row, name) for name in ("pr", "re", "f", "tp", "fp", "fn")}


def errors_of(report: Report) -> list[tuple[str, str, tuple[str, ...], int]]:
    """The five most frequent errors among what is said."""
    kinds = [kind for kind in report.systems[0].kinds if kind.kind.primary and kind.kind.side is ErrorSide.INVENTED]
    found = [(kind.name, kind.kind.title, group.words, group.count) for kind in kinds for group in kind.groups]
    return sorted(found, key=lambda row: -row[3])[:5]


@pytest.mark.full("clients")
def test_node_scores_as_the_library(
    server: RunningServer, truth: Result, truth_of_scenes: Result, tmp_path: Path, program: Callable[[str], str]
) -> None:
    node, npm = program("node"), program("npm")
    project = shutil.copytree(CLIENTS / "node", tmp_path / "node", ignore=shutil.ignore_patterns("node_modules"))
    run([npm, "install", "--silent", "--no-audit", "--no-fund"], cwd=project)
    found = json.loads(
        run([node, "score.mjs", server.address], cwd=project, env={"SPICEGRAPH_PROTO": str(ROOT / "proto")})
    )
    expected = {"items": item_values(truth), "corpus": corpus_values(truth)}
    assert found["batch"] == expected
    assert found["stream"] == expected
    assert found["scene"] == {"items": item_values(truth_of_scenes), "corpus": corpus_values(truth_of_scenes)}
    assert found["error"] == "items[0].references: is empty"
    report = build_report([System("mine", tuple(ITEMS))], ReportOptions(human=False))
    assert found["report"] == {
        "color": color_of(report),
        "errors": [
            {"kind": f"ERROR_KIND_{kind.upper()}", "words": list(words), "count": count}
            for kind, _, words, count in errors_of(report)
        ],
    }


@pytest.mark.full("clients")
def test_go_scores_as_the_library(
    server: RunningServer, truth: Result, truth_of_scenes: Result, tmp_path: Path, program: Callable[[str], str]
) -> None:
    go = program("go")
    project = shutil.copytree(CLIENTS / "go", tmp_path / "go", ignore=shutil.ignore_patterns("gen", "bin"))
    run(["bash", "generate.sh"], cwd=project, env={"PYTHON": sys.executable, "SPICEGRAPH_PROTO": str(ROOT / "proto")})
    lines = [line.split("\t") for line in run([go, "run", ".", server.address], cwd=project).splitlines()]
    rows = [line for line in lines if line[0] != "report"]
    report = build_report([System("mine", tuple(ITEMS))], ReportOptions(human=False))
    color, *errors = [line[1:] for line in lines if line[0] == "report"]
    assert color == [
        "Color",
        *(f"{value:.3f}" if n < 3 else str(value) for n, value in enumerate(color_of(report).values())),
    ]
    assert errors == [[title, " / ".join(words), str(count)] for _, title, words, count in errors_of(report)]
    found = {(way, name, key): None if value == "undefined" else float(value) for way, name, key, value in rows}
    assert found == {
        (way, name, key): value
        for way, result in (("batch", truth), ("scene", truth_of_scenes), ("stream", truth))
        for name, values in (item_values(result) | {"corpus": corpus_values(result)}).items()
        for key, value in values.items()
    }


def test_grpcurl_needs_nothing_but_reflection(
    server: RunningServer, truth: Result, tmp_path: Path, program: Callable[[str], str]
) -> None:
    go = program("go")

    def grpcurl(*arguments: str) -> str:
        return run([go, "run", GRPCURL, "-plaintext", *arguments], cwd=tmp_path)

    listed = grpcurl(server.address, "list").split()
    assert {"spicegraph.v1.EvaluationService", "spicegraph.v1.ReferenceService"} <= set(listed)
    request = {"items": [{"id": i.id, "candidate": i.candidate, "references": i.references} for i in ITEMS]}
    reply = json.loads(grpcurl("-d", json.dumps(request), server.address, "spicegraph.v1.EvaluationService/Score"))
    found = {i["id"]: {s["name"]: s.get("value") for s in i["scores"]} for i in reply["items"]}
    assert found == item_values(truth)
    health = json.loads(grpcurl(server.address, "grpc.health.v1.Health/Check"))
    assert health == {"status": "SERVING"}


def test_the_python_example_runs(server: RunningServer, tmp_path: Path) -> None:
    lines = run([sys.executable, str(CLIENTS / "python" / "train_reward.py"), server.address], cwd=tmp_path)
    rows = [line.split("\t") for line in lines.splitlines()]
    assert len(rows) == 6
    assert all(0 <= float(value) <= 1 for _, value, _ in rows)
    assert {image for image, *_ in rows} == {"image-1", "image-2"}


def test_metrics_may_be_one_string() -> None:
    assert settings_message({"metrics": "spice, bleu"}).settings.metrics == ["spice", "bleu"]
