"""Which captions are held out: decided by a hash of the text, so that it is the same in every run.

No held-out caption is trained on in any form: not in lower case, without punctuation, cut off, with a prompt in front,
inside a longer text or with words replaced.

Tests that are kept elsewhere are known here by hashes of their texts alone (:class:`Hashes`): every step that reads
texts to train on leaves out what they cover.
"""

import argparse
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from styles import plain, toolkit

FEWEST: Final = 4  # words: what is shorter is common to many captions
SHARES: Final[Mapping[str, int]] = {
    "audiocaps": 10,
    "vg": 12,
    "conceptual": 40,
    "machine": 60,
    "coco": 6,
    "coco_lower": 10,
    "coco_cut": 20,
    "coco_bare": 50,
    "narratives": 200,
    "long_human": 60,
    "long_mllm": 150,
    "vocabulary": 10,
    "made": 20,
}
"""Held-out captions in 1,000, by the name of the file of parses; of other files none is held out."""


def kind_of(path: Path) -> str:
    """Return the name of a file of parses without its endings."""
    return path.name.split(".", 1)[0]


def is_held_out(text: str, kind: str) -> bool:
    """Whether a caption of a kind, case and end punctuation aside, is held out."""
    return zlib.crc32(plain(text).encode()) % 1000 < SHARES.get(kind, 0)


class Held:
    """The held-out texts, in any form: what holds one, and what is the beginning of one.

    Case and punctuation do not count. A text of fewer than ``FEWEST`` words is found only where it is the whole text.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole = {toolkit(text) for text in texts}
        self._by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        self._beginnings: set[str] = set()
        for words in (tuple(text.split()) for text in self._whole):
            if len(words) >= FEWEST:
                self._by_start.setdefault(words[:FEWEST], set()).add(words)
                self._beginnings.update(" ".join(words[:end]) for end in range(FEWEST, len(words)))

    def covers(self, text: str) -> bool:
        """Whether a text holds a held-out caption, or is part of one."""
        form = toolkit(text)
        words = tuple(form.split())
        return (
            form in self._whole
            or form in self._beginnings
            or any(
                words[start : start + len(held)] == held
                for start in range(len(words) - FEWEST + 1)
                for held in self._by_start.get(words[start : start + FEWEST], ())
            )
        )


HASH_DIGITS: Final = 16
_APART: Final = re.compile("[^a-z0-9]+")


def text_hash(text: str) -> str:
    """Return the first 16 digits of SHA-1 of a text in lower case, what is no letter and no digit as single spaces."""
    normal = _APART.sub(" ", text.lower()).strip()
    return hashlib.sha1(normal.encode(), usedforsecurity=False).hexdigest()[:HASH_DIGITS]


class Hashes:
    """The hashes of texts that nothing may be trained on, in any form.

    Args:
        hashes: as :func:`text_hash` gives them.
        allowed: texts that may be trained on all the same, such as those of a training split that shares some with its
            test split.
    """

    def __init__(self, hashes: Iterable[str], allowed: Iterable[str] = ()) -> None:
        self._hashes = frozenset(hashes).difference(map(text_hash, allowed))

    @classmethod
    def read(cls, paths: Iterable[Path], allowed: Iterable[str] = ()) -> "Hashes":
        """Read files with a hash in each line (gzip).

        Raises:
            ValueError: a line is not a hash.
        """
        hashes: set[str] = set()
        for path in paths:
            with gzip.open(path, "rt", encoding="ascii") as lines:
                for number, line in enumerate(lines, 1):
                    if not re.fullmatch(f"[0-9a-f]{{{HASH_DIGITS}}}", line.strip()):
                        raise ValueError(f"{path}, line {number}: not the first {HASH_DIGITS} digits of a SHA-1")
                    hashes.add(line.strip())
        return cls(hashes, allowed)

    def covers(self, text: str) -> bool:
        """Whether a text is held out."""
        return bool(self._hashes) and text_hash(text) in self._hashes

    def kept(self, texts: Iterable[str]) -> list[str]:
        """Return the texts that are not held out."""
        return [text for text in texts if not self.covers(text)]


def add_hashes(parser: argparse.ArgumentParser) -> None:
    """Give a command line the option that every step has that reads texts to train on."""
    parser.add_argument(
        "--held-out-hashes", type=Path, nargs="+", required=True, help="hashes of texts that are left out (gzip)"
    )
