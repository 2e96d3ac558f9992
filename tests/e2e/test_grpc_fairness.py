"""Callers who share the server: one with much work is refused or slowed down, and the others are not."""

from __future__ import annotations

import asyncio
import os
import selectors
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_service.client import item
from spicegraph_service.pool.batching import Dispatcher
from spicegraph_service.pool.cache import Lru, ParseCache, StoreThread
from spicegraph_service.pool.costs import text_cost
from spicegraph_service.pool.tasks import CaptionsWork, GroupReply, ItemWork, StyledText, Work, WorkerInfo, WorkReply
from spicegraph_service.pool.workers import Worker, WorkerPool
from spicegraph_service.rpc.limits import Budget, FullError
from spicegraph_service.rpc.scheduler import CHUNK_ITEMS, item_chunks
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from servers import RunningServer
    from spicegraph_api.v1 import scores_pb2


ALONE = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
"""Options of a client that does not retry, and has a connection of its own."""


def test_one_caller_s_queue_does_not_count_against_another() -> None:
    budget = Budget(100_000, max_wait_s=0.1)  # 6,000 captions a second, as long as nothing was measured
    budget.take(3_000, caller="heavy")  # half a second
    with pytest.raises(FullError):
        budget.check(6, caller="heavy")
    budget.take(6, caller="light")
    budget.take(6, caller="other")
    budget.release(3_000, caller="heavy")
    budget.release(6, caller="light")
    budget.release(6, caller="other")
    assert budget.used == 0


def test_many_light_callers_together_are_refused() -> None:
    """What each waits for is the others' share, not the whole queue of one: of many, that adds up all the same."""
    budget = Budget(100_000, max_wait_s=0.1)
    for number in range(103):
        budget.take(6, caller=str(number))
    with pytest.raises(FullError):
        budget.check(6, caller="one more")


def test_the_limit_of_the_queue_holds_for_all() -> None:
    budget = Budget(100)
    budget.take(90, caller="heavy")
    with pytest.raises(FullError):
        budget.take(11, caller="light")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), max_size=30))
def test_streams_take_turns_and_nothing_is_lost(parts: list[tuple[str, int]]) -> None:
    async def play() -> None:
        budget, done = Budget(60), []

        async def part(caller: str, captions: int) -> None:
            await budget.wait(captions, caller=caller)
            assert budget.used <= 60 or budget.used == captions
            await asyncio.sleep(0)
            done.append(captions)
            budget.release(captions, caller=caller)

        async with asyncio.timeout(10):
            await asyncio.gather(*(part(*one) for one in parts))
        assert sorted(done) == sorted(captions for _, captions in parts)
        assert budget.used == 0

    asyncio.run(play())


def test_a_stream_with_much_work_lets_another_in() -> None:
    async def play() -> None:
        budget = Budget(100_000, max_wait_s=0.1)
        await budget.wait(300, caller="heavy")
        await budget.wait(300, caller="heavy")
        more = [asyncio.create_task(budget.wait(300, caller="heavy")) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.wait_for(budget.wait(300, caller="light"), 1)
        assert not any(task.done() for task in more)
        for task in more:
            task.cancel()
        await asyncio.gather(*more, return_exceptions=True)

    asyncio.run(play())


class Pool:
    """One worker, which does a batch when it is told to."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(0)
        self.batches: list[list[str]] = []
        self.alive = 1

    @property
    def idle(self) -> int:
        return int(not self.free.locked())

    async def acquire(self) -> None:
        await self.free.acquire()

    def release(self, worker: None) -> None:
        self.free.release()

    async def call(self, worker: None, task: Work) -> WorkReply:
        self.batches.append([group.captions[0] for group in task.groups])  # type: ignore[union-attr]
        return WorkReply(tuple(GroupReply() for _ in task.groups), {})


def batches_of(submissions: list[tuple[str, str, int]]) -> list[list[str]]:
    """Return the batches of groups that wait together: (caller, name, captions) each."""

    async def play() -> list[list[str]]:
        pool, thread = Pool(), StoreThread(open_store("memory"))
        parses = ParseCache(thread, thread, "signature", memory=Lru(1 << 20))
        dispatcher = virtual_dispatcher(parses, pool=pool)
        tasks = [
            asyncio.create_task(
                dispatcher.submit(
                    CaptionsWork((name, *(f"{name} {n}" for n in range(captions - 1))), graphs=False), caller=caller
                )
            )
            for caller, name, captions in submissions
        ]
        await asyncio.sleep(0)
        while not all(task.done() for task in tasks):
            pool.free.release()
            await asyncio.sleep(0.005)
        await dispatcher.close()
        await thread.close()
        return pool.batches

    return asyncio.run(play())


def test_a_light_caller_goes_before_the_second_chunk_of_a_heavy_one() -> None:
    heavy = [("heavy", f"h{n}", 200) for n in range(4)]
    batches = batches_of([*heavy, ("light", "l", 1)])
    assert batches[0] == ["h0"]
    assert batches[1][0] == "l"
    assert [name for batch in batches for name in batch if name != "l"] == ["h0", "h1", "h2", "h3"]


def test_small_groups_do_not_wait_for_somebody_else_s_large_one() -> None:
    batches = batches_of([("light", "l0", 2), ("other", "o", 2), ("heavy", "h", 120), ("light", "l1", 2)])
    assert (
        batches == [["l0", "o"], ["h"], ["l1"]]
        or batches == [["l0", "o"], ["h", "l1"]]
        or batches[0] == ["l0", "o", "l1"]
    )
    assert not any("h" in batch and batch[0] != "h" for batch in batches)


def test_equal_callers_get_equal_shares() -> None:
    batches = batches_of([("a", f"a{n}", 100) for n in range(6)] + [("b", f"b{n}", 100) for n in range(6)])
    order = [name[0] for batch in batches for name in batch]
    for end in range(1, 12):
        assert abs(order[:end].count("a") - order[:end].count("b")) <= 2


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop that does not wait: its clock jumps to the next timer."""

    def __init__(self) -> None:
        selector = selectors.DefaultSelector()
        super().__init__(selector)
        self._now = 0.0
        select = selector.select

        def at_once(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            self._now += timeout or 0.0
            return select(0)

        selector.select = at_once  # type: ignore[method-assign]

    def time(self) -> float:
        return self._now


class VirtualPool(Pool):
    """A worker that takes a millisecond of virtual time for each new caption, and then at once the next batch."""

    def __init__(self) -> None:
        super().__init__()
        self.free.release()

    async def call(self, worker: None, task: Work) -> WorkReply:
        await asyncio.sleep(0.001 * sum(len(group.captions) for group in task.groups))  # type: ignore[union-attr, arg-type]
        self.release(worker)
        return await super().call(worker, task)


class NewParses:
    """A cache that has nothing."""

    def missing(self, texts: Sequence[StyledText], *, tenant: str) -> list[StyledText]:
        return list(texts)

    async def get(self, texts: Iterable[str], *, tenant: str, lasting: object) -> dict[str, bytes]:
        return {}

    def put(self, parsed: Mapping[str, bytes], *, tenant: str, lasting: object) -> None:
        pass


class KnownParses(NewParses):
    """A cache that has everything."""

    def missing(self, texts: Sequence[StyledText], *, tenant: str) -> list[StyledText]:
        return []


class Caller(NamedTuple):
    """A client: it sends ``batch`` captions in chunks of 64, ``beside`` such calls at a time, and is away between."""

    name: str
    away_s: float = 0.0
    batch: int = 64
    beside: int = 1
    first_s: float = 0.0


def virtual_dispatcher(parses: object, *, pool: object = None, window_s: float = 0.0) -> Dispatcher:
    return Dispatcher(
        pool or VirtualPool(),  # type: ignore[arg-type]
        parses,  # type: ignore[arg-type]
        parsing={},
        batch_captions=256,
        window_s=window_s,
    )


def order_of(seconds: float, *callers: Caller, parses: type[NewParses] = NewParses) -> list[tuple[str, float, float]]:
    """Return whose chunks were done in a time, when each was sent and when it was answered."""
    found: list[tuple[str, float, float]] = []

    async def play() -> None:
        dispatcher = virtual_dispatcher(parses(), window_s=0.002)
        clock = asyncio.get_running_loop().time

        async def chunk(caller: Caller, texts: Sequence[str]) -> None:
            sent = clock()
            await dispatcher.submit(captions(*texts), caller=caller.name)
            found.append((caller.name, sent, clock()))

        async def send(caller: Caller) -> None:
            await asyncio.sleep(caller.first_s)
            for number in count():
                texts = [f"{caller.name} {number} {n}" for n in range(caller.batch)]
                await asyncio.gather(*(chunk(caller, texts[n : n + 64]) for n in range(0, len(texts), 64)))
                await asyncio.sleep(caller.away_s)

        senders = [asyncio.create_task(send(caller)) for caller in callers for _ in range(caller.beside)]
        await asyncio.sleep(seconds)
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        await dispatcher.close()

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(play())
    return found


def share_of(name: str, order: list[tuple[str, float, float]]) -> float:
    return sum(one == name for one, _, _ in order) / len(order)


@pytest.mark.parametrize("parses", [NewParses, KnownParses])
@settings(max_examples=10, deadline=None)
@given(away_ms=st.integers(1, 63), beside=st.integers(2, 4), first_ms=st.integers(0, 500))
def test_a_caller_of_single_batches_gets_half_beside_a_stream(
    parses: type[NewParses], away_ms: int, beside: int, first_ms: int
) -> None:
    """It is away for less than a chunk of 64 ms takes; the stream always has chunks in stock."""
    batches = Caller("batches", away_s=away_ms / 1000, first_s=first_ms / 1000)
    order = order_of(8, Caller("stream", beside=beside), batches, parses=parses)
    assert share_of("batches", [one for one in order if one[1] > 1]) == pytest.approx(0.5, abs=0.03)


@settings(max_examples=10, deadline=None)
@given(away_ms=st.integers(64, 400))
def test_a_caller_who_is_away_for_longer_gets_most_of_what_it_asks_for(away_ms: int) -> None:
    """Alone it would do a chunk in 64 ms and the time that it is away; half of the worker is the most it may have."""
    order = order_of(10, Caller("stream", beside=2), Caller("batches", away_s=away_ms / 1000))
    fair = min(0.5 / 0.064, 1 / (0.064 + away_ms / 1000))
    done = sum(name == "batches" and sent > 1 for name, sent, _ in order) / 9
    assert done >= 0.65 * fair  # 0.7 where it comes just in the middle of the others' chunks, as after 96 ms
    assert 0.064 * len(order) >= 0.8 * 10  # nearly all of the time the worker worked


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 3)), min_size=2, max_size=5))
def test_shares_of_any_callers_converge(callers: list[tuple[int, int]]) -> None:
    named = [Caller(str(n), away / 1000, beside=beside) for n, (away, beside) in enumerate(callers)]
    order = [one for one in order_of(10, *named) if one[1] > 1]
    for caller in named:
        assert share_of(caller.name, order) >= 0.8 / len(named)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3))
def test_no_chunk_waits_for_more_than_its_turn(callers: int, beside: int) -> None:
    named = [Caller(str(n), beside=beside) for n in range(callers)]
    order = order_of(5, Caller("one", away_s=0.03), *named)
    longest = max(answered - sent for name, sent, answered in order if name == "one")
    assert longest <= 0.064 * (2 * callers + 2)


def test_a_worker_does_not_wait_for_a_caller_who_has_ended() -> None:
    async def play() -> float:
        dispatcher = virtual_dispatcher(NewParses())

        async def send(caller: str, chunks: int) -> None:
            for number in range(chunks):
                await dispatcher.submit(captions(*(f"{caller} {number} {n}" for n in range(64))), caller=caller)

        await asyncio.gather(send("ends", 5), *(send("goes on", 20) for _ in range(2)))
        seconds = asyncio.get_running_loop().time()
        await dispatcher.close()
        return seconds

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        seconds = runner.run(play())
    assert seconds <= 45 * 0.064 + 0.2


def test_light_groups_of_many_callers_still_go_together() -> None:
    order = order_of(2, *(Caller(str(n), away_s=0.001, batch=1) for n in range(64)))
    assert len(order) > 500
    ends = {round(answered, 6) for _, _, answered in order}
    assert len(ends) < len(order) / 16


def captions(*texts: str) -> CaptionsWork:
    return CaptionsWork(texts, graphs=False)


def test_only_a_caller_with_company_waits_for_it() -> None:
    async def play() -> list[float]:
        dispatcher = virtual_dispatcher(NewParses(), window_s=0.01)
        clock, times = asyncio.get_running_loop().time, []
        for calls in (1, 1, 2, 2, 1, 1):
            began = clock()
            await asyncio.gather(*(dispatcher.submit(captions(f"{began} {n}")) for n in range(calls)))
            times.append(round(clock() - began, 4))
        await dispatcher.close()
        return times

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        alone, again, two, two_again, one, one_again = runner.run(play())
    assert (alone, again, one_again) == (0.001, 0.001, 0.001)
    assert (two, two_again, one) == (0.002, 0.012, 0.011)  # the first two happened to come at once


def test_a_worker_is_given_back_where_its_task_cannot_be_sent() -> None:
    async def play() -> None:
        pool = WorkerPool(("", b""), 0)
        process = SimpleNamespace(alive=True, pid=os.getpid(), ask=None)
        with pytest.raises(TypeError):
            await pool.call(Worker(process, WorkerInfo()), object())  # type: ignore[arg-type]
        assert pool.idle == 1

    asyncio.run(play())


@pytest.mark.parametrize("length", [10, 1_000, 40_000])
def test_chunks_of_long_captions_are_smaller(length: int) -> None:
    items = [ItemWork(str(n), "a" * length, ("b" * length,)) for n in range(64)]
    sizes = [len(chunk) for chunk in item_chunks(items)]
    assert sum(sizes) == 64
    assert max(sizes) == {10: 64, 1_000: 16, 40_000: 1}[length]


def test_a_list_without_full_stops_costs_what_it_takes() -> None:
    """Its commas count as words do, and beyond that it takes no longer than sentences of usual length."""
    words = ["dog", "red", "man", "beach"] * 120
    sentences = ". ".join(" ".join(words[start : start + 10]) for start in range(0, len(words), 10))
    assert text_cost("a man on a horse") == text_cost("") == 1
    assert 40 < text_cost(sentences) < text_cost(", ".join(words)) < 2 * text_cost(sentences)
    assert text_cost("a" * 2_000) == 1
    lists = [ItemWork(str(n), ", ".join(words[:300]), ("a dog",)) for n in range(64)]
    assert max(len(chunk) for chunk in item_chunks(lists)) == 1


@given(st.lists(st.integers(1, 500), max_size=150))
def test_chunks_hold_all_items_in_order_and_are_bounded(references: list[int]) -> None:
    items = [ItemWork(str(n), "a", ("b",) * count) for n, count in enumerate(references)]
    chunks = list(item_chunks(items))
    assert [one for chunk in chunks for one in chunk] == items
    for chunk in chunks:
        assert 0 < len(chunk) <= CHUNK_ITEMS
        assert len(chunk) == 1 or sum(1 + len(one.references) for one in chunk) <= 384


def heavy_items(number: int) -> list[scores_pb2.Item]:
    return [item(n, f"a man on a horse {number} {n}", [f"a dog {number} {n} {m}" for m in range(5)]) for n in range(64)]


@pytest.mark.parametrize("kind", ["batches", "stream"])
def test_cached_calls_are_not_refused_beside_a_heavy_caller(
    kind: str, start_server: Callable[..., RunningServer]
) -> None:
    """The heavy caller sends batches one after the other, or one stream of large messages; nobody retries."""
    server = start_server()

    def batches() -> int:
        done = 0
        with grpc.insecure_channel(server.address, ALONE) as channel:
            stub = EvaluationServiceStub(channel)
            while done < 5 * 64:
                done += len(stub.Score(pb.ScoreRequest(items=heavy_items(done)), timeout=60).items)
        return done

    def stream() -> int:
        def requests() -> object:
            for number in range(5):
                items = [item(f"{number} {one.id}", one.candidate, one.references) for one in heavy_items(number)]
                yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=items))

        with grpc.insecure_channel(server.address, ALONE) as channel:
            stub = EvaluationServiceStub(channel)
            return sum(len(reply.items) for reply in stub.ScoreStream(requests(), timeout=90))

    with ThreadPoolExecutor(1) as pool, grpc.insecure_channel(server.address, ALONE) as channel:
        stub = EvaluationServiceStub(channel)
        one = pb.ScoreRequest(items=[item("1", "a dog", ["a brown dog"])])
        stub.Score(one, timeout=30)
        heavy = pool.submit(batches if kind == "batches" else stream)
        served = 0
        while not heavy.done():
            stub.Score(one, timeout=30)  # raises when it is refused
            served += 1
            time.sleep(0.02)
        assert heavy.result() == 5 * 64
    assert served >= 3
