"""Caches of the server: byte strings, parses in front of the store, and answers of the store renewed ahead of time."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spicegraph_service.store import DEFAULT_TENANT, Store, StoreError

if TYPE_CHECKING:
    from spicegraph_service.pool.tasks import GraphStyle, StyledText

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
_PAUSE_S = 1.0
_MOST_WAITING_WRITES = 64
# Bytes of an entry beside its value and its key as text, by resident memory: 240 when new, 310 to 380 once entries were
# replaced several times over: what one leaves does not fit the next.
_OVERHEAD = 380
_log = logging.getLogger(__name__)


class Lru:
    """Byte strings by texts; the least recently used ones go when all take more than ``max_bytes`` with their keys."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: OrderedDict[tuple[str, ...], bytes] = OrderedDict()

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: tuple[str, ...]) -> bytes | None:
        """Return a value, if it is here."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: tuple[str, ...], value: bytes) -> None:
        """Keep a value."""
        old = self._values.pop(key, None)
        if old is not None:
            self._bytes -= _size(key, old)
        self._values[key] = value
        self._bytes += _size(key, value)
        while self._bytes > self._max_bytes and self._values:
            self._bytes -= _size(*self._values.popitem(last=False))


def _size(key: tuple[str, ...], value: bytes) -> int:
    return sum([len(part.encode()) for part in key]) + len(value) + _OVERHEAD


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
    """Parses by tenant and text, in ``memory`` (shared by caches) and a store; ``observe`` is told where they were."""

    def __init__(
        self,
        reads: StoreThread | None,
        writes: StoreThread | None,
        signature: str,
        *,
        memory: Lru,
        scenes: str = "",
        observe: Callable[[str, int], None] | None = None,
    ) -> None:
        self._reads = reads
        self._writer = writes
        self._signatures: Mapping[GraphStyle, str] = {"spice": signature, "scene": scenes}
        self._memory = memory
        self._observe = observe
        self._paused_until = 0.0
        self._writes: set[asyncio.Task[None]] = set()

    def _key(self, tenant: str, text: StyledText) -> tuple[str, ...]:
        return (self._signatures["spice"], tenant, *text)  # caches that share the memory differ in the signature

    def missing(self, texts: Iterable[StyledText], *, tenant: str = "") -> list[StyledText]:
        """Return those of a tenant's texts that are not in memory."""
        return [text for text in texts if self._key(tenant, text) not in self._memory]

    async def get(
        self, texts: Iterable[StyledText], *, tenant: str = "", lasting: Collection[StyledText] | None = None
    ) -> dict[StyledText, bytes]:
        """Return the parses that a tenant knows; only those of ``lasting`` (``None``: all) may be in the store."""
        known: dict[StyledText, bytes] = {}
        unknown = []
        for text in texts:
            value = self._memory.get(self._key(tenant, text))
            if value is None:
                unknown.append(text)
            else:
                known[text] = value
        asked = unknown if lasting is None else [text for text in unknown if text in lasting]
        stored = await self._stored(self._reads, asked, tenant) if asked and self._reads is not None else {}
        for text, value in stored.items():
            self._memory.put(self._key(tenant, text), value)
        misses = len(unknown) - len(stored)
        self._note(memory=len(known), store=len(stored), miss=misses)
        return known | stored

    def _note(self, **results: int) -> None:
        for result, number in results.items():
            if number and self._observe is not None:
                self._observe(result, number)

    def put(
        self, parses: Mapping[StyledText, bytes], *, tenant: str = "", lasting: Collection[StyledText] | None = None
    ) -> None:
        """Keep new parses of a tenant: in memory now, those of ``lasting`` (``None``: all) in the store soon."""
        for text, value in parses.items():
            self._memory.put(self._key(tenant, text), value)
        kept = {text: value for text, value in parses.items() if lasting is None or text in lasting}
        if kept and self._writer is not None and self._open() and len(self._writes) < _MOST_WAITING_WRITES:
            task = asyncio.create_task(self._write(self._writer, kept, tenant))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def flush(self) -> None:
        """Wait for the writes under way."""
        await asyncio.gather(*self._writes)

    def _signed(self, texts: Iterable[StyledText], tenant: str) -> dict[str, list[StyledText]]:
        """Return the texts by the signature that the store has them under."""
        by_signature: dict[str, list[StyledText]] = {}
        for text in texts:
            signature = self._signatures[text.style]
            of_tenant = signature if tenant in {"", DEFAULT_TENANT} else f"{signature} tenant {tenant}"
            by_signature.setdefault(of_tenant, []).append(text)
        return by_signature

    async def _stored(self, reads: StoreThread, texts: list[StyledText], tenant: str) -> dict[StyledText, bytes]:
        if not self._open():
            return {}
        try:
            known: dict[StyledText, bytes] = {}
            for signature, signed in self._signed(texts, tenant).items():
                plain = [text.text for text in signed]
                stored = await reads.run(partial(reads.store.get_parses, signature, plain))
                known |= {text: stored[text.text] for text in signed if text.text in stored}
        except StoreError as error:
            self._pause(error)
            return {}
        return known

    async def _write(self, writes: StoreThread, parses: dict[StyledText, bytes], tenant: str) -> None:
        try:
            for signature, signed in self._signed(parses, tenant).items():
                values = {text.text: parses[text] for text in signed}
                await writes.run(partial(writes.store.put_parses, signature, values))
        except StoreError as error:
            self._pause(error)

    def _open(self) -> bool:
        return asyncio.get_running_loop().time() >= self._paused_until

    def _pause(self, error: StoreError) -> None:
        """Leave a failing store alone for a while: its time-outs must not slow every call."""
        self._paused_until = asyncio.get_running_loop().time() + _PAUSE_S
        _log.warning("the parse store fails; going on without it for %.0f s: %s", _PAUSE_S, error)
        self._note(error=1)


class RefreshAheadCache(Generic[Key, T]):
    """Keeps ``find``'s answers (not ``None``) for ``seconds``; in the second half they are renewed beside the calls."""

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
        """Return the answer for a key."""
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

    def expire(self) -> None:
        """Ask anew for every key; :meth:`peek` still knows the last answers."""
        self._known = OrderedDict((key, (-math.inf, value)) for key, (_, value) in self._known.items())
        self._asking.clear()

    def _ask(self, key: Key) -> asyncio.Task[T | None]:
        """Return the question under way; all who ask meanwhile share it."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._renew(key))
            task.add_done_callback(retrieve_error)
        return task

    async def _renew(self, key: Key) -> T | None:
        asked = self._clock()
        me = asyncio.current_task()
        try:
            value = await self._find(key)
            if self._asking.get(key) is me:  # or else it was forgotten meanwhile
                self._known.pop(key, None)
                if value is not None:
                    self._known[key] = (asked, value)
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
        finally:
            if self._asking.get(key) is me:
                del self._asking[key]
        return value


def retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve an error: those who wait get it too, and otherwise the answer grows old and is asked for again."""
    if not task.cancelled():
        task.exception()
