"""Servers and browsers for the tests in this folder."""

from servers import (
    axe,
    client,
    program,
    server,
    servers_end_with_module,
    servers_end_with_test,
    start_browser,
    start_server,
)

__all__ = [
    "axe",
    "client",
    "program",
    "server",
    "servers_end_with_module",
    "servers_end_with_test",
    "start_browser",
    "start_server",
]
