"""Connections over HTTP: those of one address leave room for others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from spicegraph_web import server

if TYPE_CHECKING:
    import pytest


def test_silent_connections_of_one_address_leave_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="served")

    async def run() -> bytes:
        application = web.Application()
        application.router.add_get("/", answer)
        runner = server._Runner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        silent = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(4)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        reply = await asyncio.wait_for(reader.read(), 10)
        for _, other in (*silent, (reader, writer)):
            other.close()
        await runner.cleanup()
        return reply

    assert asyncio.run(run()).endswith(b"served")
