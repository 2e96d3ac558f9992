"""Where the commands of the server keep their state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["StoreOption", "default_store"]

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
