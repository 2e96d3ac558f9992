"""Files of a folder or an object store, by path or URL, through pyarrow."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["files_in", "is_url", "write_object"]


def is_url(place: str) -> bool:
    """Say whether a place is a URL such as ``s3://bucket/folder``, and no path.

    >>> is_url("s3://bucket/captions"), is_url("captions")
    (True, False)
    """
    return "://" in place


def files_in(place: str) -> tuple[Any, list[str]]:
    """Return pyarrow's file system of a path or URL, and the files there in order; hidden ones are left out.

    Raises:
        InputError: there is none, or the place can't be read.
        DataError: pyarrow is not installed.
    """
    with _reading(place):
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        filesystem, path = _filesystem(place)
        [found] = filesystem.get_file_info([path])
        if found.type is not fs.FileType.Directory:
            paths = [path] if found.is_file else []
        else:
            inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            paths = sorted(info.path for info in inside if info.is_file and not info.base_name.startswith((".", "_")))
    if not paths:
        raise InputError(f"{place}: there is no such file, or no file in it")
    return filesystem, paths


def write_object(place: str, content: bytes) -> None:
    """Write a file or an object whole.

    Raises:
        InputError: it can't be written.
        DataError: pyarrow is not installed.
    """
    with _reading(place, "written"):
        filesystem, path = _filesystem(place)
        with filesystem.open_output_stream(path) as stream:
            stream.write(content)


def _filesystem(place: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs  # noqa: PLC0415 (an extra)

    try:
        filesystem, path = fs.FileSystem.from_uri(place if is_url(place) else str(Path(place).absolute()))
    except ArrowInvalid:  # a store that pyarrow does not know itself
        import fsspec.core  # type: ignore[import-untyped]  # noqa: PLC0415 (comes with Ray Data)

        opened, path = fsspec.core.url_to_fs(place)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(opened))
    return filesystem, path


@contextmanager
def _reading(place: str, done: str = "read") -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"{place} needs an extra ({error}): pip install 'spicegraph[ray]'") from error
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{place}: can't be {done} ({error})") from error
