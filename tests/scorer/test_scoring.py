"""One call from items to a result, and the result's JSON."""

from __future__ import annotations

import json
import math
import runpy
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import pytest

import spicegraph_scorer
from spicegraph_parser.errors import DataError, InputError
from spicegraph_scorer import (
    METRICS,
    CategoryDefinition,
    DocumentFrequencies,
    Item,
    MetricData,
    compare_systems,
    make_categories,
    metrics,
    score,
    score_tuples,
)
from spicegraph_scorer.metrics import GROUPS, MetricEntry, metric_names
from spicegraph_scorer.metrics.rouge import RougeL
from wings import needs_graded
from word_facts import WordFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spicegraph_scorer.core.results import Result

CATEGORIES = ["All", "Relation", "Cardinality", "Attribute", "Size", "Color", "Object"]


ITEMS = (
    Item(7, "red_car dog", ("blue_car dog", "car")),  # the references have a colour
    Item("b", "green_tree", ("tree", "tree bench")),  # they have none: the green tree's colour is invented
)


@pytest.fixture
def result() -> Result:
    return score(ITEMS, ("spice", "bleu"), pipeline=WordFacts())


def test_the_public_names_are_there() -> None:
    assert set(spicegraph_scorer.__all__) >= {"score", "score_tuples", "Item"}
    assert score_tuples([["dog"]], [[["dog"]]]).scores["All"]["f"] == 1.0


def test_a_field_of_the_data_may_be_a_keyword_of_its_own() -> None:
    pets = make_categories([CategoryDefinition("Pet", words=("dog",))])
    frequencies = DocumentFrequencies.from_references([[("red", "car")], [("dog",)]])
    short = score(ITEMS, ("spice", "cider"), pipeline=WordFacts(), categories=pets, frequencies=frequencies)
    data = MetricData(categories=pets, frequencies=frequencies)
    assert short.to_dict() == score(ITEMS, ("spice", "cider"), pipeline=WordFacts(), data=data).to_dict()
    rest = score(
        ITEMS, ("spice", "cider"), pipeline=WordFacts(), data=MetricData(categories=pets), frequencies=frequencies
    )
    assert short.to_dict() == rest.to_dict() != score(ITEMS, ("spice", "cider"), pipeline=WordFacts()).to_dict()
    assert "SPICE_Pet" in compare_systems(ITEMS, ITEMS, pipeline=WordFacts(), categories=pets).to_dict()["scores"]


@pytest.mark.parametrize(
    "call",
    [
        lambda **data: score(ITEMS, pipeline=WordFacts(), **data),
        lambda **data: compare_systems(ITEMS, ITEMS, pipeline=WordFacts(), **data),
    ],
)
def test_a_field_that_is_given_twice_or_unknown_is_refused(call: Callable[..., object]) -> None:
    pets = make_categories([CategoryDefinition("Pet", words=("dog",))])
    with pytest.raises(InputError, match=r"^categories is given twice: as a keyword and in data$"):
        call(data=MetricData(categories=pets), categories=pets)
    with pytest.raises(TypeError, match="'category'"):
        call(category=pets)


def test_corpus_keys_are_the_ones_people_know(result: Result) -> None:
    assert list(result.corpus) == ["SPICE", "SPICE_categories", "Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4"]


def test_spice_is_the_mean_of_the_items(result: Result) -> None:
    # item 7: 2 of 3 tuples found, of 3 in the references; item b: 1 of 2, of 2
    first, second = (row["SPICE"] for row in result.item_scores())
    assert (first, second) == (pytest.approx(2 / 3), pytest.approx(1 / 2))
    assert result.corpus["SPICE"] == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_micro_counts_a_colour_that_no_reference_has(result: Result) -> None:
    categories = result.corpus["SPICE_categories"]
    assert isinstance(categories, dict)
    assert list(categories) == CATEGORIES
    assert categories["Color"] == {
        "f": 0.0,
        "pr": 0.0,
        "re": 0.0,
        "items": 1,
        "micro": {"tp": 0, "fp": 2, "fn": 1, "pr": 0.0, "re": 0.0, "f": 0.0},
    }
    assert categories["Size"] == {
        "f": None,
        "pr": None,
        "re": None,
        "items": 0,
        "micro": {"tp": 0, "fp": 0, "fn": 0, "pr": None, "re": None, "f": None},
    }


def test_an_items_undefined_category_is_none_and_keeps_its_counts(result: Result) -> None:
    categories = result.item_scores()[1]["SPICE_categories"]
    assert isinstance(categories, dict)
    assert categories["Color"] == {"f": None, "pr": None, "re": None, "tp": 0, "fp": 1, "fn": 0}


def test_json_has_signature_corpus_and_items_with_ids(result: Result) -> None:
    value = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert list(value) == ["signature", "corpus", "items"]
    assert [item["image_id"] for item in value["items"]] == [7, "b"]
    assert value["items"][0]["scores"].keys() == value["corpus"].keys()
    assert value["signature"]["metrics"]["spice"]["pipeline"] == "words-1"
    assert value["signature"]["references"]["min"] == 2


@needs_graded
def test_scores_without_evidence_are_the_same() -> None:
    """Only the matches are gone."""
    names = ("spice", "spice-exact", "spice-g", "spider", "bleu")
    full, bare = (score(ITEMS, names, pipeline=WordFacts(), evidence=evidence) for evidence in (True, False))
    assert bare.to_dict() == full.to_dict()
    assert all(statistic.match.reference for statistic in full.runs[0].statistics)
    assert not any(statistic.match.reference for run in bare.runs[:2] for statistic in run.statistics)
    assert all(statistic.match is None for statistic in bare.runs[2].statistics)


@needs_graded
def test_explanations_keep_the_evidence_that_they_need() -> None:
    """Who asks for explanations gets them, whether or not the matches are wanted otherwise."""
    run = score(ITEMS, ["spice-g"], pipeline=WordFacts(), explain=True, evidence=False).runs[0]
    assert [len(why.candidate) for why in run.explanations] == [3, 2]


def test_the_digest_tells_references_apart_and_not_their_order() -> None:
    def digest(items: Iterable[Item]) -> object:
        signature = score(items, ("bleu",)).signature["references"]
        assert isinstance(signature, dict)
        return signature["digest"]

    assert digest(ITEMS) == digest(reversed(ITEMS))
    assert digest(ITEMS) != digest(ITEMS[:1])
    assert digest(ITEMS) == digest([Item(7, "other candidates", ITEMS[0].references), ITEMS[1]])


def test_each_caption_is_parsed_once_for_all_metrics() -> None:
    source = WordFacts()
    steps: list[tuple[str, int, int]] = []

    def progress(what: str, done: int, total: int) -> None:
        steps.append((what, done, total))

    score((*ITEMS, Item(3, "car", ("car",))), ("spice", "spice-exact"), pipeline=source, progress=progress)
    assert sorted(source.seen) == sorted({"red_car dog", "blue_car dog", "car", "green_tree", "tree", "tree bench"})
    assert steps[-1] == ("parsing captions", 6, 6)


def test_no_pipeline_is_loaded_for_ngram_metrics() -> None:
    assert score(ITEMS, ("bleu",), pipeline="no such pipeline").corpus["Bleu_1"] is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_table_scores_every_item_or_says_none(name: str) -> None:
    items = [*ITEMS, Item(9, "!!!", ("a dog",)), Item(10, "a dog", ("...", "a dog"))]
    result = score(items, (name,), pipeline=WordFacts())
    assert list(result.signature["metrics"]) == [name]  # type: ignore[arg-type, call-overload]
    assert result.corpus
    for row in result.item_scores():
        numbers = [value for value in row.values() if not isinstance(value, dict)]
        assert numbers
        assert all(value is None or (isinstance(value, float) and math.isfinite(value)) for value in numbers)


@pytest.mark.parametrize(
    ("names", "expected"), [(["bleu", "spice", "bleu"], ("bleu", "spice")), *(([g], m) for g, m in GROUPS.items())]
)
def test_names_are_spelled_out_without_repeats(names: list[str], expected: tuple[str, ...]) -> None:
    assert metric_names(names) == expected


@pytest.mark.parametrize("names", [[], ["bleurt"], ["spice", "Bleux"]])
def test_unknown_metrics_are_refused_with_the_list_of_those_there_are(names: list[str]) -> None:
    with pytest.raises(InputError, match="the metrics are spice, spice-exact"):
        metric_names(names)


@pytest.mark.parametrize(
    ("name", "meant"), [("SPICCE", "spice"), ("spiice", "spice"), (" cidre", "cider"), ("COCOS", "coco")]
)
def test_a_misspelt_metric_is_met_with_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"there is no metric {name!a} \(did you mean {meant}\?\); the metrics are"):
        metric_names([name])


def test_a_string_holds_names_of_metrics_with_commas_between_them() -> None:
    assert metric_names("rouge, ROUGE_L,bleu") == ("rouge", "bleu")
    with pytest.raises(InputError, match="there is no metric ''"):
        metric_names("rouge,")
    with pytest.raises(InputError, match="there is no metric 'spice bleu': separate names with commas; the metrics"):
        metric_names("spice bleu")


def test_a_metric_is_a_class_or_says_where_one_is() -> None:
    assert MetricEntry(RougeL).kind is RougeL
    assert MetricEntry("spicegraph_scorer.metrics.rouge:RougeL").kind is RougeL
    for place in ("their_package.metric:Mine", "spicegraph_scorer.metrics.cider:Mine.of"):
        with pytest.raises(DataError, match=f"the metric at '{place}' can't be loaded: .*"):
            _ = MetricEntry(place).kind


def test_a_name_that_two_packages_register_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither package's numbers may appear under the other's name."""
    twice = [EntryPoint("spice", place, "spicegraph.metrics") for place in ("a:A", "b:B")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: twice)
    with pytest.raises(DataError, match="the metric 'spice' is registered twice: 'a:A', 'b:B'"):
        runpy.run_path(metrics.__file__)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    with pytest.raises(DataError, match="no metric is registered"):
        runpy.run_path(metrics.__file__)
