"""The shapes of evaluate, torchmetrics and aac-metrics: their calls, this library's numbers to the last bit.

The real ``evaluate`` is installed with the tests' packages. torchmetrics and aac-metrics bring torch (6 GB), and
aac-metrics 0.6.0 pins a package that was withdrawn; so their shapes are recorded here, and the tests against the real
ones run where they are installed: ``pip install torchmetrics 'aac-metrics<0.6'``.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_compat import aac_metrics
from spicegraph_compat.caption_metric import CaptionMetric, flat_scores, metric_path, paired_items
from spicegraph_compat.torchmetrics import SPICE_CATEGORIES, SpiceMetric, means_of_sums, sums_of
from spicegraph_graded.spice_g.building import build_table
from spicegraph_graded.spice_g.vectors import Vectors
from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, read_items, score
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.spice.metric import Spice, score_tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_parser import CaptionPipeline
    from spicegraph_scorer.core.results import Result

pytestmark = pytest.mark.model

COCO = Path(__file__).parents[2] / "examples" / "coco"
SIZE = 41


@pytest.fixture(scope="module")
def pipeline() -> CaptionPipeline:
    return load_pipeline()


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    found = read_items(str(COCO / "retrieval.json"), references=str(COCO / "captions.json")).items[:SIZE]
    return tuple(Item(index, item.candidate, item.references) for index, item in enumerate(found))


@pytest.fixture(scope="module")
def result(items: tuple[Item, ...], pipeline: CaptionPipeline) -> Result:
    return score(items, ("spice", "bleu", "rouge", "cider"), pipeline=pipeline)


@pytest.fixture
def candidates(items: tuple[Item, ...]) -> list[str]:
    return [item.candidate for item in items]


@pytest.fixture
def references(items: tuple[Item, ...]) -> list[list[str]]:
    return [list(item.references) for item in items]


def same(first: dict[str, float], second: dict[str, float]) -> bool:
    return first.keys() == second.keys() and all(
        first[key] == second[key] or (math.isnan(first[key]) and math.isnan(second[key])) for key in first
    )


def test_keys_are_flat(result: Result) -> None:
    flat = flat_scores(result)
    assert list(flat)[:3] == ["spice", "spice_precision", "spice_recall"]
    assert {"spice_color_f", "spice_object_recall", "bleu_4", "rouge_l", "cider"} < flat.keys()
    assert all(type(value) is float for value in flat.values())
    assert flat["spice"] == result.corpus["SPICE"]
    assert flat["spice_color_f"] == result.corpus["SPICE_categories"]["Color"]["f"]  # type: ignore[index, call-overload]


def test_evaluate_shape_gives_the_librarys_numbers(
    result: Result, candidates: list[str], references: list[list[str]], pipeline: CaptionPipeline
) -> None:
    metric = CaptionMetric(("spice", "bleu", "rouge", "cider"), pipeline=pipeline)
    assert same(metric.compute(predictions=candidates, references=references), flat_scores(result))
    metric.add(prediction=candidates[0], reference=references[0])
    metric.add_batch(predictions=candidates[1:20], references=references[1:20])
    assert same(metric.compute(predictions=candidates[20:], references=references[20:]), flat_scores(result))
    with pytest.raises(InputError, match="no items"):
        metric.compute()


def own_vectors() -> Vectors:
    words = [[frozenset({"dog", "lawn"}), frozenset({"puppy", "grass"}), frozenset({"dog", "grass"})]] * 3
    return Vectors.of(build_table(words, name="own", dimensions=2, fewest=2, order=None))


def test_evaluate_shape_takes_vectors_for_spice_g(pipeline: CaptionPipeline) -> None:
    own = own_vectors()
    pair = (["a puppy on grass"], [["a dog on a lawn"]])
    expected = score(paired_items(*pair), ("spice-g",), pipeline=pipeline, data=MetricData(vectors=own)).corpus[
        "SPICE-G"
    ]
    found = CaptionMetric(("spice-g",), pipeline=pipeline, data=MetricData(vectors=own)).compute(
        predictions=pair[0], references=pair[1]
    )
    assert found["spice-g"] == expected
    bundled = CaptionMetric(("spice-g",), pipeline=pipeline).compute(predictions=pair[0], references=pair[1])
    assert bundled["spice-g"] != expected


def test_evaluate_shape_takes_single_references_and_refuses_a_mismatch(pipeline: CaptionPipeline) -> None:
    metric = CaptionMetric(pipeline=pipeline)
    assert metric.compute(predictions=["a dog"], references=["a dog"])["spice"] == 1.0
    with pytest.raises(InputError, match="2 candidates and 1 list of references don't pair up"):
        metric.add_batch(predictions=["a", "b"], references=[["c"]])
    with pytest.raises(InputError, match="candidate: is empty"):
        metric.compute(predictions=[""], references=["a dog"])


def test_the_real_evaluate_loads_the_metric_offline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: Result, candidates: list[str], references: list[list[str]]
) -> None:
    for name, value in {"HF_HUB_OFFLINE": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed")
    metric = evaluate.load(metric_path(), "spice,bleu,rouge,cider", cache_dir=str(tmp_path))
    metric.add(prediction=candidates[0], reference=references[0])
    metric.add_batch(predictions=candidates[1:], references=references[1:])
    assert same(metric.compute(), flat_scores(result))
    alone = evaluate.load(metric_path(), cache_dir=str(tmp_path), keep_in_memory=True)
    assert alone.compute(predictions=["a dog"], references=["a dog"])["spice"] == 1.0
    graded = evaluate.load(metric_path(), "spice-g", cache_dir=str(tmp_path), keep_in_memory=True)
    pair, own = {"predictions": ["a puppy on grass"], "references": ["a dog on a lawn"]}, own_vectors()
    assert graded.compute(**pair, data=MetricData(vectors=own)) == CaptionMetric(
        ("spice-g",), data=MetricData(vectors=own)
    ).compute(**pair)


def batches(values: list[Any], size: int = 7) -> Iterator[list[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def test_torchmetrics_shape_gives_the_librarys_numbers_and_imports_no_torch(
    result: Result, candidates: list[str], references: list[list[str]], pipeline: CaptionPipeline
) -> None:
    metric, other = SpiceMetric(pipeline=pipeline), SpiceMetric(pipeline=pipeline)
    for index, (preds, target) in enumerate(zip(batches(candidates), batches(references), strict=True)):
        (metric, other)[index % 2].update(preds, target)
    metric.merge_state(other)
    spice = {key: value for key, value in flat_scores(result).items() if key.startswith("spice")}
    assert same(metric.compute(), spice)
    assert metric(["a dog"], ["a dog"])["spice"] == 1.0
    metric.reset()
    assert math.isnan(metric.compute()["spice"])
    assert "torch" not in sys.modules or "spicegraph_compat.torch_metric" in sys.modules


def test_a_faulty_batch_changes_no_state(pipeline: CaptionPipeline) -> None:
    metric = SpiceMetric(pipeline=pipeline)
    metric.update(["a dog"], ["a dog"])
    with pytest.raises(InputError):
        metric.update(["a dog", ""], ["a dog", "a cat"])
    assert metric.compute()["spice"] == 1.0


COUNTS = st.integers(1, 60).flatmap(
    lambda tuples: st.tuples(st.integers(0, tuples), st.just(tuples), st.integers(1, 60))
)


@given(st.lists(COUNTS, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_order(counts: list[tuple[int, int, int]], random: Any) -> None:
    statistics = []
    for matched, ours, theirs in counts:
        mine = [[f"x{n}"] for n in range(matched)] + [[f"y{n}"] for n in range(ours - matched)]
        reference = [[f"x{n}"] for n in range(matched)] + [[f"z{n}"] for n in range(theirs)]
        statistics.append(score_tuples(mine, [reference], exact=True).statistic)
    shuffled = statistics.copy()
    random.shuffle(shuffled)
    parts = [sums_of(part, SPICE_CATEGORIES) for part in batches(shuffled, 4)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    means = means_of_sums(total, SPICE_CATEGORIES)
    assert means["spice"] == math.fsum(s.counts["All"].f1 for s in statistics) / len(statistics)


def test_the_real_torchmetrics_adds_up_exactly(
    result: Result, candidates: list[str], references: list[list[str]]
) -> None:
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics (and torch, 6 GB) is not installed")
    import copy

    from spicegraph_compat.torch_metric import TorchSpice

    metric = TorchSpice()
    for preds, target in zip(batches(candidates), batches(references), strict=True):
        metric.update(preds, target)
    assert metric.compute()["spice"].item() == result.corpus["SPICE"]
    assert copy.deepcopy(metric).compute()["spice"].item() == result.corpus["SPICE"]
    several = torchmetrics.MetricCollection([TorchSpice()])
    several.update(["a dog"], [["a dog"]])
    assert several.compute().keys() == metric.compute().keys()


def test_aac_metrics_shape_gives_the_librarys_numbers(
    result: Result, candidates: list[str], references: list[list[str]], pipeline: CaptionPipeline
) -> None:
    # The recorded shape of aac-metrics 0.5 and 0.6: ({"spice": x}, {"spice": [x, ...]}), tensors there, numpy here.
    corpus, each = aac_metrics.spice(candidates, references, pipeline=pipeline, n_threads=2, java_max_memory="8G")
    assert list(corpus) == list(each) == ["spice"]
    assert corpus["spice"].item() == result.corpus["SPICE"]
    assert each["spice"].tolist() == [row["SPICE"] for row in result.item_scores()]
    assert aac_metrics.spice(candidates, references, False, pipeline=pipeline) == result.corpus["SPICE"]


def test_spider_is_the_mean_of_both(
    candidates: list[str], references: list[list[str]], pipeline: CaptionPipeline
) -> None:
    corpus, each = aac_metrics.spider(candidates, references, pipeline=pipeline)
    assert sorted(corpus) == ["cider_d", "spice", "spider"]
    assert corpus["spider"] == (corpus["cider_d"] + corpus["spice"]) / 2
    assert each["spider"].tolist() == ((each["cider_d"] + each["spice"]) / 2).tolist()
    assert aac_metrics.cider_d(candidates, references)[0]["cider_d"] == corpus["cider_d"]


def test_spider_max_takes_the_best_candidate(
    candidates: list[str], references: list[list[str]], pipeline: CaptionPipeline
) -> None:
    several = [[texts[0], candidate] for candidate, texts in zip(candidates, references, strict=True)]
    corpus, each = aac_metrics.spider_max(several, references, pipeline=pipeline)
    one = aac_metrics.spider(candidates, references, pipeline=pipeline)[1]["spider"]
    other = aac_metrics.spider([texts[0] for texts in references], references, pipeline=pipeline)[1]["spider"]
    assert each["spider_max"].tolist() == np.maximum(one, other).tolist()
    assert corpus["spider_max"] == each["spider_max"].mean()
    with pytest.raises(InputError, match="same number of candidates"):
        aac_metrics.spider_max([["a"], []], [["a"], ["b"]], pipeline=pipeline)
    with pytest.raises(InputError, match="at least two items"):
        aac_metrics.spider(["a dog"], [["a dog"]], pipeline=pipeline)


def test_the_real_aac_metrics_has_the_same_cider_d_and_names(
    candidates: list[str], references: list[list[str]]
) -> None:
    real = pytest.importorskip("aac_metrics.functional", reason="aac-metrics (and torch, 6 GB) is not installed")
    corpus, each = real.cider_d(candidates, references)
    ours, own = aac_metrics.cider_d(candidates, references)
    assert list(corpus) == list(ours)
    np.testing.assert_allclose(own["cider_d"], each["cider_d"].numpy(), rtol=0, atol=1e-12)


def test_batch_sums_are_those_of_the_metric(items: tuple[Item, ...], pipeline: CaptionPipeline) -> None:
    spice = Spice(pipeline)
    statistics = spice.collect(Corpus(items))
    means = means_of_sums(sums_of(statistics, SPICE_CATEGORIES), SPICE_CATEGORIES)
    assert means["spice"] == spice.total(statistics)[0].value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aac_metrics.cider_d(["a", "b"], [["a"], ["b"]], sgima=3.0), "unknown option sgima"),
        (lambda: aac_metrics.cider_d(["a", "b"], [["a"], ["b"]], scale=1.0), "got n=4, sigma=6, scale=1"),
        (lambda: aac_metrics.cider_d(["a", "b"], [["a"], ["b"]], return_tfidf=True), "return_tfidf must be False"),
        (lambda: aac_metrics.spice(["a"], [["a"]], pipline="x"), "unknown option pipline"),
        (lambda: aac_metrics.spider(["a", "b"], [["a"], ["b"]], n=3), "unknown option n"),
        (lambda: aac_metrics.spider_max([["a"], ["b"]], [["a"], ["b"]], cache="x"), "unknown option cache"),
    ],
)
def test_aac_options_are_used_or_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_aac_options_of_the_java_programs_do_nothing() -> None:
    options = {"java_path": "java", "n_threads": 2, "timeout": [60], "cache_path": "/none", "verbose": 1}
    plain = aac_metrics.spice(["a dog"], [["a dog"]], False)
    assert aac_metrics.spice(["a dog"], [["a dog"]], False, **options) == plain
