"""``spicegraph token``: makes, lists and revokes the bearer tokens of a server."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import DataError, InputError
from spicegraph_service.cli.stores import StoreOption, default_store, server_extra
from spicegraph_service.output.terminal import printable, write_stdout

if TYPE_CHECKING:
    from spicegraph_service.store import Store

token = typer.Typer(help="Make, list and revoke the tokens with which clients call a server.", no_args_is_help=True)
_LONGEST_NAME = 100
ExpiresOption = Annotated[
    str | None, typer.Option(metavar="DAYS|TIME", help="When it ends: in 90d, or at 2030-06-01T12:00 (UTC).")
]


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what the token is for; the server's log shows it.")],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="score (parse and score) or references (manage reference sets); default: both."),
    ] = None,
    rate: Annotated[float, typer.Option(help="Captions per second; 0: the server's limit.", min=0)] = 0.0,
    tenant: Annotated[
        str | None,
        typer.Option(
            help="Who owns the reference sets and the cached parses that calls with the token store: tokens of one "
            "tenant see the same ones. Default: the token's name.",
        ),
    ] = None,
    expires: ExpiresOption = None,
    store: StoreOption = None,
) -> None:
    """Make a token and print it. It is shown only once: the store keeps only its hash."""
    with server_extra():
        from spicegraph_service.server.auth import SCOPES, create_token  # noqa: PLC0415

    scopes = tuple(dict.fromkeys(scope or SCOPES))
    for wanted in scopes:
        if wanted not in SCOPES:
            raise InputError(f"there is no scope {wanted!a}; there are {', '.join(SCOPES)}")
    for what, value in (("name", name), ("tenant", name if tenant is None else tenant)):
        if not value.strip() or len(value) > _LONGEST_NAME or not value.isprintable():
            raise InputError(f"a token's {what} has 1 to {_LONGEST_NAME} printable characters")
    end = token_end(expires)
    with closing(_open(store)) as opened:
        secret, _ = create_token(
            opened, name, scopes, rate=rate, tenant=tenant or name, expires=end.timestamp() if end else 0.0
        )
    write_stdout(f"{secret}\n")


@token.command("list")
def list_tokens(*, store: StoreOption = None) -> None:
    """List the tokens: id, name, scopes, captions per second, time of creation, tenant, end, last use (-: never)."""
    with closing(_open(store)) as opened:
        for record in opened.list_tokens():
            moments = (record.create_time, record.expires, record.last_used)
            created, expires, used = (_shown(moment) for moment in moments)
            row = (record.id, printable(record.name), ",".join(record.scopes), f"{record.rate:g}", created)
            write_stdout("\t".join((*row, printable(record.tenant), expires, used)) + "\n")


@token.command()
def rotate(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as list shows it.")],
    *,
    overlap: Annotated[
        float, typer.Option(metavar="HOURS", min=0, help="How long the old token is still accepted.")
    ] = 24.0,
    store: StoreOption = None,
) -> None:
    """Replace a token: print a new one of the same name, tenant, scopes and rate; the old one expires a day later."""
    with server_extra():
        from spicegraph_service.server.auth import rotate_token  # noqa: PLC0415

    with closing(_open(store)) as opened:
        secret = rotate_token(opened, token_id, overlap_s=3600 * overlap)
    if secret is None:
        raise InputError(f"there is no token {token_id!a}")
    write_stdout(f"{secret}\n")


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


def _shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else "-"


def token_end(text: str | None) -> datetime | None:
    """Return when a token ends, of the value of ``--expires``; ``None``: never.

    Raises:
        InputError: it is neither days nor a time, or over.
    """
    if text is None:
        return None
    try:
        if text.endswith("d") and text[:-1].isdecimal():
            moment = datetime.now(UTC) + timedelta(days=int(text[:-1]))
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(f"--expires: expected days such as 90d or a time such as 2030-06-01, got {text!a}") from error
    if moment <= datetime.now(UTC):
        raise InputError(f"--expires: {text} is over already")
    return moment


def _open(place: str | None) -> Store:
    from spicegraph_service.store import open_store  # noqa: PLC0415

    chosen = place or default_store()
    if chosen == "memory":
        raise DataError("tokens need a persistent store: a file or a redis:// URL")
    return open_store(chosen, private=True)
