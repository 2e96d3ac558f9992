"""The commands, and what becomes of their errors."""

from __future__ import annotations

import atexit
import gc
import inspect
import os
import sys
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from spicegraph_parser.errors import SpicegraphError
from spicegraph_parser.extract import rare_collections
from spicegraph_service.cli.settings import defaults_of, find_settings, own_words
from spicegraph_service.output.terminal import quietness, refuse_overwriting, say_error, use_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

BAD_INPUT = 2
_OUTPUT: Final = "output"
_WRITTEN: Final = (_OUTPUT, "cache")
_QUIET: Final = "quiet"
_NAMES: Final = frozenset({"CHALLENGE", "SUBMISSION", "NAME", "ID", "TOKEN_ID", "PURPOSE"})
"""The metavars of arguments that name no file."""

INTERRUPTED = 130  # what shells call a command that Ctrl-C ended

COMMANDS: Mapping[str, str] = {
    "parse": "Turn captions into the tuples of their scene graphs.",
    "score": "Score captions: SPICE by category, the COCO metrics.",
    "compare": "Compare two systems, with tests of every difference.",
    "report": "Show what systems get wrong, on one HTML page.",
    "view": "Look at results in the browser: filter, sort, compare.",
    "demo": "Try captions in the browser, as you type.",
    "bounds": "Find how high and how low scores can go.",
    "agree": "Compare metrics with people: ratings, pairs, systems, words.",
    "idf": "Freeze CIDEr's document frequencies.",
    "vectors": "Make vectors for SPICE-G from your own captions.",
    "pipelines": "Print the model card of the bundled pipeline.",
    "cache": "Show, trim or clear a cache of parses.",
    "config": "Show which settings apply, and where they come from.",
    "serve": "Serve parses and scores over gRPC.",
    "health": "Ask a server whether it serves.",
    "token": "Make, list and revoke tokens for a server.",
    "backup": "Back up a server's state while it runs.",
    "restore": "Put a backup back before a server starts.",
    "challenge": "Take part in a challenge with private references, or run one.",
    "platform": "Score for an evaluation platform (Codabench, CapEvalKit).",
}
"""Every command with its one line of help, in the order of ``--help``.

A command ``x`` is the function or ``typer.Typer`` called ``x`` in the module ``spicegraph_service.cli.x``, or in the
one that ``_PLACES`` names, which is imported only when the command runs. To add one: that function, and a line here
with what it does (its help is its docstring).
"""
_PLACES: Mapping[str, str] = {
    "compare": "score",
    "idf": "learn",
    "vectors": "learn",
    "pipelines": "parse",
    "health": "serve",
    "demo": "view",
    **dict.fromkeys(("cache", "token", "backup", "restore"), "stores"),
}

_WINGS: Mapping[str, str] = {
    "agree": "spicegraph_studies.cli.agree",
    "bounds": "spicegraph_studies.cli.bounds",
    "challenge": "spicegraph_challenge.cli",
}


def _not_loaded() -> None:
    """Stand for a command that this run does not call."""


def _load(name: str) -> Callable[..., None] | typer.Typer:
    loaded: Callable[..., None] | typer.Typer = getattr(
        import_module(_WINGS.get(name, f"spicegraph_service.cli.{_PLACES.get(name, name)}")), name
    )
    if not isinstance(loaded, typer.Typer):
        return flattened(loaded)
    for command in loaded.registered_commands:
        if command.callback is not None:
            command.callback = flattened(command.callback)
    return loaded


QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write no notes and no progress; warnings and errors remain.")
]


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are parameters of their own, which Typer understands, with ``--quiet``.

    A group is a parameter whose type is a dataclass; its fields are the options.
    """
    if _QUIET in inspect.signature(command).parameters:  # a command of a group that was loaded before
        return command
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            kind = groups[parameter.name]
            types = get_type_hints(kind, include_extras=True)
            parameters += (
                parameter.replace(name=field.name, default=field.default, annotation=types[field.name])
                for field in fields(kind)
            )
        else:
            parameters.append(parameter.replace(annotation=hints.get(parameter.name, parameter.annotation)))
    parameters.append(inspect.Parameter(_QUIET, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption))

    def run(**given: Any) -> None:
        with quietness(given.pop(_QUIET)):
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def make_app(*wanted: str) -> typer.Typer:
    """Return the command line, in which only the wanted commands can run; of the others it has the help line."""
    app = typer.Typer(
        name="spicegraph",
        help="Scene graphs from image captions, SPICE and the COCO caption metrics, without Java.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(options)
    for name, summary in COMMANDS.items():
        command = _load(name) if name in wanted else _not_loaded
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, help=summary if command is _not_loaded else None)(command)
    return app


def _print_version(value: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if value:
        from importlib.metadata import version  # noqa: PLC0415 (only this needs it)

        typer.echo(f"spicegraph {version('spicegraph')}")
        raise typer.Exit


def options(
    *,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Scene graphs from image captions, SPICE and the COCO caption metrics, without Java."""


def command_line(*wanted: str) -> TyperGroup:
    """Return the command line in which the wanted commands are loaded, without any all of them, and guarded."""
    made = get_command(make_app(*(wanted or COMMANDS)))
    guard(made)
    if not isinstance(made, TyperGroup):
        raise TypeError("the command line is a group of commands")
    return made


def guard(command: object) -> None:
    """Let a command, or every command of a group, refuse to overwrite a file that it reads.

    Inputs and outputs are known by their declaration: the parameters ``output`` and ``cache`` are written; all other
    arguments, except names of challenges and the like, and the options whose metavar contains ``FILE`` or ``PATH`` are
    read. Errors of options are worded as our own.
    """
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
                read = (place for source in inputs if source != name for place in _places(given.get(source)))
                refuse_overwriting([str(output)], read)
        return callback(**given)

    return checked


def _worded(parse: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a command's parser of arguments whose errors are in our words."""

    def parsed(*given: Any) -> list[str]:
        try:
            return parse(*given)
        except typer.BadParameter as error:
            error.message = own_words(error.message)
            raise

    return parsed


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


def _completed() -> list[str]:
    """Return the words that a shell wants completed, if it does: those after the program's name."""
    return (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or "").split()[1:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return 0, 2 where the input or the command is wrong, or 130 where Ctrl-C ended it.

    Example:
        >>> main(["--version"])  # doctest: +SKIP
        0
    """
    use_utf8()
    atexit.register(gc.freeze)  # else Python looks for cycles among all modules when it ends
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        command = next((argument for argument in _completed() or given if not argument.startswith("-")), "")
        with rare_collections():
            app = command_line(command)
            settings = find_settings(Path.cwd())
            defaults = None if settings is None else defaults_of(settings, command_line, COMMANDS, (command,))
            app(given, prog_name="spicegraph", default_map=defaults)
    except SpicegraphError as error:
        say_error(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:  # while the command's modules were loaded: typer takes it afterwards
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
