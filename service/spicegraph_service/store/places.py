"""A store is opened by its place: a file, memory, or a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_service.store import MEMORY
from spicegraph_service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from spicegraph_service.store import Store


def open_store(location: str, *, private: bool = False) -> Store:
    """Open a store: a file (SQLite; a private one for this user alone), ``memory``, or ``redis://...``."""
    if location.startswith(("redis://", "rediss://", "unix://")):
        from spicegraph_service.store.redis import RedisStore  # noqa: PLC0415 (the extra may be missing)

        return RedisStore(location)
    return SqliteStore(":memory:" if location == MEMORY else location, private=private)
