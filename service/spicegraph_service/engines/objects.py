"""Files through pyarrow: objects by path or URL, and scores as Parquet.

A file of scores has one row per item, in the columns of the CSV; its metadata holds the corpus scores.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from spicegraph_parser.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json, Summary

_COPIED: Final = 8 << 20
"""Bytes that are copied at a time."""


def is_url(location: str) -> bool:
    """Say whether a place is a URL such as ``s3://bucket/folder``, and no path.

    >>> is_url("s3://bucket/captions"), is_url("captions")
    (True, False)
    """
    return "://" in location


def files_in(location: str) -> tuple[Any, list[str]]:
    """Return pyarrow's file system of a path or URL, and the files there in order; hidden ones are left out."""
    with _reading(location):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = _filesystem(location)
        [entry] = filesystem.get_file_info([path])
        if entry.type is not fs.FileType.Directory:
            paths = [path] if entry.is_file else []
        else:
            inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            paths = sorted(info.path for info in inside if info.is_file and not info.base_name.startswith((".", "_")))
    if not paths:
        raise InputError(f"{location}: there is no such file, or no file in it")
    return filesystem, paths


def size_of(filesystem: Any, paths: Sequence[str]) -> int:
    """Return the bytes of files together."""
    return sum(info.size or 0 for info in filesystem.get_file_info(list(paths)))


def check_object(location: str) -> None:
    """Say now, before the work, that an object can't be written: where there is none yet, an empty one is written."""
    with _reading(location, "written"):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = _filesystem(location)
        [info] = filesystem.get_file_info([path])
        if info.type is fs.FileType.NotFound:
            filesystem.open_output_stream(path).close()
    if info.type is fs.FileType.Directory:
        raise InputError(f"{location}: is a folder, expected an object to write; a folder of parts ends in /")


def write_object(location: str, content: bytes) -> None:
    """Write a file or an object whole."""
    with _writing(location) as stream:
        stream.write(content)


def copy_object(source: Path, location: str) -> None:
    """Write a file of this machine to an object."""
    with _writing(location) as stream, source.open("rb") as file:
        shutil.copyfileobj(file, stream, _COPIED)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that files are written to, from any machine; ``place`` is what it was called."""

    place: str
    filesystem: Any
    path: str

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole; one of that name is replaced."""
        with (
            _reading(f"{self.place}{name}", "written"),
            self.filesystem.open_output_stream(f"{self.path}/{name}") as stream,
        ):
            stream.write(content)


def new_folder(location: str) -> Folder:
    """Make a folder (a path or URL that ends in ``/``) where there is none, or take an empty one."""
    with _reading(location, "made a folder"):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = _filesystem(location)
        path = path.rstrip("/")
        [entry] = filesystem.get_file_info([path])
        if entry.is_file:
            raise InputError(f"{location}: is a file, expected a folder")
        inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        if any(info.is_file for info in inside):
            raise InputError(f"{location}: there are files in it already; name an empty or a new folder")
        if entry.type is fs.FileType.NotFound:
            filesystem.create_dir(path, recursive=True)
    return Folder(location, filesystem, path)


def _filesystem(location: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs  # noqa: PLC0415 (an extra)

    try:
        filesystem, path = fs.FileSystem.from_uri(location if is_url(location) else str(Path(location).absolute()))
    except ArrowInvalid:  # a store that pyarrow does not know itself
        import fsspec.core  # type: ignore[import-untyped]  # noqa: PLC0415 (comes with Ray Data)

        opened, path = fsspec.core.url_to_fs(location)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(opened))
    return filesystem, path


@contextmanager
def _writing(location: str) -> Iterator[Any]:
    with _reading(location, "written"):
        filesystem, path = _filesystem(location)
        with filesystem.open_output_stream(path) as stream:
            yield stream


@contextmanager
def _reading(location: str, done: str = "read") -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"{location} needs an extra ({error}): pip install 'spicegraph[ray]'") from error
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{location}: can't be {done} ({error})") from error


ID: Final = "image_id"
METADATA: Final = "spicegraph"
"""The key of the metadata under which signature and corpus scores stand, as JSON."""

_COUNTS: Final = frozenset({"tp", "fp", "fn"})
"""What a category counts; all other columns are decimals."""


@contextmanager
def parquet_extra() -> Iterator[None]:
    """Import pyarrow within this: where it is not installed, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError("Parquet files need an extra: pip install 'spicegraph[parquet]'") from error


def flat_scores(values: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, Json]]:
    """Yield an item's scores by column; categories are ``SPICE_categories_Color_f``.

    Example:
        >>> dict(flat_scores({"SPICE": 0.5, "SPICE_categories": {"All": {"f": 0.5}}}))
        {'SPICE': 0.5, 'SPICE_categories_All_f': 0.5}
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat_scores(value, f"{before}{key}_")
        else:
            yield f"{before}{key}", value


def score_table(items: Sequence[Item], scores: Sequence[Mapping[str, Json]], *, text_ids: bool) -> pa.Table:
    """Return a row for each item, of at least one: its id, as text or whole number, and its scores."""
    with parquet_extra():
        import pyarrow as pa  # noqa: PLC0415 (an extra)
    columns: dict[str, list[Json]] = {}
    for of_item in scores:
        for key, value in flat_scores(of_item):
            columns.setdefault(key, []).append(value)
    ids = pa.array([str(item.id) for item in items]) if text_ids else pa.array([item.id for item in items], pa.int64())
    numbers = {
        key: pa.array(values, pa.int64() if key.rpartition("_")[2] in _COUNTS else pa.float64())
        for key, values in columns.items()
    }
    return pa.table({ID: ids, **numbers})


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


class ScoreFile:
    """A Parquet file of scores on this machine, written a table at a time, and the corpus scores at the end."""

    def __init__(self, path: Path) -> None:
        with parquet_extra():
            import pyarrow.parquet  # noqa: F401, PLC0415
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, table: pa.Table) -> None:
        """Write rows; all tables have the same columns."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)

        if self._writer is None:  # without the schema as Arrow has it, readers find our metadata with the schema
            self._writer = pq.ParquetWriter(self._path, table.schema, store_schema=False)
        self._writer.write_table(table)

    def about(self, summary: Summary) -> None:
        """Write signature and corpus scores; at least one table was written before."""
        self._writer.add_key_value_metadata({METADATA: msgspec.json.encode(summary.to_dict())})
