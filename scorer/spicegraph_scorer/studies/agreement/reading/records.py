"""Our own formats: one JSON object a line (or a list of them) for a rated caption, or for a pair of captions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.studies.agreement.judgements import CaptionPair, Judgement
from spicegraph_scorer.studies.agreement.reading.values import Row, field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spicegraph_scorer.readers.faults import Fault
    from spicegraph_scorer.studies.agreement.reading.content import Records

__all__ = ["RATINGS", "judgements_of_records", "pairs_of_records"]

IMAGES = ("image_id", "image")
CANDIDATES = ("candidate", "caption", "hyp", "test")
REFERENCES = ("references", "refs")
RATINGS = ("ratings", "rating", "human_score", "score")
PREFERENCES = ("preferred", "label")


def judgements_of_records(records: Records, faults: list[Fault], *, rating: str | None) -> tuple[list[Judgement], int]:
    """Return the rated captions, and how many records have no rating."""
    found: list[Judgement] = []
    unrated = 0
    for place, fields in records:
        row = Row(place, fields, faults)
        candidate, references = row.caption(CANDIDATES), row.references(REFERENCES)
        key = rating if rating is not None else field_of(fields, RATINGS)
        ratings: tuple[float, ...] = ()
        if key in fields:
            ratings = row.numbers(key)
        else:
            row.fault(key, "is missing")
        given = {name: row.number(f"metrics.{name}", value) for name, value in row.mapping("metrics").items()}
        image = _image(row, references, candidate)
        if ratings:
            found.append(Judgement(place, image, candidate, references, ratings, given, row.text("system")))
        else:
            unrated += 1
    return found, unrated


def pairs_of_records(records: Records, faults: list[Fault]) -> list[CaptionPair]:
    """Return the pairs of captions."""
    return [_pair(Row(place, fields, faults)) for place, fields in records]


def _pair(row: Row) -> CaptionPair:
    captions = row.fields.get("captions")
    texts = ("", "")
    if isinstance(captions, list) and len(captions) == len(texts):
        first, second = (row.checked_caption(f"captions[{side}]", text) for side, text in enumerate(captions))
        texts = (first, second)
    else:
        row.fault("captions", "is missing" if captions is None else "is no list of two captions")
    key = field_of(row.fields, PREFERENCES)
    preferred = row.fields.get(key)
    if key not in row.fields:
        row.fault(key, "is missing")
    elif preferred is not None and (isinstance(preferred, bool) or preferred not in {0, 1}):
        row.fault(key, f"is {preferred!a:.60}, expected 0 or 1 (which of the captions), or null for a tie")
    references = row.references(REFERENCES)
    category = row.text("category") or ""
    choice = preferred if isinstance(preferred, int) else None
    return CaptionPair(
        row.place, _image(row, references, texts[0]), category, texts, choice, references, dict(_given(row))
    )


def _given(row: Row) -> Iterable[tuple[str, tuple[float | None, float | None]]]:
    metrics: Mapping[str, object] = row.mapping("metrics")
    for name, values in metrics.items():
        if not isinstance(values, list) or len(values) != 2:
            row.fault(f"metrics.{name}", "is no list of two numbers, one for each caption")
            continue
        first, second = (row.number(f"metrics.{name}[{side}]", value) for side, value in enumerate(values))
        yield name, (first, second)


def _image(row: Row, references: tuple[str, ...], candidate: str) -> str:
    """Return the image; a record that names none belongs to those with the same references."""
    return row.image(IMAGES) or "\n".join(references) or candidate
