"""Formats of published sets of ratings: Flickr8k's text files, Composite's tables, and CLIPScore's JSON of both."""

from __future__ import annotations

import csv
import io
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.faults import Fault, shown
from spicegraph_scorer.studies.agreement.judgements import Judgement
from spicegraph_scorer.studies.agreement.reading.content import Content, text_of
from spicegraph_scorer.studies.agreement.reading.values import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.studies.agreement.reading.bank import CaptionBank

__all__ = [
    "composite_judgements",
    "flickr8k_judgements",
    "grouped_judgements",
    "is_composite",
    "is_flickr8k",
    "is_grouped",
]

_FLICKR_COLUMNS = 5
_CAPTION_ID = re.compile(r"[^\t]+#\d+")
_IMAGE_COLUMN = "Input.image_url"
_TEXT_COLUMN = re.compile(r"Input\.text(\d+)")


def is_grouped(content: Content) -> bool:
    """Say whether a file is one JSON object with ``human_judgement`` by image."""
    value = content.value
    return isinstance(value, dict) and any(
        isinstance(each, dict) and "human_judgement" in each for each in value.values()
    )


def grouped_judgements(content: Content, faults: list[Fault]) -> tuple[list[Judgement], int]:
    """Read ``{image: {"human_judgement": [{"caption", "rating"}], "ground_truth": [caption]}}``.

    Ratings of the same caption that follow each other are the ratings of one judged caption.
    """
    found: list[Judgement] = []
    unrated = 0
    for image, entry in content.value.items() if isinstance(content.value, dict) else ():
        row = Row(f"image {shown(image)}", entry if isinstance(entry, dict) else {}, faults)
        references = row.references(("ground_truth",))
        judged = row.fields.get("human_judgement")
        if not isinstance(judged, list):
            row.fault("human_judgement", "is no list")
            continue
        for index, value in enumerate(judged):
            place = f"{row.place}, human_judgement[{index}]"
            part = Row(place, value if isinstance(value, dict) else {}, faults)
            caption = part.caption(("caption",))
            if "rating" not in part.fields:
                part.fault("rating", "is missing")
                continue
            ratings = part.numbers("rating")
            unrated += not ratings
            if ratings and found and (found[-1].image, found[-1].candidate) == (image, caption):
                last = found.pop()
                found.append(Judgement(last.place, image, caption, references, (*last.ratings, *ratings)))
            elif ratings:
                found.append(Judgement(place, image, caption, references, ratings))
    return found, unrated


def is_flickr8k(content: Content) -> bool:
    """Say whether a file is one of Flickr8k's annotations: image, ``image#number`` and three numbers a line."""
    line = content.data.lstrip().split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    cells = line.split("\t")
    return len(cells) == _FLICKR_COLUMNS and _CAPTION_ID.fullmatch(cells[1]) is not None


def flickr8k_judgements(content: Content, bank: CaptionBank, faults: list[Fault]) -> tuple[list[Judgement], int]:
    """Read ``ExpertAnnotations.txt`` (three ratings, 1 to 4) or ``CrowdFlowerAnnotations.txt`` (share, yes, no).

    Which of the two a file is, its numbers say: in the second, the share is yes / (yes + no) on every line.
    """
    rows: list[tuple[str, str, str, tuple[float, float, float]]] = []
    for number, line in enumerate(text_of(content).splitlines(), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        cells = line.split("\t")
        try:
            image, caption, *numbers = cells
            first, second, third = map(float, numbers)
        except ValueError:
            faults.append(Fault(place, "", "is not: image, caption id and three numbers, separated by tabs"))
            continue
        rows.append((place, image, caption, (first, second, third)))
    shares = bool(rows) and all(_is_share(*numbers) for _, _, _, numbers in rows)
    found = [
        Judgement(
            place,
            image,
            bank.caption(caption, Row(place, {}, faults)),
            bank.references(image, Row(place, {}, faults)),
            numbers[:1] if shares else numbers,
        )
        for place, image, caption, numbers in rows
    ]
    return found, 0


def _is_share(share: float, yes: float, no: float) -> bool:
    return yes + no > 0 and abs(share - yes / (yes + no)) < 1e-4


def is_composite(content: Content) -> bool:
    """Say whether a file is one of Composite's tables."""
    return _IMAGE_COLUMN.encode() in content.data.split(b"\n", 1)[0]


def composite_judgements(content: Content, bank: CaptionBank, faults: list[Fault]) -> tuple[list[Judgement], int]:
    """Read ``8k_correctness.csv`` and its like: an image's address, its captions and their ratings on a line.

    Columns ``Input.image_url``, ``Input.text1`` ..., ``Answer.Q1Answer`` ..., separated by semicolons. Rows
    without an image (the files end with some) and captions without a rating are counted and left out.
    """
    header, *lines = csv.reader(io.StringIO(text_of(content)), delimiter=";")
    columns = [name.strip() for name in header]
    numbers = [match[1] for name in columns if (match := _TEXT_COLUMN.fullmatch(name))]
    missing = [f"Answer.Q{number}Answer" for number in numbers if f"Answer.Q{number}Answer" not in columns]
    if missing or not numbers:
        raise InputError(f"{content.name}: has no column {missing[0] if missing else 'Input.text1'}")
    found: list[Judgement] = []
    unrated = 0
    for number, cells in enumerate(lines, start=2):
        values = dict(zip(columns, cells, strict=False))
        address = values.get(_IMAGE_COLUMN, "").strip()
        if not address:
            unrated += 1
            continue
        place = f"line {number}"
        image = PurePosixPath(address).name
        references = bank.references(image, Row(place, {}, faults))
        judged = list(_composite_captions(_CompositeRow(place, image, references, values), numbers, faults))
        unrated += len(numbers) - len(judged)
        found += judged
    return found, unrated


class _CompositeRow(NamedTuple):
    place: str
    image: str
    references: tuple[str, ...]
    values: Mapping[str, str]


def _composite_captions(row: _CompositeRow, numbers: Sequence[str], faults: list[Fault]) -> Iterator[Judgement]:
    values = row.values
    for number in numbers:
        answer, text = values.get(f"Answer.Q{number}Answer", "").strip(), values.get(f"Input.text{number}", "")
        if not answer or not text.strip():
            continue
        where = f"{row.place}, caption {number}"
        caption = Row(where, {}, faults).checked_caption(f"Input.text{number}", text)
        try:
            yield Judgement(where, row.image, caption, row.references, (float(answer),))
        except ValueError:
            faults.append(Fault(where, f"Answer.Q{number}Answer", f"is {shown(answer)}, expected a number"))
