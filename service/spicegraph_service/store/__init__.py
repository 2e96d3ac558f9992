"""What outlives a server: parses, reference sets and tokens. One protocol, several places to keep them."""

from __future__ import annotations

from spicegraph_service.store.base import (
    DEFAULT_TENANT,
    EVIDENCE,
    MEMORY,
    READ,
    SCORE,
    ReferenceSet,
    Store,
    StoreError,
    StoreFullError,
    TokenRecord,
    make_private,
    parse_key,
    parse_signature,
)

__all__ = [
    "DEFAULT_TENANT",
    "EVIDENCE",
    "MEMORY",
    "READ",
    "SCORE",
    "ReferenceSet",
    "Store",
    "StoreError",
    "StoreFullError",
    "TokenRecord",
    "make_private",
    "open_store",
    "parse_key",
    "parse_signature",
]


def open_store(place: str, *, private: bool = False) -> Store:
    """Open a store: a file path (SQLite), ``memory`` (nothing outlives the server) or ``redis://...``.

    A private one is a file that only this user reads; one that others may read is warned of.

    Raises:
        StoreError: it cannot be opened.
        DataError: the Redis client is not installed.
    """
    if place.startswith(("redis://", "rediss://", "unix://")):
        from spicegraph_service.store.redis import RedisStore  # noqa: PLC0415

        return RedisStore(place)
    from spicegraph_service.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(":memory:" if place == MEMORY else place, private=private)
