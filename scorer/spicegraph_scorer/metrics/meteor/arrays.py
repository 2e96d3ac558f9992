"""One file of named arrays that opens in a moment: a small header, then the arrays as they lie in memory.

numpy's own container of several arrays (npz) cannot be mapped into memory; this one can, it knows its own
checksum, and it is put in place by one rename, so that a reader sees a whole file or none.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Arrays", "read_arrays", "write_arrays"]

Arrays = Mapping[str, NDArray[np.generic]]

_MAGIC = b"spgarr1\n"
_NUMBER = 8  # bytes of a number in the file
_START = len(_MAGIC) + _NUMBER  # what the checksum in front covers begins here
_ALIGNMENT = 64


def _parts(arrays: Arrays, label: str) -> Iterator[bytes]:
    """Yield the file from the length of its header on, each part filled up to the alignment."""
    sections = []
    offset = 0
    for name, array in arrays.items():
        sections.append([name, array.dtype.str, array.size, offset])
        offset += array.nbytes + _padding(array.nbytes)
    header = json.dumps({"label": label, "sections": sections}).encode()
    yield len(header).to_bytes(_NUMBER, "little")
    yield header + bytes(_padding(_START + _NUMBER + len(header)))
    for array in arrays.values():
        yield array.tobytes() + bytes(_padding(array.nbytes))


def _padding(size: int) -> int:
    return -size % _ALIGNMENT


def _write(stream: IO[bytes], arrays: Arrays, label: str) -> None:
    stream.write(bytes(_START))
    checksum = 0
    for part in _parts(arrays, label):
        stream.write(part)
        checksum = zlib.crc32(part, checksum)
    stream.seek(0)
    stream.write(_MAGIC + checksum.to_bytes(_NUMBER, "little"))
    stream.flush()
    os.fsync(stream.fileno())


def write_arrays(path: Path, arrays: Arrays, *, label: str) -> None:
    """Write one-dimensional arrays to ``path``, replacing what is there only once all is written.

    ``label`` says what the arrays were made from; :func:`read_arrays` asks for it again.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            _write(stream, arrays, label)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_arrays(path: Path, *, label: str) -> dict[str, NDArray[np.generic]] | None:
    """Return the arrays of a file, mapped read-only, or ``None`` where no whole file has this label.

    A file that is missing, cut short, altered or made from something else is nothing to report: its maker
    makes it anew.
    """
    try:
        with path.open("rb") as stream:
            content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except (FileNotFoundError, ValueError):  # mmap refuses an empty file with ValueError
        return None
    checksum = zlib.crc32(content[_START:])
    if content[:_START] != _MAGIC + checksum.to_bytes(_NUMBER, "little"):
        return None
    start = _START + _NUMBER
    end = start + int.from_bytes(content[_START:start], "little")
    header = json.loads(bytes(content[start:end]))
    if header["label"] != label:
        return None
    body = content[end + _padding(end) :]
    return {
        name: np.frombuffer(body, dtype=np.dtype(kind), count=size, offset=offset)
        for name, kind, size, offset in header["sections"]
    }
