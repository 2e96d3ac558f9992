"""What packages add to the program: commands, engines and services, ours, those of wings and other packages alike."""
# A package names its tables of commands, or of engines by their names, in the entry-point group
# ``spicegraph.commands``, and its services in ``spicegraph.services``. A table is loaded for every ``spicegraph
# --help``; what it points at is loaded where it is used.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import DataError, needs_extra

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = "spicegraph_service."  # whose commands and services stand first

HELP_GROUPS = ("Score", "Study", "Prepare", "Server")
"""The groups of commands in ``--help``, in their order; a group of another name stands behind them."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command."""

    name: str  # as people type it
    # ``module:attribute``: a function, or a ``typer.Typer`` with commands of its own. A function's options are its
    # parameters; a parameter whose type is a dataclass stands for one option per field. Their help stands with them, or
    # in the docstring, in a section for each heading of ``--help``, such as ``Options:`` or ``Output:``.
    target: str
    summary: str  # one line for ``spicegraph --help``
    group: str  # under which heading it stands there


@dataclass(frozen=True, slots=True)
class NoOptions:
    """No options."""


@dataclass(frozen=True, slots=True)
class StatePart:
    """Something that a service keeps on the disk, for ``spicegraph backup`` and ``restore``."""

    name: str  # of the database in a backup, which ends in ``.db``; uploaded files are in the folder ``files`` there
    database: Path | None  # an SQLite file; ``None``: there is none, or it is backed up by other means
    files: Path | None = None  # with ``objects/``, files by the SHA-256 of their content; ``None``: there is none
    needed: str = ""  # ``module:function``: returns the files that a copy of the database needs


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """A service that a server can have."""

    opens: str  # ``module:function``: makes the ``Service`` from its options and the ``Host``
    options: type = NoOptions  # a dataclass, its own options of ``spicegraph serve``, annotated with ``typer.Option``
    # Such a dataclass for ``backup`` and ``restore``, with a method ``part`` that returns the :class:`StatePart`.
    state: type | None = None  # ``None``: the service keeps nothing on the disk
    needs: str = ""  # the option without which the service is neither opened nor loaded; none: it always is


@dataclass(frozen=True, slots=True)
class DoorEntry:
    """Another protocol by which a server takes calls, registered beside the services."""

    opens: str  # ``module:function``: makes the ``Door`` from the ``DoorParts``
    extra: str  # of this package, with what the door needs


@cache
def commands() -> Mapping[str, Command]:
    """Return every command by its name, in the order of ``--help``."""
    registered: dict[str, Command] = {}
    for point, table in _load("spicegraph.commands"):
        for command in () if isinstance(table, Mapping) else table:
            if command.name in registered:
                raise DataError(f"the command {command.name!a} is registered twice, the second time by {point}")
            registered[command.name] = command
    known = {group: rank for rank, group in enumerate(HELP_GROUPS)}
    ordered = sorted(registered.values(), key=lambda command: known.get(command.group, len(known)))
    return {command.name: command for command in ordered}


@cache
def engines() -> Mapping[str, str]:
    """Return the engines of wings and other packages: as ``module:attribute`` where each is, by its name."""
    tables = (table for _, table in _load("spicegraph.commands") if isinstance(table, Mapping))
    return {name: place for table in tables for name, place in table.items()}


@cache
def services() -> Mapping[str, ServiceEntry]:
    """Return every service that a server can have, by the name of its entry point."""
    loaded = _load("spicegraph.services")
    return {point.partition(" ")[0]: entry for point, entry in loaded if isinstance(entry, ServiceEntry)}


def open_http() -> Any:
    """Return the function that makes the door for HTTP.

    Raises:
        DataError: the wing, or what it needs, is not installed.
    """
    for point, entry in _load("spicegraph.services"):
        if isinstance(entry, DoorEntry) and point.startswith("http "):
            with needs_extra(entry.extra, "JSON over HTTP"):
                return resolve_name(entry.opens)
    raise DataError("--http needs the package spicegraph_web, which is not installed")


def _load(group: str) -> Iterator[tuple[str, Any]]:
    """Yield a group's entry points as ``name = module:attribute``, with their objects; missing wings skipped."""
    points = sorted(
        entry_points(group=group), key=lambda point: (not point.value.startswith(_PACKAGE), point.name, point.value)
    )
    if not points:
        raise DataError("no command is registered: install spicegraph (again); in a checkout, `pip install -e .`")
    for point in points:
        try:
            yield f"{point.name} = {point.value}", point.load()
        except ModuleNotFoundError as error:
            if error.name != point.module.partition(".")[0]:
                raise DataError(f"{point.value!a}, registered in {group}, can't be loaded: {error}") from error
