"""Formats of published hard negatives: SugarCrepe, VALSE and FOIL, with references from COCO annotations."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.readers.faults import shown
from spicegraph_scorer.studies.agreement.judgements import CaptionPair
from spicegraph_scorer.studies.agreement.reading.values import Row, field_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spicegraph_scorer.readers.faults import Fault
    from spicegraph_scorer.studies.agreement.reading.bank import CaptionBank
    from spicegraph_scorer.studies.agreement.reading.content import Content

__all__ = ["foil_pairs", "is_foil", "is_negatives", "negative_pairs"]

_WRONG: Final = ("negative_caption", "foil")
_IMAGES: Final = ("filename", "image_file")
_FEWEST_VOTES: Final = 2


def is_negatives(content: Content) -> bool:
    """Say whether a file is SugarCrepe's or VALSE's: one JSON object, a pair of captions by id."""
    value = content.value
    return isinstance(value, dict) and any(
        isinstance(each, dict) and "caption" in each and any(name in each for name in _WRONG) for each in value.values()
    )


def negative_pairs(content: Content, bank: CaptionBank, faults: list[Fault]) -> tuple[list[CaptionPair], int]:
    """Read ``{id: {"filename", "caption", "negative_caption"}}`` (SugarCrepe), or ``image_file`` and ``foil`` (VALSE).

    The category is ``linguistic_phenomena``, or else the file's name, such as ``swap_att``. Of VALSE's pairs those
    are left out, and counted, where fewer than two of its annotators (``mturk``) chose the caption: its valid set.
    """
    found: list[CaptionPair] = []
    unconfirmed = 0
    for name, entry in content.value.items() if isinstance(content.value, dict) else ():
        row = Row(f"pair {shown(name)}", entry if isinstance(entry, dict) else {}, faults)
        captions = row.caption(("caption",)), row.caption(_WRONG)
        image = row.image(_IMAGES)
        if image is None:
            row.fault(field_of(row.fields, _IMAGES), "is missing")
        references = bank.references(image, row) if image is not None else ()
        votes = row.number("mturk.caption", row.mapping("mturk").get("caption"))
        if votes is not None and votes < _FEWEST_VOTES:
            unconfirmed += 1
            continue
        category = row.text("linguistic_phenomena") or PurePath(content.name).stem
        found.append(CaptionPair(row.place, image or "", category, captions, 0, references))
    return found, unconfirmed


def is_foil(content: Content) -> bool:
    """Say whether a file is FOIL's: COCO annotations, of which some are foils."""
    return any("foil" in row for row in _annotations(content))


def foil_pairs(content: Content, bank: CaptionBank, faults: list[Fault]) -> tuple[list[CaptionPair], int]:
    """Read FOIL's ``annotations``: every foil against the true caption of the same ``id``; one category."""
    rows = [Row(f"annotations[{place}]", entry, faults) for place, entry in enumerate(_annotations(content))]
    true = {shown(row.fields.get("id")): row for row in rows if row.fields.get("foil") is False}
    found: list[CaptionPair] = []
    for row in rows:
        if row.fields.get("foil") is not True:
            if not isinstance(row.fields.get("foil"), bool):
                row.fault("foil", f"is {shown(row.fields.get('foil'))}, expected true or false")
            continue
        other = true.get(shown(row.fields.get("id")))
        if other is None:
            row.fault("id", f"{shown(row.fields.get('id'))} has no true caption")
            continue
        image = row.image(("image_id",)) or ""
        captions = other.caption(("caption",)), row.caption(("caption",))
        found.append(CaptionPair(row.place, image, "", captions, 0, bank.references(image, row)))
    return found, 0


def _annotations(content: Content) -> Iterator[Mapping[str, object]]:
    rows = content.value.get("annotations") if isinstance(content.value, dict) else None
    yield from (row for row in rows or () if isinstance(row, dict)) if isinstance(rows, list) else ()
