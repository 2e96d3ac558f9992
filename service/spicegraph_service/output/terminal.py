"""What the commands say beside their output: errors, notes and a progress bar, all on standard error."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_QUIET: Final[ContextVar[bool]] = ContextVar("quiet", default=False)


def use_utf8() -> None:
    """Write UTF-8 whatever the locale says: captions are not ASCII, and no table may end in an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def printable(text: str) -> str:
    r"""Return text that can't steer a terminal: control characters other than line ends become escapes.

    Example:
        >>> printable("a\x1b[2J")
        'a\\x1b[2J'
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def is_terminal(stream: TextIO) -> bool:
    """Say whether a person reads the stream."""
    return stream.isatty()


def say_error(message: str) -> None:
    """Write one error to standard error."""
    sys.stderr.write(f"error: {printable(message)}\n")


def say_warning(message: Warning | str, *_where: object, **_how: object) -> None:
    """Write a warning of the library to standard error, without the place in the code that it comes from."""
    sys.stderr.write(f"warning: {printable(str(message))}\n")


@contextmanager
def quietness(quiet: bool) -> Iterator[None]:  # noqa: FBT001 (there is nothing else to say)
    """Write neither notes nor progress within this, if the command is to be quiet."""
    token = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(token)


def say(message: str) -> None:
    """Write a line to standard error, also into a file or a pipe, unless the command is to be quiet."""
    if not _QUIET.get():
        sys.stderr.write(f"{printable(message)}\n")


def note(message: str) -> None:
    """Write a note to standard error if a person reads it there."""
    if is_terminal(sys.stderr):
        say(message)


@contextmanager
def warned_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Give a progress bar on a terminal, while the library's warnings go to standard error."""
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.showwarning = say_warning
        warnings.filterwarnings("default", module="spicegraph")
        yield progress


def write_stdout(text: str | Iterable[str]) -> None:
    """Write text, or its pieces as they are made, to standard output; where its reader has gone, leave quietly.

    Raises:
        InputError: it can't be written: the disk is full, say.
    """
    try:
        sys.stdout.writelines((text,) if isinstance(text, str) else text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output once more when it ends: that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit from error
        raise InputError(f"standard output: can't be written ({error.strerror})") from error


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """Give a function that shows (what, how much is done, of how much) on a terminal; elsewhere, nothing."""
    if not is_terminal(sys.stderr) or _QUIET.get():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def show(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield show
