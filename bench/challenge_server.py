"""How the evaluation server does: how fast it checks files, and what other calls notice while it scores.

Captions are the golden parses'. Usage: python bench/challenge_server.py [--images N]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_service.client import Client, item

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "spice" / "spice_parses.jsonl.gz"
COCO_VAL_IMAGES = 40_504
METRICS = ["bleu", "rouge", "cider", "spice"]
REFERENCES = 5


def texts() -> list[str]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["text"] for line in lines))


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def challenge(client: ChallengeClient, folder: Path, name: str, images: int, metrics: list[str]) -> None:
    captions = texts()
    rows = [
        {"image_id": n, "caption": captions[(n * REFERENCES + k) % len(captions)]}
        for n in range(images)
        for k in range(REFERENCES)
    ]
    split = pb.ChallengeSplit(name="val", reference_sets=[pb.ChallengeReferenceSet(name="c5")])
    settings = pb.ChallengeSettings(metrics=metrics, splits=[split], daily_limit=0, total_limit=0)
    client.create_challenge(pb.Challenge(name=name, settings=settings))
    client.upload_references(name, "val", "c5", write(folder / "references.json", {"annotations": rows}))


def results(folder: Path, images: int, shift: int) -> Path:
    captions = texts()
    rows = [{"image_id": n, "caption": captions[(n * 7 + shift) % len(captions)]} for n in range(images)]
    return write(folder / "captions_val_bench_results.json", rows)


def checked(client: ChallengeClient, name: str, path: Path) -> float:
    """Seconds from the first byte sent to the end of validation."""
    started = time.perf_counter()
    sent, _ = client.submit(name, path)
    while client.get_submission(sent.id).state == pb.SUBMISSION_STATE_VALIDATING:
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    if not client.get_submission(sent.id).HasField("end_time"):
        client.cancel(sent.id)
    return seconds


def latencies(client: Client, count: int, going: object = None) -> list[float]:
    found = []
    while len(found) < count and (going is None or going()):
        started = time.perf_counter()
        client.score([item("1", "a brown dog", ["a dog that is brown"])])
        found.append(1000 * (time.perf_counter() - started))
        time.sleep(0.01)
    return found


def shown(what: str, found: list[float]) -> None:
    cuts = statistics.quantiles(found, n=100)
    print(f"{what}: p50 {cuts[49]:.1f} ms, p90 {cuts[89]:.1f} ms, p99 {cuts[98]:.1f} ms, n {len(found)}")


def measure(folder: Path, address: str, token: str, images: int) -> None:
    with ChallengeClient(address, token, timeout_s=600) as client, Client(address) as caller:
        challenge(client, folder, "large", COCO_VAL_IMAGES, ["bleu"])
        sound = [checked(client, "large", results(folder, COCO_VAL_IMAGES, shift)) for shift in range(5)]
        faulty = write(
            folder / "captions_val_bad_results.json", [{"image_id": n, "caption": ""} for n in range(COCO_VAL_IMAGES)]
        )
        wrong = [checked(client, "large", faulty) for _ in range(5)]
        for what, seconds in (("sound", sound), ("all faulty", wrong)):
            print(
                f"{COCO_VAL_IMAGES} captions sent and checked, {what}: median {statistics.median(seconds):.2f} s, "
                f"worst {max(seconds):.2f} s of {len(seconds)}"
            )
        challenge(client, folder, "small", images, METRICS)
        latencies(caller, 200)
        shown("a cached item, nothing else", latencies(caller, 500))
        started = time.perf_counter()
        sent, _ = client.submit("small", results(folder, images, 0))
        while client.get_submission(sent.id).state < pb.SUBMISSION_STATE_RUNNING:
            time.sleep(0.02)
        shown(
            "a cached item, while a submission is scored",
            latencies(caller, 5_000, lambda: client.get_submission(sent.id).state == pb.SUBMISSION_STATE_RUNNING),
        )
        print(f"{images} images, references new, with those calls: {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        sent, _ = client.submit("small", results(folder, images, 1))
        list(client.watch(sent.id))
        print(f"{images} images, {', '.join(METRICS)}, references parsed before: {time.perf_counter() - started:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2_000)
    images = parser.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = str(folder / "challenges.db")
        spicegraph = [sys.executable, "-m", "spicegraph_service"]
        made = subprocess.run(
            [*spicegraph, "challenge", "init", "bench", "--challenges", place],
            capture_output=True,
            text=True,
            check=True,
        )
        address = f"unix:{folder}/socket"
        log = (folder / "log").open("wb")
        server = subprocess.Popen(
            [*spicegraph, "serve", "--address", address, "--challenges", place, "--store", str(folder / "store.db")],
            stderr=log,
            env=os.environ,
        )
        try:
            while b"serving" not in (folder / "log").read_bytes():
                time.sleep(0.1)
            measure(folder, address, made.stdout.strip(), images)
        finally:
            server.terminate()
            server.wait()
            log.close()


if __name__ == "__main__":
    main()
