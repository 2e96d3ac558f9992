"""Captions to parse: a file with a caption on each line, JSON Lines, or one text of several lines."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from spicegraph_scorer.readers.checks import Fault, input_error
from spicegraph_scorer.readers.records import read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS: Final = ("text", "caption")
"""The fields of a JSON object of which one has the caption."""
_ENDS: Final = frozenset(".!?:;\"')”")


def read_captions(path: str, *, is_one_text: bool = False) -> list[str]:
    """Return the captions of a file, or of standard input for ``-``.

    A file whose first line that is not empty begins with ``{`` is JSON Lines: a caption may have several lines there.

    Args:
        path: the file.
        is_one_text: all lines are one caption.

    Raises:
        InputError: the file can't be read, or lines are not captions; the message lists every such line.
        LimitError: a line or the file is too large.
    """
    lines = read_lines(path)
    if is_one_text:
        return ["\n".join(lines).strip()]
    first = next((line for line in lines if line.strip()), "")
    return _json_captions(path, lines) if first.lstrip().startswith("{") else lines


def _json_captions(path: str, lines: Sequence[str]) -> list[str]:
    decoder = msgspec.json.Decoder()
    faults: list[Fault] = []
    out: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            faults.append(Fault(f"line {number}", "", f"is not JSON: {error}"))
            continue
        key = next((key for key in KEYS if isinstance(row, dict) and key in row), None)
        if key is None:
            faults.append(Fault(f"line {number}", "", "is not an object with a field 'text' or 'caption'"))
            continue
        try:
            out.append(msgspec.convert(row[key], str))
        except msgspec.ValidationError:
            faults.append(Fault(f"line {number}", key, "is not a string"))
    if faults:
        raise input_error(path, faults)
    return out


def looks_like_one_text(lines: Sequence[str]) -> bool:
    """Say whether lines look like one text: paragraphs, or a sentence that goes on behind its line.

    >>> looks_like_one_text(["A dog lies on a bed and", "a cat sleeps."])
    True
    >>> looks_like_one_text(["A dog on a bed", "A cat sleeps."])
    False
    """
    texts = [line.strip() for line in lines]
    if (
        any(not text for text in texts[1:-1])
        and sum(map(bool, texts)) > 1
        and all(text[-1] in _ENDS for text in texts if text)
    ):
        return True
    pairs = [(before, after) for before, after in pairwise(texts) if before and after]
    going_on = [before[0].isupper() and before[-1] not in _ENDS and after[0].islower() for before, after in pairs]
    return bool(going_on) and going_on[0]
