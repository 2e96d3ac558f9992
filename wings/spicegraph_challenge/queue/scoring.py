"""A submission scored by the worker processes, a few items at a time, so that calls get their turn between."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.sandbox.files import FileStore, read_references, read_results
from spicegraph_challenge.sandbox.tasks import Finish, Finished
from spicegraph_service.kit import NOTHING_GIVEN, ItemWork, RequestData, frame, parsed_texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path

    from spicegraph_challenge.queue.submissions import Lease
    from spicegraph_challenge.sandbox.processes import Sandbox
    from spicegraph_service.kit import Scheduler, WorkerInfo

_FINISHING_SHARE = 0.1  # of the work, roughly: what remains when all items are done
_CHUNK_S = 0.05  # of a worker's time go to the items of a chunk, so long may a call wait behind them
_FIRST_ITEMS, _MOST_ITEMS = 8, 64  # of a chunk
_MOST_CAPTIONS = 512
_PARSED_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Part:
    """The results of a split, to be held against one reference set."""

    reference_set_id: int
    references: str
    results: str
    image_count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Metrics and parts to score; ``given`` is the challenge's data for the metrics."""

    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    given: RequestData = NOTHING_GIVEN


class Scoring:
    """Scores plans and parses reference sets, so many chunks at the same time."""

    def __init__(
        self,
        scheduler: Scheduler,
        workers: WorkerInfo,
        sandbox: Sandbox,
        files: FileStore,
        data: bytes,
        *,
        at_once: int,
    ) -> None:
        self._scheduler = scheduler
        self._parsing = workers.parsing
        self._sandbox = sandbox
        self._files = files
        self._data = data
        self._at_once = at_once
        self._items = _FIRST_ITEMS
        self._rate = 0.0  # items a second, waiting included

    async def score(self, plan: Plan, lease: Lease) -> dict[int, Finished]:
        """Return the scores and errors by reference set."""
        total = sum(part.image_count for part in plan.parts) or 1
        done = 0
        scores = {}
        for part in plan.parts:
            with self._files.workspace() as folder:
                statistics = folder / "statistics"
                with statistics.open("wb") as stream:
                    async for count, data in self._chunks(plan, part):
                        stream.write(frame(data))
                        done += count
                        lease.progress = (1 - _FINISHING_SHARE) * done / total
                references = str(self._files.path(part.references))
                task = Finish(plan.metrics, str(statistics), self._data, references)
                scores[part.reference_set_id] = await self._sandbox.run(task, Finished)
        lease.progress = 1.0
        return scores

    async def _chunks(self, plan: Plan, part: Part) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the statistics of all items, in order, with the number of items."""
        items = self._items_of(part)
        under_way: list[asyncio.Task[tuple[int, bytes]]] = []
        try:
            while True:
                while len(under_way) < self._at_once and (chunk := self._next_chunk(items)):
                    under_way.append(asyncio.create_task(self._chunk(plan, chunk)))
                if not under_way:
                    return
                yield await under_way.pop(0)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    def _items_of(self, part: Part) -> Iterator[ItemWork]:
        captions = read_results(self._files.path(part.results))
        for key, texts in read_references(self._files.path(part.references)):
            yield ItemWork(str(key), captions[key], texts)

    def _next_chunk(self, items: Iterator[ItemWork]) -> list[ItemWork]:
        """Return as many items as go together; empty: there are no more."""
        chunk: list[ItemWork] = []
        captions = 0
        while len(chunk) < self._items and captions < _MOST_CAPTIONS and (item := next(items, None)):
            chunk.append(item)
            captions += 1 + len(item.references)
        return chunk

    async def _chunk(self, plan: Plan, items: Sequence[ItemWork]) -> tuple[int, bytes]:
        started = time.monotonic()
        reply = await self._scheduler.chunk(items, plan.metrics, scores_pb2.DETAIL_SCORES, plan.given, errors=True)
        rate = len(items) / max(time.monotonic() - started, 1e-4)
        self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        self._items = min(_MOST_ITEMS, max(1, round(self._rate * _CHUNK_S)))
        return len(items), reply.statistics

    async def parse(self, path: Path, captions: int, metrics: Iterable[str], given: RequestData, lease: Lease) -> None:
        """Parse all references of a set, so that no submission waits for that."""
        wanted = parsed_texts(metrics, self._parsing, given.spice_text)
        if not wanted:
            return
        texts = (text for _, references in read_references(path) for text in references)
        done = 0
        while batch := list(islice(texts, _PARSED_AT_ONCE)):
            parsed = (make(text) for text in batch for make in wanted)
            await self._scheduler.store_parses(list(dict.fromkeys(parsed)), given.graph_style)
            done += len(batch)
            lease.progress = done / captions
