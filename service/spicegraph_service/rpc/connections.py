"""Connections over gRPC by address. Its library counts them in all alone, and hands none of them out."""
# They are found among this process's own descriptors, and ended by shutting the socket down, which the library takes
# for the client's doing. One that it accepts between two looks lives as long as the look is away.

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Peer = tuple[str, int]

MOST = 4_096  # Connections in all. The library accepts no more.
MOST_OF_PEER = 512  # a proxy is one peer
_FREE = 8  # a share of one in eight stays free: who comes next gets in
_DESCRIPTORS = Path("/dev/fd")
_LOOK_EVERY_S = 0.5
_TELL_EVERY = 20  # looks
_log = logging.getLogger(__name__)


def allow_descriptors() -> None:
    """Let this process have as many descriptors as its connections over gRPC and HTTP need, where the system does."""
    with suppress(ImportError):  # Windows
        import resource  # noqa: PLC0415

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 3 * MOST if hard == resource.RLIM_INFINITY else min(3 * MOST, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def bound_by_peer(port: int) -> None:
    """Keep the connections of each address at a port within bounds, until this is cancelled."""
    if not _DESCRIPTORS.is_dir():  # Windows: there the library's own bound in all is the only one
        return
    known: dict[_Peer, None] = {}
    ended: Counter[str] = Counter()
    while True:
        for _ in range(_TELL_EVERY):
            await asyncio.sleep(_LOOK_EVERY_S)
            # Nobody has too many where there are so few: this is all that a look costs.
            if sum(1 for _ in _DESCRIPTORS.iterdir()) > MOST_OF_PEER:
                known, surplus = await asyncio.to_thread(end_surplus, port, known)
                ended += surplus
        for host, count in ended.most_common(1):
            others = ended.total() - count
            _log.warning("%d connections of %s ended, which had too many, and %d of others", count, host, others)
        ended.clear()


def end_surplus(port: int, known: dict[_Peer, None]) -> tuple[dict[_Peer, None], Counter[str]]:
    """End the newest connections of addresses with too many; return all others, oldest first, and how many ended."""
    descriptors: dict[_Peer, int] = {}
    for entry in _DESCRIPTORS.iterdir():
        with suppress(OSError), _connection(int(entry.name), port) as connection:
            descriptors[connection.getpeername()[:2]] = int(entry.name)
    counts = Counter(host for host, _ in descriptors)
    most = MOST_OF_PEER
    while most > 1 and sum(min(count, most) for count in counts.values()) > MOST - MOST // _FREE:
        most //= 2
    kept: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    remaining: dict[_Peer, None] = {}
    for peer in [
        *(peer for peer in known if peer in descriptors),
        *(peer for peer in descriptors if peer not in known),
    ]:
        host, _ = peer
        kept[host] += 1
        if kept[host] <= most:
            remaining[peer] = None
            continue
        with suppress(OSError), _connection(descriptors[peer], port) as connection:
            if connection.getpeername()[:2] == peer:  # else it has ended, and its descriptor is another one's
                connection.shutdown(socket.SHUT_RDWR)
                ended[host] += 1
    return remaining, ended


@contextmanager
def _connection(descriptor: int, port: int) -> Iterator[socket.socket]:
    """Give a connection by a port for a moment; an ``OSError`` where the descriptor is something else."""
    # Not a duplicate of it: of an SQLite file, closing one would give up the locks that this process has on it.
    connection = socket.socket(fileno=descriptor)
    try:
        if connection.family not in {socket.AF_INET, socket.AF_INET6} or connection.getsockname()[1] != port:
            raise OSError
        yield connection
    finally:
        connection.detach()
