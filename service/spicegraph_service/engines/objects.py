"""Files through pyarrow: objects by path or URL, and scores as Parquet, a row per item, corpus scores as metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import DataError, InputError, needs_extra

if TYPE_CHECKING:
    import pyarrow as pa

    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json


def is_url(location: str) -> bool:
    """Say whether a place is a URL such as ``s3://bucket/folder``, and no path."""
    return "://" in location


def check_object(location: str) -> None:
    """Say now, before the work, that an object can't be written: where there is none yet, an empty one is written."""
    with object_errors(location, "written"):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = filesystem_of(location)
        [info] = filesystem.get_file_info([path])
        if info.type is fs.FileType.NotFound:
            filesystem.open_output_stream(path).close()
    if info.type is fs.FileType.Directory:
        raise InputError(f"{location}: is a folder, expected an object to write; a folder of parts ends in /")


def write_object(location: str, content: bytes) -> None:
    """Write a file or an object whole."""
    with object_stream(location) as stream:
        stream.write(content)


def filesystem_of(location: str) -> tuple[Any, str]:
    """Return pyarrow's file system of a path or URL, and the path there."""
    from pyarrow import ArrowInvalid, fs  # noqa: PLC0415 (an extra)

    try:
        filesystem, path = fs.FileSystem.from_uri(location if is_url(location) else str(Path(location).absolute()))
    except ArrowInvalid:  # a store that pyarrow does not know itself
        import fsspec.core  # type: ignore[import-untyped]  # noqa: PLC0415 (comes with Ray Data)

        opened, path = fsspec.core.url_to_fs(location)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(opened))
    return filesystem, path


@contextmanager
def object_stream(location: str) -> Iterator[Any]:
    """Open a file or an object for writing; it is there once it is whole."""
    with object_errors(location, "written"):
        filesystem, path = filesystem_of(location)
        with filesystem.open_output_stream(path) as stream:
            yield stream


@contextmanager
def object_errors(location: str, done: str = "read") -> Iterator[None]:
    """Raise errors from this block as errors that name the location."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"{location} needs an extra ({error}): pip install 'spicegraph[ray]'") from error
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{location}: can't be {done} ({error})") from error


ID_COLUMN: Final = "image_id"
METADATA: Final = "spicegraph"  # the key of the metadata under which signature and corpus scores stand, as JSON

_COUNTS: Final = frozenset({"tp", "fp", "fn"})  # what a category counts; all other columns are decimals


def parquet_extra() -> AbstractContextManager[None]:
    """Import pyarrow within this: where it is not installed, the error says how to install it."""
    return needs_extra("parquet", "reading and writing Parquet files")


def flat_scores(values: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, Json]]:
    """Yield an item's scores by column; categories are ``SPICE_categories_Color_f``."""
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
    return pa.table({ID_COLUMN: ids, **numbers})


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
