"""``spicegraph config``: which settings file applies, and where each option's value comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from spicegraph_parser.errors import InputError
from spicegraph_service.cli.app import command_line
from spicegraph_service.cli.settings import defaults_of, find_settings, options_of
from spicegraph_service.output.tables import plain_table, rendered
from spicegraph_service.output.terminal import printable, write_stdout
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from spicegraph_service.cli.settings import Settings
    from spicegraph_service.output.grid import Grid

_SOURCES: Final = {"DEFAULT": "default", "DEFAULT_MAP": "file", "ENVIRONMENT": "environment"}


def _without_password(value: str) -> str:
    """Return a value as it may be shown to others: what stands between a URL's user and host is hidden."""
    return re.sub(r"(\w://[^:@/\s]*:)\S*@", r"\1***@", value)


def config(command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]")] = None) -> None:
    """Show which settings file applies here; of a command, every option's value and where it comes from.

    Options:
        command: A command, such as score or agree captions.
    """
    settings = find_settings(Path.cwd())
    shown = "none" if settings is None else settings[0]
    parts: list[Any] = []
    if command:
        parts.append(_options_table(command, settings))
    elif settings is not None:
        defaults_of(settings, command_line, commands(), commands())  # says what is wrong
        parts.append(
            plain_table(("Key", "Value"), [(key, _without_password(str(value))) for key, value in settings[1].items()])
        )
    write_stdout(f"settings file: {printable(shown)}\n" + rendered(parts))


def _options_table(command: list[str], settings: Settings | None) -> Grid:
    """Return every option of a command, its value and where that comes from."""
    node: Any = command_line(command[0])
    values: Any = {} if settings is None else defaults_of(settings, command_line, commands(), command[:1])
    for name in command:
        if not isinstance(node, TyperGroup) or name not in node.commands:
            raise InputError(f"there is no command {' '.join(command)!a:.60}")
        node, values = node.commands[name], values.get(name, {})
    if isinstance(node, TyperGroup):
        raise InputError(f"{' '.join(command)} is a group; name one of its commands: {', '.join(node.commands)}")
    context = node.make_context(command[-1], [], resilient_parsing=True, default_map=values)
    rows = []
    for key, option in options_of(node).items():
        source = context.get_parameter_source(str(option.name))
        value = context.params.get(str(option.name))
        whence = _SOURCES[source.name] if source is not None else ""
        rows.append((f"--{key}", "" if value is None else _without_password(str(value)), whence))
    return plain_table(("Option", "Value", "From"), rows)
