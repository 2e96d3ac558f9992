"""How fast rewards are: candidates against stored reference sets, in the library and over gRPC, in one run.

Candidates are new to the server, eight of each image as in a training loop: captions of COCO systems with one word
exchanged, and descriptions of 150 words made of the references of twelve images. Batches are of 16 to 4,096, callers
one to eight; server and callers share the machine, so that on a loaded one only candidates per second of the server's
CPU time can be compared: that of its process and all of its workers, without the callers. Each worker merges an
image's references at its first candidate, as the library does: the shorter a run, the more of that is in it.
Usage: python bench/rewards.py [--seconds N] [--reward TERMS] [--quick]
"""

from __future__ import annotations

import argparse
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from load.captions import REFERENCES, Candidate, new_candidates
from load.server import server
from spicegraph_graded import RewardClient, RewardModel
from spicegraph_parser import load_pipeline
from spicegraph_service.client import item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIZES = (16, 64, 512, 4096)
CALLERS = (1, 4, 8)
LONG_IMAGES = 12
SAMPLES = 8
_CALLS = 2  # of a caller, at least


class Row(NamedTuple):
    """How many candidates, how many a second, and milliseconds of a call."""

    candidates: int
    rate: float
    median: float
    slow: float


def long_candidates() -> Iterator[Candidate]:
    """Return descriptions of about 150 words: a sentence of each of twelve images, the first of which is named."""
    chance = random.Random(1)
    while True:
        images = chance.sample(range(len(REFERENCES)), LONG_IMAGES)
        sentences = [chance.choice(REFERENCES[image]).strip().rstrip(".") for image in images]
        yield Candidate(images[0], ". ".join(sentences) + ".")


def samples(source: Iterator[Candidate]) -> Iterator[Candidate]:
    """Return eight candidates of each image: one, and others with a word of it exchanged for one of the next one's."""
    chance = random.Random(2)
    for one, other in zip(source, source, strict=False):
        yield one
        words = other.text.split()
        for _ in range(SAMPLES - 1):
            parts = one.text.split()
            parts[chance.randrange(len(parts))] = chance.choice(words)
            yield Candidate(one.image, " ".join(parts))


def timed(calls: Sequence[float], candidates: int, seconds: float) -> Row:
    ordered = sorted(calls)
    return Row(
        candidates, candidates / seconds, 1000 * ordered[len(ordered) // 2], 1000 * ordered[int(0.99 * len(ordered))]
    )


def batches(source: Iterator[Candidate], size: int) -> Iterator[list[Candidate]]:
    while True:
        yield list(islice(source, size))


def library(model: RewardModel, source: Iterator[Candidate], size: int, seconds: float) -> Row:
    calls, done = [], 0
    for batch in batches(source, size):
        began = time.process_time()
        model.rewards([one.image for one in batch], [one.text for one in batch])
        calls.append(time.process_time() - began)
        done += size
        if sum(calls) > seconds:
            return timed(calls, done, sum(calls))
    raise AssertionError


def parse_share(model: RewardModel, source: Iterator[Candidate]) -> float:
    """Return the share of a reward's CPU time that parsing takes."""
    batch = list(islice(source, 256))
    pipeline = load_pipeline()
    began = time.process_time()
    list(pipeline.facts([one.text for one in batch]))
    parsed = time.process_time()
    model.rewards([one.image for one in batch], [one.text for one in batch])
    return (parsed - began) / (time.process_time() - parsed)


def served(
    address: str, reward: str, stored: str, source: Iterator[Candidate], *, size: int, callers: int, seconds: float
) -> Row:
    """Return what callers get that make one call after another until the time is over, each two calls at least."""
    numbers, turn = count(), Lock()
    end = time.perf_counter() + seconds

    def call(_: int) -> list[float]:
        times: list[float] = []
        with RewardClient(address) as client:
            while len(times) < _CALLS or time.perf_counter() < end:
                with turn:
                    batch = list(islice(source, size))
                items = [item(next(numbers), one.text, reference_id=one.image) for one in batch]
                began = time.perf_counter()
                client.reward(items, reward, reference_set=stored)
                times.append(time.perf_counter() - began)
        return times

    began = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        times = [one for found in pool.map(call, range(callers)) for one in found]
    return timed(times, len(times) * size, time.perf_counter() - began)


def line(size: int, who: object, row: Row, of_cpu: float) -> str:
    return f"{size:>6} {who:>8} {row.rate:>11,.0f} {row.median:>8.1f} {row.slow:>8.1f} {of_cpu:>11,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="per line")
    parser.add_argument("--reward", default="spice-g=1,length=-.01")
    parser.add_argument("--quick", action="store_true", help="batches of 64, one and four callers")
    options = parser.parse_args()
    sizes, numbers = ((64,), (1, 4)) if options.quick else (SIZES, CALLERS)
    model = RewardModel(options.reward, dict(enumerate(REFERENCES)))
    print(f"reward {options.reward}; {len(REFERENCES)} images with stored references")
    for name, make in (("short", new_candidates), ("150 words", long_candidates)):
        source = samples(make())
        model.rewards([one.image for one in islice(source, 64)], ["a dog"] * 64)
        print(f"\n{name}: parsing is {parse_share(model, source):.0%} of the library's CPU time")
        print(f"{'batch':>6} {'callers':>8} {'captions/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'a CPU s':>11}")
        for size in sizes:
            row = library(model, source, size, options.seconds)
            print(line(size, "library", row, row.rate), "  (times are of CPU)")
        with server("--workers=2", "--max-wait=600") as running, RewardClient(running.address) as client:
            stored = running.with_references()
            warm = [item(n, one.text, reference_id=one.image) for n, one in enumerate(islice(source, 64))]
            client.reward(warm, options.reward, reference_set=stored)
            for size in sizes:
                for callers in numbers:
                    cpu = sum(running.cpu_seconds())
                    ask = (running.address, options.reward, stored, source)
                    row = served(*ask, size=size, callers=callers, seconds=options.seconds)
                    used = sum(running.cpu_seconds()) - cpu
                    print(line(size, callers, row, row.candidates / used), flush=True)


if __name__ == "__main__":
    main()
