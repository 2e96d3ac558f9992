"""Which captions are held out: decided by a hash of the text, so that it is the same in every run.

No held-out caption is trained on in any form: not in lower case, not cut off, not with a prompt in front, and
not with words replaced.
"""

import itertools
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from styles import plain

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
    """The held-out texts: what is equal to one, ends with one (a prompt before it) or is the beginning of one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole = {plain(text) for text in texts}
        beginnings = (itertools.accumulate(text.split(), "{} {}".format) for text in self._whole)
        self._beginnings = {start for starts in beginnings for start in itertools.islice(starts, FEWEST - 1, None)}

    def covers(self, text: str) -> bool:
        """Whether a text holds a held-out caption, or is part of one."""
        words = plain(text).split()
        ends = (" ".join(words[start:]) for start in range(max(1, len(words) - FEWEST + 1)))
        return " ".join(words) in self._beginnings or any(end in self._whole for end in ends)
