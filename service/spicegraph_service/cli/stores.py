"""What the commands of the server share: where its state is, and the extra that it needs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_service.challenge.backup import Places

StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        help="Parses, reference sets and tokens: an SQLite file, redis://HOST/DB, or memory. Default: a file "
        "in the user's data folder.",
        envvar="SPICEGRAPH_STORE",
        show_envvar=True,
    ),
]


def default_store() -> str:
    """Return the file in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(data) / "spicegraph" / "server.db")


@dataclass(frozen=True, slots=True)
class StatePlaces:
    """Options: where the state of a server is that is backed up or put back."""

    store: Annotated[
        str,
        typer.Option(metavar="PLACE", help="As given to serve --store; none: leave it out.", envvar="SPICEGRAPH_STORE"),
    ] = ""
    challenges: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="As given to serve --challenges; none: there are none.",
            envvar="SPICEGRAPH_CHALLENGES",
        ),
    ] = "none"
    challenge_files: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="As given to serve --challenge-files. Default: beside the database.",
            envvar="SPICEGRAPH_CHALLENGE_FILES",
        ),
    ] = None

    def chosen(self) -> Places:
        """Return the places as files.

        Raises:
            DataError: one is a database server, which has a tool of its own.
        """
        from spicegraph_service.challenge.backup import Places, place_of  # noqa: PLC0415

        store = place_of("--store", self.store or default_store(), by="redis-cli --rdb")
        challenges = place_of("--challenges", self.challenges, by="pg_dump")
        beside = Path(f"{challenges}.files") if challenges is not None else None
        return Places(store, challenges, self.challenge_files or beside)


@contextmanager
def server_extra(name: str = "server") -> Iterator[None]:
    """Import within this: where the extra is not installed, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"the server needs an extra ({error.name}): pip install 'spicegraph[{name}]'") from error
