"""``spicegraph token``: makes, lists and revokes the bearer tokens of a server."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.cli.stores import StoreOption, default_store, server_extra
from spicegraph_service.output.terminal import printable, write_stdout

if TYPE_CHECKING:
    from spicegraph_service.store import Store

token = typer.Typer(help="Make, list and revoke the tokens with which clients call a server.", no_args_is_help=True)
_LONGEST_NAME = 100


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what the token is for; the server's log shows it.")],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="score (parse and score) or references (manage reference sets); default: both."),
    ] = None,
    rate: Annotated[float, typer.Option(help="Captions per second; 0: the server's limit.", min=0)] = 0.0,
    store: StoreOption = None,
) -> None:
    """Make a token and print it. It is shown only once: the store keeps only its hash."""
    with server_extra():
        from spicegraph_service.server.auth import SCOPES, create_token  # noqa: PLC0415

    scopes = tuple(dict.fromkeys(scope or SCOPES))
    for wanted in scopes:
        if wanted not in SCOPES:
            raise InputError(f"there is no scope {wanted!a}; there are {', '.join(SCOPES)}")
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError(f"a token's name has 1 to {_LONGEST_NAME} printable characters")
    with closing(_open(store)) as opened:
        secret, _ = create_token(opened, name, scopes, rate=rate)
    write_stdout(f"{secret}\n")


@token.command("list")
def list_tokens(*, store: StoreOption = None) -> None:
    """List the tokens: id, name, scopes, captions per second (0: the server's limit), time of creation."""
    with closing(_open(store)) as opened:
        for record in opened.list_tokens():
            created = datetime.fromtimestamp(record.create_time, UTC).isoformat(timespec="seconds")
            row = (record.id, printable(record.name), ",".join(record.scopes), f"{record.rate:g}", created)
            write_stdout("\t".join(row) + "\n")


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as list shows it.")],
    *,
    store: StoreOption = None,
) -> None:
    """Revoke a token. Running servers refuse it within five seconds."""
    with closing(_open(store)) as opened:
        if not opened.revoke_token(token_id):
            raise InputError(f"there is no token {token_id!a}")


def _open(place: str | None) -> Store:
    from spicegraph_service.store import open_store  # noqa: PLC0415

    chosen = place or default_store()
    if chosen == "memory":
        raise DataError("tokens need a persistent store: a file or a redis:// URL")
    return open_store(chosen)
