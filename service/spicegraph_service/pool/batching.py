"""Work of many requests, gathered into batches for the workers."""
# A batch goes out as soon as a worker is free, with all that has come in until then (up to a cost). Where a worker is
# free at once and captions must be parsed, it waits a few milliseconds for company, unless the last group had none:
# parsing thirty captions together costs little more than parsing five.

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_service.pool import tasks
from spicegraph_service.pool.cache import ParseCache, retrieve_error
from spicegraph_service.pool.costs import text_cost, texts_cost
from spicegraph_service.pool.processes import ProcessEndedError
from spicegraph_service.pool.workers import NoWorkersError, Worker, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


Group = tasks.ItemsWork | tasks.CaptionsWork
_PATIENCE_S = 1.0  # nearly every batch takes less; callers who leave before do not end a worker
_LONG_S = 5.0
_PAUSES_S = (0.0, 0.2)  # before each retry; in the second, the deaths of workers that were killed together are seen
_HEAVY = 32  # cost of a group that no batch takes behind others
_LONG = 20  # cost of a caption that takes a turn of its own, where a group has several
_LONG_TURN = 80  # cost of long captions that are parsed in one turn: about 50 ms
_CHARACTERS_PER_COST = 256  # of long captions, which take longer to score, too
_log = logging.getLogger(__name__)


class WorkFailedError(Exception):
    """A group of work could not be done; the message is for the log."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A group that waits, and where its reply goes."""

    group: Group
    texts: tuple[tasks.StyledText, ...]
    size: int
    cost: int
    is_new: bool  # captions of it must be parsed
    caller: str
    tenant: str
    since: float
    reply: asyncio.Future[tasks.GroupReply]


class _Turns:
    """Groups that wait: callers get equal shares of the work, by its cost."""

    # Goyal, Vin and Cheng 1996, "Start-time Fair Queuing". Who sends the next chunk after the last answer has every
    # second turn beside another caller, however many chunks of that one wait.

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Entry]] = []  # start of its part of the caller's share, order of arrival
        self._ends: dict[str, int] = {}  # of each caller's share so far
        self._now = 0
        self._arrivals = count()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[_Entry]:
        return (entry for _, _, entry in self._heap)

    def push(self, entry: _Entry) -> None:
        """Add a group: behind those of its caller, beside those of others."""
        start = max(self._now, self._ends.get(entry.caller, 0))
        self._ends[entry.caller] = start + entry.cost
        heappush(self._heap, (start, next(self._arrivals), entry))

    def pop(self) -> _Entry:
        """Take the group whose turn it is."""
        self._now, _, entry = heappop(self._heap)
        return entry

    def take_batch(self, most: int) -> list[_Entry]:
        """Take groups of one tenant up to a cost; small ones do not wait for a heavy one of somebody else."""
        self._ends = {caller: end for caller, end in self._ends.items() if end > self._now}
        batch: list[_Entry] = []
        cost = 0
        while self:
            entry = self._heap[0][2]
            fits = entry.cost < _HEAVY and cost + entry.cost <= most
            if batch and not (fits and entry.tenant == batch[0].tenant):
                break
            self.pop()
            if not entry.reply.done():  # else its caller has gone
                batch.append(entry)
                cost += entry.cost
        return batch


class Dispatcher:
    """Gathers groups into batches for the workers."""

    def __init__(
        self,
        pool: WorkerPool,
        parses: ParseCache,
        *,
        parsing: Mapping[str, bool],
        batch_captions: int,
        window_s: float,
        observe: Callable[[int, float], None] | None = None,
    ) -> None:
        self._pool = pool
        self._parses = parses
        self._parsing = parsing
        self._batch_captions = batch_captions
        self._window_s = window_s
        self._observe = observe or (lambda _captions, _seconds: None)
        self._entries = _Turns()
        self._had_company = False  # in the last batch
        self._filled = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._feeder = asyncio.create_task(self._feed())
        self._feeder.add_done_callback(_report)

    async def submit(self, group: Group, *, caller: str = "", tenant: str = "") -> tasks.GroupReply:
        """Have a group of a caller done; if the caller is cancelled before a worker takes it, it is not done."""
        texts = tuple(dict.fromkeys(group.texts(self._parsing)))
        unparsed = self._parses.missing(texts, tenant=tenant)
        for turn in _turns(group, unparsed):
            await self.submit(turn, caller=caller, tenant=tenant)
            unparsed = self._parses.missing(texts, tenant=tenant)
        items = len(group.items if isinstance(group, tasks.ItemsWork) else group.captions)
        characters = sum(map(len, group.captions))
        cost = items + texts_cost(text.text for text in unparsed) + characters // _CHARACTERS_PER_COST
        reply: asyncio.Future[tasks.GroupReply] = asyncio.get_running_loop().create_future()
        size = items + len(unparsed)
        self._entries.push(_Entry(group, texts, size, cost, bool(unparsed), caller, tenant, _time(), reply))
        self._filled.set()
        return _checked(await reply)

    async def totals(self, work: tasks.Totals) -> tasks.GroupReply:
        """Have the statistics of a request turned into scores; if the worker dies, once more."""
        for last in (False, True):
            worker = await self._pool.acquire()
            # Shielded: a worker that is given up in the middle of a reply would have to be killed.
            call = asyncio.ensure_future(self._pool.call(worker, work))
            try:
                done = await asyncio.shield(call)
                break
            except asyncio.CancelledError:
                call.add_done_callback(retrieve_error)  # no caller waits for it any longer
                raise
            except ProcessEndedError as error:
                if last:
                    raise WorkFailedError(str(error)) from error
        if not isinstance(done, tasks.GroupReply):
            raise WorkFailedError("a worker gave the wrong kind of reply")
        return _checked(done)

    async def close(self) -> None:
        """Stop; queued work is cancelled."""
        running = (self._feeder, *self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for entry in self._entries:
            entry.reply.cancel()

    async def _feed(self) -> None:
        """Send batches to the workers, one after the other."""
        while True:
            await self._filled.wait()
            try:
                worker = await self._pool.acquire()
            except NoWorkersError as error:  # when there will be one is unknown
                _refuse(list(self._entries), error)
                self._entries = _Turns()
                self._filled.clear()
                continue
            await self._wait_for_company()
            batch = self._entries.take_batch(self._batch_captions)
            if not self._entries:
                self._filled.clear()
            if not batch:
                self._pool.release(worker)
                continue
            self._had_company = len(batch) > 1
            task = asyncio.create_task(self._run(worker, batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _wait_for_company(self) -> None:
        """Wait a little for others if only unparsed captions would be in the batch."""
        entries = list(self._entries)
        may_have_company = self._had_company and sum(entry.size for entry in entries) < self._batch_captions
        if may_have_company and all(entry.is_new for entry in entries):
            since = min(entry.since for entry in entries)
            await asyncio.sleep(max(0.0, since + self._window_s - _time()))

    async def _run(self, worker: Worker, batch: Sequence[_Entry]) -> None:
        """Have a batch done; where the worker dies, each group alone, with three workers at most."""
        try:
            try:
                await self._do(worker, batch)
            except ProcessEndedError as error:
                _log.warning("a batch of %d groups is tried again: %s", len(batch), error)
                for entry in batch:
                    await self._retry(entry)
        except WorkFailedError as error:
            _refuse(batch, error)
        except Exception as error:  # noqa: BLE001 (the callers must get an answer, whatever it was)
            _log.exception("a batch of %d groups failed", len(batch))
            _refuse(batch, WorkFailedError(f"an unexpected {type(error).__name__}"))

    async def _retry(self, entry: _Entry) -> None:
        """Have a group done whose worker has died."""
        failure: Exception
        for pause in _PAUSES_S:
            await asyncio.sleep(pause)
            if entry.reply.done():
                return
            try:
                await self._do(await self._pool.acquire(), [entry])
            except ProcessEndedError as error:
                failure = WorkFailedError(str(error))
            except NoWorkersError as error:
                failure = error
            else:
                return
        _refuse([entry], failure)

    async def _do(self, worker: Worker, batch: Sequence[_Entry]) -> None:
        """Have a worker do a batch, and answer its callers."""
        tenant, lasting = batch[0].tenant, _lasting(batch)
        try:
            texts = dict.fromkeys(text for entry in batch for text in entry.texts)
            known = await self._parses.get(texts, tenant=tenant, lasting=lasting)
        except BaseException:
            self._pool.release(worker)
            raise
        started = _time()
        work = tasks.Work(tuple(entry.group for entry in batch), known)
        call = asyncio.create_task(self._pool.call(worker, work))
        try:
            reply = await _while_wanted(call, worker, batch)
        finally:
            call.cancel()
        if not isinstance(reply, tasks.WorkReply):
            raise WorkFailedError("a worker gave the wrong kind of reply")
        self._observe(sum(entry.size for entry in batch), _time() - started)
        self._parses.put(reply.parsed, tenant=tenant, lasting=lasting)
        for entry, done in zip(batch, reply.groups, strict=True):
            if not entry.reply.done():
                entry.reply.set_result(done)


async def _while_wanted(call: asyncio.Task[tasks.Reply], worker: Worker, batch: Sequence[_Entry]) -> tasks.Reply:
    """Return a worker's reply; end the worker when its callers, or after a long time some of them, have gone."""
    started = _time()
    await asyncio.wait([call], timeout=_PATIENCE_S)
    waiting: set[asyncio.Future[tasks.GroupReply]] = {entry.reply for entry in batch}
    while not call.done():
        left = started + _LONG_S - _time()
        watched: list[asyncio.Future[Any]] = [call, *waiting]
        await asyncio.wait(watched, timeout=left if left > 0 else None, return_when=asyncio.FIRST_COMPLETED)
        waiting = {reply for reply in waiting if not reply.done()}
        is_long = _time() - started >= _LONG_S
        if not call.done() and (not waiting or (is_long and len(waiting) < len(batch))):
            _log.warning("worker %d is ended: callers of its batch have gone", worker.process.pid)
            worker.process.kill()
            break
    return await call


def _checked(done: tasks.GroupReply) -> tasks.GroupReply:
    """Return a worker's reply, or raise the error it reports."""
    if done.refused:
        raise (LimitError if done.refused == "limit" else InputError)(done.error)
    if done.error:
        raise WorkFailedError(done.error)
    return done


def _refuse(entries: Iterable[_Entry], error: Exception) -> None:
    """Raise an error for the callers who still wait."""
    for entry in entries:
        if not entry.reply.done():
            entry.reply.set_exception(error)


def _passing(group: Group) -> frozenset[tasks.StyledText]:
    """Return the texts of a group whose parses do not belong in the store."""
    return group.passing if isinstance(group, tasks.ItemsWork) else frozenset()


def _lasting(batch: Sequence[_Entry]) -> set[tasks.StyledText] | None:
    """Return the texts of a batch whose parses belong in the store; ``None``: all."""
    if not any(_passing(entry.group) for entry in batch):
        return None
    return set().union(*(set(entry.texts) - _passing(entry.group) for entry in batch))


def _turns(group: Group, unparsed: Sequence[tasks.StyledText]) -> Iterator[tasks.CaptionsWork]:
    """Yield the long captions of a group to be parsed before it, so that no group holds a worker for all of them."""
    if len(unparsed) < 2:
        return
    costs = {text: cost for text in unparsed if (cost := text_cost(text.text)) >= _LONG}
    if sum(costs.values()) <= _LONG_TURN:
        return
    turn: list[tasks.StyledText] = []
    for text in sorted(costs.keys() - _passing(group), key=lambda text: text.style):
        if turn and (turn[0].style != text.style or sum(map(costs.__getitem__, (*turn, text))) > _LONG_TURN):
            yield _turn(turn)
            turn = []
        turn.append(text)
    if turn:
        yield _turn(turn)


def _turn(texts: Sequence[tasks.StyledText]) -> tasks.CaptionsWork:
    return tasks.CaptionsWork(tuple(text.text for text in texts), graphs=False, style=texts[0].style)


def _time() -> float:
    return asyncio.get_running_loop().time()


def _report(feeder: asyncio.Task[None]) -> None:
    """Log why the feeder ended: without it nothing is done any longer."""
    if not feeder.cancelled() and (error := feeder.exception()):
        _log.critical("no more batches go to the workers", exc_info=error)
