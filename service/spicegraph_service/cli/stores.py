"""What the commands of the server share: where its state is, and the extra that it needs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def server_extra() -> Iterator[None]:
    """Import within this: where the extra is not installed, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"the server needs an extra ({error.name}): pip install 'spicegraph[server]'") from error
