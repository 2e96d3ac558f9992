"""What an operator meets at the start of a server: ports, stores, settings, hosts."""

from __future__ import annotations

import asyncio
import os
import socket
import urllib.request
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from spicegraph_parser.errors import InputError
from spicegraph_service import app
from spicegraph_service.cli import serve
from spicegraph_service.cli.app import main
from spicegraph_service.config import ServerConfig
from spicegraph_service.rpc import metrics_port
from spicegraph_service.store import StoreError
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:SECRET@h/0", "redis://:***@h/0"),
        ("redis://me:SEC@/:RET@h:1/0", "redis://me:***@h:1/0"),
        ("redis://h:6379/0", "redis://h:6379/0"),
    ],
)
def test_shown_settings_have_no_passwords(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, shown: str
) -> None:
    monkeypatch.setenv("SPICEGRAPH_STORE", url)
    assert main(["config", "serve"]) == 0
    printed = capsys.readouterr().out
    assert shown in printed
    assert "SEC" not in printed


def test_unknown_variables_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for name in [name for name in os.environ if name.startswith("SPICEGRAPH_")]:
        monkeypatch.delenv(name)
    for name in ("WORKER", "PORT_50051_TCP_ADDR", "SERVICE_HOST", "SETTINGS", "WORKERS", "SERVER_NAME"):
        monkeypatch.setenv(f"SPICEGRAPH_{name}", "1")
    serve._tell_unknown_variables()
    message = "no option has the environment variable SPICEGRAPH_WORKER; is SPICEGRAPH_WORKERS meant?"
    assert [record.getMessage() for record in caplog.records] == [message]


def test_tables_are_kept_beside_the_store_where_the_cache_cannot_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    serve._keep_tables(str(tmp_path / "server.db"))
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "none")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for store in ("memory", "redis://h/0"):
        serve._keep_tables(store)
        assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "none")
    serve._keep_tables(str(tmp_path / "server.db"))
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "cache")


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(metrics_port, "_MOST", 2)
    monkeypatch.setattr(metrics_port, "_LONGEST_S", 3.0)
    registry = CollectorRegistry()
    Gauge("dogs", "Dogs.", registry=registry).set(3)
    server = metrics_port.serve_metrics("127.0.0.1", 0, registry)
    yield server.server_port
    server.shutdown()
    server.server_close()


def is_refused(port: int) -> bool:
    """Ask for metrics, and say whether there is no room."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            return "dogs 3.0" not in reply.read().decode()
    except OSError:  # closed, or reset
        return True


def test_the_metrics_port_has_few_connections_and_none_for_long(metrics: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", metrics)) for _ in range(2)]  # the first ones that it accepts
    assert is_refused(metrics)
    for connection in silent:
        connection.settimeout(60)
        assert connection.recv(1) == b""
        connection.close()
    wait_until(lambda: not is_refused(metrics))  # a connection's place is free a moment after its end


def test_the_metrics_port_has_its_room_again_where_no_thread_can_be_started(
    metrics: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(ThreadingMixIn, "process_request", fail)
        assert all(is_refused(metrics) for _ in range(3))
    wait_until(lambda: not is_refused(metrics))


@pytest.mark.parametrize("option", ["address", "metrics_address"])
def test_a_taken_port_is_one_line(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        addresses = {"address": "127.0.0.1:0", option: f"127.0.0.1:{port}"}
        config = ServerConfig(store="memory", **addresses)

        async def start() -> None:
            server = app.Server(config)
            try:
                await server.start()
            finally:
                await server.stop(0)

        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            asyncio.run(start())


def test_a_store_that_is_not_there_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def made(*_: object) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise StoreError("nobody answers")
        return "a server"

    monkeypatch.setattr(app, "Server", made)
    assert asyncio.run(app._made(ServerConfig(), {})) == "a server"
    assert len(tries) == 3
    assert "the store does not answer (next try in 0.5 s): nobody answers" in caplog.text
    monkeypatch.setattr(app, "_STORE_S", 0.0)
    tries.clear()
    with pytest.raises(StoreError):
        asyncio.run(app._made(ServerConfig(), {}))


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        ({}, {"*"}),
        ({"http": "127.0.0.1:8080"}, set()),
        ({"http": "0.0.0.0:8080"}, {"*"}),
        ({"http": "127.0.0.1:8080", "hosts": "a.org, B.org"}, {"a.org", "b.org"}),
        ({"http": "0.0.0.0:8080", "hosts": "a.org"}, {"a.org"}),
    ],
)
def test_hosts_over_http(config: dict[str, Any], allowed: set[str]) -> None:
    assert ServerConfig(**config).allowed_hosts == allowed
