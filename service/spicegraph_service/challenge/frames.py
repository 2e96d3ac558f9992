"""The files that the evaluation server makes from what was sent: MessagePack values, each behind its length.

References stand in pieces, so that scoring never holds more than one of them.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_service.server.processes import frame, read_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_IMAGES_A_FRAME = 64


class Image(NamedTuple):
    """An image of a reference set: its id, its file name where that is known, and how many references it has."""

    id: int | str
    file_name: str
    references: int


class Result(NamedTuple):
    """A submitted caption."""

    id: int | str
    caption: str


class FaultRow(NamedTuple):
    """A fault of a submitted file; the contract's ``SubmissionFault`` says what each field means."""

    file: str
    item: str
    field: str
    reason: str


class _Referenced(NamedTuple):
    id: int | str
    references: tuple[str, ...]


_encoder = msgspec.msgpack.Encoder()
_images = msgspec.msgpack.Decoder(list[Image])
_referenced = msgspec.msgpack.Decoder(list[_Referenced])
_results = msgspec.msgpack.Decoder(list[Result])
_faults = msgspec.msgpack.Decoder(list[FaultRow])


def reference_frames(
    captions: Mapping[int | str, tuple[str, ...]], file_names: Mapping[int | str, str]
) -> Iterator[bytes]:
    """Yield the file of a reference set: all its images, then those with references, some at a time."""
    images = [Image(key, file_names.get(key, ""), len(texts)) for key, texts in captions.items()]
    yield frame(_encoder.encode(images))
    rows = [_Referenced(key, texts) for key, texts in captions.items() if texts]
    for start in range(0, len(rows), _IMAGES_A_FRAME):
        yield frame(_encoder.encode(rows[start : start + _IMAGES_A_FRAME]))


def read_images(path: Path) -> list[Image]:
    """Return the images of a reference set."""
    with path.open("rb") as stream:
        return _images.decode(_next(stream))


def read_references(path: Path) -> Iterator[tuple[int | str, tuple[str, ...]]]:
    """Yield id and references of every image of a reference set that has some."""
    with path.open("rb") as stream:
        read_frame(stream)
        while (data := read_frame(stream)) is not None:
            yield from _referenced.decode(data)


def result_frames(results: Sequence[Result]) -> bytes:
    """Return the file of a submission's results for one split."""
    return frame(_encoder.encode(results))


def read_results(path: Path) -> dict[int | str, str]:
    """Return the captions of a submission for one split, by image."""
    with path.open("rb") as stream:
        return dict(_results.decode(_next(stream)))


def fault_frames(faults: Iterable[FaultRow]) -> bytes:
    """Return the file of a submission's faults."""
    return frame(_encoder.encode(list(faults)))


def read_faults(path: Path) -> list[FaultRow]:
    """Return the faults of a submission."""
    with path.open("rb") as stream:
        return _faults.decode(_next(stream))


def _next(stream: IO[bytes]) -> bytes:
    data = read_frame(stream)
    if data is None:
        raise ValueError(f"{stream.name} is cut off")
    return data
