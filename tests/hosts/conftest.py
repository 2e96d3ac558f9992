"""What the tests of host tools share. They need the packages of requirements/hosts.txt: `make hosts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_compat.caption_metric import flat_scores
from spicegraph_scorer import Item, score

if TYPE_CHECKING:
    from pathlib import Path

ROWS = (
    ("a man rides a brown horse", ("a man riding a horse", "a man on a brown horse")),
    ("two dogs", ("a cat on a bed", "the cat sleeps on the bed")),
    ("", ("a red car on a road", "the car is red")),
)
"""Captions with their references: right, wrong, and empty."""


@pytest.fixture
def expected() -> list[dict[str, float]]:
    """The scores of each row, as `score` gives them."""
    items = [Item(number, caption, references) for number, (caption, references) in enumerate(ROWS)]
    return [flat_scores(score([item], ("spice", "rouge"), empty="zero"), by_category=False) for item in items]


@pytest.fixture
def frequencies(tmp_path: Path) -> Path:
    """A file of document frequencies, counted over the rows' references."""
    from spicegraph_scorer.core.ngrams import DocumentFrequencies

    path = tmp_path / "idf.npz"
    references = [[tuple(text.split()) for text in texts] for _, texts in ROWS]
    DocumentFrequencies.from_references(references).write(path)
    return path
