"""Where output goes: files, there whole or not at all, standard output; notes and a progress bar on standard error."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from os.path import samestat
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Final, TextIO, TypeVar, cast
from urllib.parse import unquote

import typer

from spicegraph_parser.errors import InputError, needs_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

_QUIET: Final[ContextVar[bool]] = ContextVar("quiet", default=False)


def use_utf8() -> None:
    """Write UTF-8 whatever the locale says: captions are not ASCII, and no table may end in an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def printable(text: str) -> str:
    """Return text that can't steer a terminal: control characters other than line ends become escapes."""
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


def is_quiet() -> bool:
    """Return whether the command is to write neither notes nor progress."""
    return _QUIET.get()


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
    """Write text, or its pieces as they are made, to standard output; where its reader has gone, leave quietly."""
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
    from rich.console import Console  # noqa: PLC0415 (only terminals need it)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def show(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield show


Chosen = TypeVar("Chosen")

_FILE_URL: Final = "file://"

_PACKED: Final = (".gz", ".zst")


def format_by_ending(path: str | None, endings: Mapping[str, Chosen], default: Chosen) -> Chosen:
    """Return the format of a file's ending, before ``.gz`` or ``.zst``; the default without one."""
    if path is None:
        return default
    name = PurePath(path.lower())
    ending = (name.with_suffix("") if name.suffix in _PACKED else name).suffix
    if ending and ending not in endings:
        raise InputError(
            f"{path}: this command can't write {ending}; it can write {', '.join(endings)}; --format chooses a format "
            "for any file name"
        )
    return endings.get(ending, default)


def is_packed(path: str) -> bool:
    """Say whether a file is compressed as it is written, by its ending: ``.gz`` or ``.zst``."""
    return path.lower().endswith(_PACKED)


def check_output(path: str) -> None:
    """Say now, before the work, that an output file can't be written, or that its packing needs an extra."""
    if path.lower().endswith(".zst"):
        _zstandard()
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {folder}")
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, expected a file to write")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the folder {folder} is not writable")


def refuse_overwriting(outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Refuse outputs that are inputs (a folder: every file in it), whatever path, link or URL names them."""
    sources = tuple(inputs)
    for output in outputs:
        for source in sources:
            if _is_same(output, source):
                name = "standard input" if source == "-" else source
                raise InputError(f"{output}: this would overwrite an input of the command ({name}); name another file")


def _is_same(output: str, source: str) -> bool:
    if _is_remote(output) or _is_remote(source):
        return output.rstrip("/") == source.rstrip("/")
    target, origin = _local(output), _local(source)
    try:
        status = target.stat()
        if not S_ISREG(status.st_mode):
            return False
        if source == "-":
            return samestat(status, os.fstat(sys.stdin.fileno()))
        return origin.resolve() in target.resolve().parents if origin.is_dir() else samestat(status, origin.stat())
    except (OSError, ValueError):  # one of them is not there, or has no name that a file can have
        return False


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith(_FILE_URL)


def _local(path: str) -> Path:
    return Path(unquote(path.removeprefix(_FILE_URL))) if path.startswith(_FILE_URL) else Path(path)


def made_folder(path: str | Path) -> Path:
    """Return a folder, which is made where it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: can't be made a folder ({error.strerror})") from error
    return folder


def write_text(text: str | Iterable[str], path: str | None) -> None:
    """Write text, or its pieces as they are made, to a file, which is there whole or not at all, or standard output."""
    if path is None:
        write_stdout(text)
        return
    with whole_file(path) as stream:
        stream.writelines((text,) if isinstance(text, str) else text)


@contextmanager
def whole_file(path: str) -> Iterator[IO[str]]:
    """Open a file for writing that takes its place only when everything has been written."""
    target = Path(path).absolute()
    if target.exists() and not target.is_file():  # a device or a pipe, such as /dev/stdout
        try:
            with target.open("w", encoding="utf-8") as stream:
                yield stream
        except OSError as error:
            raise InputError(f"{path}: can't be written ({error.strerror})") from error
        return
    with whole_path(path) as temporary, _packing(temporary.open("wb"), path) as packed:
        stream = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        yield stream
        stream.flush()
        stream.detach()


@contextmanager
def _packing(file: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    """Yield a file compressed by its extension (.gz, .zst); the output is deterministic."""
    with file:
        if path.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield cast("IO[bytes]", packed)
        elif path.lower().endswith(".zst"):
            with _zstandard().ZstdCompressor().stream_writer(file, closefd=False) as packed:
                yield packed
        else:
            yield file


def _zstandard() -> ModuleType:
    with needs_extra("zstd", "writing zstandard files (.zst)"):
        import zstandard  # noqa: PLC0415 (an extra)
    return zstandard


@contextmanager
def whole_path(path: str) -> Iterator[Path]:
    """Yield a temporary path, whose file replaces ``path`` at the end."""
    target = Path(path).absolute()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror})") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0o077)  # can only be read by setting it
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)
