"""What programs hold for items and captions, and what they get for values of a wrong kind."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import spicegraph_scorer as scorer
from spicegraph_parser import load_pipeline, parse_captions
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, score, score_captions
from wrong_values import check_wrong_values

if TYPE_CHECKING:
    from collections.abc import Callable

Row = namedtuple("Row", "Index image_id caption refs")
EXPECTED = Item(1, "a dog", ("a dog runs",))


class TableRow:
    """What is used of a row of pandas."""

    def to_dict(self) -> dict[str, Any]:
        return {"image_id": np.int64(1), "caption": "a dog", "refs": np.array(["a dog runs"])}


class Table:
    """What is used of a table of pandas."""

    columns = ("image_id", "caption", "refs")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [TableRow().to_dict()]


@pytest.mark.parametrize(
    "items",
    [
        [Item(1, "a dog", ["a dog runs"])],  # type: ignore[arg-type]
        [Item(np.int64(1), np.str_("a dog"), (text for text in ["a dog runs"]))],  # type: ignore[arg-type]
        [{"id": 1, "candidate": "a dog", "references": ["a dog runs"]}],
        [{"image_id": np.int32(1), "test": "a dog", "refs": ("a dog runs",)}],
        [{"image_id": 1, "prediction": "a dog", "reference": "a dog runs"}],
        [(1, "a dog", ["a dog runs"])],
        [Row(0, 1, "a dog", ["a dog runs"])],
        [TableRow()],
        [(0, TableRow())],
        Table(),
        EXPECTED,
        (Item(1, "a dog", ["a dog runs"]) for _ in range(1)),  # type: ignore[arg-type]
    ],
)
def test_what_programs_hold_becomes_items(items: Any) -> None:
    result = score(items, ["bleu"])
    assert result.items == (EXPECTED,)
    assert type(result.items[0].id) is int
    assert {type(text) for item in result.items for text in (item.candidate, *item.references)} == {str}


def test_items_without_an_id_are_numbered() -> None:
    pairs = [("a dog", ["the dog"]), ("a cat", ["the cat"])]
    assert [item.id for item in score(pairs, ["bleu"]).items] == [0, 1]


@pytest.mark.parametrize(
    ("candidates", "references"),
    [
        (["a dog"], [["a dog runs"]]),
        (["a dog"], ["a dog runs"]),
        (("a dog",), [np.array(["a dog runs"])]),
        ("a dog", ["a dog runs"]),
        ({0: "a dog"}, {0: ["a dog runs"]}),
        ({0: ["a dog"]}, {0: "a dog runs"}),
        ((text for text in ["a dog"]), [["a dog runs"]]),
    ],
)
def test_captions_in_two_collections(candidates: Any, references: Any) -> None:
    assert score_captions(candidates, references, ["bleu"]).items == (Item(0, "a dog", ("a dog runs",)),)


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        (["a dog"], [], "captions: 1 candidate and 0 lists of references don't pair up"),
        ({1: "a dog"}, {2: ["a dog"]}, "captions: 2 faults\n  id 1, references: is missing\n  id 2, candidates: is mi"),
        ({1: "a dog"}, [["a dog"]], "captions: references: is a list, expected an object, as the other is"),
        (["a dog"], "a dog runs", "captions: references: is a string, expected a list"),
        (None, ["a dog"], "captions: candidates: is null, expected a list"),
        ({1: ["a dog", "a cat"]}, {1: ["a dog"]}, "items: item 1 (image_id 1), candidate: is a list, expected a str"),
        (["a dog"], [{"a dog", "a cat"}], "captions: pair[0], references: is set, expected a list of strings"),
        (["a dog", float("nan")], ["a", "b"], "captions: pair[1], candidate: is NaN (a missing value), expected a str"),
        (["a", {"caption": "a"}], ["a", "b"], "captions: pair[1], candidate: is an object, expected a string, that un"),
        (
            ["", "a dog"],
            [["a dog"], [None]],
            "captions: 2 faults\n  pair[0], candidate: is empty\n  pair[1], references",
        ),
    ],
)
def test_collections_that_do_not_pair_up(candidates: Any, references: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        score_captions(candidates, references)
    assert str(caught.value).startswith(message)


def test_captions_in_place_of_items_are_told_where_they_go() -> None:
    with pytest.raises(InputError, match=r"item 1 \('a dog'\): is a caption, not an item: .* go to score_captions"):
        score(["a dog"], [["a dog"]])  # type: ignore[list-item]


def test_options_reach_score_captions() -> None:
    assert score_captions(["", "a dog"], ["a dog", "a dog"], ["bleu"], empty="zero").empty_candidates == 1


def test_a_result_shows_itself_in_ten_lines() -> None:
    result = score_captions(["a dog runs"] * 3, [["a dog runs on grass"]] * 3, ["all"])
    lines = repr(result).splitlines()
    assert lines[0] == "Result of 3 items"
    assert len(lines) == 10
    assert lines[-1].endswith("more")
    assert repr(score_captions(["a dog"], [["a dog"]])) == "Result of 1 item\n  SPICE     1.0000"
    assert len(repr(result.runs[0])) < 300


ITEMS = [Item(1, "a dog", ("a dog",))]
GTS = {1: ["a dog"]}
COCO_FILE = "examples/coco/human.json"


CALLS: dict[str, Callable[[Any], object]] = {
    "score": score,
    "score, metrics": lambda value: score(ITEMS, value),
    "score, pipeline": lambda value: score(ITEMS, pipeline=value),
    "score, more": lambda value: score(ITEMS, more=value),
    "score, empty": lambda value: score(ITEMS, empty=value),
    "score, confidence": lambda value: score(ITEMS, confidence=value),
    "score, frequencies": lambda value: score(ITEMS, ["cider"], frequencies=value),
    "score, categories": lambda value: score(ITEMS, categories=value),
    "score, vectors": lambda value: score(ITEMS, ["spice-g"], vectors=value),
    "score_captions, candidates": lambda value: score_captions(value, ["a dog"]),
    "score_captions, references": lambda value: score_captions(["a dog"], value),
    "score_captions, candidates by id": lambda value: score_captions(value, GTS),
    "score_captions, references by id": lambda value: score_captions({1: "a dog"}, value),
    "credit": scorer.credit,
    "credit, metric": lambda value: scorer.credit(ITEMS, value),
    "compare_systems, first": lambda value: scorer.compare_systems(value, ITEMS),
    "compare_systems, second": lambda value: scorer.compare_systems(ITEMS, value),
    "choose_best": lambda value: scorer.choose_best(value, [1], load_pipeline()),
    "score_tuples, candidate": lambda value: scorer.score_tuples(value, [[["dog"]]]),
    "score_tuples, references": lambda value: scorer.score_tuples([["dog"]], value),
    "read_items": scorer.read_items,
    "read_items, references": lambda value: scorer.read_items(COCO_FILE, references=value),
    "make_categories": scorer.make_categories,
    "read_categories": scorer.read_categories,
    "DocumentFrequencies.from_references": scorer.DocumentFrequencies.from_references,
    "DocumentFrequencies.read": scorer.DocumentFrequencies.read,
    "parse_captions": lambda value: list(parse_captions(value)),
    "parse_captions, pipeline": lambda value: list(parse_captions(["a dog"], value)),
    "load_pipeline": load_pipeline,
}
"""Public functions, each by the argument that gets a wrong value: 22 values."""


@pytest.mark.filterwarnings("ignore::spicegraph_scorer.metrics.cider.CiderWarning")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_get_a_message_and_no_raw_error(name: str) -> None:
    check_wrong_values(name, CALLS[name])
