"""The SPICE 1.0 program's own JSON, from the golden tuples: every item, whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, score
from spicegraph_scorer.metrics.spice.metric import jar_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "golden" / "spice"
SYSTEMS = ("near", "far", "random", "human")


class GoldenFacts:
    """The reference's own tuples of each golden caption, in the place of a pipeline."""

    signature = "golden"

    def __init__(self) -> None:
        with gzip.open(FOLDER / "spice_parses.jsonl.gz", "rt", encoding="utf-8") as lines:
            parses = map(json.loads, lines)
            self._tuples = {parse["text"]: parse["tuples"] for parse in parses}

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            yield tuple(Fact(tuple(words), "golden", ()) for words in self._tuples[text])


@pytest.fixture(scope="module")
def source() -> GoldenFacts:
    return GoldenFacts()


@pytest.fixture(scope="module")
def golden() -> list[dict[str, Any]]:
    with gzip.open(FOLDER / "spice_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def items_of(rows: Iterable[dict[str, Any]]) -> list[Item]:
    return [Item(row["image_id"], row["candidate"], tuple(row["references"])) for row in rows]


@pytest.mark.parametrize("system", SYSTEMS)
def test_output_equals_the_programs(system: str, source: GoldenFacts, golden: list[dict[str, Any]]) -> None:
    rows = [row for row in golden if row["system"] == system]
    assert len(rows) == 400
    result = score(items_of(rows), pipeline=source)
    expected = [{key: row[key] for key in ("image_id", "scores", "test_tuples", "ref_tuples")} for row in rows]
    assert json.loads(json.dumps(jar_output(result))) == expected


def test_output_without_synonyms_equals_the_programs(source: GoldenFacts, golden: list[dict[str, Any]]) -> None:
    rows = [row for row in golden if row["system"] == "near"]
    output = jar_output(score(items_of(rows), ("spice-exact",), pipeline=source))
    assert [item["scores"] for item in output] == [row["scores_no_synsets"] for row in rows]


def test_it_needs_a_spice_metric() -> None:
    result = score([Item(1, "a dog", ("the dog",))], ("bleu",))
    with pytest.raises(InputError, match="ask for the metric spice"):
        jar_output(result)
