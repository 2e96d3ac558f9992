"""The Python client: thin, typed, synchronous and asynchronous; requests and replies are the contract's messages."""
# What it adds: batches for streams, the token on every call, a deadline, and retries with backoff where the server is
# not available (gRPC does them, by its service config).

from spicegraph_service.client.errors import ServiceError
from spicegraph_service.client.evaluation import (
    SERVICE_CONFIG,
    AsyncClient,
    Client,
    ScoreOptions,
    TlsOptions,
    category,
    item,
    item_set,
)
from spicegraph_service.client.inputs import values_of
from spicegraph_service.client.replies import CorpusReply, ItemReply, ScoreReply
from spicegraph_service.client.reports import Analysis, AnalysisOptions

__all__ = [
    "SERVICE_CONFIG",
    "Analysis",
    "AnalysisOptions",
    "AsyncClient",
    "Client",
    "CorpusReply",
    "ItemReply",
    "ScoreOptions",
    "ScoreReply",
    "ServiceError",
    "TlsOptions",
    "category",
    "item",
    "item_set",
    "values_of",
]
