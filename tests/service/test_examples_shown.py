"""The examples that newcomers see first say what a reader would say: README, the index's text, and the demo."""

from __future__ import annotations

import pytest

from spicegraph_parser import parse_captions
from spicegraph_scorer import score_captions

pytestmark = pytest.mark.model

CANDIDATE = "Two women ride brown horses on the beach."
REFERENCES = ["Two women ride white horses on the beach.", "Two women ride horses near the sea."]
DEMO = {
    "a small dog and two cats lie on a red sofa": "dog; cat; sofa; dog small; sofa red; cat two; dog sofa lie on; "
    "cat sofa lie on",
    "a small dog and two cats lie on a blue couch": "dog; cat; couch; dog small; couch blue; cat two; dog couch lie on; "
    "cat couch lie on",
    "two black cats sleep on a couch": "cat; couch; cat black; cat two; cat couch sleep on",
    "a white dog lies on a blue sofa": "dog; sofa; dog white; sofa blue; dog sofa lie on",
}


def tuples(caption: str) -> set[str]:
    return {" ".join(words) for words in next(parse_captions([caption])).tuples}


def test_the_first_example_has_colour_count_and_relation() -> None:
    assert tuples(CANDIDATE) == {
        "woman",
        "horse",
        "beach",
        "horse brown",
        "woman two",
        "woman horse ride",
        "woman beach ride on",
    }
    categories = score_captions([CANDIDATE], [REFERENCES]).item_scores()[0]["SPICE_categories"]
    assert isinstance(categories, dict)
    assert categories["All"]["f"] == 0.75
    wrong = {name: part["fp"] for name, part in categories.items() if part["fp"]}
    assert wrong == {"All": 1, "Attribute": 1, "Color": 1}


@pytest.mark.parametrize("caption", DEMO)
def test_the_demos_examples_read_as_people_read_them(caption: str) -> None:
    local = pytest.importorskip("spicegraph_web.pages")
    assert caption in {local._CAPTION, *local._REFERENCES}
    assert tuples(caption) == set(DEMO[caption].split("; "))
