"""What strangers can do to a server: bodies before tokens, tokens that have ended, hostile bytes, a locked store.

    python bench/strangers.py [PROGRAM] [--short] [--proxy] [--only NAME ...]

``PROGRAM`` is the ``spicegraph`` of the checkout to attack (default: this environment's). Prints one line per attack:
growth of the server's memory and of its files for bodies that nobody has asked for, seconds that a revoked token goes
on, answers to malformed requests, the time of calls beside a locked store; and of what :data:`HELD` names, whether it
holds: it ends with 1 where something does not. ``--short`` is these alone, with fewer calls, as the tests run them;
``--proxy`` these alone, over gRPC through HAProxy as ``deploy/haproxy`` sets it up, but for TLS.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from load import floods
from spicegraph_api.challenge.v1 import challenge_pb2
from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_service.client import Client, item
from spicegraph_service.client.evaluation import STREAM_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SCORE = "/spicegraph.v1.EvaluationService/Score"
STREAM = "/spicegraph.v1.EvaluationService/ScoreStream"
STRANGERS = 60
BODY = 8 << 20


class Server:
    """A server that needs tokens, on two ports of this machine."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.program, self.store = program, str(folder / "server.db")
        self.proxy: subprocess.Popen[bytes] | None = None
        self.token = self.run("token", "create", "somebody", "--scope", "score", "--store", self.store).strip()
        self.files = folder / "tmp"
        self.files.mkdir()
        self.log = folder / "log"
        self.folder = folder
        place = f"--challenges={folder / 'challenges.db'}"
        self.organiser = self.run("challenge", "init", "owner", place).strip()
        arguments = ["--address=127.0.0.1:0", "--http=127.0.0.1:0", "--tokens=always", f"--store={self.store}"]
        arguments += ["--reflection", "--metrics-address=127.0.0.1:0"]
        arguments += ["--workers=1", place, *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", *arguments], stderr=log, env=os.environ | {"TMPDIR": str(self.files)}
            )
        while "serving: " not in self.log.read_text():
            time.sleep(0.1)
        self.port, self.http, self.metrics = (self._port(name) for name in ("listening", "HTTP", "metrics"))

    def run(self, *arguments: str) -> str:
        """Run a command of the program."""
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True).stdout

    def new_token(self, name: str, *options: str) -> str:
        """Make a token that may score."""
        return self.run("token", "create", name, "--scope", "score", "--store", self.store, *options).strip()

    def figure(self, name: str) -> float:
        """Return the sum of a metric's values."""
        with urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

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

    def stand_behind_proxy(self) -> None:
        """Take calls over gRPC through a proxy."""
        given = (Path(__file__).parents[1] / "deploy" / "haproxy" / "haproxy.cfg").read_text()
        configuration = self.folder / "haproxy.cfg"
        configuration.write_text(re.sub(r' ssl crt "\$\{CERTIFICATE\}" alpn (\w+).*', r" proto \1", given))
        with socket.create_server(("127.0.0.1", 0)) as grpc_port, socket.create_server(("127.0.0.1", 0)) as http_port:
            ports = grpc_port.getsockname()[1], http_port.getsockname()[1]
        places = {"GRPC_BIND": ports[0], "HTTP_BIND": ports[1], "GRPC_SERVER": self.port, "HTTP_SERVER": self.http}
        environment = {name: f"127.0.0.1:{port}" for name, port in places.items()}
        command = ["haproxy", "-q", "-f", str(configuration)]
        self.proxy = subprocess.Popen(command, env=os.environ | environment | {"RUN": str(self.folder)})
        self.port = ports[0]
        while not floods.answers(self.port):
            time.sleep(0.1)

    def stop(self) -> None:
        """End the server."""
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait(60)
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
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {announced}\r\n\r\n"
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
        lambda: (
            b"POST " + SCORE.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
            b"[" * 100_000,
        ),
        lambda: (
            b"POST " + SCORE.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Encoding: deflate\r\n",
            b"not compressed",
        ),
        lambda: (b"POST /challenges/x/submissions HTTP/1.1\r\nHost: localhost\r\n" + multipart, b""),
        lambda: (b"POST /challenges/x/submissions HTTP/1.1\r\nHost: localhost\r\n" + multipart, b"no boundary"),
        lambda: (
            b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\n" + multipart,
            b'--b\r\nContent-Disposition: form-data; name="a',
        ),
        lambda: (
            b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\n" + multipart,
            b'--b\r\nContent-Disposition: form-data; name="token"; filename="a\0\nb"\r\n\r\nx\r\n--b--',
        ),
        lambda: (bytes(draw.randrange(256) for _ in range(60)) + b"\r\n", b""),
        lambda: (b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n", b""),
        lambda: (b"GET / HTTP/9.9\r\nHost: localhost\r\n", b""),
        lambda: (b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n", b"zz\r\n"),
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


def cached() -> Iterator[bytes]:
    """Return a request whose captions have been parsed, again and again."""
    return itertools.repeat(pb.ScoreRequest(items=[item(1, "a dog", ["a brown dog"])]).SerializeToString())


def fresh(name: str) -> Iterator[bytes]:
    """Return requests of one item whose captions are new."""
    for number in itertools.count():
        one = item(1, f"a {name} dog {number} on a beach", [f"a {name} cat {number} sleeps on a red couch"])
        yield pb.ScoreRequest(items=[one]).SerializeToString()


def crowd(server: Server, *, short: bool) -> tuple[str, bool]:
    """Calls and probes beside watches, reflection streams and calls without a request, which stay open."""
    count = 330 if short else 1_100
    other = server.new_token("other")
    told: list[str] = []
    met = True
    floods.calls(server.port, server.token, cached(), count=3)
    kinds = {
        "watches": lambda: floods.open_calls(server.port, floods.WATCH, count, request=b""),
        "reflection streams": lambda: floods.open_calls(server.port, floods.REFLECTION, count, request=b"\x3a\0"),
        "calls without a request": lambda: floods.open_calls(server.port, floods.SCORE, count, token=other),
    }
    for kind, flood in kinds.items():
        refused = server.figure("spicegraph_refusals_total")
        with floods.beside(flood):
            served = floods.calls(server.port, server.token, cached(), count=20)
            check = health_pb2.HealthCheckRequest().SerializeToString()
            probed = floods.calls(server.port, "", itertools.repeat(check), count=6, path=floods.CHECK)
            counted = server.figure("spicegraph_refusals_total") - refused
        failures = len(served.failures) + len(probed.failures)
        told.append(f"{count} {kind}: {failures} of 26 refused, p50 {served.median:.1f} ms, {counted:.0f} counted")
        met = met and not failures and counted > 0
    return "; ".join(told), met


def rapid(server: Server, *, short: bool) -> tuple[str, bool]:
    """Cached calls beside one connection without a token that opens and resets streams."""
    rate, seconds, count = (10_000, 2, 200) if short else (30_000, 5, 1_000)
    idle = floods.calls(server.port, server.token, cached(), count=count // 2)
    command = [sys.executable, "-m", "load.floods", str(server.port), str(rate), str(seconds)]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as attacker:
        time.sleep(0.5)
        beside = floods.calls(server.port, server.token, cached(), count=count)
        sent = attacker.communicate()[0].strip()
    told = f"{sent} resets in {seconds} s: p50 {beside.median:.1f} ms (idle {idle.median:.1f}), "
    told += f"failed {len(beside.failures)} of {count}"
    return told, not beside.failures and beside.median <= max(5.0, 4 * idle.median)


def lists(server: Server, *, short: bool) -> tuple[str, bool]:
    """Another caller's calls beside a token that sends items of lists of words, which take longest to parse."""
    draw = random.Random(3)
    words = [
        "dog",
        "cat",
        "red",
        "big",
        "man",
        "blue",
        "car",
        "tree",
        "horse",
        "beach",
        "table",
        "street",
        "woman",
        "sign",
        "small",
        "white",
    ]

    def heavy() -> Iterator[bytes]:
        for number in itertools.count():
            texts = [", ".join(draw.choices(words, k=400))[: 2_000 - 10] + f" {number}" for _ in range(10)]
            yield pb.ScoreRequest(items=[item(1, texts[0], texts[1:])]).SerializeToString()

    count = 40 if short else 200
    token = server.new_token("lists")
    floods.calls(server.port, server.token, fresh("first"), count=10)
    idle = floods.calls(server.port, server.token, fresh("idle"), count=count)
    end = threading.Event()
    sent = itertools.takewhile(lambda _: not end.is_set(), heavy())
    attacker = threading.Thread(target=floods.calls, args=(server.port, token, sent), kwargs={"count": 10_000})
    attacker.start()
    time.sleep(1)
    beside = floods.calls(server.port, server.token, fresh("late"), count=count)
    known = floods.calls(server.port, server.token, cached(), count=count)
    end.set()
    attacker.join()
    told = (
        f"fresh p50 {beside.median:.0f}, p90 {beside.percentile(0.9):.0f}, p99 {beside.percentile(0.99):.0f} ms (idle "
    )
    told += f"{idle.median:.0f}, {idle.percentile(0.9):.0f}, {idle.percentile(0.99):.0f}); "
    told += f"cached p99 {known.percentile(0.99):.0f} ms; failed {len(beside.failures)}"
    # The short form has too few calls for a hundredth of them.
    share, times, least = (0.9, 8, 400) if short else (0.99, 3, 60)
    met = beside.percentile(share) <= max(least, times * idle.percentile(share))
    return told, met and not beside.failures


def fill(server: Server, *, short: bool) -> tuple[str, bool]:
    """What a participant who may submit two files leaves on the disk with files of junk, which are all refused."""
    size, count = (40, 5) if short else (60, 12)
    target, kept = f"127.0.0.1:{server.port}", Path(f"{server.folder / 'challenges.db'}.files")
    references = server.folder / "references.json"
    references.write_text(json.dumps({"annotations": [{"image_id": 1, "caption": "a brown dog"}]}))
    junk = server.folder / "captions_val_junk_results.json"
    split = challenge_pb2.ChallengeSplit(name="val", reference_sets=[challenge_pb2.ChallengeReferenceSet(name="c5")])
    settings = challenge_pb2.ChallengeSettings(metrics=["rouge"], splits=[split], daily_limit=2, total_limit=2)
    with ChallengeClient(target, server.organiser) as organiser:
        organiser.create_challenge(challenge_pb2.Challenge(name="pets", settings=settings))
        organiser.upload_references("pets", "val", "c5", references)
        token = organiser.create_user("vandal")
    refused, most, begun = "none was refused", 0.0, time.monotonic()
    with ChallengeClient(target, token) as vandal:
        for number in range(count):
            junk.write_bytes(os.urandom(1 << 20) * size + str(number).encode())
            try:
                sent, _ = vandal.submit("pets", junk)
            except grpc.RpcError as error:
                refused = f"the {number + 1}th: {error.details()}"
                break
            while vandal.get_submission(sent.id).state == challenge_pb2.SUBMISSION_STATE_VALIDATING:
                most = max(most, _megabytes(kept))
                time.sleep(0.02)
    junk.unlink()
    wait = time.monotonic() + 5
    while (left := _megabytes(kept)) > 1 and time.monotonic() < wait:
        time.sleep(0.1)
    told = f"{time.monotonic() - begun:.0f} s, {most:.0f} MB at most, {left:.1f} MB left; {refused}"
    return told, most <= 130 and left < 1 and number < count - 1


def _megabytes(folder: Path) -> float:
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # it is gone by now
            size += path.stat().st_size if path.is_file() else 0
    return size / 1e6


def pings(server: Server, *, short: bool) -> tuple[str, bool]:
    """A stream whose client asks every 10 s whether the server is there, and says nothing for a minute."""
    seconds = 12 if short else 60

    def items() -> Iterator[Any]:
        yield item(1, "a dog", ["a brown dog"])
        time.sleep(seconds)
        yield item(2, "a dog", ["a brown dog"])

    with Client(f"127.0.0.1:{server.port}", token=server.token, keepalive_s=5 if short else 10) as client:
        results = sum(len(reply.items) for reply in client.stream(items(), metrics=["rouge"]))
    return f"{results} of 2 results after {seconds} s of silence", results == 2


def frozen(server: Server, *, short: bool) -> tuple[str, bool]:
    """A stream's client whose server is frozen in its middle."""
    limit = 3.0 if short else 60.0

    def items() -> Iterator[Any]:
        for number in itertools.count():
            yield item(number, f"a dog {number}", ["a brown dog"])

    with Client(f"127.0.0.1:{server.port}", token=server.token, silence_s=limit) as client:
        results = client.stream(items(), metrics=["rouge"])
        next(results)
        begun = time.monotonic()
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            for _ in results:
                pass
            told = "the stream ended"
        except grpc.RpcError as error:
            told = f"{error.code().name}: {error.details()}"
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
    seconds = time.monotonic() - begun
    return f"{seconds:.1f} s of {limit:g}: {told}", seconds <= limit + 5


def stop(server: Server, *, short: bool) -> tuple[str, bool]:
    """How long a server takes to end that has a watch, a stream whose client is silent, and a client that pings."""
    ended = threading.Event()

    def items() -> Iterator[Any]:
        yield from (item(number, "a dog", ["a brown dog"]) for number in range(STREAM_BATCH))
        ended.wait(60)

    target = f"127.0.0.1:{server.port}"
    with grpc.insecure_channel(target) as channel, Client(target, token=server.token, keepalive_s=6) as client:
        watching = channel.unary_stream(floods.WATCH)(b"")
        statuses = [health_pb2.HealthCheckResponse.FromString(next(watching)).status]
        results = client.stream(items(), metrics=["rouge"])
        next(results)
        begun = time.monotonic()
        server.process.terminate()
        try:
            statuses.extend(health_pb2.HealthCheckResponse.FromString(status).status for status in watching)
        except grpc.RpcError:
            statuses.append(-1)
        server.process.wait(60)
        seconds = time.monotonic() - begun
        told = health_pb2.HealthCheckResponse.NOT_SERVING in statuses
        ended.set()
        results.close()
    most = 15 if short else 2 if server.proxy else 1
    return f"{seconds:.2f} s; the watcher was {'told' if told else 'not told'}", seconds < most and told


HELD: Mapping[str, Callable[..., tuple[str, bool]]] = {
    "crowd": crowd,
    "rapid": rapid,
    "lists": lists,
    "fill": fill,
    "pings": pings,
    "frozen": frozen,
    "stop": stop,  # the last: it ends the server
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(Path(sys.executable).parent / "spicegraph"))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--only", nargs="*", choices=HELD, default=list(HELD))
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, Path(folder))
        try:
            if options.proxy:
                server.stand_behind_proxy()
            elif not options.short and options.only == list(HELD):
                report(server)
            for name in options.only:
                told, met = HELD[name](server, short=options.short)
                print(f"{name}: {told}: {'held' if met else 'NOT HELD'}", flush=True)
                missed += [] if met else [name]
        finally:
            server.stop()
    return 1 if missed else 0


def report(server: Server) -> None:
    """Print what the attacks on bodies, tokens and stores cost."""
    for name, result in bodies(server):
        print(f"{name}: {result}", flush=True)
    print(f"revoked token in a stream: {ended_token(server)}", flush=True)
    print(f"2,000 malformed requests: {hostile(server)}", flush=True)
    print(f"locked store: {locked(server)}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
