"""Evaluation servers, their databases and browsers for the tests in this folder."""

from arenas import arena, connect, own_arena, postgres, postgres_arena, sqlite_arena, tools
from servers import axe, client, program, server, start_browser, start_server

__all__ = [
    "arena",
    "axe",
    "client",
    "connect",
    "own_arena",
    "postgres",
    "postgres_arena",
    "program",
    "server",
    "sqlite_arena",
    "start_browser",
    "start_server",
    "tools",
]
