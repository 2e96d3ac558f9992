"""The synchronous client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as references
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_api.v1.reference_service_pb2_grpc import ReferenceServiceStub
from spicegraph_service.client.connections import Connection
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_api.v1 import scene_graph_pb2

__all__ = ["Client"]


class Client:
    """A synchronous client. Its calls raise ``grpc.RpcError``; it may be shared by threads.

    Args:
        address: ``HOST:PORT``, ``unix:PATH`` or ``dns:///NAME:PORT`` (all servers that the name stands for).
        token: a bearer token, if the server demands one.
        tls: how to trust the server; ``None``: no TLS.
        timeout_s: the deadline of calls but of streams and uploads, in seconds; ``None``: none.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        tls: TlsOptions | None = None,
        timeout_s: float | None = 60.0,
    ) -> None:
        self._connection = Connection.to(address, token=token, tls=tls, timeout_s=timeout_s)
        self._evaluation = EvaluationServiceStub(self._connection.channel)
        self._references = ReferenceServiceStub(self._connection.channel)

    def parse(self, captions: Sequence[str]) -> Sequence[scene_graph_pb2.ParsedCaption]:
        """Parse captions to scene graphs."""
        request = evaluation.ParseCaptionsRequest(captions=captions)
        reply = self._connection.call(self._evaluation.ParseCaptions, request)
        return reply.captions

    def score(
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
        return self._connection.call(self._evaluation.Score, request)

    def stream(
        self,
        items: Iterable[scores_pb2.Item],
        *,
        metrics: Sequence[str] = SPICE_ALONE,
        detail: scores_pb2.Detail.ValueType = scores_pb2.DETAIL_SCORES,
        reference_set: str | None = None,
        categories: Sequence[scores_pb2.CategoryDefinition] = (),
    ) -> Iterator[evaluation.ScoreStreamResponse]:
        """Score items of any number: results as they come, the corpus result last."""
        settings = settings_message(metrics, detail, reference_set, categories)
        requests = then(settings, (item_batch(batch) for batch in batches(items, STREAM_BATCH)))
        yield from self._evaluation.ScoreStream(requests, metadata=self._connection.metadata)

    def server_info(self) -> evaluation.GetServerInfoResponse:
        """Return what runs on the server."""
        return self._connection.call(self._evaluation.GetServerInfo, evaluation.GetServerInfoRequest())

    def create_reference_set(
        self, entries: Mapping[str, Sequence[str]], *, display_name: str = ""
    ) -> references.ReferenceSet:
        """Store the references of images by id; the same content gives the same set."""
        settings = set_settings_message(display_name)
        requests = then(settings, (entry_batch(batch) for batch in batches(entries.items(), UPLOAD_BATCH)))
        return self._references.CreateReferenceSet(requests, metadata=self._connection.metadata).reference_set

    def get_reference_set(self, set_id: str) -> references.ReferenceSet:
        """Return what is known of a set."""
        request = references.GetReferenceSetRequest(id=set_id)
        return self._connection.call(self._references.GetReferenceSet, request).reference_set

    def list_reference_sets(self) -> Iterator[references.ReferenceSet]:
        """Return all sets, ordered by id."""
        request = references.ListReferenceSetsRequest(page_size=PAGE)
        while True:
            page = self._connection.call(self._references.ListReferenceSets, request)
            yield from page.reference_sets
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def delete_reference_set(self, set_id: str) -> None:
        """Delete a set."""
        request = references.DeleteReferenceSetRequest(id=set_id)
        self._connection.call(self._references.DeleteReferenceSet, request)

    def close(self) -> None:
        """Close the connections."""
        self._connection.channel.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()
