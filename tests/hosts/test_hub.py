"""The Hugging Face Hub: what is written is what huggingface_hub reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from huggingface_hub import EvalResultEntry, ModelCardData, eval_result_entries_to_yaml, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results
from spicegraph_hub import Benchmark, eval_results, model_index

from conftest import ROWS
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, score

if TYPE_CHECKING:
    from spicegraph_scorer.core.results import Result

BENCHMARK = Benchmark(
    "lmms-lab/COCO-Caption2017", task="captions", split="val", revision="0" * 40, name="COCO captions"
)


@pytest.fixture
def result() -> Result:
    items = [Item(number, caption, references) for number, (caption, references) in enumerate(ROWS)]
    return score(items, ("spice", "rouge"), empty="zero")


def test_eval_results(result: Result) -> None:
    text = eval_results(result, BENCHMARK, date="2026-11-22")
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    expected = EvalResultEntry(
        dataset_id="lmms-lab/COCO-Caption2017",
        task_id="captions",
        value=result.corpus["SPICE"],
        dataset_revision="0" * 40,
        date="2026-11-22",
        notes=entry.notes,
    )
    assert entry == expected
    assert eval_result_entries_to_yaml([expected]) == yaml.safe_load(text)
    assert entry.notes.startswith("spice, spicegraph ")
    assert entry.notes.endswith(", 3 items")
    (least,) = parse_eval_result_entries(yaml.safe_load(eval_results(result, Benchmark("a/b"), metric="rouge_l")))
    assert (least.task_id, least.value, least.date) == ("default", result.corpus["ROUGE_L"], None)


@pytest.mark.parametrize(("metric", "message"), [("bleu_4", "no score 'bleu_4'"), ("spice_size_f", "is undefined")])
def test_scores_that_are_not_there(result: Result, metric: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        eval_results(result, BENCHMARK, metric=metric)


def test_model_card(result: Result) -> None:
    index = model_index(result, BENCHMARK, model="captioner")
    name, found = model_index_to_eval_results(index["model-index"])
    assert name == "captioner"
    assert {each.metric_type: each.metric_value for each in found} == {
        "spice": result.corpus["SPICE"],
        "spice_precision": result.corpus["SPICE_categories"]["All"]["pr"],  # type: ignore[index,call-overload]
        "spice_recall": result.corpus["SPICE_categories"]["All"]["re"],  # type: ignore[index,call-overload]
        "rouge_l": result.corpus["ROUGE_L"],
    }
    assert {(each.task_type, each.dataset_name, each.dataset_split) for each in found} == {
        ("image-to-text", "COCO captions", "val")
    }
    card = ModelCardData(model_name=name, eval_results=found)
    assert yaml.safe_load(card.to_yaml())["model-index"][0]["name"] == "captioner"
