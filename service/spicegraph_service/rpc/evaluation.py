"""The ``EvaluationService`` of the contract: requests in, results out; streams through a bounded pipe."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceServicer
from spicegraph_scorer.core.empty_graphs import EmptyGraphs, is_of_scenes
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.marks import NO_MARKS, FoundMarks
from spicegraph_scorer.readers.checks import copies_note, language_note
from spicegraph_scorer.readers.marks import marks_notes
from spicegraph_service.pool.costs import texts_cost
from spicegraph_service.pool.tasks import NOTHING_GIVEN, ItemWork
from spicegraph_service.rpc import validation
from spicegraph_service.rpc.interceptor import Call, Context, current_call
from spicegraph_service.rpc.scheduler import CHUNK_ITEMS, Scheduler, chunked, count_captions, count_cost, item_chunks
from spicegraph_service.rpc.status import wrong

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence

    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_scorer.readers.marks import ControlTokens
    from spicegraph_service.rpc.limits import Limits
    from spicegraph_service.rpc.references import References


_CHUNKS = 4  # of one stream that are under way or wait for its reader

T = TypeVar("T")


class ItemStream:
    """Takes items, gives responses, with a few chunks between: who does not read results is not read from."""

    def __init__(self, scheduler: Scheduler, call: Call) -> None:
        self._scheduler = scheduler
        self._call = call
        self._caller = call.share
        self.tenant = call.tenant  # whose parses are looked up and kept
        self.metrics: tuple[str, ...] = ("spice",)
        self.detail: scores_pb2.Detail.ValueType = scores_pb2.DETAIL_UNSPECIFIED
        self.given = NOTHING_GIVEN
        self._room = asyncio.Semaphore(_CHUNKS)
        # Responses; then None at the end, or why it came too early.
        self._ready: asyncio.Queue[pb.ScoreStreamResponse | Exception | None] = asyncio.Queue()
        self._tasks = asyncio.TaskGroup()
        self._ids: list[str] = []
        self._statistics: list[bytes] = []
        self._empty = 0
        self.marks = NO_MARKS  # of the captions taken so far

    async def put(self, items: Sequence[ItemWork]) -> None:
        """Take items; waits until there is room."""
        for chunk in item_chunks(items):
            await self._room.acquire()
            self._call.unanswered += 1
            self._ids += [item.id for item in chunk]
            self._empty += _empty(chunk)
            self._statistics.append(b"")
            self._tasks.create_task(self._score(chunk, len(self._statistics) - 1))

    async def _score(self, items: Sequence[ItemWork], number: int) -> None:
        reply = await self._scheduler.chunk(
            items, self.metrics, self.detail, self.given, caller=self._caller, tenant=self.tenant
        )
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
            while isinstance(error, ExceptionGroup):  # the first error inside of nested groups
                error = error.exceptions[0]
            self._ready.put_nowait(error)
        else:
            self._ready.put_nowait(None)

    async def responses(self) -> AsyncIterator[pb.ScoreStreamResponse]:
        """Return results as they are ready, then those that depend on all items, then the corpus result."""
        while (response := await self._ready.get()) is not None:
            if isinstance(response, Exception):
                raise response
            yield response
            self._call.unanswered -= 1
            self._room.release()
        totals = await self._scheduler.totals(self.metrics, self.detail, self._statistics, self.given)
        late = map(scores_pb2.ItemResult.FromString, totals.results)
        for pairs in chunked(list(zip(self._ids, late, strict=bool(totals.results))), CHUNK_ITEMS):
            for item_id, result in pairs:
                result.id = item_id
            yield pb.ScoreStreamResponse(items=[result for _, result in pairs])
        yield pb.ScoreStreamResponse(corpus=_corpus(totals.corpus, self._empty, self.marks))


def _corpus(message: bytes, empty: int, marks: FoundMarks) -> scores_pb2.CorpusResult:
    corpus = scores_pb2.CorpusResult.FromString(message)
    corpus.empty_candidate_count = empty
    corpus.control_tokens.update(dict(marks.counts))
    corpus.empty_graph_count = max(corpus.empty_graph_count - empty, 0)
    pipelines = [signature.fields["pipeline"] for signature in corpus.signatures if "pipeline" in signature.fields]
    graphs = EmptyGraphs(corpus.item_count, corpus.empty_graph_count, scenes=any(map(is_of_scenes, pipelines)))
    corpus.warnings[:] = [*marks_notes(corpus.item_count, marks), *graphs.notes(), *_undefined(corpus)]
    return corpus


def _empty(items: Iterable[ItemWork]) -> int:
    """Return how many items have no caption that is not empty."""
    return sum(not any(map(str.strip, item.candidates)) for item in items)


def _undefined(corpus: scores_pb2.CorpusResult) -> Iterator[str]:
    """Yield which scores are undefined, as CIDEr is for a single item; those of categories often are."""
    names = [score.name for score in corpus.scores]
    missing = [score.name for score in corpus.scores if not score.HasField("value")]
    missing = [name for name in missing if not any(name.startswith(f"{other}_") for other in names)]
    if missing:
        items = "a single item" if corpus.item_count == 1 else "these items"
        yield f"{', '.join(missing)}: undefined for {items}"


def _notes(items: Sequence[ItemWork], language: str) -> list[str]:
    """Return warnings about candidates: copies of the references, or another language."""
    given = [Item(item.id, text, item.references) for item in items for text in item.candidates]
    return [note for note in (copies_note("items", given), language_note("items", given, language=language)) if note]


class EvaluationServicer(EvaluationServiceServicer):
    """Parses and scores."""

    def __init__(self, scheduler: Scheduler, references: References, limits: Limits) -> None:
        self._scheduler = scheduler
        self._references = references
        self._limits = limits

    async def ParseCaptions(self, request: pb.ParseCaptionsRequest, context: Context) -> pb.ParseCaptionsResponse:
        """Parse captions."""
        del context
        info = self._scheduler.info
        validation.check_captions(request.captions, self._limits)
        style = validation.graph_style(request.graph_style, info)
        call = current_call()
        call.charge(len(request.captions), texts_cost(request.captions))
        parsed = await self._scheduler.parse(
            request.captions, style, caller=call.share, tenant=call.tenant, refusals=call.refusals
        )
        return pb.ParseCaptionsResponse(
            captions=map(scene_graph_pb2.ParsedCaption.FromString, parsed),
            pipeline=info.scene_pipeline if style == "scene" else info.pipeline,
        )

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score a batch."""
        del context
        faults = validation.Faults()
        metrics: tuple[str, ...] = ()
        given = NOTHING_GIVEN
        empty: Empty = "zero"
        rule: ControlTokens = "keep"
        info = self._scheduler.info
        with faults.of_part():
            metrics = self._metrics(request.metrics)
        sets = validation.has_sets(request.items)
        with faults.of_part():
            validation.check_detail(request.detail, sets=sets)
        call = current_call()
        # This comes first: where the candidates alone are too many, the refusal must not wait for the store.
        count = sum(max(1, len(item.candidates)) for item in request.items)
        self._scheduler.budget.check(count, caller=call.share, refusals=call.refusals)
        with faults.of_part():
            given = msgspec.structs.replace(await validation.check_data(request, info), sets=sets)
        set_id = request.reference_set if request.HasField("reference_set") else None
        with faults.of_part():
            empty = validation.empty_candidates(request.empty)
            rule = validation.control_tokens(request.control_tokens)
        marks = NO_MARKS
        with faults.of_part():
            marks = validation.check_items(
                request.items,
                self._limits,
                reference_set=set_id is not None,
                empty=empty,
                seen=set(),
                control_tokens=rule,
                sets=sets,
            )
        faults.check()
        tenant = call.tenant
        if set_id is not None:
            tenant = await self._references.check(set_id, evidence=validation.shows_references(request))
        items = await self._items(request.items, set_id, first=0)
        call.charge(count_captions(items), count_cost(items))
        results, corpus = await self._scheduler.score(
            items, metrics, request.detail, given, caller=call.share, tenant=tenant, refusals=call.refusals
        )
        total = _corpus(corpus, _empty(items), marks)
        if language := given.language or ("en" if info.pipeline.startswith("en_") else None):
            total.warnings.extend(await asyncio.to_thread(_notes, items, language))
        return pb.ScoreResponse(items=map(scores_pb2.ItemResult.FromString, results), corpus=total)

    async def ScoreStream(
        self, request_iterator: AsyncIterator[pb.ScoreStreamRequest], context: Context
    ) -> AsyncIterator[pb.ScoreStreamResponse]:
        """Score a stream: results as they are ready, the corpus result at the end."""
        del context
        _ = self._scheduler.info
        stream = ItemStream(self._scheduler, current_call())
        async with stream.reading(self._read(request_iterator, stream)):
            async for response in stream.responses():
                yield response

    async def _read(self, requests: AsyncIterator[pb.ScoreStreamRequest], stream: ItemStream) -> None:
        """Check the client's messages and queue their items; waits while the stream is full."""
        set_id: str | None = None
        empty: Empty = "zero"
        rule = validation.control_tokens(scores_pb2.CONTROL_TOKENS_UNSPECIFIED)
        seen: set[str] = set()
        first = True
        silence_s = self._limits.max_silence_s
        async for request in validation.patiently(requests, silence_s=silence_s, reason="STREAM_STALLED"):
            match request.WhichOneof("payload"):
                case "settings" if first:
                    settings = request.settings
                    validation.check_detail(settings.detail, field="settings.detail")
                    empty = validation.empty_candidates(settings.empty, field="settings.empty")
                    rule = validation.control_tokens(settings.control_tokens, field="settings.control_tokens")
                    stream.given = await validation.check_data(settings, self._scheduler.info, path="settings.")
                    stream.metrics, stream.detail = self._metrics(settings.metrics), settings.detail
                    if settings.HasField("reference_set"):
                        set_id = settings.reference_set
                        evident = validation.shows_references(settings)
                        stream.tenant = await self._references.check(set_id, evidence=evident)
                case "items":
                    batch, before = request.items.items, len(seen)
                    if before + len(batch) > self._limits.max_stream_items:
                        raise wrong("items", f"a stream has at most {self._limits.max_stream_items} items")
                    if not before:  # the first items say what all are
                        stream.given = msgspec.structs.replace(stream.given, sets=validation.has_sets(batch))
                        validation.check_detail(stream.detail, sets=stream.given.sets, field="settings.detail")
                    stream.marks += validation.check_items(
                        batch,
                        self._limits,
                        reference_set=set_id is not None,
                        empty=empty,
                        seen=seen,
                        first=before,
                        control_tokens=rule,
                        sets=stream.given.sets,
                    )
                    items = await self._items(batch, set_id, first=before)
                    current_call().charge(count_captions(items), count_cost(items))
                    await stream.put(items)
                case "settings":
                    raise wrong("settings", "only the first message holds settings")
                case _:
                    raise wrong("payload", "a message holds settings or items")
            first = False
        if not seen:
            raise wrong("items", "is empty")

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, context: Context) -> pb.GetServerInfoResponse:
        """Return the server's version, pipelines, metrics and limits."""
        del request, context
        info = self._scheduler.info
        limits = self._limits
        return pb.GetServerInfoResponse(
            version=info.version,
            pipeline=info.pipeline,
            scene_pipeline=info.scene_pipeline,
            metrics=[
                pb.MetricInfo(
                    name=metric.name,
                    signature=scores_pb2.MetricSignature(metric=metric.name, fields=metric.signature),
                    corpus_dependent=metric.corpus_dependent,
                )
                for metric in info.metrics
            ],
            limits=pb.Limits(**{field.name: getattr(limits, field.name) for field in pb.Limits.DESCRIPTOR.fields}),
        )

    def _metrics(self, names: Sequence[str]) -> tuple[str, ...]:
        return validation.check_metrics(names, [metric.name for metric in self._scheduler.info.metrics])

    async def _items(self, items: Sequence[scores_pb2.Item], set_id: str | None, *, first: int) -> list[ItemWork]:
        if set_id is not None:
            works = await self._references.resolve(set_id, items, first=first)
        else:
            works = [ItemWork(item.id, item.candidate, tuple(item.references)) for item in items]
        return [
            work._replace(candidate=item.candidates[0], more=tuple(item.candidates[1:])) if item.candidates else work
            for work, item in zip(works, items, strict=True)
        ]
