"""``spicegraph backup``: a server's state in a folder, made while the server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spicegraph_service.cli.stores import StatePlaces, server_extra
from spicegraph_service.output.terminal import note


def backup(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A new folder for the backup.")],
    *,
    places: StatePlaces,
) -> None:
    """Back up what a server keeps: its store and its challenges with their files. The server may run meanwhile."""
    with server_extra():
        from spicegraph_service.challenge.backup import make_backup  # noqa: PLC0415

    made = make_backup(places.chosen(), Path(folder))
    files = f", {len(made.files):,} files of challenges" if made.files is not None else ""
    note(f"{folder}: {', '.join(made.databases) or 'no database'}{files}")
