"""Servers and clients for the tests in this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from servers import server, servers_end_with_module, servers_end_with_test, start_server
from spicegraph_graded import RewardClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers import RunningServer

__all__ = ["client", "server", "servers_end_with_module", "servers_end_with_test", "start_server"]


@pytest.fixture
def client(server: RunningServer) -> Iterator[RewardClient]:
    with RewardClient(server.address) as opened:
        yield opened
