"""What becomes of workers that hang or are held: they are seen, replaced, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_service.client import Client, item
from spicegraph_service.pool.batching import Dispatcher
from spicegraph_service.pool.cache import Lru, ParseCache, StoreThread
from spicegraph_service.pool.processes import ChildProcess, ProcessEndedError
from spicegraph_service.pool.tasks import CaptionsWork, GroupReply, WorkReply
from spicegraph_service.store.places import open_store
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import RunningServer
    from spicegraph_service.pool.tasks import Task

pytestmark = pytest.mark.slow

ECHO = """
import sys, time
from spicegraph_service.pool.processes import open_replies, read_frame
with open_replies() as replies:
    replies.beat(0.05)
    while (data := read_frame(sys.stdin.buffer)) is not None:
        if data == b"end":
            break
        print("what is printed disturbs no frame")
        replies.send(data)
"""


def _module(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module that processes started by the test can run; return its name."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return name


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that sends heartbeats, and every frame back."""
    return _module("echo_frames", ECHO, tmp_path, monkeypatch)


def test_heartbeats_are_not_replies_and_stop_with_the_process(echo: str) -> None:
    async def play() -> None:
        process = await ChildProcess.start(echo)
        for number in range(3):
            assert await process.ask(b"%d" % number) == b"%d" % number
            await asyncio.sleep(0.15)  # heartbeats come between
            assert process.silent_s < 5
        os.kill(process.pid, signal.SIGSTOP)
        heard = process.silent_s
        await asyncio.sleep(0.5)
        assert process.silent_s >= heard + 0.3
        process.kill()
        assert await process.wait() == -signal.SIGKILL

    asyncio.run(play())


SILENT = """
import sys, time
from spicegraph_service.pool.processes import open_replies, read_frame
with open_replies() as replies:
    replies.send(read_frame(sys.stdin.buffer))
    while sys.argv[1] == "computes":
        pass
    time.sleep(60)
"""


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that replies once, and then computes or sleeps without a heartbeat."""
    return _module("silent_frames", SILENT, tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["computes", "sleeps"])
def test_a_silent_process_hangs_once_it_could_have_sent(kind: str, silent: str) -> None:
    async def play() -> None:
        process = await ChildProcess.start(silent, kind)
        await process.ask(b"begin")
        assert not process.hangs(0.3)
        before, looks = computed_s(process.pid), 0
        while not process.hangs(0.3):
            looks += process.silent_s > 0.3
            await asyncio.sleep(0.05)
        assert looks  # the first time it is only suspected
        if kind == "computes":
            assert computed_s(process.pid) - before >= 0.25
        process.kill()
        await process.wait()

    asyncio.run(play())


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux lets a process wait for others on purpose")
def test_a_silent_process_that_waits_for_a_processor_does_not_hang(silent: str) -> None:
    async def play() -> None:
        process = await ChildProcess.start(silent, "computes")
        await process.ask(b"begin")
        core = {min(os.sched_getaffinity(0))}
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            try:
                for pid in (busy.pid, process.pid):
                    os.sched_setaffinity(pid, core)
                os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
                before, seen = computed_s(process.pid), []
                for _ in range(20):
                    await asyncio.sleep(0.05)
                    seen.append(process.hangs(0.3))
                assert process.silent_s > 0.9
                assert not any(seen) or computed_s(process.pid) - before > 0.2
            finally:
                busy.kill()
        process.kill()
        await process.wait()

    asyncio.run(play())


def computed_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_process_that_ends_answers_every_later_question_with_an_error(echo: str) -> None:
    async def play() -> None:
        process = await ChildProcess.start(echo)
        with pytest.raises(ProcessEndedError):
            await process.ask(b"end")
        assert await process.wait() == 0
        with pytest.raises(ProcessEndedError):
            await process.ask(b"again")

    asyncio.run(play())


ONE = """
import sys, time
from spicegraph_service.pool.processes import do_one_task, limit

def answer(task, report):
    if task == b"sleep":
        time.sleep(600)
    if task == b"memory":
        limit(0, beyond=64 << 20)
        try:
            return bytes(256 << 20)
        except MemoryError:
            return b"too much"
    if task == b"time":
        limit(0, seconds=1)
        while True:
            pass
    report(b"half of " + task)
    return b"all of " + task

sys.exit(do_one_task(answer, name="one", nice=1))
"""


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that does one task."""
    return _module("one_task", ONE, tmp_path, monkeypatch)


def test_a_task_tells_how_far_it_is_and_goes_on_when_it_is_heard(one: str) -> None:
    async def play() -> None:
        async with ChildProcess.running(one) as process:
            assert await process.ask(b"work") == b"half of work"
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 1)
            assert await process.ask(b"go on") == b"all of work"
        assert not process.alive

    asyncio.run(play())


def test_a_task_ends_with_its_server(one: str) -> None:
    async def play() -> int:
        process = await ChildProcess.start(one)
        assert await process.ask(b"work") == b"half of work"
        process.end_input()  # as its end does
        return await process.wait()

    assert asyncio.run(play()) == 1


def test_a_task_may_take_so_much_memory_and_time(one: str) -> None:
    pytest.importorskip("resource")

    async def play() -> int:
        async with ChildProcess.running(one) as process:
            assert await process.ask(b"memory") == b"too much"
        async with ChildProcess.running(one) as process:
            with pytest.raises(ProcessEndedError, match="ended before it replied"):
                await process.ask(b"time")
            return await process.wait()

    assert asyncio.run(play()) in (-signal.SIGXCPU, -signal.SIGKILL)  # at the soft or the hard limit


@pytest.mark.parametrize("timeout_s", [0.1, None])
def test_a_process_that_is_given_up_is_killed(timeout_s: float | None, one: str) -> None:
    """Its time is over, or its caller has gone: it would answer the next question."""

    async def play() -> int:
        process = await ChildProcess.start(one)
        call = asyncio.create_task(process.ask(b"sleep", timeout_s=timeout_s))
        if timeout_s is None:
            await asyncio.sleep(0)
            call.cancel()
        with pytest.raises(ProcessEndedError if timeout_s else asyncio.CancelledError):
            await call
        assert not process.alive
        return await process.wait()

    assert asyncio.run(play()) == -signal.SIGKILL


FULL = """
import asyncio, os, resource, sys, uvloop
from spicegraph_service.pool.processes import ChildProcess

async def start():
    # Above the largest descriptor there is room for a few more.
    most = max(map(int, os.listdir("/proc/self/fd"))) + 3
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        await ChildProcess.start("no_module")
    except OSError as error:
        print(error)

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(start())
"""


def test_a_process_for_which_no_descriptors_are_left_says_so() -> None:
    pytest.importorskip("uvloop")  # the loop that does not say so itself
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[Errno 24] Too many open files\n", 0), done.stderr


def test_a_stopped_worker_is_replaced(start_server: Callable[..., RunningServer]) -> None:
    """The process is there, and does nothing: an idle one is found by its silence, too."""
    server = start_server()
    (worker,) = server.workers()
    stopped = time.monotonic()
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: any(f"worker {worker} hangs" in str(line["message"]) for line in server.lines()), 20)
    assert time.monotonic() - stopped < 5  # three seconds on an idle machine
    wait_until(lambda: worker not in server.workers(), 20)
    with Client(server.address, timeout_s=60) as client:
        assert len(client.score([item("1", "a dog on a mat", ["a dog"])]).items) == 1


def test_a_call_survives_the_death_of_all_workers_at_once(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--workers=2", "--metrics-address=127.0.0.1:0")
    wait_until(lambda: len(server.workers()) == 2 and all(map(server.is_ready, server.workers())), 60)
    items = [item(n, f"a man on a horse {n}", [f"a dog {n} {m} on a mat" for m in range(4)]) for n in range(60)]
    with Client(server.address, timeout_s=90) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.score, items)
        wait_until(lambda: server.calls_under_way() == 1)
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
        assert len(call.result().items) == 60


class SlowWorker:
    """A worker that takes for ever, until it is killed."""

    def __init__(self) -> None:
        self.killed = asyncio.Event()
        self.process = SimpleNamespace(pid=1, kill=self.killed.set)


class Pool:
    """Workers that hang on a batch with the text ``bomb``."""

    idle = 0

    def __init__(self) -> None:
        self.killed = 0

    async def acquire(self) -> SlowWorker:
        return SlowWorker()

    def release(self, worker: SlowWorker) -> None: ...

    async def call(self, worker: SlowWorker, task: Task) -> WorkReply:
        groups = task.groups  # type: ignore[union-attr]
        if any("bomb" in group.captions for group in groups):  # type: ignore[union-attr]
            await worker.killed.wait()
            self.killed += 1
            raise ProcessEndedError("killed")
        return WorkReply(tuple(GroupReply(results=(b"done",)) for _ in groups), {})


@pytest.mark.parametrize("others", [0, 1])
def test_a_worker_is_not_held_by_a_call_whose_caller_has_gone(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from spicegraph_service.pool import batching

    monkeypatch.setattr(batching, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(batching, "_LONG_S", 0.1)

    async def play() -> None:
        pool, thread = Pool(), StoreThread(open_store("memory"))
        parses = ParseCache(thread, thread, "signature", memory=Lru(1 << 20))
        dispatcher = Dispatcher(pool, parses, parsing=frozenset(), batch_captions=10, window_s=0.02)  # type: ignore[arg-type]
        bomb = asyncio.create_task(dispatcher.submit(CaptionsWork(("bomb",), graphs=False)))
        sound = [asyncio.create_task(dispatcher.submit(CaptionsWork(("a dog",), graphs=False))) for _ in range(others)]
        await asyncio.sleep(0.2)
        assert not pool.killed  # its caller still waits
        bomb.cancel()
        for task in sound:
            assert (await asyncio.wait_for(task, 10)).results == (b"done",)
        end = time.monotonic() + 10
        while not pool.killed:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert pool.killed == 1
        await dispatcher.close()
        await thread.close()

    asyncio.run(play())


def test_an_item_that_would_hold_a_worker_is_refused_by_its_id(client: Client) -> None:
    items = [item("sound", "a dog", ["a dog"]), item("endless", "(" * 1990, ["(" * 1990 + " x"])]
    with pytest.raises(grpc.RpcError) as caught:
        client.score(items, metrics=["meteor"])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.details().startswith("item 'endless': METEOR finds 3,960,100 matches")
    assert len(client.score(items[:1], metrics=["meteor"]).items) == 1


def test_a_call_past_its_deadline_leaves_no_worker_busy(start_server: Callable[..., RunningServer]) -> None:
    """A worker whose batch does not end, and a caller who has gone: the next caller need not wait for it."""
    server = start_server("--metrics-address=127.0.0.1:0")
    (worker,) = server.workers()
    text = "a man on a horse with a dog " * 10
    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(1) as pool:
        stub = EvaluationServiceStub(channel)
        items = [item(n, f"{n} {text}", [f"{text} {n}"] * 20) for n in range(64)]
        call = pool.submit(stub.Score, pb.ScoreRequest(items=items, metrics=["meteor"]), timeout=2)
        wait_until(lambda: server.calls_under_way() == 1)
        os.kill(worker, signal.SIGSTOP)
        with pytest.raises(grpc.RpcError) as caught:
            call.result(60)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        with Client(server.address, timeout_s=60) as client:
            assert len(client.score([item("1", "a dog", ["a dog"])]).items) == 1
    wait_until(lambda: any("callers of its batch have gone" in str(line["message"]) for line in server.lines()), 20)
