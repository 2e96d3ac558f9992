"""Servers for the tests in this folder."""

from servers import server, start_server

__all__ = ["server", "start_server"]
