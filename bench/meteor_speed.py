"""How fast is METEOR without Java? Whole commands against the jar as pycocoevalcap drives it, in turns.

    python bench/meteor_speed.py [--images 5000] [--pairs 3]

Each image of COCO val2014 (from the installed pycocoevalcap) gives its first caption as the candidate and its
other four or five as references. Both sides are started afresh each time, read the same file of tokenized
captions and print the corpus score; their scores must be equal. The index is built before, in a folder of
its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

_CAPTIONS = "coco/annotations/captions_val2014.json"

_OURS = """
import json, sys
from spicegraph_scorer.metrics.meteor import Meteor, coco_texts, load_data, score_texts
items = json.load(open(sys.argv[1], encoding="utf-8"))
texts = [coco_texts(i["candidate"].split(), [r.split() for r in i["references"]]) for i in items]
statistics = score_texts(texts, data=load_data())
print(Meteor().total(statistics)[0].value)
"""

_THEIRS = """
import json, sys
from pycocoevalcap.meteor.meteor import Meteor
items = json.load(open(sys.argv[1], encoding="utf-8"))
references = {n: i["references"] for n, i in enumerate(items)}
candidates = {n: [i["candidate"]] for n, i in enumerate(items)}
print(Meteor().compute_score(references, candidates)[0])
"""

_BUILD = """
from spicegraph_scorer.metrics.meteor import load_data
load_data()
"""

_SIDES = {"spicegraph": _OURS, "pycocoevalcap": _THEIRS}


@dataclass(frozen=True, slots=True)
class Run:
    """One command: seconds on the clock and of processor time, children included; peak memory; output."""

    wall: float
    cpu: float
    megabytes: float
    output: str


def captions(images: int) -> list[dict[str, object]]:
    """Return items of tokenized captions."""
    package = importlib.util.find_spec("pycocoevalcap")
    folders = (package.submodule_search_locations or []) if package else []
    if not folders:
        sys.exit("this benchmark needs pycocoevalcap==1.2")
    with zipfile.ZipFile(Path(folders[0]) / "spice" / "spice-1.0.jar") as jar:
        annotations = json.loads(jar.read(_CAPTIONS))["annotations"]
    texts: dict[int, list[str]] = {}
    for annotation in sorted(annotations, key=lambda entry: entry["id"]):
        tokens = re.findall(r"[\w'-]+", annotation["caption"].lower())
        texts.setdefault(annotation["image_id"], []).append(" ".join(tokens))
    return [{"candidate": first, "references": rest} for first, *rest in list(texts.values())[:images]]


def run(program: str, *arguments: str, cache: Path) -> Run:
    """Run a Python program in a process of its own and measure it."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"a side ended with status {status}; run it by hand:\n{program}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.strip())


def report(name: str, runs: list[Run]) -> None:
    print(
        f"{name:14} wall {statistics.median(r.wall for r in runs):6.2f} s"
        f"  cpu {statistics.median(r.cpu for r in runs):6.2f} s"
        f"  memory {max(r.megabytes for r in runs):5.0f} MB  METEOR {runs[0].output}"
    )


def compare(images: int, pairs: int, folder: Path) -> tuple[list[Run], list[Run]]:
    """Run both sides in turns, after building the index; return our runs and theirs."""
    cache = folder / "cache"
    items = folder / "items.json"
    items.write_text(json.dumps(captions(images)), encoding="utf-8")
    built = run(_BUILD, cache=cache)
    size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) / 1e6
    print(f"index built in {built.wall:.1f} s, {size:.1f} MB on disk, {built.megabytes:.0f} MB of memory")
    runs: dict[str, list[Run]] = {name: [] for name in _SIDES}
    for _ in range(pairs):
        for name, program in _SIDES.items():
            runs[name].append(run(program, str(items), cache=cache))
    ours, theirs = runs.values()
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = dict(zip(_SIDES, compare(options.images, options.pairs, Path(folder)), strict=True))
    for name, results in runs.items():
        report(name, results)
    ours, theirs = (runs[name] for name in _SIDES)
    if abs(float(ours[0].output) - float(theirs[0].output)) > 1e-9:
        sys.exit("the two scores differ")
    for kind in ("wall", "cpu"):
        ratios = [getattr(b, kind) / getattr(a, kind) for a, b in zip(ours, theirs, strict=True)]
        print(f"{kind}: {statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
