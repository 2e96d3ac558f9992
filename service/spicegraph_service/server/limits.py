"""How much the server accepts: sizes of requests, the bound of its queue, rates of its callers."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORTEST_RETRY = 0.05
_LONGEST_RETRY = 30.0
_FIRST_RATE = 6_000.0  # captions per second, until there was enough work to measure
_MEASURED_S = 0.25  # of work without a pause, at least: a few captions alone take longer than among many
_REMEMBERED_S = 2.0  # of work, about: what counts for the rate
_OWN_TIMES = 2  # a request may wait this often its own time longer
_STREAMS_SHARE = 0.5  # of the wait, so that streams leave room for calls


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that a request may have; the contract's ``Limits`` says what each means."""

    max_items: int = 2_000
    max_stream_items: int = 200_000
    max_references: int = 100
    max_caption_characters: int = 2_000
    max_id_characters: int = 512
    max_message_bytes: int = 8 << 20
    max_reference_set_entries: int = 200_000
    max_reference_set_bytes: int = 128 << 20


class FullError(Exception):
    """There is no room; ``retry_after_s`` is when there may be."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class Budget:
    """The bound of the queue: captions that were accepted and are not answered yet.

    A request is accepted whole or refused whole. A request on its own is never too large, so that the
    limits of a request alone say how large it may be.

    Args:
        limit: captions at most.
        max_wait_s: how long an accepted request may have to wait, by the captions done per second so far. Twice its
            own time is added, since a caller with much work can wait longer. A request that was refused may wait
            longer with every refusal, so that it does not starve behind new ones.
        clock: the time in seconds.
    """

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
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take(self, captions: int, *, refusals: int = 0) -> None:
        """Make room for a request that was refused so often before.

        Raises:
            FullError: there is none.
        """
        self.check(captions, refusals=refusals)
        self._enter(captions)

    def check(self, captions: int, *, refusals: int = 0) -> None:
        """Check that there is room.

        Raises:
            FullError: there is none.
        """
        longest = (1 + refusals) * self.max_wait_s + _OWN_TIMES * captions / self._rate
        if self.used and (self.used + captions > self.limit or self.used / self._rate > longest):
            seconds = self.used / self._rate
            raise FullError(min(max(seconds, _SHORTEST_RETRY), _LONGEST_RETRY))

    async def wait(self, captions: int) -> None:
        """Make room for a part of a stream when there is some: a stream is slowed down, not refused."""
        if not self._waiting and self._suits_stream(captions):
            self._enter(captions)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((captions, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(captions)
            raise

    def release(self, captions: int) -> None:
        """Give the room back."""
        self.used -= captions
        self._measure(captions)
        while self._waiting:
            wanted, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
            elif self._suits_stream(wanted):
                self._waiting.popleft()
                self._enter(wanted)
                turn.set_result(None)
            else:
                return

    def _enter(self, captions: int) -> None:
        self.used += captions
        if self._since is None:
            self._since = self._clock()

    def _suits_stream(self, captions: int) -> bool:
        if not self.used:
            return True
        return self.used + captions <= self.limit and self.used / self._rate <= self.max_wait_s * _STREAMS_SHARE

    def _measure(self, captions: int) -> None:
        """Keep a running estimate of the captions done per second, measured while there is steady work."""
        now = self._clock()
        self._done += captions
        if self._since is not None and now - self._since >= _MEASURED_S:
            seconds = now - self._since
            self._rate += (1 - math.exp(-seconds / _REMEMBERED_S)) * (self._done / seconds - self._rate)
            self._done, self._since = 0, now
        if not self.used:
            self._done, self._since = 0, None


class TokenBucket:
    """A caller's rate: ``rate`` captions per second on average, ``burst`` at once."""

    __slots__ = ("_burst", "_clock", "_level", "_rate", "_updated")

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._level = burst
        self._updated = clock()

    def take(self, captions: int) -> None:
        """Take captions. A full bucket lets any one request pass, and then stays empty for longer.

        Raises:
            FullError: the caller is too fast.
        """
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._updated) * self._rate)
        self._updated = now
        needed = min(float(captions), self._burst)
        if self._level < needed:
            raise FullError((needed - self._level) / self._rate)
        self._level -= captions
