"""How much the server accepts: sizes of requests, the bound of its queue, rates of its callers."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

MOST_CONNECTIONS = 4_096  # in all, over gRPC, and over HTTP; those of one address are bounded by a proxy
_SHORTEST_RETRY = 0.05
_LONGEST_RETRY = 30.0
_FIRST_RATE = 6_000.0  # captions per second, until there was enough work to measure
_MEASURED_S = 0.25  # of work without a pause, at least: a few captions alone take longer than among many
_REMEMBERED_S = 2.0  # of work, about: what counts for the rate
_TOGETHER = 128  # captions that one batch takes: to refuse one of them saves the others no time
_OWN_TIMES = 2  # a request may wait this often its own time longer
_LONGEST_PROMISE = 4.0  # seconds behind which refused calls are not sent for others' sake: some clients give up
_STREAMS_SHARE = 0.5  # of the wait, so that streams leave room for calls


def allow_descriptors() -> None:
    """Let this process have as many descriptors as its connections over gRPC and HTTP need, where the system does."""
    with suppress(ImportError):  # Windows
        import resource  # noqa: PLC0415

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 3 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(3 * MOST_CONNECTIONS, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of requests; the contract's ``Limits`` documents each field."""

    max_items: int = 2_000
    max_stream_items: int = 200_000
    max_references: int = 100
    max_caption_characters: int = 2_000
    max_item_characters: int = 20_000
    max_id_characters: int = 512
    max_message_bytes: int = 8 << 20
    max_reference_set_entries: int = 200_000
    max_reference_set_bytes: int = 128 << 20
    max_sets: int = 0  # of a tenant; 0: any number
    max_calls: int = 0  # of a token, under way; 0: any number
    max_silence_s: float = 300.0  # in the middle of a stream, or of a connection without calls
    max_unanswered_bytes: int = 1 << 30  # of bodies over HTTP, in memory and in files; half of it of one address


class FullError(Exception):
    """There is no room; ``retry_after_s`` is when there may be."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class ByteBudget:
    """The bound of bytes that were read and are not answered yet: of all callers, and of one address."""

    def __init__(self, most: int, most_of_peer: int) -> None:
        self._most = most
        self._most_of_peer = most_of_peer
        self._used: dict[str, int] = {}

    @contextmanager
    def account(self, peer: str) -> Iterator[Callable[[int], None]]:
        """Yield a counter for one request's bytes, released at its end; raises :class:`FullError`."""
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            of_peer = self._used.get(peer, 0)
            if of_peer + size > self._most_of_peer or sum(self._used.values()) + size > self._most:
                raise FullError(1.0)
            self._used[peer] = of_peer + size
            counted += size

        try:
            yield count
        finally:
            if left := self._used.get(peer, 0) - counted:
                self._used[peer] = left
            else:
                self._used.pop(peer, None)


class Budget:
    """The bound of the queue: ``limit`` captions that were accepted and not answered yet, ``max_wait_s`` of work."""

    # A request is accepted whole or refused whole; one on its own is never too large. What it waits for is its caller's
    # earlier work and as much of every other caller's, since the dispatcher serves callers in turn: a caller with much
    # work in the queue is refused while others are not. Twice its own time is added, and more with every refusal.
    # Refused calls are told to come again one behind the other, as if they stood in the queue: or else all of them come
    # when there is room for one.

    def __init__(
        self, limit: int, *, max_wait_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self.max_wait_s = max_wait_s
        self.used = 0
        self._clock = clock
        self._rate = _FIRST_RATE
        self._since: float | None = None
        self._done = 0
        self._used_by: dict[str, int] = {}
        self._told: list[tuple[float, str, int]] = []  # of refused calls: when to come again, whose they are, captions
        self._told_by: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}  # by caller

    def take(self, captions: int, *, caller: str = "", refusals: int = 0) -> None:
        """Make room for a request of a caller that was refused so often before."""
        self.check(captions, caller=caller, refusals=refusals)
        self._enter(captions, caller)

    def check(self, captions: int, *, caller: str = "", refusals: int = 0) -> None:
        """Check that there is room."""
        longest = (1 + refusals) * self.max_wait_s + _OWN_TIMES * captions / self._rate
        before = self._before(captions, caller)
        seconds = before / self._rate
        waits_for_long = seconds > longest and before + captions > _TOGETHER
        if self.used and (waits_for_long or self.used + captions > self.limit):
            raise FullError(self._when(seconds, captions, caller))

    def _when(self, seconds: float, captions: int, caller: str) -> float:
        """Return in how many seconds a refused call may come again: behind the queue, and others that were refused."""
        now = self._clock()
        while self._told and self._told[0][0] <= now:
            _, other, size = heappop(self._told)
            self._told_by[other] -= size
        self._told_by += Counter()  # leaves out callers of whom nothing is expected
        behind = self._before(captions, caller, Counter(self._used_by) + self._told_by) / self._rate
        wait = min(max(seconds, min(behind, _LONGEST_PROMISE), _SHORTEST_RETRY), _LONGEST_RETRY)
        heappush(self._told, (now + wait, caller, captions))
        self._told_by[caller] += captions
        return wait

    async def wait(self, captions: int, *, caller: str = "") -> None:
        """Make room for a part of a stream when there is some: a stream is slowed down, not refused."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append((captions, turn))
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(captions, caller=caller)
            raise

    def release(self, captions: int, *, caller: str = "") -> None:
        """Give the room back."""
        self.used -= captions
        self._used_by[caller] -= captions
        if not self._used_by[caller]:
            del self._used_by[caller]
        # A running estimate of the captions done per second, measured while there is steady work.
        now = self._clock()
        self._done += captions
        if self._since is not None and now - self._since >= _MEASURED_S:
            seconds = now - self._since
            self._rate += (1 - math.exp(-seconds / _REMEMBERED_S)) * (self._done / seconds - self._rate)
            self._done, self._since = 0, now
        if not self.used:
            self._done, self._since = 0, None
        self._let_in()

    def _let_in(self) -> None:
        """Make room for parts of streams: first for the caller with the least in the queue, in turn among equals."""
        while self._waiting:
            caller = min(self._waiting, key=self._used)
            parts = self._waiting.pop(caller)
            captions, turn = parts[0]
            if not turn.cancelled():
                if not self._suits_stream(captions, caller):
                    self._waiting = {caller: parts, **self._waiting}  # it stays the first
                    return
                self._enter(captions, caller)
                turn.set_result(None)
            parts.popleft()
            if parts:
                self._waiting[caller] = parts

    def _used(self, caller: str) -> int:
        return self._used_by.get(caller, 0)

    def _enter(self, captions: int, caller: str) -> None:
        self.used += captions
        self._used_by[caller] = self._used_by.get(caller, 0) + captions
        if self._since is None:
            self._since = self._clock()

    def _before(self, captions: int, caller: str, queue: Mapping[str, int] | None = None) -> int:
        """Return how many captions are done before a request is: its caller's own, and no more of any other's."""
        used_by = self._used_by if queue is None else queue
        captions_of_caller = used_by.get(caller, 0)
        most = captions_of_caller + captions
        return captions_of_caller + sum(min(used, most) for other, used in used_by.items() if other != caller)

    def _suits_stream(self, captions: int, caller: str) -> bool:
        if not self.used:
            return True
        if self.used + captions > self.limit:
            return False
        return caller not in self._used_by or self._before(0, caller) / self._rate <= self.max_wait_s * _STREAMS_SHARE


class TokenBucket:
    """A caller's rate: ``rate`` captions per second on average, ``burst`` at once; ``level`` is left of that."""

    __slots__ = ("_clock", "_level", "_updated", "burst", "rate")

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._level = burst
        self._updated = clock()

    @property
    def level(self) -> float:
        """Captions that may pass now; negative after a large request."""
        now = self._clock()
        self._level = min(self.burst, self._level + (now - self._updated) * self.rate)
        self._updated = now
        return self._level

    @level.setter
    def level(self, level: float) -> None:
        self._level = level
        self._updated = self._clock()

    def take(self, captions: int) -> None:
        """Take captions. A full bucket lets any one request pass, and then stays empty for longer."""
        level = self.level
        needed = min(float(captions), self.burst)
        if level < needed:
            raise FullError((needed - level) / self.rate)
        self._level -= captions


class SharedBucket:
    """A rate limit shared by several servers; ``spend`` counts for all and returns the rest."""

    # Each server counts for itself, so that no call waits for the store, and within a tenth of a second adds its count
    # to that of all. What servers grant too much in that time, all of them have to wait for afterwards.

    __slots__ = ("_bucket", "_sharing", "_spend", "_unsent", "rate")

    def __init__(self, bucket: TokenBucket, spend: Callable[[int], Awaitable[float | None]]) -> None:
        self._bucket = bucket
        self.rate = bucket.rate  # captions per second
        self._spend = spend
        self._unsent = 0
        self._sharing: asyncio.Task[None] | None = None

    def take(self, captions: int) -> None:
        """See :meth:`TokenBucket.take`."""
        self._bucket.take(captions)
        self._unsent += captions
        if self._sharing is None or self._sharing.done():
            self._sharing = asyncio.create_task(self._share())

    async def _share(self) -> None:
        while self._unsent:
            await asyncio.sleep(0.1)
            spent, self._unsent = self._unsent, 0
            level = await self._spend(spent)
            if level is not None:
                self._bucket.level = level - self._unsent
