"""A Ray cluster of two nodes on this machine, for test_engine_ray.py, in a process of its own: Ray's threads are noisy.

    python ray_two_nodes.py FOLDER S3 REDIS

Scores FOLDER/lines to a folder of parts, and kills a node in the middle; scores FOLDER/table.parquet by the command;
tries faulty input, and workers that differ; scores what lies at the URL S3 and writes there; scores twice with the cache at the URL REDIS.
Writes what came out to FOLDER/found.json.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
import redis
from ray.cluster_utils import Cluster

from spicegraph_parser.errors import DataError, InputError
from spicegraph_scale.engine import score_on_ray, summarize_on_ray
from spicegraph_scorer.metrics.bleu import Bleu
from spicegraph_service.cli import main as command_line
from spicegraph_service.engines import Task

if TYPE_CHECKING:
    from spicegraph_scorer.core.facts import Progress

METRICS = ("spice", "spice-exact", "bleu", "rouge", "cider", "cider-plain", "spider", "bleu-sentence")
# That a node is gone is noticed after 5 s; less would take a busy machine's nodes for dead.
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
}
SMALL = {"num_cpus": 1, "object_store_memory": 100 << 20}


def main(folder: Path, bucket: str, cache: str) -> None:
    cluster = Cluster(
        initialize_head=True, head_node_args={**SMALL, "include_dashboard": False, "_system_config": QUICK_TO_NOTICE}
    )
    second = cluster.add_node(**SMALL)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    nodes = [len(alive())]
    killed_after: list[int] = []

    def kill_once(what: str, done: int, _total: int) -> None:
        if what == "scoring items" and not killed_after:
            cluster.remove_node(second, allow_graceful=False)
            killed_after.append(done)

    found = {
        "metrics": METRICS,
        "lines": in_parts(folder, kill_once),
        "killed_after": killed_after,
        "table": by_command(folder / "table.parquet"),
        "refused": {name: refused(folder / name) for name in ("faulty.jsonl", "latin.jsonl", "twice", "empty")},
        "told": told_by_a_worker(folder / "table.parquet"),
        "bucket": in_bucket(bucket),
        "cached": cached(folder / "lines", cache),
        "nodes": [*nodes, len(alive())],
    }
    (folder / "found.json").write_text(json.dumps(found))
    ray.shutdown()
    cluster.shutdown()


def alive() -> list[object]:
    return [node for node in ray.nodes() if node["Alive"]]


def in_parts(folder: Path, progress: Progress | None) -> object:
    task = Task(str(folder / "lines"), tuple(METRICS), workers=2, progress=progress)
    return summarize_on_ray(task, f"{folder}/parts/").to_dict()


def by_command(source: Path) -> object:
    output = source.with_suffix(".json")
    options = ("--engine", "ray", "--metrics", ",".join(METRICS), "-o", str(output))
    code = command_line(["score", str(source), *options])
    return json.loads(output.read_bytes()) if code == 0 else code


def refused(source: Path) -> str:
    try:
        summarize_on_ray(Task(str(source), ("bleu",)))
    except InputError as error:
        return str(error)
    return "nothing was wrong"


def told_by_a_worker(source: Path) -> str:
    """Score with workers whose tokenizer is not that of this machine."""
    with patch.object(Bleu, "signature", lambda _: {"tokenizer": "another"}):
        try:
            summarize_on_ray(Task(str(source), ("bleu",)))
        except DataError as error:
            return str(error)
    return "nothing was wrong"


def in_bucket(bucket: str) -> list[int]:
    """Score JSON Lines and Parquet of a bucket, to an object and to a folder in it."""
    options = ("--engine", "ray", "--metrics", "spice,cider", "--format", "parquet", "-o")
    return [
        command_line(["score", f"{bucket}/lines", *options, f"{bucket}/out/scores.parquet"]),
        command_line(["score", f"{bucket}/table.parquet", *options, f"{bucket}/parts/"]),
    ]


def cached(source: Path, cache: str) -> object:
    """Score twice; return both corpora, and how many parses were put into the cache after each time."""
    corpora, puts = [], []
    with closing(redis.Redis.from_url(cache)) as client:
        for _ in range(2):
            result = score_on_ray(Task(str(source), ("spice",), cache=cache))
            corpora.append(result.corpus)
            puts.append(client.info("commandstats")["cmdstat_set"]["calls"])
    return {"corpora": corpora, "puts": puts}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
