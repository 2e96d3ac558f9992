"""Which columns of a table hold the id, the candidate and the references.

A name is found in the table's header by what people call it, or told by ``--columns``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.faults import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Columns", "find_columns", "parse_columns"]

_IDS = ("image_id", "id", "video_id", "audio_id", "file_name", "filename", "file", "image", "img", "key")
_CANDIDATES = (
    "candidate",
    "candidates",
    "test",
    "prediction",
    "predictions",
    "hypothesis",
    "caption_predicted",
    "predicted_caption",
    "generated_caption",
    "caption",
)
_LISTS = ("references", "refs", "captions")
_REFERENCES = (*_LISTS, "reference", "ref")
_NUMBERED = re.compile(r"(?:caption_)?(?:reference|ref|caption|raw|sentence)s?[_ .-]?\d+")
_FIELDS = ("id", "candidate", "references")


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a table's columns: of the id and the candidate (or nothing), and of the references."""

    id: str | None = None
    candidate: str | None = None
    references: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = {"id": self.id, "candidate": self.candidate, "references": _joined(self.references)}
        return ", ".join(f"{field}: {column}" for field, column in named.items() if column)


def _joined(names: tuple[str, ...]) -> str:
    return f"{names[0]} .. {names[-1]}" if len(names) > 3 else "+".join(names)


def parse_columns(text: str) -> Columns:
    """Read what ``--columns`` says: ``id=NAME,candidate=NAME,references=NAME+NAME``; each part may be missing.

    Raises:
        InputError: it says something else.

    Example:
        >>> parse_columns("id=file,references=ref_a+ref_b").references
        ('ref_a', 'ref_b')
    """
    named: dict[str, str] = {}
    for part in text.split(","):
        field, is_pair, column = (piece.strip() for piece in part.partition("="))
        if not is_pair or field not in _FIELDS or not column or field in named:
            raise InputError(
                f"--columns: {part.strip()!a} is not understood, expected id=NAME,candidate=NAME,references=NAME+NAME"
            )
        named[field] = column
    references = tuple(name for name in named.get("references", "").split("+") if name)
    return Columns(named.get("id"), named.get("candidate"), references)


def find_columns(header: Sequence[str], *, told: Columns | None = None, only_references: bool = False) -> Columns:
    """Return the columns of a table with this header; what is not told is found by the usual names.

    Args:
        header: the names of the columns.
        told: names that need not be looked for.
        only_references: the table holds no candidates, so that a column ``caption`` holds references.

    Raises:
        InputError: a column that is told is not there.
    """
    told = told or Columns()
    wanted = [name for name in (told.id, None if only_references else told.candidate, *told.references) if name]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise InputError(
            f"has no column {', '.join(map(shown, missing))}; its columns are {', '.join(map(shown, header))}"
        )
    by_name = {name.strip().lower(): name for name in reversed(header)}
    references = told.references or _references(header, by_name, only_references=only_references)
    return Columns(
        told.id or _first(by_name, _IDS),
        None if only_references else told.candidate or _first(by_name, _CANDIDATES),
        references,
    )


def _first(by_name: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)


def _references(header: Sequence[str], by_name: Mapping[str, str], *, only_references: bool) -> tuple[str, ...]:
    numbered = tuple(name for name in header if _NUMBERED.fullmatch(name.strip().lower()))
    if numbered:
        return numbered
    single = _first(by_name, (*_REFERENCES, "caption") if only_references else _REFERENCES)
    return (single,) if single else ()
