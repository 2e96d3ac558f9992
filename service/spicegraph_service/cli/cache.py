"""``spicegraph cache``: shows, trims and clears what ``--cache`` keeps."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.wording import counted
from spicegraph_service.output.terminal import write_stdout
from spicegraph_service.store import Store, open_store

cache = typer.Typer(help="Show, trim or clear the parses that --cache keeps.", no_args_is_help=True)

_Place = Annotated[
    str,
    typer.Argument(
        metavar="PATH|URL",
        help="The cache: an SQLite file, or redis://HOST. A server's store is one too; only its parses are touched.",
        envvar="SPICEGRAPH_CACHE",
    ),
]
_REMOTE = ("redis://", "rediss://", "unix://")


@cache.command()
def show(
    place: _Place,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show how many parses a cache contains, of all pipelines and versions, and the size of its file."""
    with closing(_open(place)) as store:
        count = store.count_parses()
    size = _bytes(place)
    if as_json:
        write_stdout(msgspec.json.encode({"parses": count, "bytes": size}).decode() + "\n")
    else:
        write_stdout(f"parses  {count:,}\n" + ("" if size is None else f"bytes   {size:,}\n"))


@cache.command()
def trim(
    place: _Place,
    *,
    keep: Annotated[int, typer.Option(min=0, metavar="N", help="How many parses to keep: the newest ones.")],
) -> None:
    """Delete all but the newest parses and give their room back; caches are also bounded as they grow."""
    _trim(place, keep)


@cache.command()
def clear(place: _Place) -> None:
    """Delete every parse; a server's reference sets and tokens stay."""
    _trim(place, 0)


def _trim(place: str, keep: int) -> None:
    with closing(_open(place)) as store:
        gone = store.trim_parses(keep)
    write_stdout(f"deleted {counted(gone, 'parse')}\n")


def _open(place: str) -> Store:
    """Open a cache that is there already: a mistyped path must not make a new one."""
    if not place.startswith(_REMOTE) and not Path(place).is_file():
        raise InputError(f"{place}: there is no such cache")
    return open_store(place)


def _bytes(place: str) -> int | None:
    """Return the size of a cache's file with its log, or ``None`` where it is not in a file of ours."""
    if place.startswith(_REMOTE):
        return None
    parts = (Path(place), Path(f"{place}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
