"""The Python client: thin, typed, synchronous and asynchronous.

Requests and replies are the contract's messages. What it adds: batches for streams, the token on every
call, a deadline, and retries with backoff where the server is not available (gRPC does them, by its service
config).

Example:
    >>> with Client("localhost:50051") as client:  # doctest: +SKIP
    ...     reply = client.score([item("1", "a brown dog", ["a dog that is brown"])])
    ...     reply.items[0].scores[0].value
    1.0
"""

from spicegraph_service.client.evaluation import (
    SERVICE_CONFIG,
    AsyncClient,
    Client,
    ScoreOptions,
    TlsOptions,
    category,
    item,
)

__all__ = ["SERVICE_CONFIG", "AsyncClient", "Client", "ScoreOptions", "TlsOptions", "category", "item"]
