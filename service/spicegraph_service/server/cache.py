"""Parses and references at hand: a bounded memory in front of the store, which servers may share."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from spicegraph_service.store import Store, StoreError

__all__ = ["Lru", "ParseCache", "StoreThread"]

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
_PAUSE_S = 1.0
_MOST_WAITING_WRITES = 64
_OVERHEAD = 200  # bytes of a key, a value and their place in the table, roughly
_log = logging.getLogger(__name__)


class Lru(Generic[Key]):
    """Byte strings by key; the least recently used ones go when all are larger than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: OrderedDict[Key, bytes] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> bytes | None:
        """Return a value, if it is here."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: bytes) -> None:
        """Keep a value."""
        old = self._values.pop(key, None)
        if old is not None:
            self._bytes -= len(old) + _OVERHEAD
        self._values[key] = value
        self._bytes += len(value) + _OVERHEAD
        while self._bytes > self._max_bytes and self._values:
            _, gone = self._values.popitem(last=False)
            self._bytes -= len(gone) + _OVERHEAD


class StoreThread:
    """Runs the calls of a store, one at a time, outside of the event loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call of the store and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close(self) -> None:
        """Finish the calls under way, then close the store."""
        await self.run(self.store.close)
        self._thread.shutdown()


class ParseCache:
    """Parses by text. The store is a help, not a need: where it fails, captions are parsed again.

    Args:
        reads: where parses are looked for. Workers wait for that.
        writes: where new ones are kept; nobody waits for that, so it should be another thread.
        signature: what the parses depend on beside the text.
        max_bytes: of parses in memory, about.
        observe: is told where parses were found, and how many.
    """

    def __init__(
        self,
        reads: StoreThread,
        writes: StoreThread,
        signature: str,
        *,
        max_bytes: int,
        observe: Callable[[str, int], None] | None = None,
    ) -> None:
        self._reads = reads
        self._writer = writes
        self._signature = signature
        self._memory: Lru[str] = Lru(max_bytes)
        self._observe = observe
        self._paused_until = 0.0
        self._writes: set[asyncio.Task[None]] = set()

    def missing(self, texts: Iterable[str]) -> int:
        """Return how many of the texts are not in memory."""
        return sum(text not in self._memory for text in texts)

    async def get(self, texts: Iterable[str]) -> dict[str, bytes]:
        """Return the parses that are known."""
        found: dict[str, bytes] = {}
        unknown = []
        for text in texts:
            value = self._memory.get(text)
            if value is None:
                unknown.append(text)
            else:
                found[text] = value
        stored = await self._stored(unknown) if unknown else {}
        for text, value in stored.items():
            self._memory.put(text, value)
        self._count(len(found), len(stored), len(unknown) - len(stored))
        return found | stored

    def put(self, parses: Mapping[str, bytes]) -> None:
        """Keep new parses: in memory now, in the store soon."""
        for text, value in parses.items():
            self._memory.put(text, value)
        if parses and self._open() and len(self._writes) < _MOST_WAITING_WRITES:
            task = asyncio.create_task(self._write(dict(parses)))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def flush(self) -> None:
        """Wait for the writes under way."""
        await asyncio.gather(*self._writes)

    async def _stored(self, texts: list[str]) -> dict[str, bytes]:
        if not self._open():
            return {}
        try:
            return await self._reads.run(lambda: self._reads.store.get_parses(self._signature, texts))
        except StoreError as error:
            self._pause(error)
            return {}

    async def _write(self, parses: dict[str, bytes]) -> None:
        try:
            await self._writer.run(lambda: self._writer.store.put_parses(self._signature, parses))
        except StoreError as error:
            self._pause(error)

    def _open(self) -> bool:
        return asyncio.get_running_loop().time() >= self._paused_until

    def _pause(self, error: StoreError) -> None:
        """Leave a failing store alone for a while: its time-outs must not slow every call."""
        self._paused_until = asyncio.get_running_loop().time() + _PAUSE_S
        _log.warning("the parse store fails; going on without it for %.0f s: %s", _PAUSE_S, error)
        if self._observe is not None:
            self._observe("error", 1)

    def _count(self, memory: int, store: int, miss: int) -> None:
        if self._observe is not None:
            for result, number in (("memory", memory), ("store", store), ("miss", miss)):
                if number:
                    self._observe(result, number)
