"""A submission scored by the worker processes, a few items at a time, so that calls get their turn between."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.sandbox.files import read_references, read_results
from spicegraph_challenge.sandbox.processes import Allowance
from spicegraph_challenge.sandbox.tasks import Finish, Finished
from spicegraph_service.kit import NOTHING_GIVEN, ItemWork, RequestData, frame, parsed_texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from pathlib import Path

    from spicegraph_challenge.sandbox.files import FileStore
    from spicegraph_challenge.sandbox.processes import Sandbox
    from spicegraph_service.kit import Scheduler

_FINISHING = Allowance(memory_bytes=0, seconds=3600)
_FINISHING_SHARE = 0.1  # of the work, roughly: what remains when all items are done
_CHUNK_S = 0.05
_MOST_ITEMS = 64
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
    """What is to be scored; ``given`` is what the challenge gives the metrics, ``submissions`` what it allows."""

    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    submissions: int = 0
    given: RequestData = NOTHING_GIVEN


@dataclass(slots=True)
class Progress:
    """How much of a job is done, in [0, 1]."""

    share: float = 0.0


@dataclass(slots=True)
class _Pace:
    """How many items go to a worker together: as many as take about a twentieth of a second.

    That bounds how long a call may wait behind them.
    """

    items: int = 8
    _rate: float = field(default=0.0)

    def observe(self, items: int, seconds: float) -> None:
        """Record how long some items took, waiting included."""
        rate = items / max(seconds, 1e-4)
        self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        self.items = min(_MOST_ITEMS, max(1, round(self._rate * _CHUNK_S)))


class Scoring:
    """Scores plans and parses reference sets, so many chunks at the same time.

    ``parsing`` names the metrics that need parses; true are those that parse the text that a challenge chooses.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        sandbox: Sandbox,
        files: FileStore,
        *,
        parsing: Mapping[str, bool],
        data: bytes,
        at_once: int,
    ) -> None:
        self._scheduler = scheduler
        self._sandbox = sandbox
        self._files = files
        self._parsing = parsing
        self._data = data
        self._at_once = at_once
        self._pace = _Pace()

    async def score(self, plan: Plan, progress: Progress) -> dict[int, Finished]:
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
                        progress.share = (1 - _FINISHING_SHARE) * done / total
                secret = f"{part.references} {part.results}"
                references = str(self._files.path(part.references))
                task = Finish(plan.metrics, str(statistics), self._data, secret, plan.submissions, references)
                scores[part.reference_set_id] = await self._sandbox.run(task, Finished, _FINISHING)
        progress.share = 1.0
        return scores

    async def _chunks(self, plan: Plan, part: Part) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the statistics of all items, in order, with the number of items."""
        captions = read_results(self._files.path(part.results))
        items = (
            ItemWork(str(key), captions[key], texts)
            for key, texts in read_references(self._files.path(part.references))
        )
        under_way: list[asyncio.Task[tuple[int, bytes]]] = []
        try:
            while True:
                while len(under_way) < self._at_once:
                    # Not more than the pace allows, nor many more captions than usual.
                    chunk: list[ItemWork] = []
                    while (
                        len(chunk) < self._pace.items
                        and sum(1 + len(item.references) for item in chunk) < _MOST_CAPTIONS
                        and (item := next(items, None))
                    ):
                        chunk.append(item)
                    if not chunk:
                        break
                    under_way.append(asyncio.create_task(self._chunk(plan, chunk)))
                if not under_way:
                    return
                yield await under_way.pop(0)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _chunk(self, plan: Plan, items: Sequence[ItemWork]) -> tuple[int, bytes]:
        started = time.monotonic()
        reply = await self._scheduler.chunk(items, plan.metrics, scores_pb2.DETAIL_SCORES, plan.given, errors=True)
        self._pace.observe(len(items), time.monotonic() - started)
        return len(items), reply.statistics

    async def parse(
        self, path: Path, captions: int, metrics: Iterable[str], given: RequestData, progress: Progress
    ) -> None:
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
            progress.share = done / captions
