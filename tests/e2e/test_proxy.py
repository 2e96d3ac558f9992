"""The proxy's configuration in ``deploy/haproxy``: what strangers may hold open, and that clients notice nothing of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from spicegraph_service.client import Client, TlsOptions, item
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

pytestmark = [pytest.mark.model, pytest.mark.slow]

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "haproxy" / "haproxy.cfg"
MOST = 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Proxy:
    process: subprocess.Popen[bytes]
    folder: Path
    grpc: int
    http: int
    authority: trustme.CA

    @property
    def tls(self) -> TlsOptions:
        return TlsOptions(authorities=self.authority.cert_pem.bytes())

    def write_certificate(self) -> None:
        issued = self.authority.issue_cert("localhost", "127.0.0.1")
        issued.private_key_and_cert_chain_pem.write_to_path(self.folder / "both.pem")

    def connect(self, port: int, host: str = "127.0.0.1", protocol: str = "h2") -> ssl.SSLSocket:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        context.set_alpn_protocols([protocol])
        plain = socket.create_connection(("127.0.0.1", port), 60, source_address=(host, 0))
        return context.wrap_socket(plain, server_hostname="localhost")

    def is_open(self, host: str = "127.0.0.1") -> bool:
        try:
            self.connect(self.grpc, host).close()
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def proxy(
    start_server: Callable[..., RunningServer], program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    haproxy = program("haproxy")
    server = start_server("--http=127.0.0.1:0", "--hosts=localhost")
    folder = tmp_path_factory.mktemp("proxy")
    ports = free_port(), free_port()
    environment = {
        "GRPC_BIND": f"127.0.0.1:{ports[0]}",
        "HTTP_BIND": f"127.0.0.1:{ports[1]}",
        "GRPC_SERVER": server.address,
        "HTTP_SERVER": server.http_url.removeprefix("http://"),
        "CERTIFICATE": str(folder / "both.pem"),
        "CONNECTIONS_OF_ADDRESS": str(MOST),
        "RUN": str(folder),
    }
    authority = trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [haproxy, "-W", "-f", CONFIGURATION], env=os.environ | environment, stdout=log, stderr=log
        )
    made = Proxy(process, folder, *ports, authority)
    try:
        wait_until(made.is_open, timeout_s=60)
        yield made
    finally:
        process.terminate()
        process.wait(30)


def test_a_client_notices_nothing(proxy: Proxy) -> None:
    """Calls, streams and errors go through with their details."""
    with Client(f"localhost:{proxy.grpc}", tls=proxy.tls) as client:
        assert client.score([item(1, "a dog", ["a dog"])], metrics=["rouge"]).items[0].scores["ROUGE_L"] == 1
        sent = [item(number, "a dog", ["a brown dog"]) for number in range(300)]
        assert sum(len(reply.items) for reply in client.stream(sent, metrics=["rouge"])) == 300
        with pytest.raises(Exception, match="nosuch"):
            client.score([item(1, "a dog", ["a dog"])], metrics=["nosuch"])


def test_json_goes_through(proxy: Proxy) -> None:
    body = {"items": [{"id": "1", "candidate": "a dog", "references": ["a dog"]}], "metrics": ["rouge"]}
    context = ssl.create_default_context()
    proxy.authority.configure_trust(context)
    request = urllib.request.Request(
        f"https://localhost:{proxy.http}/spicegraph.v1.EvaluationService/Score",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60, context=context) as reply:
        assert json.load(reply)["items"][0]["scores"][0]["value"] == 1


def test_an_address_has_so_many_connections_and_others_get_in(proxy: Proxy) -> None:
    """They count from their beginning on, whether they ever call or not; those that never call end."""
    held = [proxy.connect(proxy.grpc, "127.0.0.2") for _ in range(MOST)]
    for connection in held:
        connection.sendall(PREFACE)
    assert not proxy.is_open("127.0.0.2")
    with Client(f"localhost:{proxy.grpc}", tls=proxy.tls) as client:
        client.score([item(1, "a dog", ["a dog"])], metrics=["rouge"])
    for connection in held:
        while connection.recv(4096):  # its settings; then it ends, or this times out
            pass
        connection.close()
    wait_until(lambda: proxy.is_open("127.0.0.2"), timeout_s=30)


def test_a_body_that_does_not_come_takes_nothing_of_the_server(proxy: Proxy) -> None:
    with proxy.connect(proxy.http, protocol="http/1.1") as stranger:
        head = "POST /spicegraph.v1.EvaluationService/Score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 800\r\n\r\n"
        stranger.sendall(head.encode())
        assert stranger.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_reload_serves_a_new_certificate_and_ends_no_call(proxy: Proxy) -> None:
    def served() -> bytes | None:
        with proxy.connect(proxy.grpc) as connection:
            return connection.getpeercert(binary_form=True)

    first = served()

    def items() -> Iterator[Any]:
        yield item(1, "a dog", ["a dog"])
        proxy.write_certificate()
        proxy.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: served() != first, timeout_s=60)
        yield item(2, "a cat", ["a cat"])

    with Client(f"localhost:{proxy.grpc}", tls=proxy.tls) as client:
        assert sum(len(reply.items) for reply in client.stream(items(), metrics=["rouge"])) == 2
    assert proxy.process.poll() is None
