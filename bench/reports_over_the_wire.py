"""What a report over the wire costs: processor time of `Analyze` against the command's, and the memory of the server.

    python bench/reports_over_the_wire.py A.json B.json REFERENCES.json [--many N]

The files hold captions by image, and references by image. Times are of processors, so that other work matters less;
the server's memory is looked at before, when `--many` items (40,000) are taken in, after the call is cancelled, and
after a report.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_service.client import Client
from spicegraph_service.client.reports import analyze_messages
from spicegraph_service.pool.processes import usage

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs=3)
    parser.add_argument("--many", type=int, default=40_000)
    given = parser.parse_args()
    first, second, references = (json.loads(Path(path).read_text()) for path in given.files)
    systems = {"first": first, "second": second}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stream:
            options = ["--address", "127.0.0.1:0", "--workers", "1", "--store", "memory"]
            command = [sys.executable, "-m", "spicegraph_service", "serve", *options]
            server = subprocess.Popen(command, stderr=stream)
        try:
            while '"serving' not in log.read_text():
                time.sleep(0.1)
            port = re.findall(r"listening on port (\d+)", log.read_text())[0]
            with Client(f"127.0.0.1:{port}") as client:
                measure(client, server.pid, systems, references, given.many)
        finally:
            server.terminate()
            server.wait()
    command = [sys.executable, "-m", "spicegraph_service", "report", *given.files[:2], "--references", given.files[2]]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "-o", os.devnull, "--format", "html"], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"the command: {spent:.1f} s of processor time")


def measure(
    client: Client, pid: int, systems: dict[str, dict[str, str]], references: dict[str, list[str]], many: int
) -> None:
    def shown(what: str) -> None:
        print(f"server, {what}: {usage(pid)[0] >> 20} MiB", flush=True)

    shown("idle")
    keys = list(references)

    def messages() -> Iterator[pb.AnalyzeRequest]:
        yield pb.AnalyzeRequest(settings=pb.AnalysisSettings(systems=list(systems)))
        for start in range(0, many, 200):
            batch = pb.SystemsBatch()
            for n in range(start, min(many, start + 200)):
                key = keys[n % len(keys)]
                captions = [of_system[key] for of_system in systems.values()]
                batch.items.add(id=str(n), candidates=captions, references=references[key])
            yield pb.AnalyzeRequest(items=batch)

    call = client._reports.Analyze(messages())
    next(call)
    shown(f"{many:,} items taken in")
    call.cancel()
    time.sleep(2)
    shown("cancelled")
    before = ended_children(pid)
    for _ in client._reports.Analyze(analyze_messages(systems, references, {})):
        pass
    shown("after a report")
    print(f"Analyze of {len(references):,} items: {ended_children(pid) - before:.1f} s of processor time", flush=True)


def ended_children(pid: int) -> float:
    """Processor time of a process's children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
