"""Files of a cluster through pyarrow: what is read, by path or URL, and the files of scores that come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_service.kit import METADATA, filesystem_of, object_errors, parquet_extra

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from spicegraph_scorer.core.results import Summary


def files_in(location: str) -> tuple[Any, list[str]]:
    """Return pyarrow's file system of a path or URL, and the files there in order; hidden ones are left out."""
    with object_errors(location):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = filesystem_of(location)
        [entry] = filesystem.get_file_info([path])
        if entry.type is not fs.FileType.Directory:
            paths = [path] if entry.is_file else []
        else:
            inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            paths = sorted(info.path for info in inside if info.is_file and not info.base_name.startswith((".", "_")))
    if not paths:
        raise InputError(f"{location}: there is no such file, or no file in it")
    return filesystem, paths


@dataclass(frozen=True, slots=True)
class Folder:
    """Output folder that any machine can write to; ``place`` is its name as given."""

    place: str
    filesystem: Any
    path: str

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole; one of that name is replaced."""
        with (
            object_errors(f"{self.place}{name}", "written"),
            self.filesystem.open_output_stream(f"{self.path}/{name}") as stream,
        ):
            stream.write(content)


def new_folder(location: str) -> Folder:
    """Make a folder (a path or URL that ends in ``/``) where there is none, or take an empty one."""
    with object_errors(location, "made a folder"):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = filesystem_of(location)
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
