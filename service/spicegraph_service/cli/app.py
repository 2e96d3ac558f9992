"""The commands with their groups of options, and what becomes of their errors."""
# A parameter whose type is a dataclass is a group: one option per field. The help of an option stands in the docstring
# of the command or of the group, in the section ``Options:``, or with the option.

from __future__ import annotations

import atexit
import gc
import inspect
import os
import re
import signal
import sys
import threading
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException
from typer.main import get_command

from spicegraph_parser.errors import InputError, SpicegraphError
from spicegraph_parser.runtime import rare_collections
from spicegraph_service.cli.settings import defaults_of, find_settings, options_of, own_words
from spicegraph_service.output import terminal
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


BAD_INPUT = 2
_OUTPUT: Final = "output"
_WRITTEN: Final = (_OUTPUT, "cache")
_NAMES: Final = frozenset({"CHALLENGE", "SUBMISSION", "NAME", "ID", "TOKEN_ID", "PURPOSE"})  # They name no file.

_ALIKE: Final = 0.7
_NEARLY: Final = 0.1

INTERRUPTED = 130  # what shells call a command that Ctrl-C ended
TERMINATED = 143  # and one that SIGTERM ended
_OPTIONS: Final = "\n\nOptions:\n"
_OPTION: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_QUIET: Final = "quiet"
_REGISTERED: Final = "registered"
_ENVIRONMENT: Final = "from_environment"

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write no notes and no progress; warnings and errors remain.")
]


def with_groups(groups: Mapping[str, type]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command further groups of options, by name, in its parameter ``registered``."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        setattr(command, _REGISTERED, groups)
        return command

    return decorated


def from_environment(command: Callable[..., None]) -> Callable[..., None]:
    """Let every option of a command also be given by the environment: ``--max-wait`` as ``SPICEGRAPH_MAX_WAIT``."""
    setattr(command, _ENVIRONMENT, True)
    return command


def said_of_options(documented: Callable[..., None] | type) -> dict[str, str]:
    """Return what the section ``Options:`` of a docstring, or of those of a class and its bases, says, by parameter."""
    said: dict[str, str] = {}
    for part in reversed(documented.__mro__) if isinstance(documented, type) else (documented,):
        section = inspect.cleandoc(part.__doc__ or "").partition(_OPTIONS)[2]
        said |= {name: " ".join(text.split()) for name, text in _OPTION.findall(section)}
    return said


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer: each group (a parameter that is a dataclass) becomes options, with ``--quiet``."""
    if _QUIET in inspect.signature(command).parameters:  # a command of a group that was loaded before
        return command
    hints = get_type_hints(command, include_extras=True)
    further: Mapping[str, type[Any]] = getattr(command, _REGISTERED, {})
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    groups |= further
    declared = dict(inspect.signature(command).parameters)
    declared.pop(_REGISTERED, None)
    declared |= {name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in further}
    parameters: list[inspect.Parameter] = []
    said = said_of_options(command)
    for parameter in declared.values():
        if parameter.name in groups:
            kind = groups[parameter.name]
            types = get_type_hints(kind, include_extras=True)
            said |= said_of_options(kind)
            parameters += (
                parameter.replace(name=field.name, default=field.default, annotation=types[field.name])
                for field in fields(kind)
            )
        else:
            parameters.append(parameter.replace(annotation=hints.get(parameter.name, parameter.annotation)))
    for parameter in parameters:
        for option in getattr(parameter.annotation, "__metadata__", ()):
            option.help = option.help or said.get(parameter.name)
            if hasattr(command, _ENVIRONMENT):
                option.envvar = option.envvar or f"SPICEGRAPH_{parameter.name.upper()}"
    parameters.append(inspect.Parameter(_QUIET, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption))

    def run(**given: Any) -> None:
        with terminal.quietness(given.pop(_QUIET)):
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            if further:
                given[_REGISTERED] = {name: made.pop(name) for name in further}
            command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, inspect.cleandoc(command.__doc__ or "").partition(_OPTIONS)[0]
    return run


class _GroupedCommands(TyperGroup):
    """The commands, under the headings of the registry."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (Typer gives both)
        """Write the commands with their lines of help, group by group."""
        width = max(map(len, self.commands))
        by_group: dict[str, list[tuple[str, str]]] = {}
        for name, registered in commands().items():
            by_group.setdefault(registered.group, []).append((name.ljust(width), registered.summary))
        for group, rows in by_group.items():
            with formatter.section(group):
                formatter.write_dl(rows)


def make_app(*wanted: str) -> typer.Typer:
    """Return the command line, in which only the wanted commands can run; of the others it has the help line."""
    app = typer.Typer(
        cls=_GroupedCommands,
        name="spicegraph",
        help="Scene graphs from image captions, SPICE and the COCO caption metrics, without Java.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(options)
    for name, registered in commands().items():
        if name not in wanted:
            app.command(name, help=registered.summary)(lambda: None)  # this run does not call it
        elif isinstance(loaded := resolve_name(registered.target), typer.Typer):
            for command in loaded.registered_commands:
                if command.callback is not None:
                    command.callback = flattened(command.callback)
            app.add_typer(loaded, name=name)
        else:
            app.command(name)(flattened(loaded))
    return app


def _print_version(value: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if value:
        from importlib.metadata import version  # noqa: PLC0415 (only this needs it)

        typer.echo(f"spicegraph {version('spicegraph')}")
        raise typer.Exit


def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Scene graphs from image captions, SPICE and the COCO caption metrics, without Java."""


def command_line(*wanted: str) -> TyperGroup:
    """Return the command line in which the wanted commands are loaded, without any all of them, and guarded."""
    made = get_command(make_app(*(wanted or commands())))
    guard(made)
    if not isinstance(made, TyperGroup):
        raise TypeError("the command line is a group of commands")
    return made


def guard(command: object) -> None:
    """Let a command, or each of a group, refuse to overwrite what it reads, and word its errors as ours."""
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            guard(each)
    elif isinstance(command, TyperCommand) and command.callback is not None:
        parameters = [each for each in command.params if isinstance(each, TyperArgument | TyperOption)]
        command.callback = _refusing(command.callback, frozenset(str(p.name) for p in parameters if is_input(p)))
        command.parse_args = _worded(command.parse_args)  # type: ignore[method-assign]


def _refusing(callback: Callable[..., object], inputs: Collection[str]) -> Callable[..., object]:
    """Return a command's function that first looks whether an output is an input."""

    @wraps(callback)
    def checked(**given: object) -> object:
        for name in _WRITTEN:
            if output := given.get(name):
                read = (path for source in inputs if source != name for path in _places(given.get(source)))
                terminal.refuse_overwriting([str(output)], read)
        return callback(**given)

    return checked


def _worded(parse: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a command's parser of arguments whose errors are in our words."""

    def parsed(context: Any, *given: Any) -> list[str]:
        try:
            return parse(context, *given)
        except typer.BadParameter as error:
            error.message = own_words(error.message)
            raise
        except TyperException as error:
            if (name := getattr(error, "option_name", "")).startswith("--"):
                error.possibilities = alike(name, context.command.params)  # type: ignore[attr-defined]  # of NoSuchOption
            raise

    return parsed


def alike(name: str, parameters: Iterable[object]) -> list[str]:
    """Return the options (at most two) like an unknown one, by all letters, a word, or a word of the value."""
    from difflib import SequenceMatcher  # noqa: PLC0415 (only who misspells an option needs it)

    likeness: dict[str, float] = {}
    for option in (parameter for parameter in parameters if isinstance(parameter, TyperOption)):
        of_value = _words(str(option.metavar or ""))
        for spelling in (spelling for spelling in option.opts if spelling.startswith("--")):
            compared = [(1.0, spelling.strip("-")), *((0.9, word) for word in (*_words(spelling), *of_value))]
            likeness[spelling] = max(
                weight * SequenceMatcher(None, name.strip("-").lower(), other).ratio() for weight, other in compared
            )
    least = max(_ALIKE, max(likeness.values(), default=0.0) - _NEARLY)
    meant = sorted((spelling for spelling in likeness if likeness[spelling] >= least), key=lambda s: -likeness[s])
    return meant[:2]


def _words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())


def is_input(parameter: TyperArgument | TyperOption) -> bool:
    """Say whether a parameter of a command names files that the command reads."""
    metavar = str(parameter.metavar).strip("[].")
    if str(parameter.name).startswith(_OUTPUT):
        return False
    if parameter.param_type_name == "argument":
        return metavar not in _NAMES
    return "FILE" in metavar or "PATH" in metavar


def _places(given: object) -> Iterator[str]:
    """Yield the files that the value of an input may name: ``results.json``, ``mine=results.json``, or several."""
    for value in given if isinstance(given, list | tuple) else (given,):
        if value is not None:
            yield str(value)
            yield str(value).partition("=")[2] or str(value)


_SOURCES: Final = {"DEFAULT": "default", "DEFAULT_MAP": "file", "ENVIRONMENT": "environment"}


def _without_password(value: str) -> str:
    """Return a value as it may be shown to others: what stands between a URL's user and host is hidden."""
    return re.sub(r"(\w://[^:@/\s]*:)\S*@", r"\1***@", value)


def config(command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]")] = None) -> None:
    """Show which settings file applies here; of a command, every option's value and where it comes from.

    Options:
        command: A command, such as score or agree captions.
    """
    from spicegraph_service.output.tables import plain_table, rendered  # noqa: PLC0415 (most commands print no table)

    settings = find_settings(Path.cwd())
    shown = "none" if settings is None else settings[0]
    parts: list[Any] = []
    if command:
        root = command_line(command[0])
        values: Any = {} if settings is None else defaults_of(settings, command_line, commands(), command[:1])
        node: object = root
        for name in command:
            if not isinstance(node, TyperGroup) or name not in node.commands:
                raise InputError(f"there is no command {' '.join(command)!a:.60}")
            node, values = node.commands[name], values.get(name, {})
        if isinstance(node, TyperGroup):
            raise InputError(f"{' '.join(command)} is a group; name one of its commands: {', '.join(node.commands)}")
        if not isinstance(node, TyperCommand):
            raise TypeError("a command line has groups and commands")
        context = node.make_context(command[-1], [], resilient_parsing=True, default_map=values)
        rows = []
        for key, option in options_of(node).items():
            source = context.get_parameter_source(str(option.name))
            value = context.params.get(str(option.name))
            whence = _SOURCES[source.name] if source is not None else ""
            rows.append((f"--{key}", "" if value is None else _without_password(str(value)), whence))
        parts.append(plain_table(("Option", "Value", "From"), rows))
    elif settings is not None:
        defaults_of(settings, command_line, commands(), commands())  # says what is wrong
        parts.append(
            plain_table(("Key", "Value"), [(key, _without_password(str(value))) for key, value in settings[1].items()])
        )
    terminal.write_stdout(f"settings file: {terminal.printable(shown)}\n" + rendered(parts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return 0, 2 where the input or the command is wrong, or 130 where Ctrl-C ended it."""
    terminal.use_utf8()
    atexit.register(gc.freeze)  # else Python looks for cycles among all modules when it ends
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        # SIGTERM ends a command as Ctrl-C does, so that what was done is kept; a server has its own answer.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(TERMINATED))
        # What a shell wants completed, if it does, stands behind the program's name.
        completed = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or "").split()[1:]
        command = next((argument for argument in completed or given if not argument.startswith("-")), "")
        with rare_collections():
            app = command_line(command)
            settings = find_settings(Path.cwd())
            defaults = None if settings is None else defaults_of(settings, command_line, commands(), (command,))
            app(given, prog_name="spicegraph", default_map=defaults)
    except SpicegraphError as error:
        terminal.say_error(str(error))
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if str(error.name).startswith("spicegraph"):
            raise
        terminal.say_error(f"this needs {error.name}, which is not installed: pip install spicegraph")
        return BAD_INPUT
    except KeyboardInterrupt:  # while the command's modules were loaded: typer takes it afterwards
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
