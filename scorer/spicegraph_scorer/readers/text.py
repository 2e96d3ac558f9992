"""Plain text: one caption a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.readers.checks import CAPTION_FAULTS
from spicegraph_scorer.readers.faults import Fault, input_error
from spicegraph_scorer.readers.records import bounded_lines
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Limits, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer.readers.source import Source

__all__ = ["read_lines", "text_lines"]

_ALLOWED = frozenset({"is empty", "is a file name, not a caption"})


def read_lines(path: str, *, limits: Limits = DEFAULT_LIMITS) -> list[str]:
    """Return the lines of a text file, or of standard input for ``-``, without line ends.

    Empty lines stay, so that line numbers of input and output agree.

    Raises:
        InputError: the file can't be read, or lines are not UTF-8, too long for a caption or hold NUL
            characters; the message lists every such line.
        LimitError: a line or the file is too large.
    """
    faults: list[Fault] = []
    with open_source(path, limits=limits) as source:
        lines = list(text_lines(source, faults, limits=limits))
    if faults:
        raise input_error(source.name, faults)
    return lines


def text_lines(source: Source, faults: list[Fault], *, limits: Limits) -> Iterator[str]:
    """Yield the lines of an open file without line ends, and add what is wrong with them to ``faults``.

    A line that is not UTF-8 is left out.

    Raises:
        LimitError: a line or the file is too large.
    """
    for number, raw in enumerate(bounded_lines(source, limits), start=1):
        place = f"line {number}"
        try:
            line = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            faults.append(Fault(place, "", f"is not UTF-8 ({error.reason} at byte {error.start})"))
            continue
        faults += [
            Fault(place, "", reason)
            for reason, is_wrong in CAPTION_FAULTS.items()
            if reason not in _ALLOWED and is_wrong(line, ())
        ]
        yield line
