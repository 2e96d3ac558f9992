"""The worker processes, at both ends of the pipe: started, given one task at a time, replaced when they end."""
# ``python -m spicegraph_service.pool.workers`` reads its setup and tasks from standard input and writes replies to
# standard output. It ends when its input ends, so that it never outlives its server.

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from typing import IO, TYPE_CHECKING

from spicegraph_parser.errors import DataError, SpicegraphError
from spicegraph_service.pool import tasks
from spicegraph_service.pool.processes import ChildProcess, ProcessEndedError, Replies, open_replies, read_frame, usage

if TYPE_CHECKING:
    from collections.abc import Callable


_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_LOOK_EVERY = 64  # tasks between two looks at a worker's memory
_BEAT_EVERY_S = 0.25
_SILENCE_S = 2.0
_log = logging.getLogger(__name__)


class NoWorkersError(Exception):
    """There is no worker, and none can be started; the message says why, for the log."""


class Worker:
    """One worker process, which does one task at a time."""

    def __init__(self, process: ChildProcess, info: tasks.WorkerInfo) -> None:
        self.process = process
        self.info = info
        self.retired = False
        self._tasks = 0
        self._first_bytes = 0

    @classmethod
    async def start(cls, setup: tasks.Setup, *, timeout_s: float) -> Worker:
        """Start a process and wait until it has loaded its setup."""
        process = await ChildProcess.start("spicegraph_service.pool.workers")
        info = tasks.decode_reply(await process.ask(tasks.encode(setup), timeout_s=timeout_s))
        if not isinstance(info, tasks.WorkerInfo):
            process.kill()
            raise ProcessEndedError("a worker's first reply was wrong")
        if info.error:
            await process.wait()
            raise DataError(info.error)
        return cls(process, info)

    def has_grown(self, most_bytes: int) -> bool:
        """Say whether the process has grown by more than this since its first task; looks now and then."""
        self._tasks += 1
        if self._tasks % _LOOK_EVERY != 1:
            return False
        now, _ = usage(self.process.pid)
        self._first_bytes = self._first_bytes or now
        return now - self._first_bytes > most_bytes

    async def close(self) -> None:
        """Let the process end by itself (its input ends), and make sure that it does."""
        self.process.end_input()
        try:
            async with asyncio.timeout(2):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


class WorkerPool:
    """Keeps ``count`` workers alive, all with the same setup."""

    def __init__(
        self,
        setup: tasks.Setup,
        count: int,
        *,
        task_timeout_s: float = 120.0,
        growth_bytes: int = 1 << 30,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self._setup = setup
        self._count = count
        self._task_timeout_s = task_timeout_s
        self._growth_bytes = growth_bytes
        self._changed = changed or (lambda: None)
        self._idle: asyncio.Queue[Worker | None] = asyncio.Queue()  # None: look at _unable
        self._unable = ""  # why there is no worker, once one could not be replaced
        self._alive: set[Worker] = set()
        self._supervisors: list[asyncio.Task[None]] = []
        self._ready: asyncio.Future[tasks.WorkerInfo] | None = None
        self.deaths = 0  # workers that ended unexpectedly since the start

    @property
    def alive(self) -> int:
        """Number of workers that are ready or busy."""
        return len(self._alive)

    @property
    def pids(self) -> list[int]:
        """The process ids of these workers."""
        return [worker.process.pid for worker in list(self._alive)]

    @property
    def idle(self) -> int:
        """Number of workers that have nothing to do."""
        return self._idle.qsize()

    async def start(self) -> tasks.WorkerInfo:
        """Start the workers; return when the first is ready."""
        self._ready = ready = asyncio.get_running_loop().create_future()
        self._supervisors = [asyncio.create_task(self._keep_alive(ready)) for _ in range(self._count)]
        return await asyncio.shield(ready)

    async def _keep_alive(self, ready: asyncio.Future[tasks.WorkerInfo]) -> None:
        """Start a worker, and another whenever it ends; ever longer pauses where it cannot start."""
        pause = _FIRST_PAUSE
        while True:
            try:
                worker = await Worker.start(self._setup, timeout_s=120.0)
            except (DataError, ProcessEndedError, OSError) as error:
                if not ready.done() and isinstance(error, DataError):
                    ready.set_exception(error)
                    return
                _log.error("a worker cannot be started (next try in %.1f s): %s", pause, error)
                if not self._alive and not self._unable:
                    self._unable = str(error)
                    self._idle.put_nowait(None)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            self._alive.add(worker)
            self._unable = ""
            _log.info("worker %d is ready", worker.process.pid)
            self._idle.put_nowait(worker)
            if not ready.done():
                ready.set_result(worker.info)
            self._changed()
            try:
                code = await self._watch(worker)
            except asyncio.CancelledError:
                await worker.close()
                raise
            self._alive.discard(worker)
            if worker.retired:
                _log.info("worker %d has grown large and was retired", worker.process.pid)
            else:
                self.deaths += 1
                _log.error("worker %d ended with code %d; starting another", worker.process.pid, code)
            self._changed()

    async def _watch(self, worker: Worker) -> int:
        """Return a worker's exit code; one that sends no heartbeats any more hangs, and is killed."""
        ending = asyncio.create_task(worker.process.wait())
        try:
            while not (await asyncio.wait({ending}, timeout=_BEAT_EVERY_S))[0]:
                if worker.process.hangs(_SILENCE_S):
                    _log.error("worker %d hangs: no heartbeat for %.1f s", worker.process.pid, worker.process.silent_s)
                    worker.process.kill()
                    break
            return await ending
        finally:
            ending.cancel()

    async def acquire(self) -> Worker:
        """Wait for a worker that has nothing to do."""
        while True:
            worker = await self._idle.get()
            if worker is not None and worker.process.alive:
                return worker
            if worker is None and self._unable:
                self._idle.put_nowait(None)  # for whoever else waits
                raise NoWorkersError(self._unable)

    def release(self, worker: Worker) -> None:
        """Give a worker back. One that has grown large is replaced, since spaCy keeps every word that it saw."""
        if not worker.process.alive:
            return
        if worker.has_grown(self._growth_bytes):
            worker.retired = True
            worker.process.end_input()  # it has no task, and ends by itself
        else:
            self._idle.put_nowait(worker)

    async def call(self, worker: Worker, task: tasks.Task) -> tasks.Reply:
        """Let an acquired worker do a task, and give it back."""
        try:
            reply = await worker.process.ask(tasks.encode(task), timeout_s=self._task_timeout_s)
        finally:
            self.release(worker)
        return tasks.decode_reply(reply)

    async def close(self) -> None:
        """End all workers."""
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        if self._ready is not None and not self._ready.done():
            self._ready.cancel()


def main() -> int:
    """Serve tasks until the input ends; return the exit code."""
    # The server alone decides when a worker stops: a signal to the whole group must not cut off a batch.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="worker %(process)d: %(message)s")
    logging.captureWarnings(True)  # noqa: FBT003 (the library's signature)
    with open_replies() as replies:
        replies.beat(_BEAT_EVERY_S)
        return _serve(sys.stdin.buffer, replies)


def _serve(frames: IO[bytes], replies: Replies) -> int:
    def send(reply: tasks.Reply) -> None:
        replies.send(tasks.encode(reply))

    first = read_frame(frames)
    if first is None:
        return 1
    pipeline, data = tasks.decode_setup(first)
    try:
        # Imported here so that a broken installation is reported through the pipe as well.
        from spicegraph_parser.pipelines import load_pipeline  # noqa: PLC0415
        from spicegraph_parser.runtime import RARE  # noqa: PLC0415
        from spicegraph_service.pool.evaluate import Evaluator  # noqa: PLC0415
        from spicegraph_service.pool.tasks import unpack_data  # noqa: PLC0415

        gc.set_threshold(*RARE)  # looked for while it loads, cycles take a tenth of the time
        evaluator = Evaluator(load_pipeline(pipeline), unpack_data(data))
        evaluator.make_ready()
    except SpicegraphError as error:
        send(tasks.WorkerInfo(error=str(error)))
        return 2
    try:
        send(evaluator.info())
        evaluator.warm_up()  # while nothing waits yet, at best
        gc.freeze()  # what is loaded stays
        while (task := read_frame(frames)) is not None:
            send(evaluator.run(tasks.decode_task(task)))
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
