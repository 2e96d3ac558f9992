"""Where METEOR's data comes from: two files of the ``pycocoevalcap`` wheel, read in place.

Nothing of that package is imported and its jar is never run: it is opened as the zip archive that it is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["INSTALL", "Sources", "find_sources"]

_SYNSETS = "synonym/english.synsets"
_FUNCTION_WORDS = "function/english.words"
_PREFIXES = "nonbreaking/english.prefixes"

INSTALL = "METEOR needs packages that are not installed by default: pip install 'spicegraph[meteor]'"
"""What to do about every missing part."""


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8").splitlines()


def _pairs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the word of every odd line with the fields of the line below it."""
    for word, fields in zip(lines[::2], lines[1::2], strict=True):
        yield word, fields.split()


@dataclass(frozen=True)
class Sources:
    """The two files that hold METEOR's English data: ``meteor-1.5.jar`` and ``paraphrase-en.gz``.

    The properties read the files when they are first asked for.

    Raises:
        DataError: a file is missing (on construction) or damaged (on reading).
    """

    jar: Path
    paraphrases: Path

    def __post_init__(self) -> None:
        for path in (self.jar, self.paraphrases):
            if not path.is_file():
                msg = f"{path} is missing. {INSTALL}"
                raise DataError(msg)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change when the content of the files does.

        Made from the checksums that the files carry in themselves, since it is asked for at every start: a
        gzip file ends in the checksum and the length of its content, a zip archive lists the checksum of
        every member.
        """
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
        return {word: list(map(int, numbers)) for word, numbers in _pairs(_lines(self._member(_SYNSETS)))}

    @cached_property
    def function_words(self) -> frozenset[str]:
        """The words that count as function words, in lower case."""
        return frozenset(filter(None, map(str.strip, _lines(self._member(_FUNCTION_WORDS)))))

    @cached_property
    def prefixes(self) -> dict[str, bool]:
        """Abbreviations that keep their dot; true for those that keep it only before a number."""
        found: dict[str, bool] = {}
        for line in _lines(self._member(_PREFIXES)):
            fields = line.split()
            if fields and not line.startswith("#"):
                found[fields[0]] = fields[1:] == ["#NUMERIC_ONLY#"]
        return found

    @contextmanager
    def _open_jar(self) -> Iterator[zipfile.ZipFile]:
        """Open the jar, and say so when it is none or lacks what is looked for in it."""
        try:
            with zipfile.ZipFile(self.jar) as jar:
                yield jar
        except (KeyError, zipfile.BadZipFile) as error:
            msg = f"{self.jar} is damaged ({error}). {INSTALL}"
            raise DataError(msg) from error

    def _member(self, name: str) -> bytes:
        with self._open_jar() as jar:
            return jar.read(name)


def find_sources() -> Sources:
    """Return METEOR's data files in the installed ``pycocoevalcap`` package.

    Raises:
        DataError: the package or one of the two files is not there; the message says what to install.
    """
    package = importlib.util.find_spec("pycocoevalcap")
    for folder in (package.submodule_search_locations or ()) if package else ():
        meteor = Path(folder) / "meteor"
        if meteor.is_dir():
            return Sources(meteor / "meteor-1.5.jar", meteor / "data" / "paraphrase-en.gz")
    raise DataError(INSTALL)
