"""What the clients share: the messages they send, and how they try again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import grpc

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import reference_service_pb2 as references
from spicegraph_api.v1 import scores_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "PAGE",
    "SERVICE_CONFIG",
    "SPICE_ALONE",
    "STREAM_BATCH",
    "UPLOAD_BATCH",
    "TlsOptions",
    "batches",
    "category",
    "channel_options",
    "entry_batch",
    "item",
    "item_batch",
    "set_settings_message",
    "settings_message",
    "then",
]

SERVICE_CONFIG = json.dumps(
    {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": [
                    {"service": "spicegraph.v1.EvaluationService"},
                    {"service": "spicegraph.v1.ReferenceService"},
                    # Those of its calls that do the same when they are made twice.
                    *(
                        {"service": "spicegraph.v1.ChallengeService", "method": method}
                        for method in (
                            "GetChallenge",
                            "ListChallenges",
                            "UploadReferences",
                            "CreateSubmission",
                            "GetSubmission",
                            "ListSubmissions",
                            "WatchSubmission",
                            "ListSubmissionFaults",
                            "CancelSubmission",
                            "ChooseSubmission",
                            "GetLeaderboard",
                        )
                    ),
                ],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.2s",
                    "maxBackoff": "5s",
                    "backoffMultiplier": 2,
                    # A full queue says when to come again; what is no use to repeat, the server says as well.
                    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
                },
            }
        ],
    }
)
"""Retries where no server is available or the queue is full; calls in turn to all servers of a name."""

STREAM_BATCH = 64
"""Items in one message of a stream."""

UPLOAD_BATCH = 200
"""Entries in one message of an upload."""

PAGE = 1_000
"""Reference sets in one page of a list."""

SPICE_ALONE = ("spice",)
"""The metric that is scored where none is named."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """PEM data: authorities to trust (``None``: the system's), and for mutual TLS the client's own pair."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return them as gRPC takes them."""
        return grpc.ssl_channel_credentials(self.authorities, self.key, self.certificate)


def item(
    item_id: str | int,
    candidate: str,
    references: Sequence[str] = (),
    *,
    reference_id: str | int | None = None,
) -> scores_pb2.Item:
    """Return an item: with its references, or for a reference set without any."""
    return scores_pb2.Item(
        id=str(item_id),
        candidate=candidate,
        references=references,
        reference_id=None if reference_id is None else str(reference_id),
    )


def channel_options() -> list[tuple[str, str | int]]:
    """Return the options of a channel."""
    return [("grpc.service_config", SERVICE_CONFIG), ("grpc.max_receive_message_length", -1)]


def settings_message(
    metrics: Sequence[str],
    detail: scores_pb2.Detail.ValueType,
    reference_set: str | None,
    categories: Sequence[scores_pb2.CategoryDefinition] = (),
) -> evaluation.ScoreStreamRequest:
    """Return the first message of a stream."""
    settings = evaluation.ScoreStreamSettings(
        metrics=metrics, detail=detail, reference_set=reference_set, categories=categories
    )
    return evaluation.ScoreStreamRequest(settings=settings)


def category(
    name: str,
    *,
    kind: scores_pb2.CategoryKind.ValueType = scores_pb2.CATEGORY_KIND_OBJECT,
    words: Sequence[str] = (),
    subtrees: Sequence[str] = (),
    synonyms: bool = False,
) -> scores_pb2.CategoryDefinition:
    """Return a category of one's own: words, everything under synsets of WordNet (``animal.n.01``), or both."""
    return scores_pb2.CategoryDefinition(name=name, kind=kind, words=words, subtrees=subtrees, synonyms=synonyms)


def item_batch(items: Iterable[scores_pb2.Item]) -> evaluation.ScoreStreamRequest:
    """Return a message with items of a stream."""
    return evaluation.ScoreStreamRequest(items=evaluation.ItemBatch(items=items))


def set_settings_message(display_name: str) -> references.CreateReferenceSetRequest:
    """Return the first message of an upload."""
    return references.CreateReferenceSetRequest(settings=references.ReferenceSetSettings(display_name=display_name))


def entry_batch(entries: Iterable[tuple[str, Sequence[str]]]) -> references.CreateReferenceSetRequest:
    """Return a message with entries of an upload."""
    batch = [references.ReferenceEntry(id=str(entry_id), references=captions) for entry_id, captions in entries]
    return references.CreateReferenceSetRequest(entries=references.ReferenceEntryBatch(entries=batch))


def then(first: T, others: Iterator[T]) -> Iterator[T]:
    """Return the first value, then the others."""
    yield first
    yield from others


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return values in lists of a size."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch
