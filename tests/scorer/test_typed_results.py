"""Results as values with names and types: of the corpus, of each item, by category, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_parser import InputError
from spicegraph_scorer import Item, score, score_captions

if TYPE_CHECKING:
    from spicegraph_scorer.core.results import Result


@pytest.fixture(scope="module")
def result() -> Result:
    items = [
        Item("a.jpg", "Two brown dogs run.", ["Two black dogs run.", "Dogs."]),
        Item(2, "a cat sleeps", ("a cat on a bed",)),
    ]
    return score(items, "spice, bleu,rouge")


@pytest.mark.model
def test_a_corpus_score_is_asked_for_by_its_name(result: Result) -> None:
    value: float | None = result["SPICE"]
    assert value == result.corpus["SPICE"] == result.scores["SPICE"]
    assert (
        result["SPICE_Color"]
        == result.corpus["SPICE_categories"]["Color"]["f"]
        == result.categories["SPICE"]["Color"].f
    )
    assert result["SPICE_Size"] is None, "no reference has a size"
    assert result["Bleu_4"] == result.corpus["Bleu_4"]
    with pytest.raises(InputError, match="there is no score 'CIDEr' here; the scores are SPICE, "):
        result["CIDEr"]


@pytest.mark.model
def test_items_come_with_their_ids_and_categories(result: Result) -> None:
    first, second = result
    assert len(result) == 2
    assert (first.id, second.id) == ("a.jpg", 2)
    assert [first["SPICE"], second["SPICE"]] == [row["SPICE"] for row in result.item_scores()]
    assert first["SPICE_Color"] == 0.0
    assert second["SPICE_Color"] is None
    counts = first.categories["SPICE"]["Cardinality"].counts
    assert counts is not None
    assert counts.matched == 1
    assert set(first.categories) == {"SPICE"}
    with pytest.raises(InputError, match="there is no score 'spice' here"):
        first["spice"]


@pytest.mark.model
def test_a_table_has_a_row_for_each_item(result: Result) -> None:
    pytest.importorskip("pandas")
    table = result.to_frame()
    assert list(table.index) == ["a.jpg", 2]
    assert list(table.columns) == list(result.scores)
    assert table.loc["a.jpg", "SPICE"] == next(iter(result))["SPICE"]
    assert table["SPICE_Color"].isna().tolist() == [False, True]
    assert table["SPICE"].mean() == pytest.approx(result["SPICE"])


def test_a_misspelt_option_is_told_with_the_one_that_is_meant() -> None:
    options: dict[str, Any] = {"metric": "spice"}
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'metric' \(did you mean metrics\?\)"):
        score_captions(["a dog"], [["a dog"]], **options)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'vector' \(did you mean vectors\?\)"):
        score([Item(1, "a dog", ("a dog",))], vector=1)  # type: ignore[arg-type]


def test_names_of_metrics_may_stand_in_one_string() -> None:
    result = score_captions(["a dog runs"], [["a dog runs"]], "ROUGE_L,bleu")
    assert list(result.scores) == ["ROUGE_L", "Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4"]
    with pytest.raises(InputError, match=r"there is no metric 'spicy' \(did you mean spice\?\)"):
        score_captions(["a dog"], [["a dog"]], "bleu,spicy")
