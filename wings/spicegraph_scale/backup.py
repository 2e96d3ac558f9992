"""Backups of a server's state: made while it runs, checked, and put back where there is nothing."""
# A backup is a folder: a database for each part of the state, ``files/`` (what was uploaded) and ``backup.json``, which
# lists them all. Each database is one moment's state, and comes before the files: these are stored before a database
# names them, and never changed, so none that it needs is missing.

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_service.kit import StoreError, make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from spicegraph_service.kit import StatePart

_FORMAT = 1
_LISTING = "backup.json"
_FILES = "files"
_WITHOUT_LOG = "PRAGMA journal_mode = DELETE"  # one file, without a log beside it


class BackupListing(msgspec.Struct, frozen=True):
    """Contents of a backup: databases with size and SHA-256, and names of uploaded files."""

    format: int
    version: str
    created: str
    databases: dict[str, tuple[int, str]]
    files: tuple[str, ...] | None


def make_backup(parts: Sequence[StatePart], folder: Path) -> BackupListing:
    """Copy a server's state into a new folder, which is there whole or not at all. The server may run meanwhile."""
    if folder.exists():
        raise InputError(f"{folder}: exists already; a backup goes into a new folder")
    _check_there(parts)
    with _errors(folder):
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    try:
        with _errors(folder):
            listing = _copied(parts, partial)
            (partial / _LISTING).write_bytes(msgspec.json.format(msgspec.json.encode(listing)) + b"\n")
            (partial / _LISTING).chmod(0o600)
            partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return listing


def _check_there(parts: Sequence[StatePart]) -> None:
    """Refuse an empty backup, or one of missing files."""
    databases, uploads = _databases(parts), _uploads(parts)
    if not databases and uploads is None:
        raise InputError("there is nothing to back up: name a store, a challenge database or a folder of files")
    # Beside its database, a folder of files may be missing as long as the database needs none.
    alone = [uploads.files] if uploads is not None and uploads.files is not None and uploads.database is None else []
    for path in (*databases.values(), *alone):
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")


def _copied(parts: Sequence[StatePart], folder: Path) -> BackupListing:
    """Copy databases, then the files that they need; return the listing."""
    databases, uploads = _databases(parts), _uploads(parts)
    for name, path in databases.items():
        _copy_database(path, folder / name)
    files = None
    if uploads is not None and uploads.files is not None:
        files = _copy_files(uploads.files / "objects", folder / _FILES)
        if uploads.database is not None:
            _check_needed(folder / uploads.name, resolve_name(uploads.needed), files)
    measured = {name: _measured(folder / name) for name in databases}
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return BackupListing(_FORMAT, version("spicegraph"), created, measured, files)


def _databases(parts: Sequence[StatePart]) -> Mapping[str, Path]:
    return {part.name: part.database for part in parts if part.database is not None}


def _uploads(parts: Sequence[StatePart]) -> StatePart | None:
    """Return the part that has uploaded files."""
    return next((part for part in parts if part.files is not None), None)


def restore_backup(folder: Path, parts: Sequence[StatePart]) -> BackupListing:
    """Put a backup where there is nothing yet. It is checked whole before anything is written."""
    listing = check_backup(folder)
    databases, uploads = _databases(parts), _uploads(parts)
    _check_free(listing, folder, parts)
    with _errors(folder):
        if uploads is not None and uploads.files is not None:
            # Files come before the database that names them, as in a running server.
            _copy_files(folder / _FILES, uploads.files / "objects")
        for name, path in databases.items():
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            _copy_database(folder / name, path)
    return listing


def _check_free(listing: BackupListing, folder: Path, parts: Sequence[StatePart]) -> None:
    """Refuse to restore parts missing in the backup, or over existing files."""
    for name, path in _databases(parts).items():
        if name not in listing.databases:
            raise InputError(f"{folder}: holds no {name}")
        for taken in (path, Path(f"{path}-wal")):
            if taken.exists():
                raise InputError(f"{taken}: exists already; move it away first")
    uploads = _uploads(parts)
    if uploads is not None and uploads.files is not None:
        if listing.files is None:
            raise InputError(f"{folder}: does not contain files of challenges")
        if (uploads.files / "objects").exists():
            raise InputError(f"{uploads.files}: has files already; move it away first")


def check_backup(folder: Path) -> BackupListing:
    """Check a backup against its listing, byte for byte; return the listing."""
    try:
        listing = msgspec.json.decode((folder / _LISTING).read_bytes(), type=BackupListing)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{folder}: is not a backup ({_LISTING} can't be read: {error})") from error
    if listing.format > _FORMAT:
        raise InputError(f"{folder}: was made by a newer version of spicegraph ({listing.version})")
    with _errors(folder):
        for name, expected in listing.databases.items():
            if not (folder / name).is_file() or _measured(folder / name) != expected:
                raise StoreError(f"{folder / name}: is not what was backed up")
        for key in listing.files or ():
            path = folder / _FILES / key[:2] / key
            if not path.is_file() or _measured(path)[1] != key:
                raise StoreError(f"{path}: is not what was backed up")
    return listing


def _copy_database(source: Path, target: Path) -> None:
    """Copy one moment's state of an SQLite file that others may write meanwhile."""
    make_private(str(target))
    # All pages in one step: a reader in write-ahead mode, which no writer waits for.
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as opened,
        closing(sqlite3.connect(target)) as copy,
    ):
        opened.backup(copy)
        copy.execute(_WITHOUT_LOG)
        (sound,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    if sound != "ok":
        raise StoreError(f"{source}: is damaged: {sound}")


def _copy_files(source: Path, target: Path) -> tuple[str, ...]:
    """Copy the uploaded files, whose names are the SHA-256 of their content; return the names."""
    target.mkdir(parents=True, mode=0o700)
    names = []
    for path in sorted(source.glob("*/*")):
        copy = target / path.name[:2] / path.name
        copy.parent.mkdir(exist_ok=True, mode=0o700)
        try:
            shutil.copyfile(path, copy)
        except FileNotFoundError:  # the server has deleted it meanwhile: nothing needed it
            copy.unlink(missing_ok=True)
            continue
        copy.chmod(0o600)
        if _measured(copy)[1] != path.name:
            raise StoreError(f"{path}: is damaged: its content is not what its name says")
        names.append(path.name)
    return tuple(names)


def _check_needed(database: Path, needed: Callable[[Path], Collection[str]], files: tuple[str, ...]) -> None:
    missing = sorted(set(needed(database)) - set(files))
    with closing(sqlite3.connect(database)) as copy:
        copy.execute(_WITHOUT_LOG)
    if missing:
        raise StoreError(f"{len(missing)} uploaded files are missing, the first is {missing[0]}")


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as stream:
        return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{folder}: {error}") from error
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: {error.strerror or error}") from error
