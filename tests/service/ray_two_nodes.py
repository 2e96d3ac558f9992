"""A Ray cluster of two nodes on this machine, for test_engine_ray.py, in a process of its own: Ray's threads are noisy.

    python ray_two_nodes.py FOLDER

Scores FOLDER/lines, and kills a node in the middle; scores FOLDER/table.parquet by the command, and tries
FOLDER/faulty.jsonl and FOLDER/latin.jsonl. Writes what came out to FOLDER/found.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.cluster_utils import Cluster

from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main as command_line
from spicegraph_service.engines.ray import RayOptions, score_on_ray

if TYPE_CHECKING:
    from spicegraph_scorer.metrics import Progress

METRICS = ("spice", "spice-exact", "bleu", "rouge", "cider", "cider-plain", "spider", "meteor-2005")
# That a node is gone is noticed after 5 s; less would take a busy machine's nodes for dead.
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
}
SMALL = {"num_cpus": 1, "object_store_memory": 100 << 20}


def main(folder: Path) -> None:
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**SMALL, "include_dashboard": False, "_system_config": QUICK_TO_NOTICE},
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
        "lines": scored(folder / "lines", kill_once),
        "killed_after": killed_after,
        "table": by_command(folder / "table.parquet"),
        "faulty": refused(folder / "faulty.jsonl"),
        "latin": refused(folder / "latin.jsonl"),
        "nodes": [*nodes, len(alive())],
    }
    (folder / "found.json").write_text(json.dumps(found))
    ray.shutdown()
    cluster.shutdown()


def alive() -> list[object]:
    return [node for node in ray.nodes() if node["Alive"]]


def scored(source: Path, progress: Progress | None) -> object:
    return score_on_ray(str(source), METRICS, RayOptions("en_caption", workers=2, progress=progress)).to_dict()


def by_command(source: Path) -> object:
    output = source.with_suffix(".json")
    options = ("--engine", "ray", "--metrics", ",".join(METRICS), "-o", str(output))
    code = command_line(["score", str(source), *options])
    return json.loads(output.read_bytes()) if code == 0 else code


def refused(source: Path) -> str:
    try:
        scored(source, None)
    except InputError as error:
        return str(error)
    return "nothing was wrong"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
