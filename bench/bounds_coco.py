"""Minutes and memory of ``spicegraph bounds`` on all of COCO val2014: 40,504 images, 202,654 captions.

The captions come out of the installed pycocoevalcap wheel (its SPICE jar carries COCO's 2014 annotations). The peak
memory is that of the command and its processes together (shared pages counted once).

Usage: python bench/bounds_coco.py [--images N] [--workers N] [--metrics NAMES] [--lower NAMES] [--per-image N]
    [--cache PATH]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from spicegraph_scorer.metrics import METRICS

JAR = "pycocoevalcap/spice/spice-1.0.jar"
ANNOTATIONS = "coco/annotations/captions_val2014.json"
MEGABYTE = 1024  # of the kilobytes that the kernel counts in
ALL_BUT_METEOR = ",".join(name for name in METRICS if not name.startswith("meteor"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, help="only the first N images")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--metrics", default=ALL_BUT_METEOR)
    parser.add_argument("--lower", default="none")
    parser.add_argument("--per-image", type=int, default=1)
    parser.add_argument("--cache", default="none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        references, result = Path(folder, "captions.json"), Path(folder, "bounds.json")
        write_annotations(references, options.images)
        command = [sys.executable, "-m", "spicegraph_service", "bounds", "--references", str(references)]
        command += ["--metrics", options.metrics, "--lower", options.lower, "--per-image", str(options.per_image)]
        command += ["--workers", str(options.workers), "--cache", options.cache]
        command += ["-o", str(result), "--format", "json"]
        seconds, peak, status = run(command)
        if status:
            return status
        found = json.loads(result.read_text())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{found['images']} images, {found['captions']} captions, {found['rounds']} rounds, {options.workers} workers"
    )
    print(f"{seconds / 60:.1f} minutes, {(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes, {peak:.0f} MB at most")
    for trial in found["trials"]:
        for name, score in trial["scores"].items():
            share = (
                ""
                if score["share"] is None or score["share"]["percent"] is None
                else f"{score['share']['percent']:.1f} %"
            )
            print(
                f"{trial['name']:20} {name:22} {score['value']:.4f} [{score['low']:.4f}, {score['high']:.4f}] {share}"
            )
    return 0


def write_annotations(path: Path, images: int | None) -> None:
    with zipfile.ZipFile(str(distribution("pycocoevalcap").locate_file(JAR))) as jar:
        content = json.loads(jar.read(ANNOTATIONS))
    wanted = set(sorted({a["image_id"] for a in content["annotations"]})[:images])
    annotations = sorted((a for a in content["annotations"] if a["image_id"] in wanted), key=annotation_id)
    path.write_text(json.dumps({"annotations": annotations}))


def annotation_id(annotation: dict[str, int]) -> int:
    return annotation["id"]


def run(command: list[str]) -> tuple[float, float, int]:
    """Return the seconds that a command takes, the megabytes it needs at most, and its exit status."""
    start, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, sum(map(memory, family(process.pid))))
        time.sleep(0.5)
    return time.perf_counter() - start, peak, process.returncode


def family(parent: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found = [parent]
    for process in found:
        found += parents.get(process, [])
    return found


def memory(process: int) -> float:
    """Return a process's share of memory in megabytes."""
    try:
        lines = Path("/proc", str(process), "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / MEGABYTE for line in lines if line.startswith("Pss:")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
