"""The text that SPICE parses: captions as written, or the tokens that the COCO toolkit hands it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import TOKENIZER, Corpus, toolkit_text
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.scoring import choose_best, compare_systems, score
from wings import needs_graded
from word_facts import WordFacts

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
ITEMS = (Item(1, "A Dog, running!", ("A dog -- it runs.",)), Item(2, "Two CATS.", ("two cats (sleeping)",)))


@pytest.mark.parametrize(
    ("metrics", "text", "expected"),
    [
        (("spice",), None, "written"),
        (("coco",), None, "coco"),
        (("all",), None, "written"),
        (("coco", "spider"), None, "coco"),
        (("coco",), "written", "written"),
        (("spice",), "coco", "coco"),
        (("spice-exact",), "coco", "coco"),
        (("spider",), "coco", "coco"),
    ],
)
def test_what_spice_parses_depends_on_the_group_and_the_option(
    metrics: tuple[str, ...], text: str | None, expected: str
) -> None:
    source = WordFacts()
    result = score(ITEMS, metrics, pipeline=source, spice_text=text)  # type: ignore[arg-type]
    written = {text for item in ITEMS for text in (item.candidate, *item.references)}
    assert set(source.seen) == (written if expected == "written" else set(map(toolkit_text, written)))
    said = {run.name: run.signature["text"] for run in result.runs if run.name in {"spice", "spice-exact", "spider"}}
    assert said
    assert set(said.values()) == {TOKENIZER if expected == "coco" else "as written"}


@needs_graded
def test_spice_g_always_parses_captions_as_written() -> None:
    source = WordFacts()
    both = score(ITEMS, ("coco", "spice-g"), pipeline=source)
    assert {"A Dog, running!", "a dog running"} <= set(source.seen)
    assert both.corpus["SPICE-G"] == score(ITEMS, ("spice-g",), pipeline=WordFacts()).corpus["SPICE-G"]


def test_every_way_to_compute_takes_the_same_text() -> None:
    expected = score(ITEMS, ("spice",), pipeline=WordFacts(), spice_text="coco").item_scores()
    assert expected != score(ITEMS, ("spice",), pipeline=WordFacts()).item_scores()
    for evidence in (True, False):
        metric = Spice(WordFacts(), text="coco", evidence=evidence)
        assert [one.f1("All") for one in metric.collect(Corpus(ITEMS))] == [row["SPICE"] for row in expected]
    compared = compare_systems(ITEMS, ITEMS, ("coco",), pipeline=WordFacts())
    assert compared.metrics["spice"][0].first == score(ITEMS, ("coco",), pipeline=WordFacts()).corpus["SPICE"]
    source = WordFacts()
    choose_best(ITEMS, [1, 2], source, spice_text="coco")
    assert "a dog running" in source.seen


def test_what_an_item_is_parsed_from_can_be_shown() -> None:
    table = FunctionSource.of_table("table", {})
    assert Spice(table, text="coco").reads(ITEMS[0]) == Item(1, "a dog running", ("a dog it runs",))
    assert Spice(table).reads(ITEMS[0]) is ITEMS[0]
