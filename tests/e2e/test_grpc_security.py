"""TLS, mutual TLS, tokens, scopes and rates, against real servers."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import grpc
import pytest
import trustme

from spicegraph_api.v1 import evaluation_service_pb2 as pb
from spicegraph_api.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from spicegraph_service.cli import main
from spicegraph_service.client import Client, TlsOptions, item
from spicegraph_service.pool.cache import StoreThread
from spicegraph_service.rpc.auth import Authenticator, create_token
from spicegraph_service.rpc.status import CallError
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers import RunningServer

pytestmark = pytest.mark.model
CODES = grpc.StatusCode


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def secured(
    start_server: Callable[..., RunningServer], authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunningServer, Path]:
    """A server with mutual TLS and tokens, and its store."""
    folder = tmp_path_factory.mktemp("tls")
    store = folder / "server.db"
    pair = authority.issue_cert("localhost", "127.0.0.1")
    pair.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    pair.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server = start_server(
        f"--store={store}",
        "--tokens=always",
        "--http=127.0.0.1:0",
        f"--tls-cert={folder / 'cert.pem'}",
        f"--tls-key={folder / 'key.pem'}",
        f"--tls-client-ca={folder / 'ca.pem'}",
    )
    return server, store


def tls(authority: trustme.CA, *, own: bool = True) -> TlsOptions:
    pair = authority.issue_cert("client.example")
    if not own:
        return TlsOptions(authority.cert_pem.bytes())
    return TlsOptions(authority.cert_pem.bytes(), pair.cert_chain_pems[0].bytes(), pair.private_key_pem.bytes())


def make_token(store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["token", "create", "a trainer", f"--store={store}", *options]) == 0
    return capsys.readouterr().out.strip()


def call(server: RunningServer, options: TlsOptions | None, token: str | None) -> str:
    """The pipeline's name, or the status that comes instead."""
    with Client(f"localhost:{server.port}", token=token, tls=options, timeout_s=5) as client:
        try:
            return client.server_info().pipeline
        except grpc.RpcError as error:
            return str(error.code().name)


def test_a_token_opens_and_its_revocation_closes(
    secured: tuple[RunningServer, Path], authority: trustme.CA, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = secured
    token = make_token(store, capsys)
    assert token.startswith("sgt_")
    assert token.encode() not in store.read_bytes()
    assert call(server, tls(authority), token).startswith("en_")
    assert call(server, tls(authority), None) == "UNAUTHENTICATED"
    assert call(server, tls(authority), "sgt_wrong") == "UNAUTHENTICATED"
    assert call(server, tls(authority), "x" * 1000) == "UNAUTHENTICATED"
    assert main(["token", "list", f"--store={store}"]) == 0
    token_id, name, *_ = capsys.readouterr().out.strip().split("\t")
    assert name == "a trainer"
    other = make_token(store, capsys)
    assert main(["token", "revoke", token_id, f"--store={store}"]) == 0
    fresh_server_sees_it = subprocess.run(
        [sys.executable, "-m", "spicegraph_service", "token", "list", f"--store={store}"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert token_id not in fresh_server_sees_it.stdout
    revoked = time.monotonic()
    while call(server, tls(authority), token) != "UNAUTHENTICATED":
        assert time.monotonic() - revoked < 7, "a revoked token still opens"
        time.sleep(0.2)
    assert call(server, tls(authority), other).startswith("en_")


def test_mutual_tls_needs_a_certificate(secured: tuple[RunningServer, Path], authority: trustme.CA) -> None:
    server, _ = secured
    address = f"localhost:{server.port}"
    for options in (tls(authority, own=False), tls(trustme.CA()), None):
        # Without the client's retries, which would only make this slow.
        channel = grpc.secure_channel(address, options.credentials()) if options else grpc.insecure_channel(address)
        with channel, pytest.raises(grpc.RpcError) as caught:
            EvaluationServiceStub(channel).GetServerInfo(pb.GetServerInfoRequest(), timeout=5)
        assert caught.value.code() is CODES.UNAVAILABLE


def test_scopes_bound_what_a_token_may_do(
    secured: tuple[RunningServer, Path], authority: trustme.CA, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = secured
    score_only = make_token(store, capsys, "--scope=score")
    sets_only = make_token(store, capsys, "--scope=references")
    address, options = f"localhost:{server.port}", tls(authority)
    with Client(address, token=score_only, tls=options) as client:
        assert client.parse(["a dog"])[0].text == "a dog"
        with pytest.raises(grpc.RpcError) as caught:
            client.create_reference_set({"1": ["a dog"]})
        assert caught.value.code() is CODES.PERMISSION_DENIED
        with pytest.raises(grpc.RpcError) as caught:
            list(client.list_reference_sets())
        assert caught.value.code() is CODES.PERMISSION_DENIED
    refusals = [line for line in server.lines() if line.get("code") == "PERMISSION_DENIED"]
    assert {(line["caller"], line["certificate"]) for line in refusals} == {("a trainer", "client.example")}
    with Client(address, token=sets_only, tls=options) as client:
        client.create_reference_set({"1": ["a dog"]})
        with pytest.raises(grpc.RpcError) as caught:
            client.score([item("1", "a dog", ["a dog"])])
        assert caught.value.code() is CODES.PERMISSION_DENIED
        with pytest.raises(grpc.RpcError) as caught:
            list(client.stream([item("1", "a dog", ["a dog"])]))
        assert caught.value.code() is CODES.PERMISSION_DENIED


def test_certificates_tokens_and_scopes_hold_over_http(
    secured: tuple[RunningServer, Path], authority: trustme.CA, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server, store = secured
    token = make_token(store, capsys, "--scope=score")
    port = int(server.http_url.rpartition(":")[2])
    context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        post(context, port, "EvaluationService/GetServerInfo", token)
    authority.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    context.load_cert_chain(tmp_path / "own.pem")
    assert post(context, port, "EvaluationService/GetServerInfo", token) == (200, None)
    assert post(context, port, "EvaluationService/GetServerInfo", "sgt_wrong") == (401, "unauthenticated")
    assert post(context, port, "EvaluationService/GetServerInfo", "") == (401, "unauthenticated")
    assert post(context, port, "ReferenceService/ListReferenceSets", token) == (403, "permission_denied")
    with closing(http.client.HTTPConnection("localhost", port, timeout=30)) as plain:
        plain.request("GET", "/health")
        with pytest.raises(ConnectionError):
            plain.getresponse()
    refusals = [line for line in server.lines() if line.get("method") == "ReferenceService/ListReferenceSets"]
    assert refusals[-1]["certificate"] == "client.example"


def post(context: ssl.SSLContext, port: int, method: str, token: str) -> tuple[int, str | None]:
    """The status of a call over HTTPS and the code of its error."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    with closing(http.client.HTTPSConnection("localhost", port, context=context, timeout=30)) as connection:
        connection.request("POST", f"/spicegraph.v1.{method}", b"{}", headers)
        response = connection.getresponse()
        return response.status, json.load(response).get("code")


def test_a_token_s_rate_is_its_own(
    secured: tuple[RunningServer, Path], authority: trustme.CA, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = secured
    slow, fast = make_token(store, capsys, "--rate=2"), make_token(store, capsys)
    captions = ["a dog"] * 20  # what a rate of 2 saves up in ten seconds
    with Client(f"localhost:{server.port}", token=slow, tls=tls(authority)) as client:
        client.parse(captions)
        with pytest.raises(grpc.RpcError) as caught:
            client.parse(captions)
        assert caught.value.code() is CODES.RESOURCE_EXHAUSTED
        assert "rate" in caught.value.details()
    with Client(f"localhost:{server.port}", token=fast, tls=tls(authority)) as client:
        for _ in range(5):
            client.parse(captions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--address=0.0.0.0:0", "--store=memory"], "without TLS"),
        (["serve", "--address=nowhere", "--store=memory"], "HOST:PORT"),
        (["serve", "--http=0.0.0.0:0", "--store=memory"], "without TLS"),
        (["serve", "--http=nowhere", "--store=memory"], "HOST:PORT"),
        (["serve", "--http-origins=*", "--store=memory"], "--http-origins"),
        (["serve", "--http=127.0.0.1:0", "--http-origins=example.org", "--store=memory"], "an origin is"),
        (["serve", "--tls-cert=c.pem", "--store=memory"], "both --tls-cert and --tls-key"),
        (["serve", "--tls-cert=c.pem", "--tls-key=k.pem", "--store=memory", "--address=127.0.0.1:0"], "TLS file"),
        (["serve", "--log-level=loud"], "--log-level"),
        (["serve", "--pipeline=no_such_pipeline", "--store=memory", "--address=127.0.0.1:0"], "not installed"),
        (["token", "create", "x", "--store=memory"], "a persistent store"),
        (["token", "create", " "], "a token's name"),
        (["token", "create", "x", "--scope=all"], "there is no scope 'all'"),
    ],
)
def test_wrong_options_end_with_one_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "spicegraph_service", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_token_has_so_many_calls_and_its_tenant_so_many_sets(
    start_server: Callable[..., RunningServer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "server.db"
    first, second = make_token(store, capsys), make_token(store, capsys, "--tenant=other")
    server = start_server(f"--store={store}", "--tokens=always", "--token-calls=1", "--max-sets=2")
    go_on = threading.Event()

    def requests() -> Iterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(items=pb.ItemBatch(items=[item("1", "a dog", ["a dog"])]))
        go_on.wait(60)

    with grpc.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel:
        stub = EvaluationServiceStub(channel)
        one, other = ((("authorization", f"Bearer {token}"),) for token in (first, second))
        stream = stub.ScoreStream(requests(), metadata=one, timeout=60)
        next(stream)
        with pytest.raises(grpc.RpcError) as caught:
            stub.GetServerInfo(pb.GetServerInfoRequest(), metadata=one, timeout=20)
        assert caught.value.code() is CODES.RESOURCE_EXHAUSTED
        assert caught.value.details() == "the token has 1 calls under way, the most that one may have"
        stub.GetServerInfo(pb.GetServerInfoRequest(), metadata=other, timeout=20)
        go_on.set()
        list(stream)
    with Client(server.address, token=first, timeout_s=20) as client:
        client.server_info()
        sets = [{"1": [text]} for text in ("a dog", "a cat", "a cow")]
        for entries in (*sets[:2], sets[0]):  # the same one again is not one more
            client.create_reference_set(entries)
        with pytest.raises(grpc.RpcError) as caught:
            client.create_reference_set(sets[2])
        assert "2 reference sets, the most that a tenant may store" in str(caught.value.details())
    with Client(server.address, token=second, timeout_s=20) as client:
        client.create_reference_set(sets[2])


def test_servers_that_share_a_redis_grant_a_rate_together(program: Callable[[str], str], tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program("redis-server"), "--port", str(port), "--save", "", "--dir", str(tmp_path)]

    async def play() -> None:
        threads = [StoreThread(open_store(f"redis://127.0.0.1:{port}/0")) for _ in range(2)]
        token, record = create_token(threads[0].store, "shared", ("score",), rate=1)
        callers = [
            await Authenticator(thread, thread, required=True, rate=0).identify(f"Bearer {token}") for thread in threads
        ]
        callers[0].charge(8)  # of ten that may come at once
        left = 10.0
        while left > 3.5:
            left = threads[1].store.spend(record.id, 0, rate=1, burst=10) or 0
            await asyncio.sleep(0.05)
        callers[1].charge(4)  # it does not know yet; together they have taken more than there is
        await asyncio.sleep(0.5)
        for caller in callers[1:]:
            with pytest.raises(CallError, match=r"rate is used up: 1 captions per second; a call of 5 captions may be"):
                caller.charge(5)
        for thread in threads:
            await thread.close()

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as redis:
        try:
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            asyncio.run(play())
        finally:
            redis.kill()
