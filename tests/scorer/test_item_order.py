"""The order of the items changes no score: a stream and a batch of the same items have one result, bit for bit."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.metrics import METRICS

pytestmark = pytest.mark.model

GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_scores.jsonl.gz"


def test_the_order_of_items_changes_no_score() -> None:
    with gzip.open(GOLDEN, "rt") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(60), strict=False)]
    items = [Item(n, row["candidate"], tuple(row["references"])) for n, row in enumerate(rows)]
    ordered = score(items, list(METRICS))
    for seed in range(3):
        shuffled = random.Random(seed).sample(items, len(items))
        found = score(shuffled, list(METRICS))
        for run, other in zip(ordered.runs, found.runs, strict=True):
            for one, same in zip(run.scores, other.scores, strict=True):
                assert same.value == one.value, one.name
                by_id = dict(zip((item.id for item in shuffled), same.each, strict=True))
                assert [by_id[item.id] for item in items] == list(one.each), one.name
