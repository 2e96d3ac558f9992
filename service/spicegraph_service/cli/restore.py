"""``spicegraph restore``: a backup is checked and put where a server finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spicegraph_service.cli.stores import StatePlaces, server_extra
from spicegraph_service.output.terminal import note


def restore(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A backup.")],
    *,
    places: StatePlaces,
    check: Annotated[bool, typer.Option("--check", help="Only check that the backup is whole.")] = False,
) -> None:
    """Put a backup back, before the server starts. What exists already is never replaced."""
    with server_extra():
        from spicegraph_service.challenge.backup import check_backup, restore_backup  # noqa: PLC0415

    found = check_backup(Path(folder)) if check else restore_backup(Path(folder), places.chosen())
    note(f"{folder}: of {found.created} by version {found.version}, {'whole' if check else 'put back'}")
