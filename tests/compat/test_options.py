"""Empty candidates, control tokens, data and texts, as other packages' call shapes take them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from spicegraph_compat.caption_metric import CaptionMetric, per_caption_metric
from spicegraph_compat.pycocoevalcap import COCO, Bleu, Cider, COCOEvalCap, Meteor, PTBTokenizer, Rouge, Spice
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_scorer import CategoryDefinition, Item, make_categories, read_items, score
from spicegraph_scorer.core.data import MetricData
from word_facts import WordFacts

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
ITEMS = (
    Item(1, "a brown dog runs", ("a dog runs on the grass", "the brown dog runs")),
    Item(2, " ", ("two cats sleep on a bed", "cats on a bed")),
    Item(3, "", ("a red car on a road", "the car is red")),
)


def test_in_parallel_lists() -> None:
    metric = CaptionMetric(("rouge",), empty="zero")
    metric.add(prediction="", reference="a dog")
    assert metric.compute() == {"rouge_l": 0.0}
    assert metric.score_one("a dog", ["a dog"]) == {"rouge_l": 1.0}
    with pytest.raises(InputError, match="is empty"):
        CaptionMetric(("rouge",)).score_one("", "a dog")


def test_as_pycocoevalcap_has_them() -> None:
    gts = {item.id: list(item.references) for item in ITEMS}
    res = {item.id: [item.candidate.strip()] for item in ITEMS}
    for scorer in (Bleu(), Cider(), Meteor(), Rouge()):
        each = scorer.compute_score(gts, res)[1]
        rows = each if isinstance(scorer, Bleu) else [each]
        assert all(list(row)[1:] == pytest.approx([0, 0], abs=1e-12) for row in rows), scorer.method()
    assert [row["All"]["f"] for row in Spice().compute_score(gts, res)[1]][1:] == [0, 0]


def test_the_toolkit_s_classes_keep_them_and_warn() -> None:
    with pytest.warns(UserWarning, match=r"1 of 1 caption contains what models leave behind.*: <eos>, <pad>; score"):
        tokens = PTBTokenizer().tokenize({1: ["a dog <eos> <pad>"]})
    assert tokens == {1: ["a dog <eos> <pad>"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PTBTokenizer().tokenize({1: ["a dog & a cat <3"]})


def test_control_tokens_are_taken_off_in_parallel_lists() -> None:
    metric = CaptionMetric(("rouge",), control_tokens="strip")
    metric.add_batch(predictions=["a dog runs <eos>"], references=[["a dog runs", "the dog"]])
    assert metric.compute() == {"rouge_l": 1.0}
    assert per_caption_metric("rouge").score_one("a dog <eos>", ["a dog"]) == {"rouge_l": 1.0}


def test_metrics_and_data_are_taken_as_score_takes_them() -> None:
    pets = make_categories([CategoryDefinition("Pet", words=("dog",))])
    with pytest.raises(InputError, match=r"^categories is given twice: as a keyword and in data$"):
        CaptionMetric(pipeline=WordFacts(), data=MetricData(categories=pets), categories=pets)
    with pytest.raises(TypeError, match="'category'"):
        CaptionMetric(category=pets)  # type: ignore[call-arg]
    assert {"rouge_l", "bleu_1"} <= set(CaptionMetric("rouge,bleu").score_one("a dog", ["a dog"]))


@pytest.mark.model
def test_the_group_coco_gives_what_cocoevalcap_prints() -> None:
    references, results = EXAMPLES / "captions_without_first.json", EXAMPLES / "human.json"
    coco = COCO(str(references))
    evaluation = COCOEvalCap(coco, coco.loadRes(str(results)))
    evaluation.params["image_id"] = [row["image_id"] for row in json.loads(results.read_text())]
    evaluation.evaluate()
    items = read_items(str(results), references=str(references), partial=True).items
    found = score(items, ("coco",), pipeline=load_pipeline())
    assert {name: found.corpus[name] for name in evaluation.eval} == pytest.approx(evaluation.eval, abs=1e-12)
    assert found.corpus["SPICE"] != score(items).corpus["SPICE"]
