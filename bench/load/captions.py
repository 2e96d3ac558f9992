"""Captions of COCO systems and the references of their images, from the golden scores; and new ones, without end."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "spice" / "spice_scores.jsonl.gz"


class Candidate(NamedTuple):
    """A caption of the image with this number in :data:`REFERENCES`."""

    image: int
    text: str


def _read() -> tuple[list[tuple[str, ...]], list[Candidate]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    images = {tuple(row["references"]): None for row in rows}
    numbers = {references: number for number, references in enumerate(images)}
    return list(images), [Candidate(numbers[tuple(row["references"])], row["candidate"]) for row in rows]


REFERENCES, CANDIDATES = _read()


def new_candidates() -> Iterator[Candidate]:
    """Return captions that no call has seen: a system's, with one word of it exchanged for another one's."""
    chance = random.Random(0)
    words = sorted({word for one in CANDIDATES for word in one.text.split() if word.isalpha()})
    seen = {one.text for one in CANDIDATES}
    while True:
        for image, text in CANDIDATES:
            changed = text
            while changed in seen:
                parts = text.split()
                parts[chance.randrange(len(parts))] = chance.choice(words)
                changed = " ".join(parts)
            seen.add(changed)
            yield Candidate(image, changed)
