"""For tests: servers (the real command in a process of its own, on a real socket), and a browser."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from browser import Browser
from spicegraph_service.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class RunningServer:
    """A server process, and how to reach it."""

    process: subprocess.Popen[bytes]
    log: Path
    options: tuple[str, ...]
    is_shared: bool = False
    """It runs to the end of the session; others end with the test or the module that started them."""

    def lines(self) -> list[dict[str, object]]:
        """The log so far, without a last line that is still being written."""
        written = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in written if line.startswith("{") and line.endswith("\n")]

    def _port(self, what: str) -> int:
        for line in self.lines():
            message = str(line["message"])
            if message.startswith(f"{what} on port "):
                return int(message.removeprefix(f"{what} on port ").partition(";")[0])
        raise LookupError(f"no port for {what} yet")

    @property
    def port(self) -> int:
        return self._port("listening")

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self._port('metrics')}/metrics"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self._port('HTTP')}"

    def health(self, service: str = "") -> int:
        with grpc.insecure_channel(self.address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status

    def wait_serving(self, timeout_s: float = 180.0) -> None:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.log.read_text()}")
            if any(str(line["message"]).startswith("serving") for line in self.lines()):
                return
            time.sleep(0.05)
        raise AssertionError(f"the server does not serve: {self.log.read_text()}")

    def is_ready(self, worker: int) -> bool:
        """Whether a worker has loaded what it needs."""
        return any(line["message"] == f"worker {worker} is ready" for line in self.lines())

    def logged(self, request_id: str) -> list[dict[str, object]]:
        """The log's lines about a call."""
        return [line for line in self.lines() if line.get("request_id") == request_id]

    def calls_under_way(self) -> int:
        """How many calls are answered at this moment; the server needs ``--metrics-address``."""
        with urllib.request.urlopen(self.metrics_url, timeout=5) as reply:
            text = reply.read().decode()
        return int(float(re.search(r"^spicegraph_in_flight (\S+)", text, re.MULTILINE)[1]))  # type: ignore[index]

    def workers(self) -> list[int]:
        """Process ids of the worker processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        commands = [(int(pid), Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")) for pid in children]
        return [pid for pid, command in commands if b"spicegraph_service.pool.workers" in command]

    def rss_mb(self, pid: int) -> float:
        """Resident memory of one process."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def memory_mb(self) -> float:
        """Resident memory of the server and its workers."""
        return sum(map(self.rss_mb, (self.process.pid, *self.workers())))

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Find a program that a test needs. Without it the test is skipped, but in CI it fails."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            if os.environ.get("CI"):
                pytest.fail(f"{name} is not installed, and CI must run this test")
            pytest.skip(f"{name} is not installed")
        return found

    return find


RUNNING: list[RunningServer] = []


def end_servers(place: int, *, shared: bool = False) -> None:
    """End the servers from a place of the list on, but for shared ones."""
    for server in RUNNING[place:]:
        if shared or not server.is_shared:
            if server.process.poll() is None:
                server.stop(signal.SIGKILL)
            RUNNING.remove(server)


@pytest.fixture(scope="module", autouse=True)
def servers_end_with_module() -> Iterator[None]:
    """An idle server and its workers cost processor time and memory: those of a module end with it."""
    place = len(RUNNING)
    yield
    end_servers(place)


@pytest.fixture(autouse=True)
def servers_end_with_test(servers_end_with_module: None) -> Iterator[None]:
    """End what a test has started itself; servers of its module's fixtures were started before."""
    place = len(RUNNING)
    yield
    end_servers(place)


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RunningServer]]:
    """Start `spicegraph serve` with options; every server is ended with the session, most of them before."""

    def start(
        *options: str, wait: bool = True, env: dict[str, str] | None = None, is_shared: bool = False
    ) -> RunningServer:
        folder = tmp_path_factory.mktemp("server")
        given = {option.partition("=")[0] for option in options}
        defaults = {"--address": "127.0.0.1:0", "--workers": "1", "--store": str(folder / "server.db"), "--grace": "10"}
        arguments = [f"{name}={value}" for name, value in defaults.items() if name not in given]
        log = folder / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "spicegraph_service", "serve", *arguments, *options],
                stderr=stream,
                stdout=stream,
                env=os.environ | (env or {}),
            )
        server = RunningServer(process, log, options, is_shared)
        RUNNING.append(server)
        if wait:
            server.wait_serving()
        return server

    yield start
    end_servers(0, shared=True)


@pytest.fixture(scope="session")
def server(start_server: Callable[..., RunningServer]) -> RunningServer:
    """One server that most tests share."""
    options = "--reflection", "--metrics-address=127.0.0.1:0", "--http=127.0.0.1:0", "--max-items=300"
    return start_server(*options, is_shared=True)


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.address) as opened:
        yield opened


AXE = "axe-core-4.10.3"
AXE_SHA512 = "5e6edba515e70d25f6604d9815f064d859c5d1ea7ab661bbc4f87c88779ef0c21cae0abbeb636471ef39e9d62d2582e4b88a1866f19f4ecfcf6d986275e4dc12"


@pytest.fixture(scope="session")
def start_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Browser]]:
    """Start a headless Chromium of the width given; every one is ended with the session."""
    running: list[Browser] = []

    def start(**size: int) -> Browser:
        running.append(Browser(tmp_path_factory.mktemp("chromium"), **size))
        return running[-1]

    yield start
    for browser in running:
        browser.close()


@pytest.fixture(scope="session")
def axe(program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core (MPL-2.0) from npm's cache or registry, checked by its hash; nothing of it is kept."""
    folder = tmp_path_factory.mktemp("axe")
    command = [program("npm"), "pack", AXE.replace("-4", "@4"), "--prefer-offline", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    archive = folder / f"{AXE}.tgz"
    if done.returncode or not archive.exists():
        pytest.skip(f"npm has no {AXE}: {done.stderr.strip()[:200]}")
    assert hashlib.sha512(archive.read_bytes()).hexdigest() == AXE_SHA512
    with tarfile.open(archive) as packed:
        source = packed.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()
