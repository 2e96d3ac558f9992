"""A server process to measure: its memory and its processor time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from load.captions import REFERENCES
from spicegraph_service.client import Client, item

if TYPE_CHECKING:
    from collections.abc import Iterator


class Running:
    """A server process, and a reference set on it with all images, which it has at hand."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port('listening')}"

    @property
    def http_url(self) -> str:
        """Where it answers JSON."""
        return f"http://127.0.0.1:{self._port('HTTP')}"

    def _port(self, what: str) -> int:
        found = re.search(rf"{what} on port (\d+)", self.log.read_text())
        if found is None:
            raise LookupError("no port")
        return int(found.group(1))

    @property
    def serving(self) -> bool:
        """Whether its workers are ready."""
        return "serving: pipeline" in self.log.read_text()

    def with_references(self) -> str:
        """Store the references of all images, score each once, and return the set's id."""
        with Client(self.address) as client:
            stored = client.create_reference_set({str(n): captions for n, captions in enumerate(REFERENCES)})
            client.score([item(n, "a dog") for n in range(len(REFERENCES))], reference_set=stored.id)
            return stored.id

    def pids(self) -> list[int]:
        """Return the server's process and its workers'."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [self.process.pid, *map(int, children.split())]

    def memory_mb(self) -> float:
        """Resident memory of the server and its workers."""
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids())
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def refusals_ms(self) -> list[float]:
        """Times of refused calls inside the server, by its log (`--log-calls=0`): without the ways to and from it."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if '"RESOURCE_EXHAUSTED"' in line)
        return [line["ms"] for line in lines if "ms" in line]

    def waited_seconds(self) -> float:
        """Return how long the server, which serves calls in one thread, has waited for a processor."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9

    def cpu_seconds(self) -> list[float]:
        """Processor time so far, of the server and each of its workers."""
        ticks = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in self.pids())
        return [sum(map(int, pair)) / os.sysconf("SC_CLK_TCK") for pair in ticks]


@contextmanager
def server(*options: str) -> Iterator[Running]:
    """Start a server with the default options, but for one worker and a store of its own, and these."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "spicegraph_service", "serve", "--address=127.0.0.1:0", "--workers=1"]
        command += [f"--store={folder}/server.db", *options]
        with log.open("wb") as stream, subprocess.Popen(command, stderr=stream) as process:
            running = Running(process, log)
            while not running.serving:
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.01)
            try:
                yield running
            finally:
                process.terminate()
