"""Queues, rates, memory and addresses: the bounds of the server, without a server."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_parser.runtime import rare_collections
from spicegraph_service import app
from spicegraph_service.config import ServerConfig, host_and_port, is_local
from spicegraph_service.pool.cache import Lru
from spicegraph_service.rpc.limits import Budget, FullError, SharedBucket, TokenBucket


def test_a_server_looks_for_reference_cycles_in_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused calls leave cycles; after 50,000 values, as in other commands, the search holds up calls for long."""
    seen: list[int] = []

    async def run(_config: ServerConfig, _options: object) -> None:
        seen.append(gc.get_threshold()[0])

    monkeypatch.setattr(app, "run", run)
    before = sys.getswitchinterval()
    with rare_collections():
        app.serve(ServerConfig())
    sys.setswitchinterval(before)
    assert seen[0] <= 2_000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_full_budget_refuses_at_once_and_says_when() -> None:
    clock = Clock()
    budget = Budget(100, clock=clock)
    budget.take(60)
    with pytest.raises(FullError) as caught:
        budget.take(41)
    assert 0.05 <= caught.value.retry_after_s <= 30
    budget.take(40)
    budget.release(60)
    budget.take(41)
    assert budget.used == 81


def test_an_empty_budget_takes_any_request() -> None:
    budget = Budget(10)
    budget.take(1000)
    with pytest.raises(FullError):
        budget.take(1)


def test_the_time_to_wait_follows_the_speed() -> None:
    clock = Clock()
    budget = Budget(1000, clock=clock)
    for _ in range(30):
        budget.take(1000)
        clock.now += 10
        budget.release(1000)  # 100 captions a second
    budget.take(1000)
    with pytest.raises(FullError) as caught:
        budget.take(1)
    assert caught.value.retry_after_s == pytest.approx(10, rel=0.2)


def test_a_call_that_would_wait_for_long_is_refused() -> None:
    clock = Clock()
    budget = Budget(100_000, max_wait_s=0.5, clock=clock)
    for _ in range(40):
        budget.take(1000)
        clock.now += 1
        budget.release(1000)  # 1000 captions a second
    budget.take(490)
    budget.take(490)  # 0.49 s of work are before it
    with pytest.raises(FullError) as caught:
        budget.take(1)
    assert caught.value.retry_after_s == pytest.approx(0.98, rel=0.1)
    budget.take(500)  # takes half a second itself, so it can wait for 1.5 s
    budget.release(490 + 490 + 500)
    budget.take(50_000)  # never too large on its own


def test_a_slow_server_takes_as_many_captions_as_go_together() -> None:
    """Were they refused, its batches would be smaller, which makes it slower still, so that it would refuse more."""
    clock = Clock()
    budget = Budget(100_000, max_wait_s=0.1, clock=clock)
    for _ in range(30):
        budget.take(6)
        clock.now += 0.5
        budget.release(6)  # 12 captions a second
    for _ in range(21):
        budget.take(6, caller="many calls")
    with pytest.raises(FullError):
        budget.take(6, caller="many calls")
    with pytest.raises(FullError):
        budget.take(3, caller="many calls")
    budget.take(6, caller="another")


def test_refused_calls_come_again_one_behind_the_other() -> None:
    clock = Clock()
    budget = Budget(100_000, max_wait_s=0.5, clock=clock)
    for _ in range(40):
        budget.take(1000)
        clock.now += 1
        budget.release(1000)  # 1000 captions a second
    for caller in "abcde":
        budget.take(100, caller=caller)

    def told(captions: int = 100, caller: str = "") -> float:
        with pytest.raises(FullError) as caught:
            budget.take(captions, caller=caller)
        return caught.value.retry_after_s

    budget.take(210, caller="a")
    waits = [told(caller="a") for _ in range(3)]
    assert waits == pytest.approx([0.71, 0.81, 0.91], rel=0.05)
    assert told(1, caller="a") == pytest.approx(1.01, rel=0.05)
    assert max(told(caller="a") for _ in range(60)) == pytest.approx(4.0, rel=0.05)  # no call is sent away for long
    clock.now += 5  # they have come, or never will
    assert told(caller="a") == pytest.approx(0.71, rel=0.05)


def test_streams_leave_room_for_calls() -> None:
    async def play() -> None:
        clock = Clock()
        budget = Budget(100_000, max_wait_s=1.0, clock=clock)
        for _ in range(40):
            budget.take(1000)
            clock.now += 1
            budget.release(1000)
        await budget.wait(400)
        await budget.wait(400)
        waiting = asyncio.create_task(budget.wait(400))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.take(10)  # 0.8 s are before it
        budget.release(400)
        await waiting

    asyncio.run(play())


def test_streams_wait_in_turn_and_leave_when_cancelled() -> None:
    async def play() -> list[str]:
        budget, order = Budget(10), []

        async def wait(name: str, captions: int) -> None:
            await budget.wait(captions)
            order.append(name)

        budget.take(10)
        tasks = [asyncio.create_task(wait(name, 5)) for name in ("a", "b", "c")]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        assert order == []
        budget.release(10)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert budget.used == 10
        return order

    assert asyncio.run(play()) == ["a", "c"]


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans())))
def test_a_budget_never_holds_more_than_its_limit_but_one_request(steps: list[tuple[int, bool]]) -> None:
    budget = Budget(60)
    held: list[int] = []
    for captions, give_back in steps:
        if give_back and held:
            budget.release(held.pop())
        else:
            try:
                budget.take(captions)
            except FullError:
                continue
            held.append(captions)
        assert budget.used == sum(held)
        assert budget.used <= 60 or len(held) == 1


def test_a_bucket_refills() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 100, clock=clock)
    bucket.take(100)
    with pytest.raises(FullError) as caught:
        bucket.take(50)
    assert caught.value.retry_after_s == pytest.approx(5)
    clock.now += 5
    bucket.take(50)
    clock.now += 1000
    bucket.take(500)  # larger than the burst: passes when the bucket is full, and is paid back
    clock.now += 30
    with pytest.raises(FullError):
        bucket.take(1)


def test_the_memory_keeps_what_was_used_last() -> None:
    memory = Lru(3 * 500)
    for name in "abc":
        memory.put(("of", name), b"x" * 100)
    assert memory.get(("of", "a")) == b"x" * 100
    memory.put(("of", "d"), b"x" * 100)
    assert [name for name in "abcd" if ("of", name) in memory] == ["a", "c", "d"]
    memory.put(("of", "a"), b"y" * 10_000)
    assert len(memory) == 0  # nothing larger than all of it stays
    memory.put(("of", "b" * 1_500), b"")
    assert len(memory) == 0  # keys are counted, too
    memory.put(("of", "é" * 800), b"")
    assert len(memory) == 0  # by their bytes


def test_the_memory_takes_no_more_than_it_may() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        memory = Lru(1 << 20)
        for number in range(10_000):
            memory.put(("a tenant", f"a caption with the number {number}"), number.to_bytes(100))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(memory) > 1_000
    assert after - before < 1 << 20


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:1", True),
        ("127.1.2.3:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("unix:/run/x", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("example.org:1", False),
    ],
)
def test_local_addresses(address: str, local: bool) -> None:
    assert is_local(address) is local
    assert ServerConfig(address=address).needs_tokens is not local


@pytest.mark.parametrize("address", ["", "x", ":1", "host:", "host:x", "host:70000", "host:-1"])
def test_wrong_addresses(address: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        host_and_port(address)


TLS = {"tls_cert": Path("c"), "tls_key": Path("k")}
MUTUAL = {**TLS, "tls_client_ca": Path("ca")}


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        (ServerConfig(address="0.0.0.0:1"), "without TLS"),
        (ServerConfig(address="0.0.0.0:1", tokens="always"), "without TLS"),
        (ServerConfig(address="0.0.0.0:1", **TLS), None),
        (ServerConfig(address="0.0.0.0:1", **TLS, tokens="never"), "open to everybody"),
        (ServerConfig(address="0.0.0.0:1", **MUTUAL, tokens="never"), None),
        (ServerConfig(address="0.0.0.0:1", tokens="never", allow_insecure=True), None),
        (ServerConfig(address="127.0.0.1:1"), None),
    ],
)
def test_nothing_is_open_by_accident(config: ServerConfig, refused: str | None) -> None:
    if refused is None:
        config.check()
    else:
        with pytest.raises(InputError, match=refused):
            config.check()


@pytest.mark.model
def test_a_worker_that_has_grown_is_replaced() -> None:
    """Between two tasks, so that no call fails of it. Here each has grown, by more than less than nothing."""
    from spicegraph_service.pool.tasks import CaptionsWork, Work
    from spicegraph_service.pool.workers import WorkerPool

    async def play() -> tuple[set[int], int]:
        pool = WorkerPool(("en_caption", b""), 1, growth_bytes=-1)
        await pool.start()
        seen = set()
        for number in range(3):
            worker = await pool.acquire()
            seen.add(worker.process.pid)
            texts = tuple(f"a dog{number}x{n} on a cat{number}y{n}" for n in range(20))
            await pool.call(worker, Work((CaptionsWork(texts, graphs=False),), {}))
        await pool.close()
        return seen, pool.deaths

    pids, deaths = asyncio.run(play())
    assert len(pids) > 1
    assert deaths == 0


def test_a_revoked_token_is_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    from spicegraph_service.pool.cache import StoreThread
    from spicegraph_service.rpc import auth
    from spicegraph_service.rpc.status import CallError
    from spicegraph_service.store.places import open_store

    monkeypatch.setattr(auth, "_REMEMBERED_S", 0.0)

    async def play() -> None:
        store = open_store("memory")
        thread = StoreThread(store)
        authenticator = auth.Authenticator(thread, thread, required=True, rate=0)
        token, record = auth.create_token(store, "someone", ("score",))
        assert (await authenticator.identify(f"Bearer {token}")).name == "someone"
        store.revoke_token(record.id)
        with pytest.raises(CallError, match="not valid"):
            await authenticator.identify(f"Bearer {token}")
        await thread.close()

    asyncio.run(play())


@pytest.mark.parametrize("arguments", [["serve"], ["token", "create", "x"]])
def test_where_grpc_is_not_installed_the_commands_say_how_to_get_it(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    from spicegraph_service.cli import main

    for name in [name for name in sys.modules if name == "grpc" or name.startswith(("grpc.", "spicegraph_service."))]:
        if name not in {"spicegraph_service.cli", "spicegraph_service.cli.app"}:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("spicegraph_service.app", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    assert main(arguments) == 2
    assert "needs grpc, which is not installed: pip install spicegraph" in capsys.readouterr().err


def test_a_shared_rate_follows_what_all_servers_spend() -> None:
    async def play() -> None:
        clock = Clock()
        left = 100.0

        async def spend(captions: int) -> float:
            nonlocal left
            left -= captions
            return left

        servers = [SharedBucket(TokenBucket(10, 100, clock=clock), spend) for _ in range(2)]
        servers[0].take(60)
        servers[1].take(30)  # it does not know yet
        while left > 10:
            await asyncio.sleep(0.01)
        for server, seconds in zip(servers, (4, 7), strict=True):  # the first has asked before the second spent
            with pytest.raises(FullError) as caught:
                server.take(80)
            assert caught.value.retry_after_s == pytest.approx(seconds)

    asyncio.run(play())
