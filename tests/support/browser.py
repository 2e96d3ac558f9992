"""A headless Chromium, for tests of pages, their pictures in the documentation, and their times."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

WAIT = 30.0
TABS = 60
AXE_FAULTS = (
    "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => ['serious', 'critical']"
    ".includes(v.impact)).map(v => [v.id, v.nodes.length, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + n.failureSummary)]))"
)


class Browser:
    """A headless Chromium with one page, spoken to over its DevTools pipe."""

    def __init__(self, folder: Path, *, width: int = 1200, height: int = 900) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise FileNotFoundError("Chromium is not installed: apt-get install chromium")
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
        self.pid = self._process.pid
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
