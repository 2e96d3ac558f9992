"""What scoring costs, measured: functions that bench/table.py runs in a process of their own each."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import spacy

from spicegraph_parser import load_pipeline
from spicegraph_parser.caption_pipeline import components, pipeline_path
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer import score
from spicegraph_service.engines.local import local_facts
from val2014 import all_items, distinct, items_of, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")

ALL_METRICS = "spice,bleu,rouge,cider"
CAPTIONS_OF_AN_ITEM = 6


def fresh(function: Callable[Parameters, Value], *arguments: Parameters.args, **options: Parameters.kwargs) -> Value:
    """Call a function in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


def seconds_of(clock: Callable[[], float], function: Callable[[], object]) -> float:
    start = clock()
    function()
    return clock() - start


class AgainstPipe(NamedTuple):
    """Captions a second of processor time, best of the rounds, and the median of the rounds' ratios."""

    bare: float
    whole: float
    ratio: float


def spice_against_pipe(images: int, rounds: int) -> AgainstPipe:
    """Compare SPICE from captions to scores with bare ``nlp.pipe``, on the same captions, in turns."""
    items = items_of(images)
    texts = distinct(items)
    assert components.PARSER  # the import registers the components, entry points or not
    nlp = spacy.load(pipeline_path())
    pipeline = replace(load_pipeline(), loose=False)  # as for every metric but SPICE-G
    bare: list[float] = []
    whole: list[float] = []
    with rare_collections():  # as every command does; it helps spaCy as much
        score(items[:50], pipeline=pipeline)
        for _ in range(rounds):
            bare.append(seconds_of(time.process_time, lambda: deque(nlp.pipe(texts), maxlen=0)))
            whole.append(seconds_of(time.process_time, lambda: score(items, pipeline=pipeline, evidence=False)))
    ratio = statistics.median(mine / other for mine, other in zip(bare, whole, strict=True))
    return AgainstPipe(len(texts) / min(bare), len(texts) / min(whole), ratio)


class WithWorkers(NamedTuple):
    """Captions a second of time on the clock, best of the rounds, and the median of the rounds' ratios."""

    one: float
    two: float
    ratio: float


def spice_with_workers(images: int, rounds: int) -> WithWorkers:
    """Compare two worker processes, started already, with this one, in turns."""
    items = items_of(images)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        sources = {n: stack.enter_context(local_facts("en_caption", workers=n, loose=False)) for n in seconds}
        for facts in sources.values():
            score(items_of(400, system=5), pipeline=facts)  # starts every process
        for _ in range(rounds):
            for workers, facts in sources.items():
                seconds[workers].append(
                    seconds_of(time.perf_counter, partial(score, items, pipeline=facts, evidence=False))
                )
    ratio = statistics.median(one / two for one, two in zip(seconds[1], seconds[2], strict=True))
    captions = len(distinct(items))
    return WithWorkers(captions / min(seconds[1]), captions / min(seconds[2]), ratio)


class Command(NamedTuple):
    """One command: seconds on the clock and of processor time, children included, and its peak of memory."""

    wall: float
    cpu: float
    megabytes: float


def command(*arguments: str) -> Command:
    """Run ``spicegraph`` with arguments and measure it."""
    measuring = [sys.executable, str(Path(__file__).with_name("measured.py"))]
    found = subprocess.run(
        [*measuring, sys.executable, "-m", "spicegraph_service", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        sys.exit(f"spicegraph {' '.join(arguments)} ended with status {found.returncode}:\n{found.stderr}")
    return Command(*json.loads(found.stdout))


class Stored(NamedTuple):
    """Commands with a store: its first system, a second one on the same references, and that one again."""

    cold: Command
    second: Command
    warm: Command


def best(runs: Iterable[Command]) -> Command:
    """Return the least of each figure of several runs of one command."""
    return Command(*map(min, zip(*runs, strict=True)))


def with_stores(images: int, rounds: int) -> Stored:
    """Score two systems with one store, in several rounds with a new store each; the best of each command."""
    return Stored(*map(best, zip(*(with_store(images) for _ in range(rounds)), strict=True)))


def with_store(images: int) -> Stored:
    """Score two systems with one store."""
    with tempfile.TemporaryDirectory() as folder:
        first, second, cache, output = (str(Path(folder) / name) for name in ("1.jsonl", "2.jsonl", "c.db", "o.json"))
        write_lines(items_of(images), first)
        write_lines(items_of(images, system=1), second)
        runs = [
            command("score", source, "--cache", cache, "-o", output, "--format", "json")
            for source in (first, second, second)
        ]
    return Stored(*runs)


def starting() -> Command:
    """Return what a command costs that scores one item: starting, loading."""
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder) / "one.jsonl")
        write_lines(items_of(1), source)
        return command("score", source)


def whole_commands(captions: int | None) -> Command:
    """Score about so many captions, or all of val2014, with SPICE, BLEU, ROUGE-L and CIDEr-D."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = str(Path(folder) / "in.jsonl"), str(Path(folder) / "out.json")
        write_lines(all_items() if captions is None else items_of(captions // CAPTIONS_OF_AN_ITEM), source)
        return command("score", source, "--metrics", ALL_METRICS, "-o", output, "--format", "json")
