"""The asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as references
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_service.client.connections import AsyncConnection
from spicegraph_service.client.messages import (
    PAGE,
    SPICE_ALONE,
    STREAM_BATCH,
    UPLOAD_BATCH,
    TlsOptions,
    batches,
    entry_batch,
    item_batch,
    set_settings_message,
    settings_message,
    then,
)

if TYPE_CHECKING:
    from spicegraph_api.v1 import scene_graph_pb2

__all__ = ["AsyncClient"]


class AsyncClient:
    """An asynchronous client, with the same calls as :class:`Client`. Use it in one event loop."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        tls: TlsOptions | None = None,
        timeout_s: float | None = 60.0,
    ) -> None:
        self._connection = AsyncConnection.to(address, token=token, tls=tls, timeout_s=timeout_s)
        self._evaluation = EvaluationServiceStub(self._connection.channel)
        self._references = ReferenceServiceStub(self._connection.channel)

    async def parse(self, captions: Sequence[str]) -> Sequence[scene_graph_pb2.ParsedCaption]:
        """Parse captions to scene graphs."""
        request = evaluation.ParseCaptionsRequest(captions=captions)
        reply = await self._connection.call(self._evaluation.ParseCaptions, request)
        return reply.captions

    async def score(
        self,
        items: Iterable[scores_pb2.Item],
        *,
        metrics: Sequence[str] = SPICE_ALONE,
        detail: scores_pb2.Detail.ValueType = scores_pb2.DETAIL_SCORES,
        reference_set: str | None = None,
        categories: Sequence[scores_pb2.CategoryDefinition] = (),
    ) -> evaluation.ScoreResponse:
        """Score a batch of items."""
        request = evaluation.ScoreRequest(
            items=items, metrics=metrics, detail=detail, reference_set=reference_set, categories=categories
        )
        return await self._connection.call(self._evaluation.Score, request)

    async def stream(
        self,
        items: Iterable[scores_pb2.Item] | AsyncIterable[scores_pb2.Item],
        *,
        metrics: Sequence[str] = SPICE_ALONE,
        detail: scores_pb2.Detail.ValueType = scores_pb2.DETAIL_SCORES,
        reference_set: str | None = None,
        categories: Sequence[scores_pb2.CategoryDefinition] = (),
    ) -> AsyncIterator[evaluation.ScoreStreamResponse]:
        """Score items of any number: results as they come, the corpus result last."""

        async def requests() -> AsyncIterator[evaluation.ScoreStreamRequest]:
            yield settings_message(metrics, detail, reference_set, categories)
            if isinstance(items, AsyncIterable):
                async for one in items:
                    yield item_batch([one])
            else:
                for batch in batches(items, STREAM_BATCH):
                    yield item_batch(batch)

        async for response in self._evaluation.ScoreStream(requests(), metadata=self._connection.metadata):
            yield response

    async def server_info(self) -> evaluation.GetServerInfoResponse:
        """Return what runs on the server."""
        return await self._connection.call(self._evaluation.GetServerInfo, evaluation.GetServerInfoRequest())

    async def create_reference_set(
        self, entries: Mapping[str, Sequence[str]], *, display_name: str = ""
    ) -> references.ReferenceSet:
        """Store the references of images by id; the same content gives the same set."""
        settings = set_settings_message(display_name)
        requests = then(settings, (entry_batch(batch) for batch in batches(entries.items(), UPLOAD_BATCH)))
        reply = await self._references.CreateReferenceSet(requests, metadata=self._connection.metadata)
        return reply.reference_set

    async def get_reference_set(self, set_id: str) -> references.ReferenceSet:
        """Return what is known of a set."""
        request = references.GetReferenceSetRequest(id=set_id)
        reply = await self._connection.call(self._references.GetReferenceSet, request)
        return reply.reference_set

    async def list_reference_sets(self) -> AsyncIterator[references.ReferenceSet]:
        """Return all sets, ordered by id."""
        request = references.ListReferenceSetsRequest(page_size=PAGE)
        while True:
            page = await self._connection.call(self._references.ListReferenceSets, request)
            for reference_set in page.reference_sets:
                yield reference_set
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def delete_reference_set(self, set_id: str) -> None:
        """Delete a set."""
        request = references.DeleteReferenceSetRequest(id=set_id)
        await self._connection.call(self._references.DeleteReferenceSet, request)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.channel.close()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()
