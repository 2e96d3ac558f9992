"""Settings files, which give options that need not be typed then."""
# The nearest ``spicegraph.toml``, or ``pyproject.toml`` with a table ``tool.spicegraph``, of the working folder or one
# above it. A key is an option without its dashes, for every command that has it; in a table with a command's name, for
# that one alone. What is typed wins, then the environment, then the file.

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import typer
from typer.core import TyperGroup, TyperOption

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from typer.core import TyperCommand

_OWN: Final = "spicegraph.toml"
_SHARED: Final = "pyproject.toml"
_SWITCH: Final = "SPICEGRAPH_SETTINGS"
_WORDS: Final = {
    "Value error, ": "",
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Input should be": "must be",
}  # How the words of a library for a wrong option begin, and how ours do.


def own_words(message: str) -> str:
    """Return what is wrong with an option's value as this command line says it."""
    for beginning, ours in _WORDS.items():
        if message.startswith(beginning):
            return ours + message.removeprefix(beginning)
    return message


Settings: TypeAlias = "tuple[str, Mapping[str, Any]]"  # where a settings file is, and what it says


def find_settings(folder: Path) -> Settings | None:
    """Return the settings that hold in a folder; ``SPICEGRAPH_SETTINGS`` names another file, or ``none``."""
    named = os.environ.get(_SWITCH)
    if named == "none":
        return None
    if named:
        return named, _read(Path(named))
    for parent in (folder, *folder.parents):
        if (parent / _OWN).is_file():
            return str(parent / _OWN), _read(parent / _OWN)
        if (parent / _SHARED).is_file():
            table = _read(parent / _SHARED).get("tool", {}).get("spicegraph")
            if table is not None:
                return f"{parent / _SHARED} [tool.spicegraph]", table
    return None


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 (most folders have no settings)

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: is not TOML ({error})") from error


def defaults_of(
    settings: Settings, load: Callable[[str], TyperGroup], names: Collection[str], wanted: Collection[str]
) -> dict[str, Any]:
    """Return the settings of commands by parameter; loads the wanted ones, and others until each key is known."""
    path, table = settings
    tables = {key: value for key, value in table.items() if isinstance(value, dict)}
    common = {key: value for key, value in table.items() if key not in tables}
    _check_names(path, tables, names)
    needed = {*wanted, *tables}
    values: dict[str, Any] = {}
    unknown = dict.fromkeys(common)
    for name in sorted(names, key=lambda each: each not in needed):
        if unknown or name in needed:
            command = load(name).commands[name]
            values[name] = _values(f"{path}, {name}", command, common, tables.get(name, {}), unknown)
    if unknown:
        raise InputError(f"{path}: {next(iter(unknown))!a:.60}: no command has this option")
    return values


def _check_names(where: str, tables: Mapping[str, Any], names: Collection[str]) -> None:
    wrong = [key for key, value in tables.items() if key not in names or not isinstance(value, dict)]
    if wrong:
        raise InputError(f"{where}: {wrong[0]!a:.60}: there is no such command; there are {', '.join(names)}")


def _values(
    where: str, command: object, common: Mapping[str, Any], table: Mapping[str, Any], unknown: dict[str, None]
) -> dict[str, Any]:
    """Return the settings of a command, or of each of a group; keys that are its options are no longer unknown."""
    if isinstance(command, TyperGroup):
        _check_names(where, table, command.commands)
        return {
            name: _values(f"{where}, {name}", each, common, table.get(name, {}), unknown)
            for name, each in command.commands.items()
        }
    options = options_of(command)
    for key in options:
        unknown.pop(key, None)
    values: dict[str, Any] = {}
    for key, value in {**common, **table}.items():
        if key in options:
            try:
                options[key].process_value(typer.Context(cast("TyperCommand", command)), value)
            except (typer.BadParameter, TypeError) as error:
                raise InputError(f"{where}: {key}: {own_words(str(error))}") from error
            values[str(options[key].name)] = value
        elif key in table:
            raise InputError(f"{where}: {key!a:.60}: the command has no such option; it has {', '.join(options)}")
    return values


def options_of(command: object) -> dict[str, TyperOption]:
    """Return a command's options by their long names, without the dashes; a negated one by its first name."""
    options = [each for each in getattr(command, "params", ()) if isinstance(each, TyperOption)]
    return {next(name for name in each.opts if name.startswith("--"))[2:]: each for each in options}
