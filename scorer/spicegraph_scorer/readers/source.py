"""Bytes from a file, a stream or a zip, never more than a limit allows."""

from __future__ import annotations

import io
import stat
import sys
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ZIP_MAGIC = b"PK"
_OTHER_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstandard"}
_ENCRYPTED = 1
_IGNORED_ROOTS = frozenset({"__MACOSX"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read of one input: bytes in all, bytes of a line, members of a zip and its compression."""

    content: int = 1 << 30
    line: int = 10_000_000
    members: int = 100
    ratio: int = 200


DEFAULT_LIMITS = Limits()


class Source(NamedTuple):
    """An open input: what to call it in messages, its bytes, and whether they come out of a zip."""

    name: str
    stream: io.BufferedReader
    zipped: bool

    def content(self, limits: Limits) -> bytes:
        """Read everything that is left, piece by piece: to ask for as much as the limit would reserve all of it.

        Raises:
            LimitError: it is larger than the limits.
        """
        read = io.BytesIO()
        while piece := self.stream.read(min(_PIECE, limits.content + 1 - read.tell())):
            read.write(piece)
        if read.tell() > limits.content:
            raise LimitError(f"{self.name}: is larger than {limits.content:,} bytes")
        return read.getvalue()


@contextmanager
def open_source(path: str, *, limits: Limits = DEFAULT_LIMITS) -> Iterator[Source]:
    """Open a file, or standard input for ``-``; a zip opens the one file that it holds.

    Raises:
        InputError: the file is missing or can't be read, or it is a zip that does not hold one file.
        LimitError: the zip unpacks to more than the limits allow.
    """
    try:
        with _open_raw(path) as stream:
            start = stream.peek(8)[:8]
            if start.startswith(_ZIP_MAGIC):
                with _open_member(path, stream, limits) as source:
                    yield source
                return
            for magic, kind in _OTHER_MAGIC.items():
                if start.startswith(magic):
                    raise InputError(f"{path}: is compressed with {kind}; give it unpacked or as zip")
            if start.startswith(_BYTE_ORDER_MARK):
                stream.read(len(_BYTE_ORDER_MARK))
            yield Source("standard input" if path == "-" else path, stream, zipped=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror or error})") from error


@contextmanager
def _open_raw(path: str) -> Iterator[io.BufferedReader]:
    if path == "-":
        standard_input = sys.stdin.buffer
        yield standard_input if isinstance(standard_input, io.BufferedReader) else _buffered(standard_input)
        return
    with Path(path).open("rb") as stream:
        yield stream


def _buffered(stream: IO[bytes]) -> io.BufferedReader:
    """Return a stream that was put in the place of standard input as one that can look ahead."""
    return io.BufferedReader(io.BytesIO(stream.read()))


@contextmanager
def _open_member(path: str, stream: io.BufferedReader, limits: Limits) -> Iterator[Source]:
    try:
        with zipfile.ZipFile(stream) as archive:
            member = _only_member(path, archive, limits)
            with archive.open(member) as content:
                reader: io.BufferedReader = io.BufferedReader(_Bounded(content, member.file_size))
                if reader.peek(3)[:3] == _BYTE_ORDER_MARK:
                    reader.read(len(_BYTE_ORDER_MARK))
                yield Source(f"{path}:{member.filename}", reader, zipped=True)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, io.UnsupportedOperation) as error:
        raise InputError(f"{path}: is a damaged or unreadable zip ({error})") from error


def _only_member(path: str, archive: zipfile.ZipFile, limits: Limits) -> zipfile.ZipInfo:
    """Return the one file of a zip, after looking at the names and sizes of everything in it."""
    members = archive.infolist()
    if len(members) > limits.members:
        raise LimitError(f"{path}: holds {len(members)} files, the limit is {limits.members}")
    for member in members:
        _check_member(path, member, limits)
    files = [
        member
        for member in members
        if not member.is_dir()
        and PurePosixPath(member.filename).parts[0] not in _IGNORED_ROOTS
        and not PurePosixPath(member.filename).name.startswith(".")
    ]
    if len(files) != 1:
        names = ", ".join(ascii(member.filename) for member in files[:5]) or "none"
        raise InputError(f"{path}: a zip must hold one file, this one holds {len(files)} ({names})")
    return files[0]


def _check_member(path: str, member: zipfile.ZipInfo, limits: Limits) -> None:
    name = member.filename
    where = f"{path}, member {name!a}"
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        raise InputError(f"{where}: its path leads out of the zip")
    if not name.strip("/"):
        raise InputError(f"{where}: it has no name")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError(f"{where}: is a link, not a file")
    if member.flag_bits & _ENCRYPTED:
        raise InputError(f"{where}: is encrypted")
    if member.file_size > limits.content:
        raise LimitError(f"{where}: unpacks to {member.file_size:,} bytes, the limit is {limits.content:,}")
    if member.file_size > limits.ratio * max(member.compress_size, 1) and member.file_size > limits.line:
        raise LimitError(
            f"{where}: unpacks to {member.file_size // max(member.compress_size, 1)} times its size, "
            f"the limit is {limits.ratio} times"
        )


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where more comes out of a zip than its table of contents promised."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        super().__init__()
        self._stream = stream
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        block = self._stream.read(min(len(buffer), self._left + 1))
        self._left -= len(block)
        if self._left < 0:
            raise zipfile.BadZipFile("a file is larger than the zip says")
        buffer[: len(block)] = block
        return len(block)
