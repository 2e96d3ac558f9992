"""A store is opened by its place: a file, memory, or a URL."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.store import MEMORY
from spicegraph_service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from spicegraph_service.store import Store


def open_store(location: str, *, private: bool = False) -> Store:
    """Open a store: a file (SQLite; a private one for this user alone), ``memory``, or a URL.

    Of a URL, the entry points of the group ``spicegraph.stores`` name the class by its scheme.

    Raises:
        InputError: no installed package has a store for the URL.
    """
    scheme, separator, _ = location.partition("://")
    if not separator:
        return SqliteStore(":memory:" if location == MEMORY else location, private=private)
    points = entry_points(group="spicegraph.stores")
    if scheme not in points.names:
        known = ", ".join(f"{name}://" for name in sorted(points.names)) or "none"
        raise InputError(f"there is no store for {scheme}:// (a file, memory, or a URL of a package: {known})")
    opened: Store = points[scheme].load()(location)
    return opened


def file_of(option: str, location: str, *, by: str) -> Path | None:
    """Return the file of a place as the server's options name it; ``none`` and ``memory`` are none."""
    if location in {"none", "memory"}:
        return None
    if "://" in location:
        kind = location.partition("://")[0]
        raise DataError(f"{option}: {kind} is backed up with {by}; give {option} none to leave it out")
    return Path(location)
