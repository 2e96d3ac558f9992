"""Answers of the store, remembered for some seconds and renewed before they are too old: calls do not wait for it."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Remembered"]

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Remembered(Generic[Key, T]):
    """What ``find`` returned, for ``seconds``; in the second half of that time it is asked again beside the calls.

    Args:
        find: asks the store; ``None``: there is no such thing, which is not remembered.
        seconds: how old an answer may be.
        most: keys that are remembered; the ones that were asked for longest ago go.
        clock: the time in seconds.
    """

    def __init__(
        self,
        find: Callable[[Key], Awaitable[T | None]],
        *,
        seconds: float,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._known: OrderedDict[Key, tuple[float, T]] = OrderedDict()
        self._asking: dict[Key, asyncio.Task[T | None]] = {}

    async def get(self, key: Key) -> T | None:
        """Return the answer for a key.

        Raises:
            StoreError: the store cannot be read.
        """
        known = self._known.get(key)
        age = self._clock() - known[0] if known is not None else self._seconds
        if known is None or age >= self._seconds:
            return await asyncio.shield(self._ask(key))
        if age >= self._seconds / 2:
            self._ask(key)
        return known[1]

    def peek(self, key: Key) -> T | None:
        """Return the last answer, however old."""
        known = self._known.get(key)
        return known[1] if known is not None else None

    def forget(self, key: Key) -> None:
        """Ask anew next time."""
        self._known.pop(key, None)
        self._asking.pop(key, None)

    def _ask(self, key: Key) -> asyncio.Task[T | None]:
        """Return the question under way; all who ask meanwhile share it."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._renew(key))
            task.add_done_callback(_taken_note)
        return task

    async def _renew(self, key: Key) -> T | None:
        asked = self._clock()
        me = asyncio.current_task()
        try:
            value = await self._find(key)
            if self._asking.get(key) is me:  # or else it was forgotten meanwhile
                self._keep(key, asked, value)
        finally:
            if self._asking.get(key) is me:
                del self._asking[key]
        return value

    def _keep(self, key: Key, asked: float, value: T | None) -> None:
        if value is None:
            self._known.pop(key, None)
            return
        self._known[key] = (asked, value)
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


def _taken_note(task: asyncio.Task[T]) -> None:
    """Take note of an error: who waits is told, and otherwise the answer gets old and is asked for again."""
    if not task.cancelled():
        task.exception()
