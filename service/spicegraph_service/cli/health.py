"""``spicegraph health``: whether a server serves."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 (typer reads the annotations when it runs)
from typing import Annotated

import grpc
import typer
from grpc_health.v1 import health_pb2

from spicegraph_parser.errors import InputError
from spicegraph_service.client.address import proxy_options
from spicegraph_service.output.terminal import printable, write_stdout

_SERVING = "SERVING"
_PAUSE_S = 0.2
_ANY = ("0.0.0.0:", "[::]:")  # where a server listens; to ask there means to ask this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Options: how the server is trusted, and the client shows who it is.

    Options:
        tls_ca: Use TLS and trust the authorities in this file, or the server's own certificate (PEM).
        tls_client_cert: The client's certificate, for mutual TLS (PEM).
        tls_client_key: The key of the client's certificate (PEM).
        server_name: The name in the server's certificate, if it is not that of the address.
    """

    tls_ca: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CERT")] = None
    tls_client_cert: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CLIENT_CERT")] = None
    tls_client_key: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CLIENT_KEY")] = None
    server_name: Annotated[str | None, typer.Option(metavar="NAME", envvar="SPICEGRAPH_SERVER_NAME")] = None

    def channel(self, address: str) -> grpc.Channel:
        """Return a channel to a server."""
        has_certificate = self.tls_client_cert is not None
        if has_certificate != (self.tls_client_key is not None) or (has_certificate and self.tls_ca is None):
            raise InputError("mutual TLS needs --tls-ca, --tls-client-cert and --tls-client-key")
        options = proxy_options(address)
        if self.server_name:
            options.append(("grpc.ssl_target_name_override", self.server_name))
        if self.tls_ca is None:
            return grpc.insecure_channel(address, options)
        try:
            own = (self.tls_client_key, self.tls_client_cert)
            pair = [path.read_bytes() if path is not None else None for path in own]
            credentials = grpc.ssl_channel_credentials(self.tls_ca.read_bytes(), *pair)
        except OSError as error:
            raise InputError(f"cannot read the TLS file {error.filename}: {error.strerror}") from error
        return grpc.secure_channel(address, credentials, options)


def health(
    place: Annotated[str, typer.Argument(metavar="HOST:PORT", envvar="SPICEGRAPH_ADDRESS")] = "127.0.0.1:50051",
    *,
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None,
    service: Annotated[str, typer.Option(metavar="NAME")] = "",
    tls: TlsFiles,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1)] = 3.0,
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0.0)] = 0.0,
) -> None:
    """Print SERVING and end with 0, or print what is wrong and end with 1. It does not need a token.

    Options:
        place: The server.
        address: The server, as serve has it.
        service: A service, such as spicegraph.v1.EvaluationService; default: the server itself.
        timeout: Seconds to wait for an answer.
        wait: Ask again for so many seconds until the server serves, such as one that has just been started.
    """
    address = address or place
    for prefix in _ANY:
        address = address.replace(prefix, "localhost:") if address.startswith(prefix) else address
    deadline = time.monotonic() + wait
    with tls.channel(address) as channel:
        answer = _ask(channel, service, timeout)
        while answer != _SERVING and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            answer = _ask(channel, service, timeout)
    write_stdout(f"{answer}\n")
    if answer != _SERVING:
        sys.exit(1)


def _ask(channel: grpc.Channel, service: str, timeout_s: float) -> str:
    """Return the status of a service by its name, or the error of the call in one line."""
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    try:
        status = check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_s).status
    except grpc.RpcError as error:
        return f"{error.code().name}: {printable(error.details() or '')}"
    return health_pb2.HealthCheckResponse.ServingStatus.Name(status)
