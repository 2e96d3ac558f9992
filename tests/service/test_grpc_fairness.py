"""Callers who share the server: one with much work is refused or slowed down, and the others are not."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_service.client import item
from spicegraph_service.server.batching import Dispatcher
from spicegraph_service.server.cache import ParseCache, StoreThread
from spicegraph_service.server.limits import Budget, FullError
from spicegraph_service.server.scheduler import CHUNK_ITEMS, item_chunks
from spicegraph_service.server.tasks import CaptionsWork, GroupReply, ItemWork, Work, WorkReply
from spicegraph_service.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import RunningServer

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
        self.batches.append([group.texts[0] for group in task.groups])  # type: ignore[union-attr]
        return WorkReply(tuple(GroupReply() for _ in task.groups), {})


def batches_of(submissions: list[tuple[str, str, int]]) -> list[list[str]]:
    """Return the batches of groups that wait together: (caller, name, captions) each."""

    async def play() -> list[list[str]]:
        pool, thread = Pool(), StoreThread(open_store("memory"))
        parses = ParseCache(thread, thread, "signature", max_bytes=1 << 20)
        dispatcher = Dispatcher(pool, parses, parsing=frozenset(), batch_captions=256, window_s=0)  # type: ignore[arg-type]
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
        or batches[0]
        == [
            "l0",
            "o",
            "l1",
        ]
    )
    assert not any("h" in batch and batch[0] != "h" for batch in batches)


def test_equal_callers_get_equal_shares() -> None:
    batches = batches_of([("a", f"a{n}", 100) for n in range(6)] + [("b", f"b{n}", 100) for n in range(6)])
    order = [name[0] for batch in batches for name in batch]
    for end in range(1, 12):
        assert abs(order[:end].count("a") - order[:end].count("b")) <= 2


class BusyPool(Pool):
    """One worker, which takes the next batch as soon as it has done one, before the callers have their answers."""

    async def call(self, worker: None, task: Work) -> WorkReply:
        await asyncio.sleep(0.01)
        self.release(worker)
        return await super().call(worker, task)


def test_a_caller_with_chunks_in_stock_gets_no_more_than_one_who_sends_them_one_by_one() -> None:
    """The second is away from the queue whenever a batch is done, until its client has the answer."""

    async def play() -> list[list[str]]:
        pool, thread = BusyPool(), StoreThread(open_store("memory"))
        parses = ParseCache(thread, thread, "signature", max_bytes=1 << 20)
        dispatcher = Dispatcher(pool, parses, parsing=frozenset(), batch_captions=256, window_s=0)  # type: ignore[arg-type]

        async def send(caller: str, first: int, step: int) -> None:
            for number in range(first, 12, step):
                texts = captions(*(f"{caller}{number} {n}" for n in range(64)))
                await dispatcher.submit(texts, caller=caller)

        senders = [asyncio.create_task(send("a", first, 4)) for first in range(4)]
        senders.append(asyncio.create_task(send("b", 0, 1)))
        pool.free.release()
        await asyncio.gather(*senders)
        await dispatcher.close()
        await thread.close()
        return pool.batches

    order = [name[0] for batch in asyncio.run(play()) for name in batch]
    assert order.count("a") == order.count("b") == 12
    assert abs(order[:12].count("a") - order[:12].count("b")) <= 2, order


def captions(*texts: str) -> CaptionsWork:
    return CaptionsWork(texts, graphs=False)


@pytest.mark.parametrize("reserve_is_alive", [True, False])
def test_cached_light_groups_have_a_worker_in_reserve(reserve_is_alive: bool) -> None:
    async def play() -> None:
        pool, reserve, thread = Pool(), Pool(), StoreThread(open_store("memory"))
        reserve.alive = int(reserve_is_alive)
        reserve.free.release()
        parses = ParseCache(thread, thread, "signature", max_bytes=1 << 20)
        parses.put({"known": b"parse", "long " * 2_000: b"parse"})
        dispatcher = Dispatcher(
            pool,  # type: ignore[arg-type]
            parses,
            parsing=frozenset(),
            batch_captions=256,
            window_s=0,
            reserve=reserve,  # type: ignore[arg-type]
        )
        groups = [captions("known"), captions("new"), captions(*["known"] * 9), captions("long " * 2_000)]
        tasks = [asyncio.create_task(dispatcher.submit(group)) for group in groups]
        if reserve_is_alive:
            await asyncio.wait_for(asyncio.shield(tasks[0]), 10)
        assert [task.done() for task in tasks] == [reserve_is_alive, False, False, False]
        for _ in groups:
            pool.free.release()
        await asyncio.gather(*tasks)
        assert reserve.batches == ([["known"]] if reserve_is_alive else [])
        assert len([text for batch in pool.batches for text in batch]) == 4 - reserve_is_alive
        await dispatcher.close()
        await thread.close()

    asyncio.run(play())


def test_light_groups_go_to_any_worker_when_the_one_in_reserve_is_busy() -> None:
    async def play() -> None:
        pool, reserve, thread = Pool(), Pool(), StoreThread(open_store("memory"))
        parses = ParseCache(thread, thread, "signature", max_bytes=1 << 20)
        parses.put({"known": b"parse"})
        dispatcher = Dispatcher(
            pool,  # type: ignore[arg-type]
            parses,
            parsing=frozenset(),
            batch_captions=256,
            window_s=0,
            reserve=reserve,  # type: ignore[arg-type]
        )
        pool.free.release()
        await asyncio.wait_for(dispatcher.submit(captions("known")), 10)
        assert pool.batches == [["known"]]
        await dispatcher.close()
        await thread.close()

    asyncio.run(play())


@pytest.mark.parametrize("length", [10, 1_000, 40_000])
def test_chunks_of_long_captions_are_smaller(length: int) -> None:
    items = [ItemWork(str(n), "a" * length, ("b" * length,)) for n in range(64)]
    sizes = [len(chunk) for chunk in item_chunks(items)]
    assert sum(sizes) == 64
    assert max(sizes) == {10: 64, 1_000: 16, 40_000: 1}[length]


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
