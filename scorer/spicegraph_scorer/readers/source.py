"""Bytes from a file, a stream, a zip, gzip or zstandard, never more than a limit allows."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import zipfile
import zlib
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.errors import InputError, LimitError, needs_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ZIP_MAGIC = b"PK"
_OTHER_MAGIC = {b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_TABLES = ("*.arrow", "*.parquet")  # what the folder of a data set has
_EXCEL = "xl/workbook.xml"
_INSPECT, _SAMPLES = "header.json", "samples/"  # what a log of Inspect has
_ON_THE_WAY = frozenset({"input", "messages", "events", "attachments", "store"})
_ENCRYPTED = 1
_IGNORED_ROOTS = frozenset({"__MACOSX"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_WIDE = b"\0\0\0\0"  # Every second byte of Latin letters in UTF-16.
_PIECE = 1 << 20
_ZSTD_PIECE = 1 << 12  # Packed bytes at a time, which unpack to 128 MB at most.


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much is read of one input: bytes in all, bytes of a line, members of a zip and its compression."""

    content: int = 1 << 30
    line: int = 10_000_000
    members: int = 100
    ratio: int = 200


DEFAULT_LIMITS = ReadLimits()


class Source(NamedTuple):
    """An open input: its name in messages, its byte stream, and its compression, if any."""

    name: str
    stream: io.BufferedReader
    packing: str = ""

    def content(self, limits: ReadLimits) -> bytes:
        """Read everything that is left, piece by piece: to ask for as much as the limit would reserve all of it."""
        read = io.BytesIO()
        while piece := self.stream.read(min(_PIECE, limits.content + 1 - read.tell())):
            read.write(piece)
        if read.tell() > limits.content:
            raise LimitError(f"{self.name}: is larger than {limits.content:,} bytes")
        return read.getvalue()


@contextmanager
def open_source(path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[Source]:
    """Open a file, or standard input for ``-``; gzip and zstandard are unpacked, a zip opens the one file in it."""
    name = "standard input" if path == "-" else path
    try:
        if path != "-" and Path(path).is_dir():
            if not any(next(Path(path).rglob(pattern), None) for pattern in _TABLES):
                raise InputError(f"{path}: can't be read (it is a folder, and not one of a Hugging Face data set)")
            yield Source(path, io.BufferedReader(io.BytesIO()), "folder")
            return
        if path == "-":
            raw = sys.stdin.buffer  # what was put in the place of standard input may not be able to look ahead
            given = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(io.BytesIO(raw.read()))
        with nullcontext(given) if path == "-" else Path(path).open("rb") as stream:
            start = stream.peek(8)[:8]
            if start.startswith(_ZIP_MAGIC):
                with _open_member(path, stream, limits) as source:
                    yield source
                return
            for magic, kind in _OTHER_MAGIC.items():
                if start.startswith(magic):
                    raise InputError(
                        f"{path}: is compressed with {kind}; give it unpacked, or as zip, gzip or zstandard"
                    )
            for magic, (packing, unpack) in _UNPACK.items():
                if start.startswith(magic):
                    try:
                        reader: io.BufferedReader = io.BufferedReader(_Unpacked(name, unpack, stream, limits))
                        yield Source(name, _text(name, reader), packing)
                    except (gzip.BadGzipFile, zlib.error, EOFError, _UnpackError) as error:
                        raise InputError(f"{name}: is a damaged {packing} file ({error})") from error
                    return
            yield Source(name, _text(name, stream))
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror or error})") from error


def _text(name: str, stream: io.BufferedReader) -> io.BufferedReader:
    """Return a stream after its byte order mark; UTF-16 has one of its own, and is refused."""
    start = stream.peek(len(_WIDE))[: len(_WIDE)]
    if start.startswith(_UTF_16) or (start[1::2] == _WIDE[1::2]) != (start[::2] == _WIDE[::2]):
        raise InputError(f"{name}: is UTF-16; save it as UTF-8")
    if start.startswith(_BYTE_ORDER_MARK):
        stream.read(len(_BYTE_ORDER_MARK))
    return stream


class _UnpackError(Exception):
    """The compressed data is damaged."""


def _gunzip(stream: _Counted) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=stream) as file:
        while piece := file.read1(_PIECE):
            yield piece


def _unzstd(stream: _Counted) -> Iterator[bytes]:
    with needs_extra("zstd", "reading zstandard files (.zst)"):
        import zstandard  # noqa: PLC0415 (an extra)
    frame = zstandard.ZstdDecompressor().decompressobj()
    is_whole = False
    waiting = b""
    try:
        while waiting or (waiting := stream.read(_ZSTD_PIECE)):
            if is_whole:  # another frame follows
                frame = zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(waiting)
            is_whole = frame.eof
            waiting = frame.unused_data if is_whole else b""
    except zstandard.ZstdError as error:
        raise _UnpackError(str(error)) from error
    if not is_whole:
        raise _UnpackError("it ends too early")


_UNPACK: Mapping[bytes, tuple[str, Callable[[_Counted], Iterator[bytes]]]] = {
    b"\x1f\x8b": ("gzip", _gunzip),
    b"(\xb5/\xfd": ("zstandard", _unzstd),
}


@contextmanager
def _open_member(path: str, stream: io.BufferedReader, limits: ReadLimits) -> Iterator[Source]:
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if _EXCEL in names:
                stream.seek(0)
                yield Source(path, stream, "xlsx")
                return
            if _INSPECT in names and any(name.startswith(_SAMPLES) for name in names):
                samples = io.BytesIO(b"\n".join(_inspect_samples(path, archive, limits)))
                yield Source(path, io.BufferedReader(samples), "zip")
                return
            member = _only_member(path, archive, limits)
            with archive.open(member) as content:
                reader: io.BufferedReader = io.BufferedReader(_Bounded(content, member.file_size))
                name = f"{path}:{member.filename}"
                yield Source(name, _text(name, reader), "zip")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, io.UnsupportedOperation) as error:
        raise InputError(f"{path}: is a damaged or unreadable zip ({error})") from error


def _only_member(path: str, archive: zipfile.ZipFile, limits: ReadLimits) -> zipfile.ZipInfo:
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


def _check_member(path: str, member: zipfile.ZipInfo, limits: ReadLimits) -> None:
    name, size = member.filename, member.file_size
    where = f"{path}, member {name!a}"
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        raise InputError(f"{where}: its path leads out of the zip")
    if not name.strip("/"):
        raise InputError(f"{where}: it has no name")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError(f"{where}: is a link, not a file")
    if member.flag_bits & _ENCRYPTED:
        raise InputError(f"{where}: is encrypted")
    if size > limits.content:
        raise LimitError(f"{where}: unpacks to {size:,} bytes, the limit is {limits.content:,}")
    packed = max(member.compress_size, 1)
    if size > limits.ratio * packed and size > limits.line:
        raise LimitError(f"{where}: unpacks to {size // packed} times its size, the limit is {limits.ratio} times")


def _inspect_samples(path: str, archive: zipfile.ZipFile, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the samples of an Inspect log, one per line, without inputs and transcripts."""
    left = limits.content
    for member in archive.infolist():
        if not (member.filename.startswith(_SAMPLES) and member.filename.endswith(".json")):
            continue
        _check_member(path, member, limits)
        left -= member.file_size
        if left < 0:
            raise LimitError(f"{path}: unpacks to more than {limits.content:,} bytes")
        with archive.open(member) as content:
            sample = io.BufferedReader(_Bounded(content, member.file_size)).read()
        try:
            fields = msgspec.json.decode(sample, type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}:{member.filename}: is not a sample of Inspect ({error})") from error
        kept = {name: value for name, value in fields.items() if name not in _ON_THE_WAY}
        yield msgspec.json.format(msgspec.json.encode(kept), indent=-1)


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


class _Counted(io.RawIOBase):
    """A stream that counts the bytes that are read of it."""

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__()
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        block = self._stream.read1(len(buffer))
        self.count += len(block)
        buffer[: len(block)] = block
        return len(block)


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a stream, which end with an error where they are more than the limits allow."""

    def __init__(
        self, name: str, unpack: Callable[[_Counted], Iterator[bytes]], stream: io.BufferedReader, limits: ReadLimits
    ) -> None:
        super().__init__()
        self._name = name
        self._packed = _Counted(stream)
        self._pieces = unpack(self._packed)
        self._piece = memoryview(b"")
        self._limits = limits
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._count += len(piece)
            limits = self._limits
            if self._count > limits.content:
                raise LimitError(f"{self._name}: unpacks to more than {limits.content:,} bytes")
            if self._count > limits.ratio * max(self._packed.count, 1) and self._count > limits.line:
                raise LimitError(f"{self._name}: unpacks to more than {limits.ratio} times its size")
            self._piece = memoryview(piece)
        part = self._piece[: len(buffer)]
        buffer[: len(part)] = part
        self._piece = self._piece[len(part) :]
        return len(part)
