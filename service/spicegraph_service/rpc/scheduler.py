"""Items to results: chunks of a request through the workers, within the bound of the queue."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from spicegraph_service.pool import tasks
from spicegraph_service.pool.costs import texts_cost
from spicegraph_service.rpc.status import unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from spicegraph_service.pool.batching import Dispatcher
    from spicegraph_service.rpc.limits import Budget

CHUNK_ITEMS = 64  # Items that go to a worker together; between them a request can be cancelled.

_CHUNK_CAPTIONS = 384  # of the items of a chunk: those of 64 items with five references

_CHUNK_CHARACTERS = 32_768  # of its captions, unless a single item has more: a few times what those have usually

_CHUNK_LONG = 80  # what its long captions cost more than usual ones, unless a single item's do: about 50 ms

T = TypeVar("T")


class Scheduler:
    """Scores and parses; not before :meth:`loaded` was called."""

    def __init__(self, budget: Budget, *, chunks_at_once: int) -> None:
        self.budget = budget
        self._chunks_at_once = chunks_at_once
        self._loaded: tuple[tasks.WorkerInfo, Dispatcher] | None = None

    def loaded(self, info: tasks.WorkerInfo, dispatcher: Dispatcher) -> None:
        """Serve from now on: the workers are ready."""
        self._loaded = info, dispatcher

    @property
    def info(self) -> tasks.WorkerInfo:
        """The workers' capabilities; UNAVAILABLE until they are ready."""
        return self._ready()[0]

    async def score(
        self,
        items: Sequence[tasks.ItemWork],
        metrics: tuple[str, ...],
        detail: int,
        given: tasks.RequestData = tasks.NOTHING_GIVEN,
        *,
        caller: str = "",
        tenant: str = "",
        refusals: int = 0,
    ) -> tuple[list[bytes], bytes]:
        """Score all items of a request; return a serialized result per item, and the corpus result."""
        _, dispatcher = self._ready()
        async with self._room(count_cost(items), caller, refusals=refusals):
            chunks = list(item_chunks(items))
            if len(chunks) == 1:
                work = tasks.ItemsWork(metrics, detail, chunks[0], finish=True, given=given)
                only = await dispatcher.submit(work, caller=caller, tenant=tenant)
                return list(only.results), only.corpus
            works = [tasks.ItemsWork(metrics, detail, chunk, finish=False, given=given) for chunk in chunks]
            replies = await self._gather(works, dispatcher, caller, tenant)
            statistics = tuple(reply.statistics for reply in replies)
            totals = await dispatcher.totals(tasks.Totals(metrics, detail, statistics, given))
        results = [result for reply in replies for result in reply.results]
        # Two serialized messages, one behind the other, are the merged message.
        return [a + b for a, b in zip(results, totals.results or [b""] * len(results), strict=True)], totals.corpus

    async def parse(
        self,
        texts: Sequence[str],
        style: tasks.GraphStyle = "spice",
        *,
        caller: str = "",
        tenant: str = "",
        refusals: int = 0,
    ) -> list[bytes]:
        """Parse captions; return them serialized. ``refusals`` says how often the request was refused before."""
        _, dispatcher = self._ready()
        async with self._room(texts_cost(texts), caller, refusals=refusals):
            works = [tasks.CaptionsWork(chunk, graphs=True, style=style) for chunk in text_chunks(texts)]
            replies = await self._gather(works, dispatcher, caller, tenant)
        return [result for reply in replies for result in reply.results]

    async def store_parses(
        self, texts: Sequence[str], style: tasks.GraphStyle = "spice", *, caller: str = "", tenant: str = ""
    ) -> None:
        """Parse captions of an upload into the store; waits for room."""
        _, dispatcher = self._ready()
        async with self._room(texts_cost(texts), caller):
            works = [tasks.CaptionsWork(chunk, graphs=False, style=style) for chunk in text_chunks(texts)]
            await self._gather(works, dispatcher, caller, tenant)

    async def chunk(
        self,
        items: Sequence[tasks.ItemWork],
        metrics: tuple[str, ...],
        detail: int,
        given: tasks.RequestData = tasks.NOTHING_GIVEN,
        *,
        caller: str = "",
        tenant: str = "",
        errors: bool = False,
    ) -> tasks.GroupReply:
        """Score a chunk of a stream; waits for room. With ``errors`` the statistics tell those of each item."""
        _, dispatcher = self._ready()
        async with self._room(count_cost(items), caller):
            work = tasks.ItemsWork(metrics, detail, tuple(items), finish=False, given=given, errors=errors)
            return await dispatcher.submit(work, caller=caller, tenant=tenant)

    async def totals(
        self,
        metrics: tuple[str, ...],
        detail: int,
        statistics: Iterable[bytes],
        given: tasks.RequestData = tasks.NOTHING_GIVEN,
    ) -> tasks.GroupReply:
        """Return the corpus result of a stream."""
        return await self._ready()[1].totals(tasks.Totals(metrics, detail, tuple(statistics), given))

    def _ready(self) -> tuple[tasks.WorkerInfo, Dispatcher]:
        if self._loaded is None:
            raise unavailable("LOADING", "the server is not ready: its workers are loading", 1.0)
        return self._loaded

    @asynccontextmanager
    async def _room(self, cost: int, caller: str, *, refusals: int | None = None) -> AsyncIterator[None]:
        """Hold room in the queue: at once, or raise a :class:`FullError`; without ``refusals``, wait in turn for it."""
        if refusals is None:
            await self.budget.wait(cost, caller=caller)
        else:
            self.budget.take(cost, caller=caller, refusals=refusals)
        try:
            yield
        finally:
            self.budget.release(cost, caller=caller)

    async def _gather(
        self, works: Sequence[tasks.ItemsWork | tasks.CaptionsWork], dispatcher: Dispatcher, caller: str, tenant: str
    ) -> list[tasks.GroupReply]:
        """Have the chunks of a request done, a few at a time, so that small requests get in between."""
        if len(works) == 1:
            return [await dispatcher.submit(works[0], caller=caller, tenant=tenant)]
        turns = asyncio.Semaphore(self._chunks_at_once)

        async def one(work: tasks.ItemsWork | tasks.CaptionsWork) -> tasks.GroupReply:
            async with turns:
                return await dispatcher.submit(work, caller=caller, tenant=tenant)

        try:
            async with asyncio.TaskGroup() as group:
                calls = [group.create_task(one(work)) for work in works]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [call.result() for call in calls]


def count_captions(items: Iterable[tasks.ItemWork]) -> int:
    """Return the captions of items: candidates, references and drafts."""
    return sum(len(item.captions) for item in items)


def count_cost(items: Iterable[tasks.ItemWork]) -> int:
    """Return the expected worker cost of the items' captions, in usual captions."""
    return sum(texts_cost(item.captions) for item in items)


def item_chunks(items: Sequence[tasks.ItemWork]) -> Iterator[tuple[tasks.ItemWork, ...]]:
    """Yield items in chunks: at most :data:`CHUNK_ITEMS` items, and not many more or longer captions than usual."""
    chunk: list[tasks.ItemWork] = []
    captions = characters = long = 0
    for item in items:
        texts = item.captions
        length, excess = sum(map(len, texts)), texts_cost(texts) - len(texts)
        full = captions + len(texts) > _CHUNK_CAPTIONS or characters + length > _CHUNK_CHARACTERS
        if chunk and (len(chunk) == CHUNK_ITEMS or full or long + excess > _CHUNK_LONG):
            yield tuple(chunk)
            chunk, captions, characters, long = [], 0, 0, 0
        chunk.append(item)
        captions += len(texts)
        characters += length
        long += excess
    if chunk:
        yield tuple(chunk)


def text_chunks(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield captions in chunks, as :func:`item_chunks` does items."""
    for chunk in item_chunks([tasks.ItemWork("", text, ()) for text in texts]):
        yield tuple(item.candidate for item in chunk)


def chunked(values: Sequence[T], size: int) -> Iterable[tuple[T, ...]]:
    """Return a sequence in pieces."""
    return (tuple(values[start : start + size]) for start in range(0, len(values), size))
