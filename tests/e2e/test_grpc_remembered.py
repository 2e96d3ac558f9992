"""What the server remembers of its store, and of calls that were refused before."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from spicegraph_service.pool.cache import RefreshAheadCache
from spicegraph_service.rpc.interceptor import earlier_tries
from spicegraph_service.rpc.limits import Budget, FullError
from spicegraph_service.store import StoreError


class Source:
    """A store whose answers can be held back."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {"a": "one"}
        self.asked: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.open.set()
        self.broken = False

    async def find(self, key: str) -> str | None:
        self.asked[key] += 1
        await self.open.wait()
        if self.broken:
            raise StoreError("gone")
        return self.values.get(key)


def test_an_answer_is_renewed_beside_the_calls() -> None:
    async def play() -> None:
        source = Source()
        clock = [100.0]
        memory = RefreshAheadCache(source.find, seconds=4.0, most=10, clock=lambda: clock[0])
        assert await memory.get("a") == "one"
        clock[0] += 1.9
        assert await memory.get("a") == "one"
        assert source.asked["a"] == 1
        source.values["a"] = "two"
        source.open.clear()  # the store is slow
        clock[0] += 1
        assert await asyncio.wait_for(memory.get("a"), 1) == "one"
        source.open.set()
        await asyncio.sleep(0.01)
        assert await memory.get("a") == "two"
        assert source.asked["a"] == 2

    asyncio.run(play())


def test_an_old_answer_is_not_given() -> None:
    async def play() -> None:
        source = Source()
        clock = [100.0]
        memory = RefreshAheadCache(source.find, seconds=4.0, most=10, clock=lambda: clock[0])
        await memory.get("a")
        clock[0] += 3
        source.broken = True
        assert await memory.get("a") == "one"  # not old yet, and the question beside it fails
        await asyncio.sleep(0.01)
        clock[0] += 1
        with pytest.raises(StoreError):
            await memory.get("a")
        source.broken = False
        del source.values["a"]
        assert await memory.get("a") is None
        assert memory.peek("a") is None

    asyncio.run(play())


def test_many_who_ask_share_one_question() -> None:
    async def play() -> None:
        source = Source()
        source.open.clear()
        memory = RefreshAheadCache(source.find, seconds=4.0, most=10)
        waiting = [asyncio.create_task(memory.get("a")) for _ in range(20)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()  # the others still get the answer
        source.open.set()
        assert await asyncio.gather(*waiting[1:]) == ["one"] * 19
        assert source.asked["a"] == 1

    asyncio.run(play())


def test_what_was_forgotten_meanwhile_is_asked_again() -> None:
    async def play() -> None:
        source = Source()
        source.open.clear()
        memory = RefreshAheadCache(source.find, seconds=4.0, most=2)
        waiting = asyncio.create_task(memory.get("a"))
        await asyncio.sleep(0.01)
        memory.forget("a")
        source.open.set()
        assert await waiting == "one"
        assert memory.peek("a") is None
        source.values |= {"b": "1", "c": "2"}
        for key in "abc":
            await memory.get(key)
        assert [memory.peek(key) for key in "abc"] == [None, "1", "2"]

    asyncio.run(play())


def test_a_call_that_was_refused_may_wait_longer_than_new_ones() -> None:
    budget = Budget(100_000, max_wait_s=0.1)  # of 6,000 captions a second, as long as nothing was measured
    budget.take(550)
    budget.take(100)
    with pytest.raises(FullError):
        budget.check(1)
    budget.take(1, refusals=1)
    budget.take(600, refusals=1)
    with pytest.raises(FullError):
        budget.check(1, refusals=1)
    assert budget.used == 1251


@pytest.mark.parametrize(
    ("value", "refusals"),
    [(None, 0), ("1", 1), (b"3", 3), ("9", 4), ("", 0), ("-1", 0), ("1000000", 0), ("x", 0), ("²", 0)],
)
def test_the_count_of_refusals_is_bounded(value: str | bytes | None, refusals: int) -> None:
    metadata: dict[str, str | bytes] = {} if value is None else {"grpc-previous-rpc-attempts": value}
    assert earlier_tries(metadata) == refusals


def test_few_captions_alone_do_not_tell_the_rate() -> None:
    """One call after another is no measure of what many together would take."""
    now = [0.0]
    budget = Budget(100_000, max_wait_s=0.1, clock=lambda: now[0])
    for _ in range(1000):
        budget.take(6)
        now[0] += 0.003
        budget.release(6)
    budget.take(600)  # as many as at first
    budget.check(6)
    budget.take(18)
    with pytest.raises(FullError):
        budget.check(6)
