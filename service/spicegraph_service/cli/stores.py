"""``spicegraph cache`` and ``token``: what a server and ``--cache`` keep, and where it is."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from spicegraph_parser.errors import DataError, InputError, counted
from spicegraph_service.config import StoreOption, default_store
from spicegraph_service.output.terminal import printable, write_stdout
from spicegraph_service.store import Store
from spicegraph_service.store.places import open_store

cache = typer.Typer(help="Show, trim or clear the parses that --cache keeps.", no_args_is_help=True)

_CacheArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH|URL",
        help="The cache: an SQLite file, or redis://HOST. A server's store is one too; only its parses are touched.",
        envvar="SPICEGRAPH_CACHE",
    ),
]


@cache.command()
def show(
    location: _CacheArgument, *, as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False
) -> None:
    """Show how many parses a cache contains, of all pipelines and versions, and the size of its file."""
    with closing(_existing(location)) as store:
        count = store.count_parses()
    size = None
    if "://" not in location:  # a file of ours, with its log
        size = sum(path.stat().st_size for path in map(Path, (location, f"{location}-wal")) if path.exists())
    if as_json:
        write_stdout(msgspec.json.encode({"parses": count, "bytes": size}).decode() + "\n")
    else:
        write_stdout(f"parses  {count:,}\n" + ("" if size is None else f"bytes   {size:,}\n"))


@cache.command()
def trim(
    location: _CacheArgument,
    *,
    keep: Annotated[int, typer.Option(min=0, metavar="N", help="How many parses to keep: the newest ones.")],
) -> None:
    """Delete all but the newest parses and give their room back; caches are also bounded as they grow."""
    _trim(location, keep)


@cache.command()
def clear(location: _CacheArgument) -> None:
    """Delete every parse; a server's reference sets and tokens stay."""
    _trim(location, 0)


def _trim(location: str, keep: int) -> None:
    with closing(_existing(location)) as store:
        gone = store.trim_parses(keep)
    write_stdout(f"deleted {counted(gone, 'parse')}\n")


def _existing(location: str) -> Store:
    """Open a cache that is there already: a mistyped path must not make a new one."""
    if "://" not in location and not Path(location).is_file():
        raise InputError(f"{location}: there is no such cache")
    return open_store(location)


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
        typer.Option(
            metavar="SCOPE", help="score (parse and score) or references (manage reference sets); default: both."
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Captions per second; 0: the server's limit.", min=0)] = 0.0,
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who owns the reference sets and the cached parses that calls with the token store: tokens of one "
            "tenant see the same ones. Default: the token's name.",
        ),
    ] = None,
    expires: ExpiresOption = None,
    store: StoreOption = None,
) -> None:
    """Make a token and print it. It is shown only once: the store keeps only its hash."""
    from spicegraph_service.rpc.auth import SCOPES, create_token  # noqa: PLC0415

    scopes = tuple(dict.fromkeys(scope or SCOPES))
    for wanted in scopes:
        if wanted not in SCOPES:
            raise InputError(f"there is no scope {wanted!a}; there are {', '.join(SCOPES)}")
    _check_word("name", name)
    _check_word("tenant", name if tenant is None else tenant)
    end = token_end(expires)
    with closing(_token_store(store)) as opened:
        secret, _ = create_token(
            opened, name, scopes, rate=rate, tenant=tenant or name, expires=end.timestamp() if end else 0.0
        )
    write_stdout(f"{secret}\n")


def _check_word(what: str, value: str) -> None:
    if not value.strip() or len(value) > _LONGEST_NAME or not value.isprintable():
        raise InputError(f"a token's {what} has 1 to {_LONGEST_NAME} printable characters")


@token.command("list")
def list_tokens(*, store: StoreOption = None) -> None:
    """List the tokens: id, name, scopes, captions per second, time of creation, tenant, end, last use (-: never)."""
    with closing(_token_store(store)) as opened:
        for record in opened.list_tokens():
            created, expires, used = (
                datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else "-"
                for moment in (record.create_time, record.expires, record.last_used)
            )
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
    from spicegraph_service.rpc.auth import rotate_token  # noqa: PLC0415

    with closing(_token_store(store)) as opened:
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
    with closing(_token_store(store)) as opened:
        if not opened.revoke_token(token_id):
            raise InputError(f"there is no token {token_id!a}")


def token_end(text: str | None) -> datetime | None:
    """Return when a token ends, of the value of ``--expires``; ``None``: never."""
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


def _token_store(location: str | None) -> Store:
    chosen = location or default_store()
    if chosen == "memory":
        raise DataError("tokens need a persistent store: a file or a redis:// URL")
    return open_store(chosen, private=True)
