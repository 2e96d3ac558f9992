"""What outlives a server: parses, reference sets and tokens. One protocol, several places to keep them."""

from __future__ import annotations

from spicegraph_service.store.base import (
    MEMORY,
    ReferenceSet,
    Store,
    StoreError,
    StoreFullError,
    TokenRecord,
    parse_key,
    parse_signature,
)

__all__ = [
    "MEMORY",
    "ReferenceSet",
    "Store",
    "StoreError",
    "StoreFullError",
    "TokenRecord",
    "open_store",
    "parse_key",
    "parse_signature",
]


def open_store(place: str) -> Store:
    """Open a store: a file path (SQLite), ``memory`` (nothing outlives the server) or ``redis://...``.

    Raises:
        StoreError: it cannot be opened.
        DataError: the Redis client is not installed.
    """
    if place.startswith(("redis://", "rediss://", "unix://")):
        from spicegraph_service.store.redis import RedisStore  # noqa: PLC0415

        return RedisStore(place)
    from spicegraph_service.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(":memory:" if place == MEMORY else place)
