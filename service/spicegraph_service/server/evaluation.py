"""The ``EvaluationService`` of the contract: requests in, the scheduler's results out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceServicer
from spicegraph_service.server import validation
from spicegraph_service.server.interceptor import Context, current_call
from spicegraph_service.server.scheduler import Scheduler, count_captions
from spicegraph_service.server.status import Violation, invalid
from spicegraph_service.server.streams import ItemStream
from spicegraph_service.server.tasks import ItemWork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from spicegraph_service.server.limits import Limits
    from spicegraph_service.server.references import References


class EvaluationServicer(EvaluationServiceServicer):
    """Parses and scores."""

    def __init__(self, scheduler: Scheduler, references: References, limits: Limits) -> None:
        self._scheduler = scheduler
        self._references = references
        self._limits = limits

    async def ParseCaptions(self, request: pb.ParseCaptionsRequest, context: Context) -> pb.ParseCaptionsResponse:
        """Parse captions."""
        del context
        hello = self._scheduler.hello
        validation.check_captions(request.captions, self._limits)
        call = current_call()
        call.charge(len(request.captions))
        parsed = await self._scheduler.parse(request.captions, refusals=call.refusals)
        return pb.ParseCaptionsResponse(
            captions=map(scene_graph_pb2.ParsedCaption.FromString, parsed), pipeline=hello.pipeline
        )

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score a batch."""
        del context
        metrics = self._metrics(request.metrics)
        call = current_call()
        # This comes first: a refusal because there is no room even for the candidates must not wait for the store.
        self._scheduler.budget.check(len(request.items), refusals=call.refusals)
        categories = await validation.check_categories(request.categories)
        set_id = request.reference_set if request.HasField("reference_set") else None
        validation.check_items(request.items, self._limits, reference_set=set_id is not None, seen=set())
        if set_id is not None:
            await self._references.check(set_id)
        items = await self._items(request.items, set_id, first=0)
        call.charge(count_captions(items))
        results, corpus = await self._scheduler.score(
            items, metrics, request.detail, categories, refusals=call.refusals
        )
        return pb.ScoreResponse(
            items=map(scores_pb2.ItemResult.FromString, results),
            corpus=scores_pb2.CorpusResult.FromString(corpus),
        )

    async def ScoreStream(
        self, request_iterator: AsyncIterator[pb.ScoreStreamRequest], context: Context
    ) -> AsyncIterator[pb.ScoreStreamResponse]:
        """Score a stream: results as they are ready, the corpus result at the end."""
        del context
        _ = self._scheduler.hello
        stream = ItemStream(self._scheduler)
        async with stream.reading(self._read(request_iterator, stream)):
            async for response in stream.responses():
                yield response

    async def _read(self, requests: AsyncIterator[pb.ScoreStreamRequest], stream: ItemStream) -> None:
        """Check what a client sends, and hand it on; waits while the stream is full."""
        stream.start(("spice",), scores_pb2.DETAIL_UNSPECIFIED)
        set_id: str | None = None
        seen: set[str] = set()
        first = True
        async for request in requests:
            match request.WhichOneof("payload"):
                case "settings" if first:
                    settings = request.settings
                    categories = await validation.check_categories(settings.categories, path="settings.")
                    stream.start(self._metrics(settings.metrics), settings.detail, categories)
                    if settings.HasField("reference_set"):
                        set_id = settings.reference_set
                        await self._references.check(set_id)
                case "items":
                    batch, before = request.items.items, len(seen)
                    if before + len(batch) > self._limits.max_stream_items:
                        reason = f"a stream has at most {self._limits.max_stream_items} items"
                        raise invalid([Violation("items", reason)])
                    validation.check_items(
                        batch, self._limits, reference_set=set_id is not None, seen=seen, first=before
                    )
                    items = await self._items(batch, set_id, first=before)
                    current_call().charge(count_captions(items))
                    await stream.put(items)
                case "settings":
                    raise invalid([Violation("settings", "only the first message holds settings")])
                case _:
                    raise invalid([Violation("payload", "a message holds settings or items")])
            first = False
        if not seen:
            raise invalid([Violation("items", "is empty")])

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, context: Context) -> pb.GetServerInfoResponse:
        """Say what runs here."""
        del request, context
        hello = self._scheduler.hello
        limits = self._limits
        return pb.GetServerInfoResponse(
            version=hello.version,
            pipeline=hello.pipeline,
            metrics=[
                pb.MetricInfo(
                    name=metric.name,
                    signature=scores_pb2.MetricSignature(metric=metric.name, fields=metric.signature),
                    corpus_dependent=metric.corpus_dependent,
                )
                for metric in hello.metrics
            ],
            limits=pb.Limits(
                max_items=limits.max_items,
                max_stream_items=limits.max_stream_items,
                max_references=limits.max_references,
                max_caption_characters=limits.max_caption_characters,
                max_id_characters=limits.max_id_characters,
                max_message_bytes=limits.max_message_bytes,
                max_reference_set_entries=limits.max_reference_set_entries,
                max_reference_set_bytes=limits.max_reference_set_bytes,
            ),
        )

    def _metrics(self, names: Sequence[str]) -> tuple[str, ...]:
        return validation.check_metrics(names, [metric.name for metric in self._scheduler.hello.metrics])

    async def _items(self, items: Sequence[scores_pb2.Item], set_id: str | None, *, first: int) -> list[ItemWork]:
        if set_id is not None:
            return await self._references.resolve(set_id, items, first=first)
        return [ItemWork(item.id, item.candidate, tuple(item.references)) for item in items]
