"""METEOR's English data: files of the ``pycocoevalcap`` wheel, read in place, and their index in the user's cache."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer.metrics.meteor.paraphrases import Paraphrases, Progress, build_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spicegraph_parser.spice.index import Lexicon

_FUNCTION_WORDS = "function/english.words"
_PREFIXES = "nonbreaking/english.prefixes"

INSTALL = "METEOR needs packages that are not installed: pip install spicegraph"
"""What to do about every missing part."""


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8").splitlines()


@dataclass(frozen=True)
class Sources:
    """The two files that hold METEOR's English data, ``meteor-1.5.jar`` and ``paraphrase-en.gz``, read on demand."""

    jar: Path
    paraphrases: Path

    def __post_init__(self) -> None:
        for path in (self.jar, self.paraphrases):
            if not path.is_file():
                raise DataError(f"{path} is missing. {INSTALL}")

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change when the content of the files does."""
        # Made from the checksums that the files carry in themselves, since it is asked for at every start: a gzip file
        # ends in the checksum and the length of its content, a zip archive lists the checksum of every member.
        with self._open_jar() as jar:
            members = [f"{name} {jar.getinfo(name).CRC}" for name in (_FUNCTION_WORDS, _PREFIXES)]
        with self.paraphrases.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 8, 0))
            tail = stream.read().hex()
        return hashlib.blake2b("|".join([str(size), tail, *members]).encode(), digest_size=8).hexdigest()

    @cached_property
    def synsets(self) -> dict[str, list[int]]:
        """WordNet's synset numbers for every word, words of several parts joined by underscores."""
        lines = _lines(self._member("synonym/english.synsets"))  # a word, and on the line below it its numbers
        return {word: list(map(int, numbers.split())) for word, numbers in zip(lines[::2], lines[1::2], strict=True)}

    @cached_property
    def function_words(self) -> frozenset[str]:
        """The words that count as function words, in lower case."""
        return frozenset(filter(None, map(str.strip, _lines(self._member(_FUNCTION_WORDS)))))

    @cached_property
    def prefixes(self) -> dict[str, bool]:
        """Abbreviations that keep their dot; true for those that keep it only before a number."""
        known: dict[str, bool] = {}
        for line in _lines(self._member(_PREFIXES)):
            fields = line.split()
            if fields and not line.startswith("#"):
                known[fields[0]] = fields[1:] == ["#NUMERIC_ONLY#"]
        return known

    @contextmanager
    def _open_jar(self) -> Iterator[zipfile.ZipFile]:
        """Open the jar; a file that is not a jar, or lacks a member that is read, is a :class:`DataError`."""
        try:
            with zipfile.ZipFile(self.jar) as jar:
                yield jar
        except (KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.jar} is damaged ({error}). {INSTALL}") from error

    def _member(self, name: str) -> bytes:
        with self._open_jar() as jar:
            return jar.read(name)


def find_sources() -> Sources:
    """Return METEOR's data files in the installed ``pycocoevalcap`` package."""
    # The installed distribution's folder, then what stands first on the path: a folder of that name beside a script
    # often holds a part of the package, without METEOR's data.
    packages: list[Path] = []
    with suppress(PackageNotFoundError):
        packages.append(Path(str(distribution("pycocoevalcap").locate_file("pycocoevalcap"))))
    spec = PathFinder.find_spec("pycocoevalcap")  # not by the finders, as spicegraph_compat.shim may stand in for it
    packages += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    for package in packages:
        meteor = package / "meteor"
        if meteor.is_dir():
            return Sources(meteor / "meteor-1.5.jar", meteor / "data" / "paraphrase-en.gz")
    raise DataError(INSTALL)


_FORMAT = 2
_FILE = "meteor-1.5.npy"
_LABEL_BYTES = 64
_MAX_WAIT = 300.0  # seconds; a build takes some ten


@dataclass(frozen=True, slots=True, eq=False)
class MeteorData:
    """The word lists, synonyms and paraphrases of METEOR 1.5 for English, made by :func:`load_data`."""

    sources: Sources
    cache: Path  # the folder of the index, where another process opens it
    paraphrases: Paraphrases
    lexicon: Lexicon  # gives the synonyms: SPICE's and METEOR's are the same

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return partial(load_data, cache=self.cache, sources=self.sources), ()


def cache_directory() -> Path:
    """Return the folder for files that can be made anew: ``spicegraph`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # XDG's specification says to ignore a relative path.
    return (root if root.is_absolute() else Path.home() / ".cache") / "spicegraph"


def _arrays(paraphrases: Paraphrases) -> list[tuple[str, NDArray[np.generic]]]:
    return [(field.name, getattr(paraphrases, field.name)) for field in fields(paraphrases)]


def _checksum(record: NDArray[np.void]) -> int:
    """Return the CRC-32 of the arrays of a record."""
    return zlib.crc32(record.view(np.uint8)[_LABEL_BYTES + 8 :].data)


def write_index(path: Path, paraphrases: Paraphrases, *, label: str) -> None:
    """Write an index as ``.npy`` with a label of up to 64 characters, replacing ``path`` only when all is written."""
    # The file holds one record: label, checksum of the arrays, arrays.
    arrays = [(name, array.dtype.newbyteorder("<"), array.shape) for name, array in _arrays(paraphrases)]
    record = np.zeros(1, np.dtype([("label", f"S{_LABEL_BYTES}"), ("checksum", "<u8"), *arrays]))
    for name, array in _arrays(paraphrases):
        record[name] = array
    record["label"] = label.encode()
    record["checksum"] = _checksum(record)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            np.lib.format.write_array(stream, record, version=(3, 0), allow_pickle=False)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def open_index(path: Path, *, label: str) -> Paraphrases | None:
    """Return the index of a file, mapped read-only; ``None`` if no undamaged file has this label."""
    try:
        record = np.lib.format.open_memmap(path, mode="r")
        if record["label"][0] != label.encode() or record["checksum"][0] != _checksum(record):
            return None
        return Paraphrases(**{field.name: np.asarray(record[field.name][0]) for field in fields(Paraphrases)})
    except (FileNotFoundError, ValueError, IndexError):  # numpy's errors about damaged headers and missing fields
        return None


def _build(path: Path, label: str, sources: Sources, progress: Progress | None) -> Paraphrases | None:
    """Build the index, unless another process has done so while this one waited for its turn."""
    try:
        import portalocker  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise DataError(INSTALL) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with portalocker.Lock(path.with_suffix(".lock"), timeout=_MAX_WAIT):
            paraphrases = open_index(path, label=label)
            if paraphrases is None:
                built = build_index(sources.paraphrases, progress=progress)
                write_index(path, built, label=label)
                paraphrases = open_index(path, label=label)
    except portalocker.LockException as error:
        raise DataError(
            f"{path.with_suffix('.lock')} could not be locked within {_MAX_WAIT:.0f} seconds: {error}"
        ) from error
    return paraphrases


def load_data(
    *, cache: Path | None = None, sources: Sources | None = None, progress: Progress | None = None
) -> MeteorData:
    """Return METEOR's data; the first call on a machine builds the index (some ten seconds, 50 MB on disk)."""
    # ``sources``: by default those of the installed ``pycocoevalcap``; ``progress`` is called with the share that is
    # built, from 0 to 1. Several processes may call this at once: one builds, the others wait.
    sources = sources or find_sources()
    cache = cache or cache_directory()
    path = cache / _FILE
    label = f"{_FORMAT} {sources.fingerprint}"
    try:
        paraphrases = open_index(path, label=label) or _build(path, label, sources, progress)
    except OSError as error:
        raise DataError(
            f"METEOR's index cannot be kept in {cache}: {error}. Set XDG_CACHE_HOME to another folder"
        ) from error
    if paraphrases is None:
        raise DataError(f"METEOR's index in {cache} was changed or removed right after it had been written")
    return MeteorData(sources, cache, paraphrases, load_lexicon())
