"""Empty candidates, which models do give: refused, or scored 0 as the original programs score them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer import METRICS, Item, read_items, score

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.model

ITEMS = (
    Item(1, "a brown dog runs", ("a dog runs on the grass", "the brown dog runs")),
    Item(2, " ", ("two cats sleep on a bed", "cats on a bed")),
    Item(3, "", ("a red car on a road", "the car is red")),
)


def test_they_are_refused_by_default() -> None:
    with pytest.raises(InputError) as caught:
        score(ITEMS, ["bleu"])
    assert "item 2 (image_id 2), candidate: is empty" in str(caught.value)
    assert "item 3 (image_id 3), candidate: is empty" in str(caught.value)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_scores_them_0(name: str) -> None:
    result = score(ITEMS, [name], empty="zero")
    assert result.empty_candidates == 2
    first, *others = result.item_scores()
    headline = [key for key, value in first.items() if isinstance(value, float)]
    assert headline
    for row in others:
        for key in headline:
            assert row[key] == pytest.approx(float(key == "FluencyError"), abs=1e-12), key


def test_they_count_in_the_mean() -> None:
    result = score(ITEMS, ["spice"], empty="zero")
    alone = score(ITEMS[:1], ["spice"])
    assert result.corpus["SPICE"] == pytest.approx(alone.corpus["SPICE"] / 3)  # type: ignore[operator]
    assert alone.empty_candidates == 0


def test_empty_references_stay_a_fault() -> None:
    with pytest.raises(InputError, match=r"references\[0\]: is empty"):
        score([Item(1, "", ("",))], ["bleu"], empty="zero")


def test_in_files(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps([{"image_id": 1, "test": "", "refs": ["a dog"]}]))
    with pytest.raises(InputError, match="is empty"):
        read_items(str(path))
    assert read_items(str(path), empty="zero").items[0].candidate == ""
