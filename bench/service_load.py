"""How the gRPC server does under load, on this machine: every figure in one run, ratios where there is a peer.

Server and load share the machine's cores over the loopback. Captions are those of COCO systems with one word
exchanged, so that each is new to the server. Usage: python bench/service_load.py [--seconds N] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import random
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
import grpc
import grpc.aio
import uvloop

from load.captions import CANDIDATES, REFERENCES, Candidate, new_candidates
from load.server import Running, server
from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_parser import load_pipeline
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_service.client import Client, item
from spicegraph_service.client.evaluation import SERVICE_CONFIG
from spicegraph_web.codec import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from spicegraph_parser.spice.rules import Fact

BATCH = 64
OVERLOAD_BATCH = 16
OVERLOAD = 3.0
NORMAL = 0.7
SMALL_EVERY_S = 0.05
CACHE_MB = 4  # small, so that it is full before the overload is measured


class Row(NamedTuple):
    """A line of the table: what was measured, the figure, and the target, which it meets or not."""

    what: str
    figure: str
    target: str = ""
    met: bool | None = None


def request(set_id: str, candidates: Iterable[Candidate]) -> bytes:
    """Return a call's bytes, made before the clock runs: the load should cost little."""
    items = [item(n, one.text, reference_id=one.image) for n, one in enumerate(candidates)]
    return pb.ScoreRequest(items=items, reference_set=set_id).SerializeToString()


def score(channel: grpc.aio.Channel) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary("/spicegraph.v1.EvaluationService/Score")


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- cold start and latency -------------------------------------------------------------------------------------


def cold_start() -> Iterator[Row]:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with server():
            times.append(time.perf_counter() - began)
    seconds = statistics.median(times)
    yield Row("cold start to SERVING", f"{seconds:.2f} s", "< 3 s", seconds < 3)


def latency() -> Iterator[Row]:
    with server() as running, Client(running.address) as client:
        items = [item("1", CANDIDATES[0].text, REFERENCES[CANDIDATES[0].image])]
        for _ in range(200):
            client.score(items)
        times = []
        for _ in range(2000):
            began = time.perf_counter()
            client.score(items)
            times.append(1000 * (time.perf_counter() - began))
            time.sleep(0.001)
    for share, most in ((0.5, 3), (0.99, 15)):
        value = percentile(times, share)
        name = f"one cached item, idle server: p{100 * share:.0f}"
        yield Row(name, f"{value:.1f} ms", f"<= {most} ms", value <= most)


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


def library_rate(metric: Spice, batches: Sequence[Sequence[Candidate]]) -> float:
    began = time.perf_counter()
    for batch in batches:
        items = tuple(Item(n, one.text, REFERENCES[one.image]) for n, one in enumerate(batch))
        metric.total(metric.collect(Corpus(items)))
    return sum(map(len, batches)) / (time.perf_counter() - began)


async def server_rate(address: str, requests: Sequence[bytes], *, clients: int) -> float:
    """Return calls a second of clients that make one call after another."""
    waiting = iter(requests)
    async with grpc.aio.insecure_channel(address, [("grpc.service_config", SERVICE_CONFIG)]) as channel:
        call = score(channel)

        async def work() -> None:
            for data in waiting:
                await call(data)

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(clients)))
        return len(requests) / (time.perf_counter() - began)


async def answered_rate(address: str, requests: Sequence[bytes], *, clients: int) -> tuple[float, int]:
    """Return answers a second to callers who come again when they may where they are refused, and the refusals."""
    waiting = iter(requests)
    refused = 0
    async with grpc.aio.insecure_channel(address, [("grpc.enable_retries", 0)]) as channel:
        call = score(channel)

        async def work() -> None:
            nonlocal refused
            for data in waiting:
                while True:
                    try:
                        await call(data)
                        break
                    except grpc.aio.AioRpcError as error:
                        refused += 1
                        pause = dict(error.trailing_metadata() or ()).get("grpc-retry-pushback-ms", "100")
                        await asyncio.sleep(max(0.01, int(pause) / 1000))

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(clients)))
        return len(requests) / (time.perf_counter() - began), refused


def throughput() -> Iterator[Row]:
    metric = Spice(Ready())
    supply = new_candidates()

    def batches() -> list[list[Candidate]]:
        return [list(itertools.islice(supply, BATCH)) for _ in range(20)]

    library_rate(metric, batches())
    ratios: dict[int, list[float]] = {1: [], 2: []}
    with server() as running:
        set_id = running.with_references()
        for turn in range(6):
            library = library_rate(metric, batches())
            for clients, found in ratios.items():
                requests = [request(set_id, batch) for batch in batches()]
                rate = BATCH * uvloop.run(server_rate(running.address, requests, clients=clients))
                if turn:  # the first one warms up
                    found.append(rate / library)
                    print(f"  library {library:.0f} items/s, server {rate:.0f} items/s ({clients} calls at a time)")
    for clients, found in ratios.items():
        ratio = statistics.median(found)
        name = f"Score of {BATCH} new candidates, against the library in process; calls at a time: {clients}"
        yield Row(name, f"{ratio:.2f}", ">= 0.8", ratio >= 0.8)


def small_calls() -> Iterator[Row]:
    """One new item a call, with five new references: against the library with as many at once, and with one."""
    metric = Spice(load_pipeline())
    supply = new_candidates()
    ratios: dict[tuple[int, int], list[float]] = {}  # by callers (0: the library) and items at once

    def fresh(count: int) -> list[Item]:
        texts = iter([one.text for one in itertools.islice(supply, 6 * count)])
        return [Item(n, next(texts), tuple(itertools.islice(texts, 5))) for n in range(count)]

    def library(at_once: int, count: int) -> float:
        items = fresh(count)
        began = time.perf_counter()
        for start in range(0, count, at_once):
            metric.total(metric.collect(Corpus(tuple(items[start : start + at_once]))))
        return count / (time.perf_counter() - began)

    with server() as running:
        for turn in range(4):
            found = {(0, BATCH): library(BATCH, 128), (0, 1): library(1, 40)}
            for clients in (1, 8, 64):
                requests = [
                    pb.ScoreRequest(items=[item(each.id, each.candidate, each.references)]).SerializeToString()
                    for each in fresh(max(40, 4 * clients))
                ]
                before = running.cpu_seconds()
                found[clients, 1], refused = uvloop.run(answered_rate(running.address, requests, clients=clients))
                costs = [b - a for a, b in zip(before, running.cpu_seconds(), strict=True)]
                told = ", ".join(f"{1000 * cost / len(requests):.1f}" for cost in costs)
                print(f"  {clients} callers: processor ms an item: {told} (server, its workers)")
            if turn:  # the first one warms up
                for key, rate in found.items():
                    ratios.setdefault(key, []).append(rate / found[0, BATCH])
                rates = ", ".join(f"{key}: {rate:.0f}" for key, rate in found.items())
                print(f"  items/s by (callers, at once): {rates}; {refused} refused of 64 callers", flush=True)
    alone = statistics.median(ratios[0, 1])
    yield Row(f"the library with one new item at a time, against {BATCH}", f"{alone:.2f}")
    for clients, least in ((1, 0.5), (8, 0.85), (64, 0.85)):
        ratio = statistics.median(ratios[clients, 1])
        name = f"one new item a call, against the library with {BATCH} at once: {clients} callers"
        yield Row(name, f"{ratio:.2f}", f">= {least}", ratio >= least)


# --- JSON over HTTP against gRPC ---------------------------------------------------------------------------------


async def http_rate(url: str, bodies: Sequence[bytes], *, clients: int) -> float:
    """Return calls a second of clients that make one call after another, with JSON."""
    waiting = iter(bodies)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(base_url=url, headers=headers) as session:

        async def work() -> None:
            for data in waiting:
                async with session.post("/spicegraph.v1.EvaluationService/Score", data=data) as response:
                    await response.read()
                    response.raise_for_status()

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(clients)))
        return len(bodies) / (time.perf_counter() - began)


def over_http() -> Iterator[Row]:
    supply = new_candidates()
    ratios: dict[str, list[float]] = {"new": [], "known": []}
    with server("--http=127.0.0.1:0") as running:
        set_id = running.with_references()
        for turn in range(9):
            for kind, found in ratios.items():
                batches = [list(itertools.islice(supply, BATCH)) for _ in range(20)]
                requests = [request(set_id, batch) for batch in batches]
                if kind == "known":
                    uvloop.run(server_rate(running.address, requests, clients=2))
                bodies = [to_json(pb.ScoreRequest.FromString(data)) for data in requests]
                if kind == "new":
                    others = [list(itertools.islice(supply, BATCH)) for _ in range(20)]
                    bodies = [to_json(pb.ScoreRequest.FromString(request(set_id, batch))) for batch in others]
                grpc_rate = uvloop.run(server_rate(running.address, requests, clients=2))
                rate = uvloop.run(http_rate(running.http_url, bodies, clients=2))
                if turn:  # the first one warms up
                    found.append(rate / grpc_rate)
                    print(f"  {kind}: gRPC {BATCH * grpc_rate:.0f} items/s, HTTP {BATCH * rate:.0f} items/s")
    for kind, found in ratios.items():
        ratio = statistics.median(found)
        name = f"JSON over HTTP against gRPC, Score of {BATCH} {kind} candidates"
        yield Row(name, f"{ratio:.2f}", ">= 0.7", ratio >= 0.7)


# --- coalescing -------------------------------------------------------------------------------------------------


def coalescing() -> Iterator[Row]:
    supply = new_candidates()
    ratios: dict[int, list[float]] = {64: [], 256: []}
    with server("--window-ms=0") as alone, server() as shared:
        sets = {running: running.with_references() for running in (alone, shared)}

        def rate(running: Running, clients: int, calls: int) -> float:
            requests = [request(sets[running], [next(supply)]) for _ in range(calls)]
            before = running.cpu_seconds()
            found = uvloop.run(server_rate(running.address, requests, clients=clients))
            costs = [1000 * (b - a) / calls for a, b in zip(before, running.cpu_seconds(), strict=True)]
            costs_told = ", ".join(f"{cost:.2f}" for cost in costs)
            print(f"  {clients} clients: {found:.0f} captions/s; processor ms a call: {costs_told} (server, worker)")
            return found

        rate(alone, 1, 500)
        rate(shared, 64, 4_000)
        for _ in range(5):
            one = rate(alone, 1, 1_000)
            for clients, found in ratios.items():
                found.append(rate(shared, clients, 5_000) / one)
    ratio, more = (statistics.median(found) for found in ratios.values())
    name = "one new caption a call: {} clients, coalesced, against one without"
    yield Row(name.format(64), f"{ratio:.1f} times", ">= 4 times", ratio >= 4)
    yield Row(name.format(256) + " (more than the queue takes: some are refused and try again)", f"{more:.1f} times")


# --- overload ---------------------------------------------------------------------------------------------------


class Offered(NamedTuple):
    """How calls ended: seconds of the accepted and the refused ones, other statuses, memory once a second."""

    accepted: list[float]
    refused: list[float]
    others: Counter[str]
    memory_mb: list[float]


async def offer(running: Running, requests: Iterator[bytes], rate: float, seconds: float) -> Offered:
    """Make calls at random times at a rate (a Poisson process), whatever becomes of them, and none twice."""
    chance = random.Random(0)
    accepted: list[float] = []
    refused: list[float] = []
    others: Counter[str] = Counter()
    memory: list[float] = []
    tasks: set[asyncio.Task[None]] = set()
    async with grpc.aio.insecure_channel(running.address, [("grpc.enable_retries", 0)]) as channel:
        call = score(channel)

        async def one(data: bytes) -> None:
            began = time.perf_counter()
            try:
                await call(data)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                    refused.append(time.perf_counter() - began)
                else:
                    others[error.code().name] += 1
            else:
                accepted.append(time.perf_counter() - began)

        began = due = time.perf_counter()
        while due < began + seconds:
            delay = due - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            task = asyncio.create_task(one(next(requests)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            if due - began >= len(memory):
                memory.append(running.memory_mb())
            due += chance.expovariate(rate)
        await asyncio.gather(*tasks)
    memory.append(running.memory_mb())
    return Offered(accepted, refused, others, memory)


async def overloaded(running: Running, seconds: float) -> Iterator[Row]:
    set_id = await asyncio.to_thread(running.with_references)
    supply = new_candidates()
    requests = (request(set_id, itertools.islice(supply, OVERLOAD_BATCH)) for _ in itertools.count())
    first = list(itertools.islice(requests, 600))  # more captions than the server's memory keeps
    capacity = await server_rate(running.address, first, clients=3)
    warm = await offer(running, requests, OVERLOAD * capacity, 30)  # the heap gets its size
    normal = await offer(running, requests, NORMAL * capacity, 20)
    before, waited = len(running.refusals_ms()), running.waited_seconds()
    found = await offer(running, requests, OVERLOAD * capacity, seconds)
    inside, waited = running.refusals_ms()[before:], running.waited_seconds() - waited
    print(f"  capacity {capacity:.0f} calls/s of {OVERLOAD_BATCH} items; memory {told(warm.memory_mb)} in the warm-up")
    print(f"  at {NORMAL:g} times it: accepted {len(normal.accepted)}, refused {len(normal.refused)}")
    print(f"  accepted {len(found.accepted)}, refused {len(found.refused)}, memory {told(found.memory_mb)}")
    print(f"  in {seconds:g} s the server's thread waited {waited:.1f} s for a processor")
    return rows(normal, found, inside, seconds)


def told(memory: Sequence[float]) -> str:
    """Return the means of the quarters of the time."""
    length = math.ceil(len(memory) / 4)
    means = [statistics.mean(memory[start : start + length]) for start in range(0, len(memory), length)]
    return " > ".join(f"{mean:.1f}" for mean in means) + " MB"


def rows(normal: Offered, found: Offered, inside_ms: Sequence[float], seconds: float) -> Iterator[Row]:
    name = f"{OVERLOAD:g} times the capacity for {seconds:g} s"
    errors = found.others.total() + normal.others.total()
    yield Row(f"{name}: errors but refusals", str(errors), "0", not errors)
    usual, now = (percentile(one.accepted, 0.99) for one in (normal, found))
    figure = f"{1000 * now:.0f} ms against {1000 * usual:.0f} ms: {now / usual:.1f} times"
    yield Row(f"{name}: p99 of accepted calls, against {NORMAL:g} times", figure, "<= 3 times", now <= 3 * usual)
    p99, slowest = 1000 * percentile(found.refused, 0.99), 1000 * max(found.refused)
    figure = f"p99 {p99:.0f} ms, slowest {slowest:.0f} ms"
    yield Row(f"{name}: refusals, at the client", figure, "p99 <= 10 ms", p99 <= 10)
    p99, slowest = percentile(inside_ms, 0.99), max(inside_ms)
    yield Row(f"{name}: refusals, inside", f"p99 {p99:.1f} ms, slowest {slowest:.0f} ms", "p99 <= 10 ms", p99 <= 10)
    third = max(1, len(found.memory_mb) // 3)
    first, last = (statistics.mean(part) for part in (found.memory_mb[:third], found.memory_mb[-third:]))
    figure = f"{first:.0f} to {last:.0f} MB: {last / first - 1:+.1%}"
    yield Row(f"{name}: memory, first to last third", figure, "within 1 %", last <= 1.01 * first)


def overload(seconds: float) -> Iterator[Row]:
    with server(f"--memory={CACHE_MB}", "--log-calls=0") as running:
        yield from uvloop.run(overloaded(running, seconds))
        alive = running.process.poll() is None
    yield Row("server alive after it", "yes" if alive else "no", "yes", alive)


# --- several callers at once ------------------------------------------------------------------------------------


class Shares(NamedTuple):
    """What callers got in a time: items a second of each, and the seconds of every small call."""

    stream: float
    batches: float
    small: list[float]
    refused: int


async def callers(running: Running, set_id: str, supply: Iterator[Candidate], seconds: float, *who: str) -> Shares:
    """Let callers work beside each other, none of which retries, each with a connection of its own.

    ``stream``: one endless stream of messages of 64 candidates; ``batches``: calls with as many, one after the
    other; ``small``: twenty calls a second with one item that the server has seen.
    """
    end = time.perf_counter() + seconds
    done = Counter[str]()
    small: list[float] = []

    def channel(name: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(
            running.address, [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1), ("caller", name)]
        )

    async def stream() -> None:
        numbers = itertools.count()

        async def messages() -> AsyncIterator[bytes]:
            yield pb.ScoreStreamRequest(settings=pb.ScoreStreamSettings(reference_set=set_id)).SerializeToString()
            while time.perf_counter() < end:
                new = itertools.islice(supply, BATCH)
                items = [item(next(numbers), one.text, reference_id=one.image) for one in new]
                yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=items)).SerializeToString()

        async with channel("stream") as own:
            call = own.stream_stream("/spicegraph.v1.EvaluationService/ScoreStream")(messages())
            async for data in call:
                if time.perf_counter() >= end:
                    call.cancel()  # or else what lies in buffers would be done after the time
                    break
                done["stream"] += len(pb.ScoreStreamResponse.FromString(data).items)

    async def batches() -> None:
        async with channel("batches") as own:
            call = score(own)
            while time.perf_counter() < end:
                try:
                    await call(request(set_id, itertools.islice(supply, BATCH)))
                except grpc.aio.AioRpcError:
                    done["refused"] += 1
                    continue
                if time.perf_counter() < end:
                    done["batches"] += BATCH

    async def cached() -> None:
        data = request(set_id, CANDIDATES[:1])
        async with channel("small") as own:
            call = score(own)
            while time.perf_counter() < end:
                began = time.perf_counter()
                try:
                    await call(data)
                except grpc.aio.AioRpcError:
                    done["refused"] += 1
                else:
                    small.append(time.perf_counter() - began)
                await asyncio.sleep(max(0.0, began + SMALL_EVERY_S - time.perf_counter()))

    run = {"stream": stream, "batches": batches, "small": cached}
    await asyncio.gather(*(run[name]() for name in who))
    return Shares(done["stream"] / seconds, done["batches"] / seconds, small, done["refused"])


def mixed(seconds: float) -> Iterator[Row]:
    with server() as running:
        set_id = running.with_references()
        supply = new_candidates()

        def play(*who: str, supply: Iterator[Candidate] = supply) -> Shares:
            return uvloop.run(callers(running, set_id, supply, seconds, *who))

        play("stream", "batches", "small")  # warms up
        idle = play("small")
        alone = play("batches")
        beside = {name: play(name, "small") for name in ("stream", "batches")}
        found = play("stream", "batches", "small")
        after = play("batches")
        known = itertools.cycle(CANDIDATES)
        play("batches", supply=known)  # now they are
        cached = play("stream", "batches", "small", supply=known)
    one = (alone.batches + after.batches) / 2
    usual = percentile(idle.small, 0.5)
    for name, some in {**beside, "both": found}.items():
        p50, p99 = percentile(some.small, 0.5), percentile(some.small, 0.99)
        what = f"cached one-item calls beside {name} of 64 new candidates"
        yield Row(f"{what}: refused", str(some.refused), "0", not some.refused)
        figure = f"{1000 * p50:.1f} ms, idle {1000 * usual:.1f} ms: {p50 / usual:.1f} times"
        yield Row(f"{what}: p50", figure, "<= 5 times", p50 <= 5 * usual)
        yield Row(f"{what}: p99", f"{1000 * p99:.0f} ms", "<= 50 ms", p99 <= 0.05)
    for what, some in (("new", found), ("cached", cached)):
        total = some.stream + some.batches
        for name, rate in (("stream", some.stream), ("batches", some.batches)):
            share = 2 * rate / total
            yield Row(
                f"{name} of {what} candidates, of half of the two's items", f"{share:.2f}", ">= 0.8", share >= 0.8
            )
    total = found.stream + found.batches
    ratio = total / one
    yield Row(f"both together, against batches alone ({one:.0f} items/s)", f"{ratio:.2f}", ">= 0.95", ratio >= 0.95)


def show(table: Sequence[Row]) -> None:
    lines = [("what", "measured", "target", "")]
    lines += [(r.what, r.figure, r.target, {True: "met", False: "MISSED", None: ""}[r.met]) for r in table]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60, help="length of the overload; each mix of callers takes a quarter of it"
    )
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "cold": cold_start,
        "latency": latency,
        "throughput": throughput,
        "small": small_calls,
        "http": over_http,
        "coalescing": coalescing,
        "mixed": lambda: mixed(arguments.seconds / 4),
        "overload": lambda: overload(arguments.seconds),
    }
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts))
    arguments = parser.parse_args()
    table: list[Row] = []
    for name in arguments.only:
        print(f"{name} ...")
        table += parts[name]()
    show(table)


if __name__ == "__main__":
    main()
