"""Layer D against SPICE 1.0: every score, count, tuple, truth value and its place, for 1,600 COCO items."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TypedDict

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer.metrics.spice.categories import COLORS, NUMERALS, SIZES
from spicegraph_scorer.metrics.spice.metric import ScoredTuple, TupleResult, score_tuples

pytestmark = pytest.mark.slow

_FOLDER = Path(__file__).parents[1] / "golden" / "spice"

_Tuples = list[list[str]]
_Number = float | int | None


class _Printed(TypedDict):
    tuple: list[str]
    truth_value: bool


class _Golden(TypedDict):
    image_id: int
    system: str
    candidate: str
    references: list[str]
    scores: dict[str, dict[str, _Number]]
    scores_no_synsets: dict[str, dict[str, _Number]]
    test_tuples: list[_Printed]
    ref_tuples: list[_Printed]


def _lines(name: str) -> list[str]:
    with gzip.open(_FOLDER / name, "rt", encoding="utf-8") as lines:
        return list(lines)


@pytest.fixture(scope="module")
def items() -> list[_Golden]:
    found: list[_Golden] = [json.loads(line) for line in _lines("spice_scores.jsonl.gz")]
    assert len(found) == 1600
    return found


@pytest.fixture(scope="module")
def tuples() -> dict[str, _Tuples]:
    parses = map(json.loads, _lines("spice_parses.jsonl.gz"))
    return {parse["text"]: parse["tuples"] for parse in parses}


@pytest.fixture(scope="module")
def results(items: list[_Golden], tuples: dict[str, _Tuples]) -> dict[bool, list[TupleResult]]:
    return {
        exact: [
            score_tuples(tuples[item["candidate"]], [tuples[text] for text in item["references"]], exact=exact)
            for item in items
        ]
        for exact in (False, True)
    }


@pytest.mark.parametrize(("exact", "field"), [(False, "scores"), (True, "scores_no_synsets")])
def test_every_score_is_the_references(
    items: list[_Golden], results: dict[bool, list[TupleResult]], exact: bool, field: str
) -> None:
    """Both modes, all seven categories, in the reference's order."""
    for item, result in zip(items, results[exact], strict=True):
        golden = item["scores"] if field == "scores" else item["scores_no_synsets"]
        assert list(result.scores) == list(golden)
        for category, theirs in golden.items():
            where = f"image {item['image_id']}, {item['system']}, {category}"
            for key in ("f", "pr", "re", "tp", "fp", "fn"):
                assert result.scores[category][key] == pytest.approx(theirs[key], abs=1e-9), f"{where}, {key}"


def _scored(printed: list[_Printed]) -> tuple[ScoredTuple, ...]:
    return tuple(ScoredTuple(tuple(p["tuple"]), p["truth_value"]) for p in printed)


def test_every_tuple_and_truth_value_is_the_references(
    items: list[_Golden], results: dict[bool, list[TupleResult]]
) -> None:
    """The merged tuples of both sides, their truth values, and their order."""
    for item, result in zip(items, results[False], strict=True):
        assert result.candidate == _scored(item["test_tuples"])
        assert result.reference == _scored(item["ref_tuples"])


@pytest.mark.parametrize(("category", "words"), [("Cardinality", NUMERALS), ("Color", COLORS), ("Size", SIZES)])
def test_category_words(category: str, words: frozenset[str]) -> None:
    """Every word that the reference was seen to put in a category is in it, and its tuple is counted there."""
    rows = (_FOLDER / "category_words.tsv").read_text(encoding="utf-8").splitlines()
    probed = {row.split("\t")[1] for row in rows if row.split("\t")[0] == category}
    assert len(probed) >= 9
    assert probed <= words
    for word in words:
        result = score_tuples([["thing", word]], [[["thing", word]]])
        assert [
            name
            for name in ("Cardinality", "Color", "Size")
            if result.scores[name]["fn"] is not None and result.scores[name]["tp"]
        ] == [category]


@pytest.mark.parametrize(
    ("candidate", "references", "reason"),
    [
        ([[]], [[["dog"]]], r"candidate\[0\]: a tuple is a list of one to three words"),
        ([["dog"], ["a", "b", "c", "d"]], [[["dog"]]], r"candidate\[1\]: a tuple is a list of one to three words"),
        ([["dog"]], [[["dog"]], [["dog", ""]]], r"references\[1\]\[0\]: a word is a non-empty string"),
        ([["dog"]], [[["dog", " "]]], r"references\[0\]\[0\]: a word is a non-empty string"),
        (["dog"], [[["dog"]]], r"candidate\[0\]: a tuple is a list of one to three words, got 'dog'"),
        ([["dog", 3]], [[["dog"]]], r"candidate\[0\]: a word is a non-empty string, got \['dog', 3\]"),
    ],
)
def test_wrong_tuples_are_refused(candidate: _Tuples, references: list[_Tuples], reason: str) -> None:
    """The message names the side, the tuple and the reason."""
    with pytest.raises(InputError, match=reason):
        score_tuples(candidate, references)
