"""How the commands reach a server, and what becomes of its errors."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 (typer reads the annotations when it runs)
from typing import TYPE_CHECKING, Annotated, cast

import grpc
import typer
from google.rpc.error_details_pb2 import BadRequest
from grpc_status import rpc_status

from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model.settings import SETTINGS, flag
from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_service.client import TlsOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


ChallengeArgument = Annotated[str, typer.Argument(metavar="CHALLENGE")]


class ServerError(SpicegraphError):
    """The server refused a call, or cannot be reached."""


def connection(
    context: typer.Context,
    *,
    server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The evaluation server.", envvar="SPICEGRAPH_SERVER")
    ] = "localhost:50051",
    token: Annotated[
        str,
        typer.Option(metavar="TOKEN", help="Your token; the environment variable is safer.", envvar="SPICEGRAPH_TOKEN"),
    ] = "",
    tls: Annotated[
        bool, typer.Option("--tls", help="Use TLS with the system's certificate authorities.", envvar="SPICEGRAPH_TLS")
    ] = False,
    tls_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Use TLS with this certificate authority (PEM).", envvar="SPICEGRAPH_TLS_CA"),
    ] = None,
) -> None:
    """Take part in a challenge on an evaluation server (spicegraph serve --challenges), or organise one."""
    context.obj = (server, token, tls, tls_ca)


_FILE = "chunk"
_WORDS: Mapping[str, str] = {
    "challenge.name": "the challenge's name",
    "settings.splits": "--references",
    **{f"settings.{name}": flag(name) for name in SETTINGS},
    "target": "--references",
    "settings.file_name": "the file's name",
    "settings.method": "--method",
    "settings.split": "--split",
    "settings.idempotency_key": "--key",
    "score": "--by",
    "image_limit": "--images",
    "name": "the name",
    "team": "--team",
    "expire_time": "--expires",
    _FILE: "the file",
}
"""What the contract's fields, and whatever is inside of them, are called on the command line."""


@contextmanager
def connected(context: typer.Context, *, file: str | None = None) -> Iterator[ChallengeClient]:
    """Give a client; what the server says against a call, or a file, becomes one error in the command line's words."""
    address: str
    token: str
    with_tls: bool
    authority: Path | None
    address, token, with_tls, authority = context.obj
    if not token:
        raise InputError("a user's token is needed: set SPICEGRAPH_TOKEN, or spicegraph challenge --token TOKEN ...")
    try:
        certificates = authority.read_bytes() if authority is not None else None
        tls = TlsOptions(certificates) if with_tls or certificates else None
        with ChallengeClient(address, token, tls=tls) as client:
            yield client
    except grpc.RpcError as error:
        raise ServerError(_told(address, error, file)) from error
    except OSError as error:
        if error.filename is None:  # not of a file that is sent, but of what is written
            raise
        raise InputError(f"{error.filename}: can't be read ({error.strerror})") from error


def _told(server: str, error: grpc.RpcError, file: str | None) -> str:
    """Return what the server says, with everything that it finds wrong."""
    call = cast("grpc.Call", error)  # what gRPC raises is both
    text = call.details() or "no reason given"
    if call.code() is grpc.StatusCode.UNAVAILABLE and "connect" in text:
        return f"{server}: no server answers there"
    lines = list(_fault_lines(call, file))
    field, colon, rest = text.partition(": ")
    if not lines or not colon:
        return text
    about = f"{_word(field, file)}: "
    first = about + rest
    if lines == [first]:
        return first
    return "\n".join([first, *(f"  {line.removeprefix(about)}" for line in lines)])


def _fault_lines(call: grpc.Call, file: str | None) -> Iterator[str]:
    """Yield what the server finds wrong, each with what the command line calls the field."""
    status = rpc_status.from_call(call)
    for detail in status.details if status is not None else ():
        bad = BadRequest()
        if detail.Unpack(bad):
            for wrong in bad.field_violations:
                yield f"{_word(wrong.field, file)}: {wrong.description}"


def _word(field: str, file: str | None) -> str:
    """Return what a field is called on the command line: the longest part of its path that has a word."""
    if field == _FILE and file is not None:
        return file
    path = field.replace("challenge.settings", "settings")
    while path not in _WORDS:
        path, more = re.subn(r"(\[\d+\]|\.?[^.\[\]]+)$", "", path)
        if not more or not path:
            return field
    return _WORDS[path]
