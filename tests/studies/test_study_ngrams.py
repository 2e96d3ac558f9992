"""ROUGE-S, BLEU of one order and CIDEr without its factor: worked values, and the calls of the notebook's last cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from spicegraph_parser import InputError
from spicegraph_scorer import Item, MetricData, score
from spicegraph_service.cli import main
from spicegraph_studies.ngrams import BleuOfOneOrder, skip_bigrams

GOLDEN = Path(__file__).parents[1] / "golden" / "ngram" / "ngram_scores.json.gz"
COCO = Path(__file__).parents[2] / "examples" / "coco"
FOX = "the quick brown fox jumped over the lazy dog"


def one(candidate: str, *references: str, metrics: str) -> dict[str, float | None]:
    return score([Item(1, candidate, references)], metrics).scores


def test_rouge_s_by_hand() -> None:
    # Pairs of the candidate: ab ac bc; of the reference: ac ab ad cb cd bd. In common: ab ac. R = 2/6, P = 2/3, and
    # F = 2.44 * (1/3 * 2/3) / (1/3 + 1.44 * 2/3).
    value = 2.44 * (2 / 9) / (1 / 3 + 1.44 * 2 / 3)
    assert one("alpha beta gamma", "alpha gamma beta delta", metrics="rouge-s")["ROUGE_S"] == pytest.approx(value)
    # Every pair of the reference is in the candidate, half of the candidate's in the reference: R = 3/3, P = 3/6.
    assert one("alpha beta gamma delta", "alpha beta gamma", metrics="rouge-s")["ROUGE_S"] == pytest.approx(1.22 / 1.72)
    # The best recall is of one reference (ab: 1 of 1), the best precision of the other (3 of 3).
    references = "alpha beta", "alpha beta gamma delta"
    value = 2.44 * (1 * 1) / (1 + 1.44 * 1)
    assert one("alpha beta gamma", *references, metrics="rouge-s")["ROUGE_S"] == pytest.approx(value)


def test_pairs_of_rouge_s_are_at_most_four_words_apart_and_count_as_often_as_they_stand() -> None:
    assert ("a", "e") in skip_bigrams(["a", "b", "c", "d", "e", "f"])
    assert ("a", "f") not in skip_bigrams(["a", "b", "c", "d", "e", "f"])
    # aa three times against once: min(3, 1) = 1.
    assert one("word word word", "word word", metrics="rouge-s")["ROUGE_S"] == pytest.approx(
        2.44 * (1 / 3) / (1 + 1.44 / 3)
    )
    assert one("word", "word", metrics="rouge-s")["ROUGE_S"] == 0.0


@pytest.mark.parametrize(("n", "value"), [(2, 0.6303549304175682), (3, 0.5883312683897303), (4, 0.5294981415507573)])
def test_bleu_of_one_order_is_that_of_weights(n: int, value: float) -> None:
    found = one("the fast fox jumped over the lazy dog", FOX, metrics=f"bleu-{n}-only")
    assert found == {f"Bleu_{n}_only": pytest.approx(value, abs=1e-7)}


def test_orders_together_are_bleu() -> None:
    items = coco_items()
    found = score(items, "bleu,bleu-2-only")
    # BLEU-2 is the geometric mean of both orders, each with the whole penalty.
    assert found["Bleu_2"] == pytest.approx(np.sqrt(found["Bleu_1"] * found["Bleu_2_only"]), abs=1e-9)
    statistics = found.runs[1].statistics
    metric = BleuOfOneOrder(2)
    sums = metric.columns(statistics).sum(axis=0, keepdims=True)
    assert metric.from_sums(sums)["Bleu_2_only"][0] == found["Bleu_2_only"]


def coco_items() -> list[Item]:
    references: dict[int, list[str]] = {}
    for row in json.loads((COCO / "captions.json").read_text("utf-8"))["annotations"]:
        references.setdefault(row["image_id"], []).append(row["caption"])
    rows = json.loads((COCO / "retrieval.json").read_text("utf-8"))[:30]
    return [Item(row["image_id"], row["caption"], tuple(references[row["image_id"]])) for row in rows]


@pytest.mark.parametrize("metric", ["cider", "cider-plain", "cider-r"])
def test_the_factor_of_cider_can_be_another(metric: str) -> None:
    items = coco_items()
    usual, bare = score(items, metric), score(items, metric, cider_scale=1.0, credit=True)
    (name,) = usual.scores
    assert bare[name] == pytest.approx(usual[name] / 10, rel=1e-12)
    assert bare.signature["metrics"][metric]["scale"] == "1"
    for item, credit in zip(bare, bare.runs[0].credits, strict=True):
        assert sum(word.credit for word in credit.words) == pytest.approx(item[name], abs=1e-9)


def test_spider_keeps_the_factor_and_wrong_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="cider_scale: is -1, expected a number above 0"):
        MetricData(cider_scale=-1)
    with pytest.raises(InputError, match="cider_scale: is nan"):
        MetricData(cider_scale=float("nan"))
    files = [str(COCO / "retrieval.json"), "--references", str(COCO / "captions.json")]
    assert main(["score", *files, "--metrics", "spider", "--cider-scale", "1"]) == 2
    assert "--cider-scale 1.0: none of the chosen metrics uses it; cider, cider-plain, cider-r do" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_calls_of_the_notebook(tmp_path: Path) -> None:
    """Its last cell reads two JSON files, and gives both dictionaries to each scorer of the toolkit.

    Source: "Evaluation metrics for Image Captioning tasks". Expected is what the toolkit prints on captions of COCO.
    """
    compat = pytest.importorskip("spicegraph_compat.pycocoevalcap", reason="the wing is left out")
    golden = json.loads(gzip.decompress(GOLDEN.read_bytes()))["near"]
    rows = [(str(item["image_id"]), item["tokens"]) for item in golden["items"]]
    (tmp_path / "gts.json").write_text(json.dumps({name: tokens["references"] for name, tokens in rows}))
    (tmp_path / "res.json").write_text(json.dumps({name: [tokens["candidate"]] for name, tokens in rows}))
    gts, res = (json.loads((tmp_path / f"{side}.json").read_text()) for side in ("gts", "res"))
    scorers = {"bleu": compat.Bleu(4), "cider": compat.Cider(), "meteor": compat.Meteor(), "rouge": compat.Rouge()}
    found = {name: scorer.compute_score(gts, res)[0] for name, scorer in scorers.items()}
    corpus = golden["corpus"]
    assert found["bleu"] == pytest.approx([corpus[f"Bleu_{n}"] for n in range(1, 5)], abs=1e-6)
    assert [found[name] for name in ("cider", "meteor", "rouge")] == pytest.approx(
        [corpus[name] for name in ("CIDEr", "METEOR", "ROUGE_L")], abs=1e-6
    )
