"""How the commands reach a server, and what becomes of its errors."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 (typer reads the annotations when it runs)
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_service.cli.stores import server_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc

    from spicegraph_service.client import ChallengeClient

__all__ = ["Connection", "ServerError", "connected", "connection"]


class ServerError(SpicegraphError):
    """The server refused a call, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Which server, and as whom."""

    server: str
    token: str
    tls: bool
    tls_ca: Path | None


def connection(
    context: typer.Context,
    *,
    server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The evaluation server.", envvar="SPICEGRAPH_SERVER")
    ] = "localhost:50051",
    token: Annotated[str, typer.Option(help="Your token (better in the environment).", envvar="SPICEGRAPH_TOKEN")] = "",
    tls: Annotated[
        bool, typer.Option("--tls", help="Use TLS, and trust the system's authorities.", envvar="SPICEGRAPH_TLS")
    ] = False,
    tls_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Use TLS, and trust this authority (PEM).", envvar="SPICEGRAPH_TLS_CA"),
    ] = None,
) -> None:
    """Take part in a challenge on an evaluation server (spicegraph serve --challenges), or organise one."""
    context.obj = Connection(server, token, tls, tls_ca)


@contextmanager
def connected(context: typer.Context) -> Iterator[ChallengeClient]:
    """Give a client; what the server says against a call becomes one error.

    Raises:
        ServerError: a call failed.
        InputError: there is no token, or a file cannot be read.
    """
    with server_extra():
        import grpc  # noqa: PLC0415

        from spicegraph_service.client import ChallengeClient, TlsOptions  # noqa: PLC0415
    chosen = context.find_object(Connection)
    if chosen is None or not chosen.token:
        raise InputError("a user's token is needed: set SPICEGRAPH_TOKEN, or spicegraph challenge --token TOKEN ...")
    try:
        authority = chosen.tls_ca.read_bytes() if chosen.tls_ca is not None else None
        tls = TlsOptions(authority) if chosen.tls or authority else None
        with ChallengeClient(chosen.server, chosen.token, tls=tls) as client:
            yield client
    except grpc.RpcError as error:
        raise ServerError(_told(chosen.server, error)) from error
    except OSError as error:
        raise InputError(f"{error.filename}: can't be read ({error.strerror})") from error


def _told(server: str, error: grpc.RpcError) -> str:
    """Return what the server says, with every wrong field that it names."""
    import grpc  # noqa: PLC0415
    from google.rpc.error_details_pb2 import BadRequest  # noqa: PLC0415
    from grpc_status import rpc_status  # noqa: PLC0415

    call = cast("grpc.Call", error)  # what gRPC raises is both
    text = call.details() or "no reason given"
    if call.code() is grpc.StatusCode.UNAVAILABLE and "connect" in text:
        return f"{server}: no server answers there"
    status = rpc_status.from_call(call)
    fields: list[str] = []
    for detail in status.details if status is not None else ():
        bad = BadRequest()
        if detail.Unpack(bad):
            fields = [f"  {found.field}: {found.description}" for found in bad.field_violations]
    if len(fields) == 1 and fields[0].strip() == text:
        fields = []
    return "\n".join([text, *fields])
