"""How the gRPC server does under load, on this machine: every figure in one run, ratios where there is a peer.

Server and load share the machine's cores over the loopback. Captions are the golden parses'; each is sent once
where it must be new to the server. Usage: python bench/service_load.py [--seconds N] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from spicegraph_parser import load_pipeline
from spicegraph_scorer.items import Corpus, Item
from spicegraph_scorer.spice.metric import Spice
from spicegraph_service.client import AsyncClient, Client, item

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from spicegraph_parser.rules import Fact

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "spice"
BATCH = 64
OVERLOAD_BATCH = 16


def read(name: str) -> list[dict]:
    with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CAPTIONS = list(dict.fromkeys(row["text"] for row in read("spice_parses.jsonl.gz")))
REFERENCES = [tuple(row["references"]) for row in read("spice_scores.jsonl.gz")]


def fresh() -> Iterator[str]:
    """Captions that differ from all before: each round of the list is written a little differently."""
    for turn in itertools.count():
        for text in CAPTIONS:
            yield text + " ." * turn


class Running:
    """A server process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def address(self) -> str:
        """Where it listens."""
        for line in self.log.read_text().splitlines():
            _, found, rest = line.partition("listening on port ")
            if found:
                return f"127.0.0.1:{rest.partition(';')[0]}"
        raise LookupError("no port")

    @property
    def serving(self) -> bool:
        """Whether its workers are ready."""
        return "serving: pipeline" in self.log.read_text()

    def memory_mb(self) -> float:
        """Resident memory of the server and its workers."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        total = 0.0
        for pid in (str(self.process.pid), *pids):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
        return total


@contextmanager
def server(*options: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "spicegraph_service", "serve", "--address=127.0.0.1:0", "--workers=1"]
        command += [f"--store={folder}/server.db", "--log-format=text", *options]
        with log.open("wb") as stream, subprocess.Popen(command, stderr=stream) as process:
            running = Running(process, log)
            while not running.serving:
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.01)
            try:
                yield running
            finally:
                process.terminate()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def store_references(address: str) -> str:
    with Client(address) as client:
        return client.create_reference_set({str(n): captions for n, captions in enumerate(REFERENCES)}).id


def items_of(texts: list[str], start: int) -> list:
    return [item(n, text, reference_id=(start + n) % len(REFERENCES)) for n, text in enumerate(texts)]


# --- cold start -------------------------------------------------------------------------------------------------


def cold_start() -> None:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with server():
            times.append(time.perf_counter() - began)
    print(f"cold start to SERVING: {statistics.median(times):.2f} s (target < 3)")


# --- throughput against the library -----------------------------------------------------------------------------


class Ready:
    """The library's source of facts with the references parsed already, as the server has them."""

    def __init__(self) -> None:
        self.pipeline = load_pipeline()
        texts = list(dict.fromkeys(text for captions in REFERENCES for text in captions))
        self.known: dict[str, tuple[Fact, ...]] = dict(zip(texts, self.pipeline.facts(texts), strict=True))

    @property
    def signature(self) -> str:
        """The pipeline's."""
        return self.pipeline.signature

    def facts(self, texts: list[str]) -> Iterator[tuple[Fact, ...]]:
        """Parse what is not known."""
        new = [text for text in texts if text not in self.known]
        found = dict(zip(new, self.pipeline.facts(new), strict=True))
        return (self.known.get(text) or found[text] for text in texts)


def library_rate(metric: Spice, texts: list[str]) -> float:
    began = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        items = [Item(n, t, REFERENCES[(start + n) % len(REFERENCES)]) for n, t in enumerate(batch)]
        metric.total(metric.collect(Corpus(tuple(items))))
    return len(texts) / (time.perf_counter() - began)


async def server_rate(address: str, set_id: str, texts: list[str], *, clients: int) -> float:
    starts = iter(range(0, len(texts), BATCH))

    async def work(client: AsyncClient) -> None:
        for start in starts:
            await client.score(items_of(texts[start : start + BATCH], start), reference_set=set_id)

    async with AsyncClient(address) as client:
        began = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(clients)))
        return len(texts) / (time.perf_counter() - began)


def throughput() -> None:
    metric = Spice(Ready())
    supply = fresh()
    count = 20 * BATCH
    library_rate(metric, list(itertools.islice(supply, count)))
    ratios: dict[int, list[float]] = {1: [], 2: []}
    with server() as running:
        set_id = store_references(running.address)
        asyncio.run(server_rate(running.address, set_id, list(itertools.islice(supply, count)), clients=1))
        for _ in range(5):
            library = library_rate(metric, list(itertools.islice(supply, count)))
            for clients, found in ratios.items():
                texts = list(itertools.islice(supply, count))
                rate = asyncio.run(server_rate(running.address, set_id, texts, clients=clients))
                found.append(rate / library)
                print(f"  library {library:.0f} items/s, server {rate:.0f} items/s ({clients} clients)")
    for clients, found in ratios.items():
        print(
            f"throughput against the library, {clients} calls at a time: {statistics.median(found):.2f} (target >= 0.8)"
        )


# --- coalescing -------------------------------------------------------------------------------------------------


async def single_rate(address: str, set_id: str, texts: Iterator[str], *, clients: int, seconds: float) -> float:
    done = 0
    end = time.perf_counter() + seconds

    async def work(client: AsyncClient) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await client.score(items_of([next(texts)], done), reference_set=set_id)
            done += 1

    async with AsyncClient(address) as client:
        began = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(clients)))
        return done / (time.perf_counter() - began)


def coalescing(seconds: float) -> None:
    supply = fresh()
    with server("--window-ms=0") as alone, server() as shared:
        alone_set, shared_set = store_references(alone.address), store_references(shared.address)
        ratios: dict[int, list[float]] = {64: [], 256: []}
        for _ in range(3):
            one = asyncio.run(single_rate(alone.address, alone_set, supply, clients=1, seconds=seconds))
            for clients, found in ratios.items():
                many = asyncio.run(single_rate(shared.address, shared_set, supply, clients=clients, seconds=seconds))
                found.append(many / one)
                print(f"  one after another {one:.0f} captions/s, {clients} at a time {many:.0f} captions/s")
    for clients, found in ratios.items():
        print(
            f"coalescing, {clients} calls at a time: {statistics.median(found):.1f} times one client's "
            "throughput (target >= 4)"
        )


# --- latency ----------------------------------------------------------------------------------------------------


def latency() -> None:
    with server() as running, Client(running.address) as client:
        items = [item("1", CAPTIONS[0], REFERENCES[0])]
        for _ in range(200):
            client.score(items)
        times = []
        for _ in range(2000):
            began = time.perf_counter()
            client.score(items)
            times.append(1000 * (time.perf_counter() - began))
            time.sleep(0.001)
    print(
        f"latency of a cached item: p50 {percentile(times, 0.5):.2f} ms (target <= 3), "
        f"p99 {percentile(times, 0.99):.2f} ms (target <= 15)"
    )


# --- overload ---------------------------------------------------------------------------------------------------


async def offer(
    call: Callable[[], Awaitable[object]], rate: float, seconds: float
) -> tuple[list[float], list[float], dict[str, int]]:
    """Make calls at a rate, whatever becomes of them; return seconds of accepted and refused ones."""
    accepted: list[float] = []
    refused: list[float] = []
    others: dict[str, int] = {}

    async def one() -> None:
        began = time.perf_counter()
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                refused.append(time.perf_counter() - began)
            else:
                name = error.code().name
                others[name] = others.get(name, 0) + 1
        else:
            accepted.append(time.perf_counter() - began)

    tasks = set()
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        delay = began + number / rate - time.perf_counter()
        if delay > 0:
            await asyncio.sleep(delay)
        task = asyncio.create_task(one())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return accepted, refused, others


async def overloaded(running: Running, seconds: float) -> None:
    set_id = await asyncio.to_thread(store_references, running.address)
    supply = fresh()
    async with AsyncClient(running.address) as client:

        async def call() -> object:
            texts = list(itertools.islice(supply, OVERLOAD_BATCH))
            return await client.score(items_of(texts, 0), reference_set=set_id)

        end = time.perf_counter() + 5
        done = 0

        async def closed() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await call()
                done += 1

        await asyncio.gather(closed(), closed(), closed())
        capacity = done / 5
        normal, *_ = await offer(call, 0.7 * capacity, 10)
        await offer(call, 3 * capacity, 10)  # warm-up of memory: the queue fills for the first time
        before = running.memory_mb()
        accepted, refused, others = await offer(call, 3 * capacity, seconds)
        after = running.memory_mb()
    print(f"  capacity {capacity:.0f} calls/s of {OVERLOAD_BATCH} items; offered {3 * capacity:.0f} calls/s")
    print(f"  accepted {len(accepted)}, refused {len(refused)}, others {others}")
    print(f"  memory {before:.0f} MB -> {after:.0f} MB")
    print(f"  refused: p50 {1000 * percentile(refused, 0.5):.1f} ms, max {1000 * max(refused):.1f} ms")
    print(
        f"overload at 3x for {seconds:.0f} s: p99 of accepted calls {1000 * percentile(accepted, 0.99):.0f} ms, "
        f"{percentile(accepted, 0.99) / percentile(normal, 0.99):.1f} times that at 0.7x (target <= 3); "
        f"p99 of refused {1000 * percentile(refused, 0.99):.1f} ms (target < 50); "
        f"memory {after - before:+.0f} MB"
    )


def overload(seconds: float) -> None:
    with server("--queue=300", "--memory=4") as running:
        asyncio.run(overloaded(running, seconds))
        assert running.process.poll() is None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="length of the overload")
    parts = {
        "cold": cold_start,
        "latency": latency,
        "throughput": throughput,
        "coalescing": lambda: coalescing(6),
        "overload": lambda: overload(arguments.seconds),
    }
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts))
    arguments = parser.parse_args()
    for name in arguments.only:
        parts[name]()


if __name__ == "__main__":
    main()
