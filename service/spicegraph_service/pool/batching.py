"""Work of many requests, gathered into batches for the workers."""
# A batch goes out as soon as a worker is free, with all that has come in until then (up to a size). Where a worker is
# free at once and captions must be parsed, it waits a few milliseconds for company, unless the last group had none:
# parsing thirty captions together costs little more than parsing five. A caller who sends the next chunk after the last
# answer is away from the queue in between: what it has had of the workers is remembered for a second, so that others do
# not take its turns. Light groups (few items, short captions, all parsed before) have a worker in reserve, and never
# wait for others' new captions. While it has none of them and another worker is at work on more, it does groups with
# little new to parse, in their turn. Where all are at work on such groups, those that wait go together next, which
# takes less than in two processes.

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
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
    from collections.abc import Callable, Iterator, Mapping, Sequence


Group = tasks.ItemsWork | tasks.CaptionsWork
_PATIENCE_S = 1.0  # nearly every batch takes less; callers who leave before do not end a worker
_LONG_S = 5.0
_TOGETHER_S = 0.2  # in which the deaths of workers that were killed together are seen
_SMALL = 64  # items and captions to parse of a group
_HEAVY = 32  # cost of a group for which it matters whose turn it is; lighter ones go together
_CREDIT = 4 * _SMALL  # cost that a caller may be behind the others and still catch up: two chunks of new captions
_BESIDE_S = 1.0  # after its last answer a caller still counts as one who shares the workers
_WAIT_SHARE = 0.5  # of the last batch's time: how long a worker may wait for a caller who is behind
_LONGEST_WAIT_S = 0.1
_LIGHT_ITEMS = 8  # of a light group
_LIGHT_CHARACTERS = 4_096  # of its captions
_LIGHT_COST = 32  # of each of its captions, if it had to be parsed: to align long ones takes long, too
_LIGHT_BATCH = 32  # items; a few milliseconds
_LITTLE = 16  # cost of a group that the worker in reserve does, too: some ten milliseconds
_LITTLE_BATCH = 32  # cost; so long may a light group wait
_LONG = 20  # cost of a caption that takes a turn of its own, where a group has several
_TURN = 80  # cost of long captions that are parsed in one turn: about 50 ms
_CHARACTERS_PER_COST = 256  # of long captions, which take longer to score, too
_HEAD_START_S = 0.002  # at most: what comes next is looked up and sent before the calls that are done are answered
_log = logging.getLogger(__name__)


class WorkFailedError(Exception):
    """A group of work could not be done; the message is for the log."""


@dataclass(slots=True, eq=False)
class _Share:
    """What a caller has had of the workers, and when it is expected again."""

    caller: str
    end: int  # of its work so far, in the queue's virtual time
    cost: int = 0  # of its last group
    here: int = 0  # groups that wait or are at a worker
    left: float = 0.0  # when the last of them ended
    away: float = math.inf  # seconds from then to its next group, by experience


@dataclass(slots=True, eq=False)
class _Entry:
    """A group that waits, and where its reply goes."""

    group: Group
    texts: tuple[tasks.StyledText, ...]
    size: int
    cost: int
    fresh: bool
    caller: str
    tenant: str
    since: float
    reply: asyncio.Future[tasks.GroupReply]
    start: int = 0  # of its part of the caller's share
    share: _Share | None = None

    @property
    def end(self) -> int:
        """Of its part of the caller's share."""
        return self.start + self.cost

    @property
    def is_heavy(self) -> bool:
        """Whether it matters whose turn it is."""
        return self.cost >= _HEAVY

    def leave(self) -> None:
        """Be done, given up, or on the way to another queue."""
        if self.share is not None:
            self.share.here -= 1
            self.share.left = _time()
            self.share = None


class _FairQueue:
    """Entries that wait, in turn: callers get equal shares of the work, and are behind by :data:`_CREDIT` at most."""

    # Goyal, Vin and Cheng 1996, "Start-time Fair Queuing"; Duda and Cheriton 1999, "Borrowed-Virtual-Time (BVT)
    # scheduling", for the bounded lag.

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Entry]] = []  # start of the caller's share, order of arrival
        self._shares: dict[str, _Share] = {}
        self._now = 0
        self._arrivals = count()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[_Entry]:
        return (entry for _, _, entry in self._heap)

    @property
    def first(self) -> _Entry:
        """The entry whose turn it is."""
        return self._heap[0][2]

    @property
    def starts_with_little(self) -> bool:
        """Whether it is the turn of a group that the worker in reserve does, too."""
        return bool(self._heap) and self.first.cost <= _LITTLE

    def push(self, entry: _Entry) -> None:
        """Add an entry: behind those that its caller has here, beside those of others."""
        share = self._shares.setdefault(entry.caller, _Share(entry.caller, self._now))
        if not share.here and share.left:
            away = _time() - share.left
            share.away = away if share.away == math.inf else (share.away + away) / 2
        entry.start = max(self._now - _CREDIT, share.end)
        share.end = entry.end
        share.cost = entry.cost
        share.here += 1
        entry.leave()
        entry.share = share
        heappush(self._heap, (entry.start, next(self._arrivals), entry))

    def pop(self) -> _Entry:
        """Take the entry whose turn it is."""
        start, _, entry = heappop(self._heap)
        self._now = max(self._now, start)
        return entry

    def forget(self) -> None:
        """Forget the callers who have been away for long."""
        since = _time() - _BESIDE_S
        self._shares = {name: share for name, share in self._shares.items() if share.here or share.left > since}

    def behind(self, entry: _Entry) -> list[_Share]:
        """Return the callers of groups like this heavy one who have had less of the workers than its caller."""
        if not entry.is_heavy:
            return []
        shares = self._shares.values()
        return [share for share in shares if share.end < entry.start and 2 * share.cost >= entry.cost]

    def expected(self, until: float) -> list[_Share]:
        """Return the callers who are behind the one whose turn it is, and away, but back before a time."""
        return [share for share in self.behind(self.first) if not share.here and share.left + share.away <= until]


@dataclass(slots=True)
class _Batch:
    """Entries that go to a worker together, up to a cost."""

    most: int
    entries: list[_Entry] = field(default_factory=list)
    cost: int = 0
    callers: set[str] = field(default_factory=set)

    def add(self, entry: _Entry) -> None:
        """Add an entry."""
        self.entries.append(entry)
        self.cost += entry.cost
        self.callers.add(entry.caller)

    def takes(self, queue: _FairQueue) -> bool:
        """Say whether the entry whose turn it is goes with those that are here."""
        # A caller has no more than one heavy group in a batch while others with such groups have had less, and those of
        # others go with it only if it is their turn, too: or else who has one call at a time would get the answer late,
        # and be away while those who have more in stock have the next turn to themselves.
        entry = queue.first
        if not self.entries:
            return True
        if self.cost + entry.cost > self.most or entry.tenant != self.entries[0].tenant:
            return False
        if entry.caller in self.callers:
            return not queue.behind(entry)
        return entry.size <= _SMALL and not (entry.is_heavy and entry.start >= self.entries[0].end)


class Dispatcher:
    """Gathers groups into batches for the workers; those in ``reserve`` do light groups before others."""

    def __init__(
        self,
        pool: WorkerPool,
        parses: ParseCache,
        *,
        parsing: Mapping[str, bool],
        batch_captions: int,
        window_s: float,
        reserve: WorkerPool | None = None,
        observe: Callable[[int, float], None] | None = None,
    ) -> None:
        self._pool = pool
        self._parses = parses
        self._parsing = parsing
        self._batch_captions = batch_captions
        self._window_s = window_s
        self._observe = observe
        self._reserve = reserve
        self._entries = _FairQueue()
        self._light = _FairQueue()
        self._batch_s = 0.0  # of the last batch
        self._batch_groups = 0  # of the last batch
        self._at_little: set[Worker] = set()  # workers with nothing but groups that the one in reserve does, too
        self._next_sent = asyncio.Event()  # of the last batch: a worker has the one after it, or waits for a caller
        self._filled = asyncio.Event()
        self._came = asyncio.Event()
        self._light_filled = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._feeders = [asyncio.create_task(self._feed())]
        if reserve is not None:
            self._feeders.append(asyncio.create_task(self._feed_light(reserve)))
        for feeder in self._feeders:
            feeder.add_done_callback(_report)

    async def submit(self, group: Group, *, caller: str = "", tenant: str = "") -> tasks.GroupReply:
        """Have a group of a caller done; if the caller is cancelled before a worker takes it, it is not done."""
        texts = tuple(dict.fromkeys(group.texts(self._parsing)))
        fresh = self._parses.missing(texts, tenant=tenant)
        for turn in _turns(group, fresh):
            await self.submit(turn, caller=caller, tenant=tenant)
            fresh = self._parses.missing(texts, tenant=tenant)
        items = len(group.items if isinstance(group, tasks.ItemsWork) else group.captions)
        characters = sum(map(len, group.captions))
        cost = items + texts_cost(text.text for text in fresh) + characters // _CHARACTERS_PER_COST
        light = not fresh and items <= _LIGHT_ITEMS and characters <= _LIGHT_CHARACTERS
        light = light and max(map(text_cost, group.captions), default=0) <= _LIGHT_COST
        reply: asyncio.Future[tasks.GroupReply] = asyncio.get_running_loop().create_future()
        entry = _Entry(group, texts, items + len(fresh), cost, bool(fresh), caller, tenant, _time(), reply)
        self._enter(entry, light=light)
        done = await reply
        if done.refused:
            raise (LimitError if done.refused == "limit" else InputError)(done.error)
        if done.error:
            raise WorkFailedError(done.error)
        return done

    def _enter(self, entry: _Entry, *, light: bool) -> None:
        if not light or self._reserve is None or not self._reserve.alive:
            self._entries.push(entry)
            self._filled.set()
            self._came.set()
            self._call_reserve()
            return
        self._light.push(entry)
        self._light_filled.set()
        if not self._reserve.idle:
            self._filled.set()

    @property
    def _needs_help(self) -> bool:
        """Whether a group with little to parse waits for a worker that is at work on more."""
        return self._entries.starts_with_little and len(self._at_little) < self._pool.alive

    def _call_reserve(self) -> None:
        """Let the worker in reserve look for groups with little to parse, while the others are at work."""
        alive = self._reserve is not None and self._reserve.alive
        if alive and self._needs_help and not self._pool.idle:
            self._light_filled.set()

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
        if done.error:
            raise WorkFailedError(done.error)
        return done

    async def close(self) -> None:
        """Stop; what still waits is cancelled."""
        for task in (*self._feeders, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._feeders, *self._tasks, return_exceptions=True)
        while queue := self._entries or self._light:
            queue.pop().reply.cancel()

    async def _feed(self) -> None:
        while True:
            await self._filled.wait()
            try:
                worker = await self._pool.acquire()
            except NoWorkersError as error:
                self._refuse_all(error)
                continue
            await self._wait_for_company()
            if self._entries and not self._pool.idle:
                await self._wait_for_callers_behind()
            batch = self._take(self._entries or self._light, self._batch_captions)
            if not self._entries and not self._light:
                self._filled.clear()
            if not batch:
                self._pool.release(worker)
                continue
            self._start(self._pool, worker, batch)
            self._call_reserve()

    def _refuse_all(self, error: NoWorkersError) -> None:
        """Refuse whoever waits: when there will be a worker is unknown."""
        self._filled.clear()
        while queue := self._entries or self._light:
            entry = queue.pop()
            entry.leave()
            if not entry.reply.done():
                entry.reply.set_exception(error)

    async def _wait_for_company(self) -> None:
        """Wait a little for others if only unparsed captions would be in the batch."""
        waiting = sum(entry.size for entry in self._entries)
        may_have_company = self._batch_groups > 1 and waiting < self._batch_captions
        if may_have_company and self._entries and all(entry.fresh for entry in self._entries):
            since = min(entry.since for entry in self._entries)
            await asyncio.sleep(max(0.0, since + self._window_s - _time()))

    async def _feed_light(self, reserve: WorkerPool) -> None:
        while True:
            await self._light_filled.wait()
            try:
                worker = await reserve.acquire()
            except NoWorkersError:
                while self._light:
                    self._enter(self._light.pop(), light=False)
            else:
                batch = self._take(self._light, _LIGHT_BATCH)
                if not batch and self._needs_help:
                    batch = self._take(self._entries, _LITTLE_BATCH)
                if batch:
                    self._start(reserve, worker, batch)
                else:
                    reserve.release(worker)
            if self._light:
                self._filled.set()
            else:
                self._light_filled.clear()
                self._call_reserve()

    def _start(self, pool: WorkerPool, worker: Worker, batch: Sequence[_Entry]) -> None:
        if pool is self._pool:
            self._batch_groups = len(batch)
            if all(entry.cost <= _LITTLE for entry in batch):
                self._at_little.add(worker)
        task = asyncio.create_task(self._run(pool, worker, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_callers_behind(self) -> None:
        """Let the only free worker wait a little for a caller who has had less, and is expected at once."""
        # Else a caller with one call at a time would have every third turn instead of every second.
        # Source: Iyer and Druschel 2001, "Anticipatory scheduling".
        await asyncio.sleep(0)  # the callers of the batch that has just ended count as away from here on
        until = _time() + min(_WAIT_SHARE * self._batch_s, _LONGEST_WAIT_S)
        # The worker in reserve may have taken what waited.
        while self._entries and (expected := self._entries.expected(until)):
            self._next_sent.set()  # the caller who is waited for may be one of those who get their answers now
            self._came.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._came.wait()
            except TimeoutError:
                for share in expected:
                    share.away = math.inf  # until it comes again
                return

    def _take(self, queue: _FairQueue, most: int) -> list[_Entry]:
        """Take a batch of one tenant from a queue; small groups do not wait for a large one of somebody else."""
        batch = _Batch(most)
        queue.forget()
        while queue and batch.takes(queue):
            entry = queue.pop()
            if entry.reply.done():  # its caller has gone
                entry.leave()
            else:
                batch.add(entry)
        return batch.entries

    async def _run(self, pool: WorkerPool, worker: Worker, batch: Sequence[_Entry]) -> None:
        """Have a batch done; where the worker dies, each group alone, with three workers at most."""
        try:
            await self._do(pool, worker, batch)
        except ProcessEndedError as error:
            _log.warning("a batch of %d groups is tried again: %s", len(batch), error)
            for entry in batch:
                await self._retry(entry)
        except Exception as error:  # noqa: BLE001 (the callers must get an answer, whatever it was)
            _log.exception("a batch of %d groups failed", len(batch))
            _fail(batch, f"an unexpected {type(error).__name__}")

    async def _retry(self, entry: _Entry) -> None:
        if entry.reply.done():
            return
        try:
            try:
                await self._do(self._pool, await self._pool.acquire(), [entry])
            except ProcessEndedError:
                await asyncio.sleep(_TOGETHER_S)
                await self._do(self._pool, await self._pool.acquire(), [entry])
        except ProcessEndedError as error:
            _fail([entry], str(error))
        except NoWorkersError as error:
            if not entry.reply.done():
                entry.reply.set_exception(error)
        except Exception as error:  # noqa: BLE001 (as above)
            _log.exception("a group failed when it was tried again")
            _fail([entry], f"an unexpected {type(error).__name__}")

    async def _do(self, pool: WorkerPool, worker: Worker, batch: Sequence[_Entry]) -> None:
        tenant = batch[0].tenant
        try:
            texts = dict.fromkeys(text for entry in batch for text in entry.texts)
            lasting = _lasting(batch)
            known = await self._parses.get(texts, tenant=tenant, lasting=lasting)
        except BaseException:
            self._at_little.discard(worker)
            pool.release(worker)
            raise
        started = _time()
        call = asyncio.create_task(pool.call(worker, tasks.Work(tuple(entry.group for entry in batch), known)))
        call.add_done_callback(partial(self._leave, worker, batch))
        if pool is self._pool:
            self._next_sent.set()
            self._next_sent = next_sent = asyncio.Event()
        try:
            reply: tasks.Reply = await self._while_wanted(call, worker, batch)
        finally:
            call.cancel()
        if not isinstance(reply, tasks.WorkReply):
            _fail(batch, "a worker gave the wrong kind of reply")
            return
        self._note_time(pool, batch, _time() - started)
        self._parses.put(reply.parsed, tenant=tenant, lasting=lasting)
        if self._entries and pool is self._pool:
            # To answer a batch of small calls takes about as long as a worker needs for the next one.
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEAD_START_S):
                    await next_sent.wait()
        for entry, done in zip(batch, reply.groups, strict=True):
            if not entry.reply.done():
                entry.reply.set_result(done)

    def _note_time(self, pool: WorkerPool, batch: Sequence[_Entry], seconds: float) -> None:
        if pool is self._pool:
            self._batch_s = seconds
        if self._observe is not None:
            self._observe(sum(entry.size for entry in batch), seconds)

    def _leave(self, worker: Worker, batch: Sequence[_Entry], call: asyncio.Future[tasks.Reply]) -> None:
        """Count the callers of a batch that has ended as away."""
        del call
        self._at_little.discard(worker)
        for entry in batch:
            entry.leave()

    async def _while_wanted(
        self, call: asyncio.Task[tasks.Reply], worker: Worker, batch: Sequence[_Entry]
    ) -> tasks.Reply:
        """Return a worker's reply; end the worker when its callers, or after a long time some of them, have gone."""
        started = _time()
        await asyncio.wait([call], timeout=_PATIENCE_S)
        waiting: set[asyncio.Future[tasks.GroupReply]] = {entry.reply for entry in batch}
        while not call.done():
            left = started + _LONG_S - _time()
            watched: list[asyncio.Future[Any]] = [call, *waiting]
            await asyncio.wait(watched, timeout=left if left > 0 else None, return_when=asyncio.FIRST_COMPLETED)
            waiting = {reply for reply in waiting if not reply.done()}
            long = _time() - started >= _LONG_S
            if not call.done() and (not waiting or (long and len(waiting) < len(batch))):
                _log.warning("worker %d is ended: callers of its batch have gone", worker.process.pid)
                worker.process.kill()
                break
        return await call


def _passing(group: Group) -> frozenset[tasks.StyledText]:
    """Return the texts of a group whose parses do not belong in the store."""
    return group.passing if isinstance(group, tasks.ItemsWork) else frozenset()


def _lasting(batch: Sequence[_Entry]) -> set[tasks.StyledText] | None:
    """Return the texts of a batch whose parses belong in the store; ``None``: all."""
    if not any(_passing(entry.group) for entry in batch):
        return None
    return set().union(*(set(entry.texts) - _passing(entry.group) for entry in batch))


def _turns(group: Group, fresh: Sequence[tasks.StyledText]) -> Iterator[tasks.CaptionsWork]:
    """Yield the long captions of a group to be parsed before it, so that no group holds a worker for all of them."""
    if len(fresh) < 2:
        return
    costs = {text: cost for text in fresh if (cost := text_cost(text.text)) >= _LONG}
    if sum(costs.values()) <= _TURN:
        return
    turn: list[tasks.StyledText] = []
    for text in sorted(costs.keys() - _passing(group), key=lambda text: text.style):
        if turn and (turn[0].style != text.style or sum(map(costs.__getitem__, (*turn, text))) > _TURN):
            yield _turn(turn)
            turn = []
        turn.append(text)
    if turn:
        yield _turn(turn)


def _turn(texts: Sequence[tasks.StyledText]) -> tasks.CaptionsWork:
    return tasks.CaptionsWork(tuple(text.text for text in texts), graphs=False, style=texts[0].style)


def _time() -> float:
    return asyncio.get_running_loop().time()


def _fail(batch: Sequence[_Entry], reason: str) -> None:
    for entry in batch:
        if not entry.reply.done():
            entry.reply.set_result(tasks.GroupReply(error=reason))


def _report(feeder: asyncio.Task[None]) -> None:
    """Log why a feeder ended: without it nothing is done any longer."""
    if not feeder.cancelled() and (error := feeder.exception()):
        _log.critical("no more batches go to the workers", exc_info=error)
