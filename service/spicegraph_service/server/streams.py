"""Streams: an upload that must not stall, and ScoreStream's bounded pipe through the workers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import grpc

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_service.server.scheduler import CHUNK_ITEMS, Scheduler, chunked
from spicegraph_service.server.status import CallError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from spicegraph_scorer.metrics.spice.custom import CategoryDefinition
    from spicegraph_service.server.tasks import ItemWork

_LONGEST_SILENCE_S = 60
_CHUNKS = 4  # of one stream that are under way or wait for its reader

T = TypeVar("T")


async def patiently(requests: AsyncIterator[T]) -> AsyncIterator[T]:
    """Return the messages of an upload; a client that sends nothing for long loses its place to others.

    Raises:
        CallError: ABORTED.
    """
    while True:
        try:
            async with asyncio.timeout(_LONGEST_SILENCE_S):
                request = await anext(requests, None)
        except TimeoutError as error:
            raise CallError(
                grpc.StatusCode.ABORTED, "UPLOAD_STALLED", f"no message came for {_LONGEST_SILENCE_S} s"
            ) from error
        if request is None:
            return
        yield request


class ItemStream:
    """Takes items, gives responses.

    No more than a few chunks are between the two: a client that does not read its results is not read from
    either. Of each chunk its statistics stay, for the corpus result.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._metrics: tuple[str, ...] = ()
        self._detail = 0
        self._categories: tuple[CategoryDefinition, ...] = ()
        self._room = asyncio.Semaphore(_CHUNKS)
        # Responses; then None at the end, or why it came too early.
        self._ready: asyncio.Queue[pb.ScoreStreamResponse | Exception | None] = asyncio.Queue()
        self._tasks = asyncio.TaskGroup()
        self._ids: list[str] = []
        self._statistics: list[bytes] = []

    def start(self, metrics: tuple[str, ...], detail: int, categories: tuple[CategoryDefinition, ...] = ()) -> None:
        """Set what is computed."""
        self._metrics = metrics
        self._detail = detail
        self._categories = categories

    async def put(self, items: Sequence[ItemWork]) -> None:
        """Take items; waits until there is room."""
        for chunk in chunked(items, CHUNK_ITEMS):
            await self._room.acquire()
            self._ids += [item.id for item in chunk]
            self._statistics.append(b"")
            self._tasks.create_task(self._score(chunk, len(self._statistics) - 1))

    async def _score(self, items: Sequence[ItemWork], number: int) -> None:
        reply = await self._scheduler.chunk(items, self._metrics, self._detail, self._categories)
        self._statistics[number] = reply.statistics
        results = map(scores_pb2.ItemResult.FromString, reply.results)
        self._ready.put_nowait(pb.ScoreStreamResponse(items=results))

    @asynccontextmanager
    async def reading(self, reader: Coroutine[None, None, None]) -> AsyncIterator[None]:
        """Run the reader of the client's messages beside the responses; its errors end the stream."""
        # Not in a task group with the responses: its error would cancel the task that sends them, in the middle
        # of a message, and gRPC would leave the call without a status.
        pump = asyncio.create_task(self._pump(reader))
        try:
            yield
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _pump(self, reader: Coroutine[None, None, None]) -> None:
        try:
            async with self._tasks:
                await reader
        except Exception as error:  # noqa: BLE001 (whatever it was, it ends the responses)
            self._ready.put_nowait(_first(error))
        else:
            self._ready.put_nowait(None)

    async def responses(self) -> AsyncIterator[pb.ScoreStreamResponse]:
        """Return results as they are ready, then those that depend on all items, then the corpus result."""
        while (response := await self._ready.get()) is not None:
            if isinstance(response, Exception):
                raise response
            yield response
            self._room.release()
        totals = await self._scheduler.totals(self._metrics, self._detail, self._statistics, self._categories)
        late = map(scores_pb2.ItemResult.FromString, totals.each)
        for pairs in chunked(list(zip(self._ids, late, strict=bool(totals.each))), CHUNK_ITEMS):
            for item_id, result in pairs:
                result.id = item_id
            yield pb.ScoreStreamResponse(items=[result for _, result in pairs])
        yield pb.ScoreStreamResponse(corpus=scores_pb2.CorpusResult.FromString(totals.corpus))


def _first(error: Exception) -> Exception:
    """Return the first error inside of nested groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
