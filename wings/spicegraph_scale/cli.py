"""``spicegraph backup`` and ``restore``: what a server keeps, copied while it runs and put back."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (typer reads the annotations when it runs)
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from spicegraph_scale.backup import check_backup, make_backup, restore_backup
from spicegraph_service.kit import StatePart, default_store, file_of, note, services, with_groups


@dataclass(frozen=True, slots=True)
class StoreState:
    """Options: where the store of a server is that is backed up or put back."""

    store: Annotated[
        str,
        typer.Option(metavar="PLACE", help="As given to serve --store; none: leave it out.", envvar="SPICEGRAPH_STORE"),
    ] = ""

    def part(self) -> StatePart:
        """Return the store as a part of the state."""
        return StatePart("server.db", file_of("--store", self.store or default_store(), by="redis-cli --rdb"))


@with_groups({name: entry.state for name, entry in services().items() if entry.state is not None})
def backup(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A new folder for the backup.")],
    *,
    store: StoreState,
    registered: Mapping[str, Any],
) -> None:
    """Back up what a server keeps: its store and its challenges with their files. The server may run meanwhile."""
    made = make_backup(_parts(store, registered), Path(folder))
    files = f", {len(made.files):,} files of challenges" if made.files is not None else ""
    note(f"{folder}: {', '.join(made.databases) or 'no database'}{files}")


@with_groups({name: entry.state for name, entry in services().items() if entry.state is not None})
def restore(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A backup.")],
    *,
    store: StoreState,
    registered: Mapping[str, Any],
    check: Annotated[bool, typer.Option("--check", help="Only check that the backup is whole.")] = False,
) -> None:
    """Put a backup back, before the server starts. What exists already is never replaced."""
    listing = check_backup(Path(folder)) if check else restore_backup(Path(folder), _parts(store, registered))
    note(f"{folder}: of {listing.created} by version {listing.version}, {'whole' if check else 'put back'}")


def _parts(store: StoreState, registered: Mapping[str, Any]) -> list[StatePart]:
    return [store.part(), *(state.part() for state in registered.values())]
