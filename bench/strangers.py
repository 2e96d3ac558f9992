"""What strangers can do to a server: bodies before tokens, tokens that have ended, hostile bytes, a locked store.

    python bench/strangers.py [PROGRAM]

``PROGRAM`` is the ``spicegraph`` of the checkout to attack (default: this environment's). Prints one line per attack:
growth of the server's memory and of its files for bodies that nobody has asked for, seconds that a revoked token goes
on, answers to malformed requests, and the time of calls beside a locked store.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_service.client import Client, item

if TYPE_CHECKING:
    from collections.abc import Iterator

SCORE = "/spicegraph.v1.EvaluationService/Score"
STREAM = "/spicegraph.v1.EvaluationService/ScoreStream"
STRANGERS = 60
BODY = 8 << 20


class Server:
    """A server that needs tokens, on two ports of this machine."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.program, self.store = program, str(folder / "server.db")
        self.token = self.run("token", "create", "somebody", "--scope", "score", "--store", self.store).strip()
        self.files = folder / "tmp"
        self.files.mkdir()
        self.log = folder / "log"
        arguments = ["--address=127.0.0.1:0", "--http=127.0.0.1:0", "--tokens=always", f"--store={self.store}"]
        arguments += ["--workers=1", f"--challenges={folder / 'challenges.db'}", *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", *arguments], stderr=log, env=os.environ | {"TMPDIR": str(self.files)}
            )
        while "serving: " not in self.log.read_text():
            time.sleep(0.1)
        time.sleep(3)  # the worker in reserve
        self.port, self.http = (self._port(name) for name in ("listening", "HTTP"))

    def run(self, *arguments: str) -> str:
        """Run a command of the program."""
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True).stdout

    def _port(self, name: str) -> int:
        messages = [json.loads(line)["message"] for line in self.log.read_text().splitlines() if line.startswith("{")]
        start = f"{name} on port "
        return int(next(text for text in messages if text.startswith(start)).removeprefix(start).partition(";")[0])

    def memory(self) -> float:
        """Return the resident MiB of the process that answers calls."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def spooled(self) -> float:
        """MiB in files that the server has open in its folder for temporary files, deleted ones included."""
        size = 0
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                if str(link.readlink()).startswith(str(self.files)):
                    size += link.stat().st_size  # of deleted ones, too
            except OSError:
                continue
        return size / (1 << 20)

    def connect(self) -> socket.socket:
        """Connect over HTTP."""
        return socket.create_connection(("127.0.0.1", self.http), timeout=30)

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(60)


class Watch:
    """The most that a server took while something ran, over what it had before."""

    def __init__(self, server: Server) -> None:
        self.server, self.before, self.most, self.files = server, server.memory(), 0.0, 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._end.wait(0.02):
            self.most = max(self.most, self.server.memory() - self.before)
            self.files = max(self.files, self.server.spooled())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def at_once(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def post(server: Server, path: str, sent: int, announced: int, kind: str = "application/json") -> None:
    """Send most of a body without a token, and wait a little."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nContent-Length: {announced}\r\n\r\n"
    with server.connect() as stranger:
        try:
            stranger.sendall(head.encode())
            piece = b" " * (1 << 16)
            for _ in range(sent // len(piece)):
                stranger.sendall(piece)
            time.sleep(3)
        except OSError:
            pass


def call(server: Server) -> None:
    """Send one message of 8 MB over gRPC without a token."""
    data = pb.ScoreRequest(items=[item(1, "x" * (BODY - 200), ["a"])]).SerializeToString()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        try:
            channel.unary_unary(SCORE)(data, timeout=30)
        except grpc.RpcError:
            time.sleep(1)


def bodies(server: Server) -> Iterator[tuple[str, str]]:
    attacks = {
        f"HTTP, {STRANGERS} x 7 of 8 MB": lambda: at_once(STRANGERS, lambda: post(server, SCORE, 7 << 20, BODY)),
        "HTTP, 4 streams x 250 MB": lambda: at_once(
            4, lambda: post(server, STREAM, 250 << 20, 255 << 20, "application/x-ndjson")
        ),
        f"gRPC, {STRANGERS} x 8 MB": lambda: at_once(STRANGERS, lambda: call(server)),
    }
    for name, attack in attacks.items():
        with Watch(server) as watch:
            attack()
        yield name, f"memory +{watch.most:.0f} MB, files {watch.files:.0f} MB"
        time.sleep(1)


def connections(server: Server, each: int) -> str:
    """Open connections over gRPC from 60 addresses that never call; return what they cost, and how long others wait."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
    ending: list[socket.socket] = []
    waited = 0.0
    with Watch(server) as watch:
        for number in range(each * STRANGERS):
            try:
                source = (f"127.0.1.{1 + number % STRANGERS}", 0)
                ending.append(socket.create_connection(("127.0.0.1", server.port), 5, source))
                ending[-1].sendall(preface)
            except OSError:
                continue
            if number % 1_000 == 0:
                begun = time.monotonic()
                with Client(f"127.0.0.1:{server.port}", token=server.token) as client:
                    client.score([item(1, "a dog", ["a brown dog"])], metrics=["rouge"])
                waited = max(waited, time.monotonic() - begun)
        time.sleep(3)
        left = sum(1 for _ in Path(f"/proc/{server.process.pid}/fd").iterdir())
    for stranger in ending:
        stranger.close()
    told = f"memory +{watch.most:.0f} MB, {left:,} descriptors left"
    return f"{told}; another address is answered in {waited:.2f} s at most"


def ended_token(server: Server) -> str:
    """Return for how many seconds a stream goes on whose token is revoked; it sends an item each half second."""
    token = server.run("token", "create", "gone", "--scope", "score", "--store", server.store).strip()
    listed = server.run("token", "list", "--store", server.store).splitlines()
    token_id = next(line.split("\t")[0] for line in listed if "\tgone\t" in line)
    begun = time.monotonic()
    revoked: list[float] = []

    def items() -> Iterator[Any]:
        for number in range(60):
            if number == 6:
                server.run("token", "revoke", token_id, "--store", server.store)
                revoked.append(time.monotonic())
            time.sleep(0.5)
            yield item(number, "a dog", ["a brown dog"])

    with Client(f"127.0.0.1:{server.port}", token=token) as client:
        try:
            for _ in client.stream(items(), metrics=["rouge"]):
                pass
        except grpc.RpcError as error:
            return f"{error.code().name} after {time.monotonic() - revoked[0]:.1f} s"
    return f"went on to its own end, {time.monotonic() - revoked[0]:.0f} s (of {time.monotonic() - begun:.0f})"


def hostile(server: Server, count: int = 2_000) -> str:
    """Send malformed requests; return how many were answered with 500, and tracebacks in the log."""
    draw = random.Random(7)
    multipart = b"Content-Type: multipart/form-data; boundary=b\r\n"
    kinds = [
        lambda: (b"POST /openrlhf?reward=spice HTTP/1.1\r\nHost: a\r\n", b"[" * 100_000),
        lambda: (
            b"POST " + SCORE.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
            b"[" * 100_000,
        ),
        lambda: (
            b"POST " + SCORE.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Encoding: deflate\r\n",
            b"not compressed",
        ),
        lambda: (b"POST /challenges/x/submissions HTTP/1.1\r\nHost: a\r\n" + multipart, b""),
        lambda: (b"POST /challenges/x/submissions HTTP/1.1\r\nHost: a\r\n" + multipart, b"no boundary"),
        lambda: (
            b"POST /sign-in HTTP/1.1\r\nHost: a\r\n" + multipart,
            b'--b\r\nContent-Disposition: form-data; name="a',
        ),
        lambda: (
            b"POST /sign-in HTTP/1.1\r\nHost: a\r\n" + multipart,
            b'--b\r\nContent-Disposition: form-data; name="token"; filename="a\0\nb"\r\n\r\nx\r\n--b--',
        ),
        lambda: (bytes(draw.randrange(256) for _ in range(60)) + b"\r\n", b""),
        lambda: (b"GET /\x00 HTTP/1.1\r\nHost: a\r\n", b""),
        lambda: (b"GET / HTTP/9.9\r\nHost: a\r\n", b""),
        lambda: (b"POST /sign-in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n", b"zz\r\n"),
    ]
    authorization = f"Authorization: Bearer {server.token}\r\n".encode()
    statuses: dict[bytes, int] = {}
    versions = 0
    for number in range(count):
        head, body = kinds[number % len(kinds)]()
        length = b"" if b"chunked" in head else b"Content-Length: %d\r\n" % len(body)
        with server.connect() as stranger:
            try:
                stranger.sendall(head + authorization + length + b"Connection: close\r\n\r\n" + body)
                stranger.settimeout(2)
                reply = stranger.recv(1 << 16)
            except OSError:
                reply = b""
        status = reply[9:12] if reply.startswith(b"HTTP/") else b"none"
        statuses[status] = statuses.get(status, 0) + 1
        versions += b"aiohttp" in reply.lower() or b"python/" in reply.lower()
    log = server.log.read_text()
    shown = ", ".join(f"{key.decode()}: {value}" for key, value in sorted(statuses.items()))
    errors = sum('"level": "ERROR"' in line.upper().replace('"LEVEL"', '"level"') for line in log.splitlines())
    return f"{shown}; tracebacks {log.count('Traceback')}, error lines {errors}, versions told {versions}"


def locked(server: Server) -> str:
    """Return how long calls take while another process holds the store; each token is used for the first time."""
    tokens = [server.run("token", "create", f"t{n}", "--scope", "score", "--store", server.store) for n in range(6)]

    def score(token: str) -> float:
        with Client(f"127.0.0.1:{server.port}", token=token.strip()) as client:
            client.server_info()
            begun = time.monotonic()
            client.score([item(1, "a dog", ["a brown dog"])], metrics=["rouge"])
            return 1000 * (time.monotonic() - begun)

    def first(token: str) -> float:
        with Client(f"127.0.0.1:{server.port}", token=token.strip()) as client:
            begun = time.monotonic()
            client.score([item(1, "a dog", ["a brown dog"])], metrics=["rouge"])
            return 1000 * (time.monotonic() - begun)

    idle = sorted(score(server.token) for _ in range(20))[10]
    holder = sqlite3.connect(server.store, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    times = [first(token) for token in tokens]
    holder.execute("ROLLBACK")
    holder.close()
    return f"slowest first call of a token {max(times):.0f} ms, idle {idle:.0f} ms"


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, Path(folder))
        try:
            for name, result in bodies(server):
                print(f"{name}: {result}", flush=True)
            for each in (1, 10, 200):
                print(f"gRPC, {STRANGERS} x {each} connections: {connections(server, each)}", flush=True)
            print(f"revoked token in a stream: {ended_token(server)}", flush=True)
            print(f"2,000 malformed requests: {hostile(server)}", flush=True)
            print(f"locked store: {locked(server)}", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).parent / "spicegraph"))
