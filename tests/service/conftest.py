"""For tests: servers (the real command in a process of its own, on a real socket), and a browser."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from spicegraph_service.client import Client
from word_facts import WordFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class RunningServer:
    """A server process, and how to reach it."""

    process: subprocess.Popen[bytes]
    log: Path
    options: tuple[str, ...]

    def lines(self) -> list[dict[str, object]]:
        """The log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

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

    def wait_serving(self, timeout_s: float = 60.0) -> None:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.log.read_text()}")
            if any(str(line["message"]).startswith("serving") for line in self.lines()):
                return
            time.sleep(0.05)
        raise AssertionError(f"the server does not serve: {self.log.read_text()}")

    def workers(self) -> list[int]:
        """Process ids of the worker processes, but for the one in reserve for light calls."""
        return [pid for pid, command in self._children() if b"reserve" not in command]

    def reserve(self) -> list[int]:
        """Process id of the worker in reserve, once it runs."""
        return [pid for pid, command in self._children() if b"reserve" in command]

    def _children(self) -> list[tuple[int, list[bytes]]]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        commands = [(int(pid), Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")) for pid in children]
        return [(pid, command) for pid, command in commands if b"spicegraph_service.server.workers" in command]

    def rss_mb(self, pid: int) -> float:
        """Resident memory of one process."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def memory_mb(self) -> float:
        """Resident memory of the server and its workers."""
        return sum(map(self.rss_mb, (self.process.pid, *self.workers(), *self.reserve())))

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


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RunningServer]]:
    """Start `spicegraph serve` with options; every server is ended with the session."""
    running: list[RunningServer] = []

    def start(*options: str, wait: bool = True, env: dict[str, str] | None = None) -> RunningServer:
        folder = tmp_path_factory.mktemp("server")
        given = {option.partition("=")[0] for option in options}
        defaults = {
            "--address": "127.0.0.1:0",
            "--workers": "1",
            "--store": str(folder / "server.db"),
            "--grace": "10",
        }
        arguments = [f"{name}={value}" for name, value in defaults.items() if name not in given]
        log = folder / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "spicegraph_service", "serve", *arguments, *options],
                stderr=stream,
                stdout=stream,
                env=os.environ | (env or {}),
            )
        server = RunningServer(process, log, options)
        running.append(server)
        if wait:
            server.wait_serving()
        return server

    yield start
    for server in running:
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)


@pytest.fixture(scope="session")
def server(start_server: Callable[..., RunningServer]) -> RunningServer:
    """One server that most tests share."""
    return start_server("--reflection", "--metrics-address=127.0.0.1:0", "--http=127.0.0.1:0", "--max-items=300")


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.address) as opened:
        yield opened


WAIT = 10.0
TABS = 60
AXE = "axe-core-4.10.3"
AXE_SHA512 = "5e6edba515e70d25f6604d9815f064d859c5d1ea7ab661bbc4f87c88779ef0c21cae0abbeb636471ef39e9d62d2582e4b88a1866f19f4ecfcf6d986275e4dc12"
AXE_FAULTS = (
    "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => ['serious', 'critical']"
    ".includes(v.impact)).map(v => [v.id, v.nodes.length, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + n.failureSummary)]))"
)


class Browser:
    """A headless Chromium with one page, spoken to over its DevTools pipe."""

    def __init__(self, folder: Path, *, width: int = 1200, height: int = 900) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            pytest.fail("tests of pages need Chromium: apt-get install chromium")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Chromium reads from 3 and writes to 4; high numbers keep the two from colliding.
        low, high = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out))
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-pipe", f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{low} 4>&{high} {low}<&- {high}>&-', "bash", program, *flags],
            pass_fds=(low, high),
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (theirs_in, theirs_out, low, high):
            os.close(descriptor)
        self._reader, self._writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.errors: list[str] = []
        self.asked: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        self._writer.flush()
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _read(self) -> Any:
        text = bytearray()
        while (byte := self._reader.read(1)) != b"\0":
            if not byte:
                raise AssertionError("Chromium has ended")
            text += byte
        return json.loads(text)

    def _note(self, event: dict[str, Any]) -> None:
        """Keep what the console would show as an error, and what is asked for."""
        method, about = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        if method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and about["type"] == "error":
            self.errors.append(str(about["args"]))

    def js(self, code: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str) -> None:
        end = time.monotonic() + WAIT
        while not self.js(code):
            assert time.monotonic() < end, f"never true: {code}"
            time.sleep(0.02)

    def open(self, path: Path, fragment: str = "") -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.until("document.documentElement?.dataset.ready === 'true'")

    def visit(self, url: str) -> None:
        """Open a page of a server."""
        self.errors.clear()
        self.asked.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("location.protocol === 'http:' && document.readyState === 'complete'")

    def look(self, *, width: int, dark: bool) -> None:
        """Show pages as on a screen of this width, light or dark."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )

    def check(self, axe: str, origin: str) -> None:
        """Check that a page is sound: no error, nothing from elsewhere, not too wide, nothing serious of axe-core's."""
        where = self.js("location.pathname")
        assert self.errors == [], where
        assert all(url.startswith((origin, "about:", "data:")) for url in self.asked), (where, self.asked)
        assert self.js("document.documentElement.scrollWidth <= innerWidth"), where
        self.js("for (const fold of document.querySelectorAll('details')) fold.open = true")
        self.js(axe)
        assert self.js(AXE_FAULTS) == [], where

    def tab_to(self, selector: str) -> None:
        """Press Tab until the element has the focus."""
        for _ in range(TABS):
            self.key("Tab", code=9)
            if self.js(f"document.activeElement?.matches({selector!r})"):
                return
        raise AssertionError(f"Tab never gets to {selector}")

    def enter(self) -> None:
        """Press Enter, and wait for the page that follows."""
        self.js("document.documentElement.dataset.old = 'true'")
        self.key("Enter", code=13, text="\r")
        self.until(
            "document.documentElement && !document.documentElement.dataset.old && document.readyState === 'complete'"
        )

    def click(self, selector: str) -> None:
        self.js(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        x, y = self.js(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str, *, code: int = 0, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, dark: bool = False, width: int | None = None, height: int = 900) -> None:
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        if width:
            self.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True
            )
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._session = None
        self._writer.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self._writer.close()
        self._process.wait(WAIT)
        self._reader.close()


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


@pytest.fixture(scope="session")
def word_facts() -> WordFacts:
    """A parser without a model: every word is an object."""
    return WordFacts()
