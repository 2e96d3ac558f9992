"""Memory of a scoring run: beside the items' scores it is bounded, and each item adds little."""

import json
import tracemalloc
from collections import deque

import pytest

from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import score
from spicegraph_service.output.results import RESULT_FORMATS, ResultFormat

pytestmark = pytest.mark.slow

ITEMS = 1100  # more than n-grams are counted of at a time
METRICS = ("spice", "bleu", "rouge", "cider")

COLOURS = ("red", "blue", "green", "black", "white", "brown", "grey")
NOUNS = ("dog", "cat", "horse", "man", "woman", "child", "bus", "car", "boat", "tree", "house")
PLACES = ("river", "road", "wall", "beach", "field")


class Words:
    """Facts without a parser: every word is an object."""

    signature = "words"

    def facts(self, texts):
        return (tuple(Fact((word,), "objects", ()) for word in text.split()) for text in texts)


def caption(number):
    colour, noun, other = COLOURS[number % 7], NOUNS[number % 11], NOUNS[(number // 11) % 11]
    return f"a {colour} {noun} and {number % 13} of a {other} near the {PLACES[number % 5]} of number{number % 997}"


def written(path, items):
    """Write so many items, each with captions of its own, an item a line."""
    with path.open("w") as lines:
        for number in range(items):
            candidate, *references = (caption(number * 3 + place) for place in range(3))
            lines.write(json.dumps({"image_id": number, "candidate": candidate, "references": references}) + "\n")
    return str(path)


def peak(work):
    """Return the most bytes that are held while something is done, beside those that were held before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(work, tmp_path):
    """Return the bytes that each more item adds to the peak."""
    few, many = (written(tmp_path / f"{items}.jsonl", items) for items in (ITEMS, 3 * ITEMS))
    work(few)  # what is loaded once
    return (peak(lambda: work(many)) - peak(lambda: work(few))) / (2 * ITEMS)


def made_into_json(path, metrics):
    result = score(read_items(path).items, metrics, pipeline=Words(), evidence=False)
    deque(RESULT_FORMATS[ResultFormat.JSON](result), maxlen=0)


@pytest.mark.parametrize(("metrics", "limit"), [(("bleu", "rouge", "cider"), 3_500), (METRICS, 4_000)], ids=str)
def test_an_item_adds_little_to_the_peak(tmp_path, metrics, limit):
    """Its captions take some 600 bytes; its n-grams or its JSON, if kept, would take more than twice the limit each."""
    assert growth(lambda path: made_into_json(path, metrics), tmp_path) < limit


def test_reading_holds_little_beside_the_items(tmp_path):
    """The JSON of a line is gone before the next is read: its objects would take as much as the item again."""
    assert growth(read_items, tmp_path) < 750


@pytest.mark.parametrize("form", RESULT_FORMATS, ids=str)
def test_writing_holds_one_item_at_a_time(tmp_path, form):
    """Whatever the number of items; of these, the text alone takes megabytes, and its objects ten times that."""
    few, many = (
        score(read_items(written(tmp_path / f"{items}.jsonl", items)).items, METRICS, pipeline=Words())
        for items in (20, ITEMS)
    )
    deque(RESULT_FORMATS[form](few), maxlen=0)  # what is loaded once
    assert peak(lambda: deque(RESULT_FORMATS[form](many), maxlen=0)) < 400_000
