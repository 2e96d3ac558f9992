"""The server knows its own state: health, certificates that change, SIGHUP, clients that say nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import time
from typing import TYPE_CHECKING

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2

from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2
from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main
from spicegraph_service.client import Client, item
from spicegraph_service.rpc.auth import Certificates
from spicegraph_service.rpc.service import HealthMonitor
from spicegraph_service.store import StoreError
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from google.protobuf.descriptor import ServiceDescriptor

    from servers import RunningServer

pytestmark = pytest.mark.slow

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
EVALUATION = evaluation_service_pb2.DESCRIPTOR.services_by_name["EvaluationService"]
REFERENCES = reference_service_pb2.DESCRIPTOR.services_by_name["ReferenceService"]


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("tokens", ["never", "always"])
def test_health_follows_a_real_store(
    tokens: str, start_server: Callable[..., RunningServer], program: Callable[[str], str], tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program("redis-server"), "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), timeout_s=20)
        server = start_server(f"--store=redis://127.0.0.1:{port}/0", f"--tokens={tokens}")
        names = ("", EVALUATION.full_name, REFERENCES.full_name)
        wait_until(lambda: [server.health(name) for name in names] == [SERVING] * 3, timeout_s=20)
        for how in ("stopped", "killed"):
            before = len(server.lines())
            redis.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
            wait_until(lambda: server.health(REFERENCES.full_name) == NOT_SERVING, timeout_s=15)
            evaluation = NOT_SERVING if tokens == "always" else SERVING
            wait_until(lambda wanted=evaluation: server.health(EVALUATION.full_name) == wanted, timeout_s=15)
            assert server.health() == SERVING
            if how == "killed":
                redis.wait()
                assert not accepts(port)
                redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            else:
                redis.send_signal(signal.SIGCONT)
            wait_until(lambda: [server.health(name) for name in names] == [SERVING] * 3, timeout_s=30)
            messages = [str(line["message"]) for line in server.lines()[before:]]
            assert any(message.startswith(f"{REFERENCES.full_name} does not serve: ") for message in messages)
            assert f"{REFERENCES.full_name} serves again" in messages
    finally:
        redis.kill()
        redis.wait()


class Needy:
    """A service whose probe does what the test says."""

    descriptor: ServiceDescriptor = EVALUATION

    def __init__(self) -> None:
        self.error: StoreError | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def probe(self) -> None:
        await self.answers.wait()
        if self.error is not None:
            raise self.error


def test_a_probe_without_an_answer_has_failed() -> None:
    async def play() -> None:
        service, seen = Needy(), list[tuple[str, bool]]()
        monitor = HealthMonitor(
            [service],  # type: ignore[list-item]
            observe=lambda name, up: seen.append((name, up)),
            every_s=0.01,
            timeout_s=0.05,
        )

        async def status(name: str) -> int:
            reply = await monitor.servicer.Check(health_pb2.HealthCheckRequest(service=name), None)
            return int(reply.status)

        async def reach(wanted: int) -> None:
            async with asyncio.timeout(10):
                while await status(EVALUATION.full_name) != wanted:
                    await asyncio.sleep(0.01)

        await monitor.start()
        assert await status("") == NOT_SERVING
        await monitor.set_workers(alive=True)
        await reach(SERVING)
        service.answers.clear()
        await reach(NOT_SERVING)
        assert await status("") == SERVING
        service.answers.set()
        await reach(SERVING)
        service.error = StoreError("gone")
        await reach(NOT_SERVING)
        service.error = None
        await reach(SERVING)
        await monitor.set_workers(alive=False)
        assert await status(EVALUATION.full_name) == NOT_SERVING
        await monitor.set_workers(alive=True)
        await monitor.stop()
        assert await status("") == NOT_SERVING
        assert [up for _, up in seen] == [True, False, True, False, True]

    asyncio.run(play())


def write_pair(authority: trustme.CA, folder: Path, *, key_too: bool = True) -> None:
    pair = authority.issue_cert("localhost", "127.0.0.1")
    if key_too:
        pair.private_key_pem.write_to_path(folder / "key.pem")
    pair.cert_chain_pems[0].write_to_path(folder / "cert.pem")


def served_certificate(port: int) -> bytes:
    """The certificate that a new connection gets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secure:
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_new_certificates_are_served_to_new_connections(
    start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    authority = trustme.CA()
    write_pair(authority, tmp_path)
    server = start_server(f"--tls-cert={tmp_path / 'cert.pem'}", f"--tls-key={tmp_path / 'key.pem'}")
    first = served_certificate(server.port)
    write_pair(authority, tmp_path)
    wait_until(lambda: served_certificate(server.port) != first, timeout_s=15)
    second = served_certificate(server.port)
    (tmp_path / "cert.pem").write_text("not a certificate")
    wait_until(lambda: any("certificates stay as they were" in str(x["message"]) for x in server.lines()), timeout_s=15)
    assert served_certificate(server.port) == second
    write_pair(authority, tmp_path)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: served_certificate(server.port) != second, timeout_s=15)
    assert server.process.poll() is None


def test_the_health_command(
    start_server: Callable[..., RunningServer],
    server: RunningServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ask(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["health", *arguments])
        except SystemExit as ended:
            code = int(str(ended.code))
        return code, capsys.readouterr().out.strip()

    assert ask("--address", server.address) == ask(server.address) == (0, "SERVING")
    authority, clients = trustme.CA(), trustme.CA()
    write_pair(authority, tmp_path)
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    own = clients.issue_cert("probe.example")
    own.cert_chain_pems[0].write_to_path(tmp_path / "own.pem")
    own.private_key_pem.write_to_path(tmp_path / "own-key.pem")
    assert ask(server.address) == (0, "SERVING")
    assert ask(server.address, "--service=spicegraph.v1.EvaluationService") == (0, "SERVING")
    assert ask(server.address, "--service=unknown")[0] == 1
    with socket.socket() as nobody:  # bound, but nobody listens
        nobody.bind(("127.0.0.1", 0))
        assert ask(f"127.0.0.1:{nobody.getsockname()[1]}")[1].startswith("UNAVAILABLE: ")
    files = [f"--{name}={tmp_path / file}.pem" for name, file in (("tls-cert", "cert"), ("tls-key", "key"))]
    mutual = start_server(*files, f"--tls-client-ca={tmp_path / 'clients.pem'}")
    address, trust = f"127.0.0.1:{mutual.port}", f"--tls-ca={tmp_path / 'cert.pem'}"
    assert ask(address, trust)[0] == 1
    pair = [f"--tls-client-cert={tmp_path / 'own.pem'}", f"--tls-client-key={tmp_path / 'own-key.pem'}"]
    assert ask(address, trust, *pair) == (0, "SERVING")
    assert ask(address, *pair)[0] == 2
    assert ask(address, f"--tls-ca={tmp_path / 'nothing.pem'}")[0] == 2


def test_certificates_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    authority = trustme.CA()
    files = (tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(InputError, match="cannot read the TLS file"):
        Certificates(*files)
    write_pair(authority, tmp_path)
    kept = Certificates(*files)
    write_pair(authority, tmp_path, key_too=False)  # the new key is still to come
    with pytest.raises(InputError, match="the TLS files cannot be used"):
        Certificates(*files)
    kept.reload()  # does not raise: the old ones stay


def test_sighup_forgets_tokens_and_ends_nothing(
    start_server: Callable[..., RunningServer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"--store={tmp_path / 'server.db'}"
    assert main(["token", "create", "a trainer", store]) == 0
    token = capsys.readouterr().out.strip()
    server = start_server(store, "--tokens=always")
    with Client(server.address, token=token, timeout_s=20) as client:
        client.server_info()
        assert main(["token", "list", store]) == 0
        assert main(["token", "revoke", capsys.readouterr().out.split("\t")[0], store]) == 0
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(line["message"] == "reloaded" for line in server.lines()), timeout_s=15)
        with pytest.raises(grpc.RpcError) as caught:
            client.server_info()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert server.health() == SERVING


def test_a_silent_stream_ends(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--silence=1")

    def requests() -> object:
        yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=[item("1", "a dog", ["a dog"])]))
        time.sleep(20)

    with grpc.insecure_channel(server.address) as channel:
        began = time.monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            list(EvaluationServiceStub(channel).ScoreStream(requests(), timeout=30))
        assert caught.value.code() is grpc.StatusCode.ABORTED
        assert caught.value.details() == "no message came for 1 s"
        assert time.monotonic() - began < 15


def test_connections_have_an_age_and_calls_go_on(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--connection-age=1")

    def connections() -> int:
        client.parse(["a dog"])
        return len({line["peer"] for line in server.lines() if line["message"] == "call"})

    with Client(server.address, timeout_s=20) as client:
        wait_until(lambda: connections() >= 3, timeout_s=60)


def test_a_sudden_sighup_while_loading_ends_nothing(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(wait=False)
    wait_until(lambda: any(str(line["message"]).startswith("listening") for line in server.lines()), timeout_s=30)
    os.kill(server.process.pid, signal.SIGHUP)
    server.wait_serving()
    assert server.process.poll() is None
