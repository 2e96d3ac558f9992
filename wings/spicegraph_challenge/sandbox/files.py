"""The files of the evaluation server: where they are kept, and the ones it makes from what was sent.

Files are stored by their content, durable before their keys are known, never changed. Those that the server makes are
MessagePack values, each behind its length; references stand in pieces, of which scoring holds one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from spicegraph_service.kit import StoreError, StoreFullError, frame, read_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

NO_ROOM = {28, 122}  # ENOSPC, EDQUOT
_ABANDONED_S = 24 * 3600.0
_BLOCK = 1 << 20


class Incoming:
    """A file that is being written; it has no name yet."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._digest = hashlib.sha256()
        self._stream = stream
        self.path = path
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with _errors(self.path):
            self._stream.write(data)
        self._digest.update(data)
        self.size += len(data)

    def finish(self) -> str:
        """Bring the bytes to the disk; return the key that the file will have."""
        with _errors(self.path):
            self._stream.flush()
            os.fsync(self._stream.fileno())
        return self._digest.hexdigest()


class FileStore:
    """A folder of files that are called by the SHA-256 of their content; several servers may share it."""

    def __init__(self, folder: Path) -> None:
        self._objects = folder / "objects"
        self._incoming = folder / "incoming"
        with _errors(folder):
            for part in (folder, self._objects, self._incoming):  # the mode is for the last of its folders alone
                part.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, key: str) -> Path:
        """Return where a file is."""
        return self._objects / key[:2] / key

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """Give a file to write; it is deleted at the end unless it was kept."""
        path = self._incoming / secrets.token_hex(12)
        with _errors(path), path.open("xb") as stream:
            path.chmod(0o600)
            try:
                yield Incoming(path, stream)
            finally:
                path.unlink(missing_ok=True)

    def keep(self, incoming: Incoming, key: str) -> None:
        """Give a finished file its name, durably. Doing it twice does no harm."""
        target = self.path(key)
        with _errors(target):
            target.parent.mkdir(exist_ok=True, mode=0o700)
            incoming.path.replace(target)
            for folder in (target.parent, self._objects):  # their entries, too, must reach the disk
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def discard(self, key: str) -> None:
        """Delete a file."""
        with _errors(self.path(key)):
            self.path(key).unlink(missing_ok=True)

    def adopt(self, path: Path) -> str:
        """Store a copy of a file; return its key."""
        with self.incoming() as incoming, path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                incoming.write(block)
            key = incoming.finish()
            self.keep(incoming, key)
        return key

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Give a private folder for temporary files; it is deleted at the end."""
        with (
            _errors(self._incoming),
            tempfile.TemporaryDirectory(dir=self._incoming, ignore_cleanup_errors=True) as folder,
        ):
            yield Path(folder)

    def sweep(self, used: Collection[str], *, age_s: float = _ABANDONED_S) -> int:
        """Delete old files that nothing refers to, such as a crash leaves; return how many there were."""
        before = time.time() - age_s
        gone = 0
        with _errors(self._objects):
            for path in (*self._objects.glob("*/*"), *self._incoming.iterdir()):
                if path.name not in used and path.stat().st_mtime < before:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                    gone += 1
        return gone


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise StoreFullError(f"{path}: no room left on the disk") from error
        raise StoreError(f"{path}: {error.strerror or error}") from error


_IMAGES_PER_FRAME = 64


class Image(NamedTuple):
    """An image of a reference set: its id, file name and domain where these are known, and its number of references."""

    id: int | str
    file_name: str
    references: int
    domain: str = ""


class FaultRow(NamedTuple):
    """A fault of a submitted file; for the fields see the contract's ``SubmissionFault``."""

    file: str
    item: str
    field: str
    reason: str


_encoder = msgspec.msgpack.Encoder()
_images = msgspec.msgpack.Decoder(list[Image])
_image_references = msgspec.msgpack.Decoder(list[tuple[int | str, tuple[str, ...]]])
_results = msgspec.msgpack.Decoder(dict[int | str, str])
_faults = msgspec.msgpack.Decoder(list[FaultRow])


def reference_frames(
    captions: Mapping[int | str, tuple[str, ...]], file_names: Mapping[int | str, str], domains: Mapping[int | str, str]
) -> Iterator[bytes]:
    """Yield the file of a reference set: all its images, then those with references, some at a time."""
    images = [Image(key, file_names.get(key, ""), len(texts), domains.get(key, "")) for key, texts in captions.items()]
    yield frame(_encoder.encode(images))
    rows = [(key, texts) for key, texts in captions.items() if texts]
    for start in range(0, len(rows), _IMAGES_PER_FRAME):
        yield frame(_encoder.encode(rows[start : start + _IMAGES_PER_FRAME]))


def read_images(path: Path) -> list[Image]:
    """Return the images of a reference set."""
    return _images.decode(_first_frame(path))


def image_info(paths: Iterable[Path]) -> bytes:
    """Return the images of reference sets, each once, as COCO's image info: JSON without annotations."""
    images: dict[int | str, Image] = {}
    for path in paths:
        for image in read_images(path):
            known = images.setdefault(image.id, image)
            if image.file_name and not known.file_name:
                images[image.id] = image
    rows = [
        {"id": image.id, **({"file_name": image.file_name} if image.file_name else {})} for image in images.values()
    ]
    return msgspec.json.encode({"images": rows})


def read_references(path: Path) -> Iterator[tuple[int | str, tuple[str, ...]]]:
    """Yield id and references of every image of a reference set that has some."""
    with path.open("rb") as stream:
        read_frame(stream)
        while (data := read_frame(stream)) is not None:
            yield from _image_references.decode(data)


def packed(value: object) -> bytes:
    """Return a file of a submission's faults, or of its captions for one split, by image."""
    return frame(_encoder.encode(value))


def read_results(path: Path) -> dict[int | str, str]:
    """Return the captions of a submission for one split, by image."""
    return _results.decode(_first_frame(path))


def read_faults(path: Path) -> list[FaultRow]:
    """Return the faults of a submission."""
    return _faults.decode(_first_frame(path))


def _first_frame(path: Path) -> bytes:
    with path.open("rb") as stream:
        data = read_frame(stream)
    if data is None:
        raise ValueError(f"{path} is cut off")
    return data
