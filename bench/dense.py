"""How long does ``spicegraph dense`` take for as many videos as ActivityNet Captions has for validation?

Makes 4,917 videos with two files of references, 3.6 parts each, and a system's captions for as many parts, of which six
of ten lie about where a reference does; the sentences are COCO's of val2014, from the ``pycocoevalcap`` wheel. Runs the
command with its usual metrics and SODA, and prints its time and processor time.

    python bench/dense.py [VIDEOS] [OPTION...]
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from val2014 import captions_by_image

PARTS = (2, 3, 3, 4, 4, 6)


def main(videos: int, options: list[str]) -> None:
    random.seed(12345)
    captions = [caption for of_image in captions_by_image().values() for caption in of_image]
    files: list[dict[str, object]] = [{}, {}]
    results: dict[str, object] = {}
    for number in range(videos):
        parts = []
        for file in files:
            parts = [sorted(round(random.uniform(0, 120), 2) for _ in range(2)) for _ in range(random.choice(PARTS))]
            file[f"v_{number}"] = {
                "duration": 120,
                "timestamps": parts,
                "sentences": random.choices(captions, k=len(parts)),
            }
        near = [[max(0, start - random.random()), end + random.random()] for start, end in parts]
        found = [part if random.random() < 0.6 else sorted(random.uniform(0, 120) for _ in part) for part in near]
        results[f"v_{number}"] = [{"sentence": random.choice(captions), "timestamp": part} for part in found]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("results.json", "val_1.json", "val_2.json")]
        for path, content in zip(paths, ({"version": "1", "results": results}, *files), strict=True):
            path.write_text(json.dumps(content), "utf-8")
        read = (f"--references={path}" for path in paths[1:])
        command = [sys.executable, "-m", "spicegraph_service", "dense", str(paths[0]), *read, *options]
        start = time.perf_counter()
        subprocess.run([*command, "-o", f"{folder}/dense.json"], check=True)
        took = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{videos} videos, {' '.join(options)}: {took:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processors")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4917, sys.argv[2:] or ["--workers", "2"])
