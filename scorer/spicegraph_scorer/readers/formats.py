"""What a reader gives: records in a format, and the faults of what is no record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.readers.faults import Fault

__all__ = [
    "CAPTION_MAPPING",
    "COCO_RESULTS",
    "JSON_LINES",
    "JSON_LIST",
    "PLAIN_TEXT",
    "SPICE_INPUT",
    "VDTK",
    "Format",
    "Record",
    "Records",
    "untyped_id",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of items: its name, and the keys under which its fields may stand, best first.

    Where the format writes every id as text (``typed`` is false), an id is the same image as a number and as
    a string. A ``table`` has columns, whose names can be told.
    """

    name: str
    ids: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]
    typed: bool = True
    table: bool = False


SPICE_INPUT = Format("SPICE input", ("image_id",), ("test",), ("refs",))
COCO_RESULTS = Format("COCO results", ("image_id",), ("caption",), ())
JSON_LINES = Format(
    "JSON Lines", ("image_id", "id"), ("candidate", "caption", "test", "candidates"), ("references", "refs")
)
VDTK = Format("vdtk JSON", ("_id", "image_id", "id"), ("candidates",), ("references",))
JSON_LIST = Format("JSON list", JSON_LINES.ids, JSON_LINES.candidates, JSON_LINES.references)
CAPTION_MAPPING = Format("captions by id", ("id",), ("caption", "captions"), (), typed=False)
PLAIN_TEXT = Format("plain text", ("line",), ("caption",), ())

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


class Record(NamedTuple):
    """An item as it stands in the file: its place (``item 3``, ``line 3``) and its fields."""

    place: str
    fields: Mapping[str, object]


class Records(NamedTuple):
    """A file's format and its records, and the faults of what is no record.

    Records may be read from the open file while they are asked for, once; ``faults`` are all there only then.
    """

    format: Format
    records: Iterable[Record]
    faults: list[Fault]


def untyped_id(text: str) -> ItemId:
    """Return the id that a text stands for: an integer where it is written as one.

    Example:
        >>> untyped_id("42"), untyped_id("042"), untyped_id("a.jpg")
        (42, '042', 'a.jpg')
    """
    return int(text) if _INTEGER.fullmatch(text) else text
