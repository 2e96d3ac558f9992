"""Word stems are those of ROUGE-1.5.5."""

import gzip
from pathlib import Path

import pytest

from spicegraph_scorer.metrics.porter import stem, stem_regular

GOLDEN = Path(__file__).parents[1] / "golden" / "ngram"


@pytest.mark.slow
def test_stems():
    """Every word of COCO val2014 has the program's stem, with and without the irregular forms."""
    with gzip.open(GOLDEN / "rouge155_stems.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    assert len(rows) == 16386
    assert [(word, stem(word), stem_regular(word)) for word, _, _ in rows] == [tuple(row) for row in rows]
