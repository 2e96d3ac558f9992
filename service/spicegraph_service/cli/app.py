"""The commands with their groups of options, and what becomes of their errors."""
# A parameter whose type is a dataclass is a group: one option per field. The help of an option stands in the docstring
# of the command or of the group, or with the option. A section of such a docstring, ``Output:``, is a heading in
# ``--help``, under which its options stand.

from __future__ import annotations

import atexit
import gc
import inspect
import os
import re
import signal
import sys
import threading
from copy import copy
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException
from typer.main import get_command

from spicegraph_parser.errors import SpicegraphError
from spicegraph_parser.runtime import rare_collections
from spicegraph_service.cli.settings import defaults_of, find_settings, own_words
from spicegraph_service.output import terminal
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


BAD_INPUT = 2
_OUTPUT: Final = "output"
_WRITTEN: Final = (_OUTPUT, "cache")
_NAMES: Final = frozenset({"CHALLENGE", "SUBMISSION", "NAME", "ID", "TOKEN_ID", "PURPOSE"})  # They name no file.

_ALIKE: Final = 0.7
_NEARLY: Final = 0.1

INTERRUPTED = 130  # what shells call a command that Ctrl-C ended
TERMINATED = 143  # and one that SIGTERM ended
_HEADING: Final = "Options"  # of what no section names
_SECTION: Final = re.compile(r"^([A-Z][\w ]*):\n((?: {4,}.*\n?)+)", re.MULTILINE)
_OPTION: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_METAVARS: Final[Mapping[type, str]] = {int: "N", float: "N", str: "TEXT"}  # of options that name none
_COLUMN: Final = 30  # the most that an option takes before its help begins on the next line
_QUIET: Final = "quiet"
_REGISTERED: Final = "registered"

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write no notes and no progress; warnings and errors remain.")
]


def with_groups(
    groups: Mapping[str, type], *, environment: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command further groups of options, by name, in its parameter ``registered``.

    ``environment``: every option may also be given by the environment: ``--max-wait`` as ``SPICEGRAPH_MAX_WAIT``.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        setattr(command, _REGISTERED, (groups, environment))
        return command

    return decorated


def said_of_options(documented: Callable[..., None] | type) -> dict[str, tuple[str, str]]:
    """Return heading and help of options, as the sections of a docstring, or of those of a class and its bases, say."""
    said: dict[str, tuple[str, str]] = {}
    for part in reversed(documented.__mro__) if isinstance(documented, type) else (documented,):
        for heading, section in _SECTION.findall(inspect.cleandoc(part.__doc__ or "")):
            said |= {name: (heading, " ".join(text.split())) for name, text in _OPTION.findall(section)}
    return said


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer: each group (a parameter that is a dataclass) becomes options, with ``--quiet``."""
    declared = inspect.signature(command).parameters
    if _QUIET in declared:  # a command of a group that was loaded before
        return command
    hints = get_type_hints(command, include_extras=True)
    further, environment = getattr(command, _REGISTERED, ({}, False))
    groups: dict[str, type[Any]] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}  # type: ignore[misc]
    groups |= further
    parameters: list[inspect.Parameter] = []
    for name in [*(name for name in declared if name != _REGISTERED), *further]:
        kind = groups.get(name)
        members = [declared[name].replace(annotation=hints[name])] if kind is None else _members(kind)
        parameters += _described(members, said_of_options(kind or command), environment=environment)
    parameters.append(inspect.Parameter(_QUIET, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption))

    def run(**given: Any) -> None:
        with terminal.quietness(given.pop(_QUIET)):
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            if further:
                given[_REGISTERED] = {name: made.pop(name) for name in further}
            command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, _SECTION.split(inspect.cleandoc(command.__doc__ or ""))[0].rstrip()
    return run


def _members(group: type[Any]) -> list[inspect.Parameter]:
    """Return the fields of a group of options as parameters."""
    types = get_type_hints(group, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(f.name, keyword, default=f.default, annotation=types[f.name]) for f in fields(group)]


def _described(
    parameters: Sequence[inspect.Parameter], said: Mapping[str, tuple[str, str]], *, environment: bool
) -> Iterator[inspect.Parameter]:
    """Yield parameters whose options have their help, heading, metavar and, where wanted, their variable."""
    first = next(iter(said.values()), (_HEADING, None))[0]
    for parameter in parameters:
        hint = parameter.annotation
        heading, text = said.get(parameter.name, (first, None))
        for declared in getattr(hint, "__metadata__", ()):
            option = copy(declared)  # a declaration may belong to several commands
            option.help = option.help or text
            option.rich_help_panel = option.rich_help_panel or heading
            if isinstance(option, typer.models.OptionInfo):
                option.metavar = option.metavar or _metavar(hint.__origin__)
            if environment:
                option.envvar = option.envvar or f"SPICEGRAPH_{parameter.name.upper()}"
            parameter = parameter.replace(annotation=Annotated[hint.__origin__, option])  # noqa: PLW2901
        yield parameter


def _metavar(hint: Any) -> str | None:
    """Return what stands for the values of a type, or of a union, in ``--help``."""
    return next((_METAVARS[kind] for kind in {hint, *get_args(hint)} if kind in _METAVARS), None)


def _write_sections(formatter: Any, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write rows of heading, name and text under their headings, all texts in one column."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for heading, name, text in rows:
        sections.setdefault(heading, []).append((name, text))
    width = min(_COLUMN, max(len(name) for section in sections.values() for name, _ in section))
    for heading, section in sections.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), text) for name, text in section])


class _GroupedCommands(TyperGroup):
    """The commands, under the headings of the registry."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (Typer gives both)
        """Write the commands with their lines of help, group by group."""
        _write_sections(formatter, [(each.group, each.name, each.summary) for each in commands().values()])


class GroupedOptions(TyperCommand):
    """A command: options under headings, errors in our words, likely options, and no output over an input."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options under their headings."""
        rows = []
        for each in self.get_params(ctx):
            name, text = each.get_help_record(ctx) or ("", "")
            if isinstance(each, TyperArgument):
                rows.append(("Arguments", name.partition(" <")[0], text))  # without its type in Python
            else:
                rows.append((getattr(each, "rich_help_panel", None) or _HEADING, name, text))
        _write_sections(formatter, rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments; what is wrong is said in our words."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = own_words(error.message)
            raise
        except TyperException as error:
            if (name := getattr(error, "option_name", "")).startswith("--"):
                error.possibilities = alike(name, self.params)  # type: ignore[attr-defined]  # of NoSuchOption
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless an output is an input."""
        inputs = [str(parameter.name) for parameter in self.params if is_input(parameter)]
        for name in _WRITTEN:
            if output := ctx.params.get(name):
                read = (path for source in inputs if source != name for path in _places(ctx.params.get(source)))
                terminal.refuse_overwriting([str(output)], read)
        return super().invoke(ctx)


def _prepare(group: typer.Typer) -> None:
    """Flatten the commands of a group and of the groups in it."""
    for command in group.registered_commands:
        if command.callback is not None:
            command.cls, command.callback = GroupedOptions, flattened(command.callback)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _prepare(inner.typer_instance)


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
            _prepare(loaded)
            app.add_typer(loaded, name=name)
        else:
            app.command(name, cls=GroupedOptions)(flattened(loaded))
    return app


def _print_version(value: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if value:
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
    """Return the command line in which the wanted commands are loaded, without any all of them."""
    return cast("TyperGroup", get_command(make_app(*(wanted or commands()))))


def alike(name: str, parameters: Iterable[object]) -> list[str]:
    """Return the options (at most two) like an unknown one, by all letters, a word, or a word of the value."""
    likeness: dict[str, float] = {}
    for option in (parameter for parameter in parameters if isinstance(parameter, TyperOption)):
        for spelling in (spelling for spelling in option.opts if spelling.startswith("--")):
            likeness[spelling] = _likeness(name, spelling, str(option.metavar or ""))
    least = max(_ALIKE, max(likeness.values(), default=0.0) - _NEARLY)
    meant = sorted((spelling for spelling in likeness if likeness[spelling] >= least), key=lambda s: -likeness[s])
    return meant[:2]


def _likeness(name: str, spelling: str, value: str) -> float:
    compared = [(1.0, spelling.strip("-")), *((0.9, word) for word in (*_words(spelling), *_words(value)))]
    return max(weight * SequenceMatcher(None, name.strip("-").lower(), other).ratio() for weight, other in compared)


def _words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())


def is_input(parameter: object) -> bool:
    """Say whether a parameter of a command names files that the command reads."""
    if not isinstance(parameter, TyperArgument | TyperOption) or parameter.name.startswith(_OUTPUT):
        return False
    metavar = str(parameter.metavar).strip("[].")
    if isinstance(parameter, TyperArgument):
        return metavar not in _NAMES
    return "FILE" in metavar or "PATH" in metavar


def _places(given: object) -> Iterator[str]:
    """Yield the files that the value of an input may name: ``results.json``, ``mine=results.json``, or several."""
    for value in given if isinstance(given, list | tuple) else (given,):
        if value is not None:
            yield str(value)
            yield str(value).partition("=")[2] or str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return 0, 2 where the input or the command is wrong, or 130 where Ctrl-C ended it."""
    terminal.use_utf8()
    atexit.register(gc.freeze)  # else Python looks for cycles among all modules when it ends
    command = ""
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        _end_with_sigterm()
        command = _named_command(given)
        with rare_collections():
            app = command_line(command)
            settings = find_settings(Path.cwd())
            defaults = None if settings is None else defaults_of(settings, command_line, commands(), (command,))
            if settings is not None and defaults and defaults.get(command) and "--quiet" not in given:
                terminal.say(f"settings: {settings[0]}")  # a file further up changes scores, too
            app(given, prog_name="spicegraph", default_map=defaults)
    except SpicegraphError as error:
        terminal.say_error(str(error))
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if str(error.name).startswith("spicegraph"):
            raise
        terminal.say_error(f"spicegraph {command} needs {error.name}, which is not installed: pip install spicegraph")
        return BAD_INPUT
    except KeyboardInterrupt:  # while the command's modules were loaded: typer takes it afterwards
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


def _end_with_sigterm() -> None:
    """Let SIGTERM end a command as Ctrl-C does, so that what was done is kept; a server has its own answer."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(TERMINATED))


def _named_command(given: Sequence[str]) -> str:
    """Return the command that is run, or that a shell wants completed; empty: there is none."""
    # What a shell wants completed, if it does, stands behind the program's name.
    completed = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or "").split()[1:]
    return next((argument for argument in completed or given if not argument.startswith("-")), "")


if __name__ == "__main__":
    sys.exit(main())
