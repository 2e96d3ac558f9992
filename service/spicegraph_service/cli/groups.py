"""Groups of options: a command's parameter whose type is a dataclass stands for one option per field."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from spicegraph_service.output.terminal import quietness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_QUIET: Final = "quiet"
_REGISTERED: Final = "registered"
_ENVIRONMENT: Final = "from_environment"

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write no notes and no progress; warnings and errors remain.")
]


def with_groups(groups: Mapping[str, type]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command further groups of options, by name, in its parameter ``registered``."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            registered = {name: given.pop(name) for name in groups}
            command(**given, **{_REGISTERED: registered})

        parameters = inspect.signature(command).parameters
        signature = [parameter for name, parameter in parameters.items() if name != _REGISTERED]
        signature += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in groups]
        hints = get_type_hints(command, include_extras=True)
        run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # what inspect.signature reads
        run.__annotations__ = {name: hint for name, hint in hints.items() if name != _REGISTERED} | dict(groups)
        del run.__wrapped__
        return run

    return decorated


def from_environment(command: Callable[..., None]) -> Callable[..., None]:
    """Let every option of a command also be given by the environment: ``--max-wait`` as ``SPICEGRAPH_MAX_WAIT``."""
    setattr(command, _ENVIRONMENT, True)
    return command


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
    if hasattr(command, _ENVIRONMENT):
        for parameter in parameters:
            for option in getattr(parameter.annotation, "__metadata__", ()):
                option.envvar = option.envvar or f"SPICEGRAPH_{parameter.name.upper()}"
    parameters.append(inspect.Parameter(_QUIET, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption))

    def run(**given: Any) -> None:
        with quietness(given.pop(_QUIET)):
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
            command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
