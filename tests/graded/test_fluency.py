"""Fluency: what the detector says of whole and broken captions, SPIDEr-FL by hand, and guards of rewards."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from spicegraph_graded.fluency.detector import KINDS, Detector, load_detector, sentences_of
from spicegraph_graded.fluency.metric import Fluency, fluency_of
from spicegraph_graded.rewards.guards import GUARDS
from spicegraph_graded.rewards.reward import make_reward
from spicegraph_parser import Fact, load_pipeline
from spicegraph_parser.errors import DataError, InputError
from spicegraph_scorer import METRICS, Corpus, Item, read_items, score
from spicegraph_scorer.scoring import resources

COCO = Path(__file__).parents[2] / "examples" / "coco"
REFERENCES = ("A dog is lying on a red couch.", "a brown dog sleeps on the sofa next to a pillow")


class Words:
    """A source that finds an object in every word."""

    signature = "words"

    def facts(self, texts):  # type: ignore[no-untyped-def]
        return [tuple(Fact((word,), "objects", ((n,),)) for n, word in enumerate(text.split())) for text in texts]


@pytest.mark.parametrize(
    ("caption", "kind"),
    [
        ("a man riding a wave on top of a", "unfinished"),
        ("A cat is sitting on a table with", "unfinished"),
        ("a dog on a couch and a dog on a couch", "repetition"),
        ("a man is standing in the the kitchen", "repetition"),
        ("on couch a a sitting dog the is", "order"),
    ],
)
def test_broken_captions_are_found_by_kind(caption: str, kind: str) -> None:
    (found,) = fluency_of(load_detector(), [caption])
    assert found.wrong > 0.5
    assert found.kind == kind


@pytest.mark.parametrize(
    "caption",
    [
        "A man riding a wave on top of a surfboard.",
        "Two dogs play with a ball while a man watches them.",
        "birds are chirping and a man is speaking",
        "The kitchen has a stove, a sink and a refrigerator. A cat sits on the counter.",
    ],
)
def test_whole_captions_pass(caption: str) -> None:
    assert fluency_of(load_detector(), [caption])[0].wrong < 0.3


def test_case_order_of_captions_and_the_batch_change_nothing() -> None:
    texts = ["A dog on a", "a dog on a couch.", "", "x" * 500, "🙂 🙂", "A DOG ON A COUCH"]
    together = fluency_of(load_detector(), texts)
    detectors = [replace(load_detector(), signature=f"number {n}") for n in range(len(texts))]  # which remember nothing
    assert [fluency_of(detector, [text])[0] for detector, text in zip(detectors, texts, strict=True)] == together
    assert together[1] == together[5]
    assert together[2].wrong == 1
    assert together[2].kind == "unfinished"


def test_the_worst_sentence_decides() -> None:
    whole, broken = "A dog sleeps on a couch.", "A cat sits on a"
    assert sentences_of("A dog, a cat. They play!") == [["a", "dog", ",", "a", "cat"], ["they", "play"]]
    assert sentences_of(f"{whole} {broken}")[1] == ["a", "cat", "sits", "on", "a"]
    both, alone = fluency_of(load_detector(), [f"{whole} {broken}", broken])
    assert both == alone


def test_probabilities_add_up_to_one() -> None:
    shares = load_detector().probabilities(sentences_of("a dog. a cat on a. man man"))
    assert shares.shape == (3, 1 + len(KINDS))
    assert shares.sum(axis=1) == pytest.approx(np.ones(3))


def test_a_detector_is_written_and_read(tmp_path: Path) -> None:
    detector = load_detector()
    detector.save(tmp_path / "copy.npz")
    copy = Detector.load(tmp_path / "copy.npz")
    sentences = sentences_of("A man with a. A man on a horse.")
    assert np.array_equal(copy.probabilities(sentences), detector.probabilities(sentences))
    (tmp_path / "broken.npz").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="is not a fluency detector"):
        Detector.load(tmp_path / "broken.npz")


def test_the_model_is_small() -> None:
    path = files("spicegraph_graded") / "fluency" / "data" / "detector.npz"
    assert len(path.read_bytes()) <= 2_000_000


def test_fluency_is_scored_with_its_kinds() -> None:
    items = (Item(1, "a dog on a couch", REFERENCES), Item(2, "a dog on a couch with a", REFERENCES))
    result = score(items, ["fluency"])
    fluency, errors = result.runs[0].scores
    assert (fluency.name, errors.name, errors.each) == ("Fluency", "FluencyError", (0.0, 1.0))
    assert fluency.each[0] > 0.9 > 0.1 > fluency.each[1]  # type: ignore[operator]
    assert result.runs[0].signature["threshold"] == "0.9"
    metric = Fluency(load_detector())
    found = metric.explain(metric.collect(Corpus(items))[1])
    assert found.is_broken
    assert max(found.to_dict()["kinds"].items(), key=lambda pair: pair[1])[0] == "unfinished"


def test_spider_fl_leaves_a_tenth_of_broken_captions() -> None:
    items = [
        Item(1, "a dog on a couch", REFERENCES),
        Item(2, "a dog on a couch with a", REFERENCES),
        Item(3, "a cat", ("a cat on a bed",)),
    ]
    spider, fl = score(items, ["spider", "spider-fl"], pipeline=Words()).runs
    whole, left = spider.scores[0].each, fl.scores[0].each
    assert left == pytest.approx([whole[0], 0.1 * whole[1], whole[2]])  # type: ignore[operator]
    assert whole[1] > 0  # type: ignore[operator]
    assert fl.scores[0].value == pytest.approx(np.mean(left))  # type: ignore[arg-type]
    assert {"spider-fl", "fluency"} <= set(METRICS)


@pytest.mark.parametrize(
    ("name", "stopped", "passed"),
    [
        ("unfinished", "a dog on a couch with a", "a dog on a couch"),
        ("disorder", "couch red a on a the with dog a of the", "a dog on a red couch"),
        ("said-again", "a dog on a red couch and a dog on a red couch", "a dog and a pillow on a couch"),
        ("excess", "a dog " * 16, "a dog " * 10),
        ("stub", "a dog", "a dog on couch"),
        ("signs", "a d\u200bog on a couch", "a dog on a café couch"),
        ("signs", "\u0430 dog on a couch", "a dog on a couch ☺"),
        ("hedge", "a dog or a cat or a man", "a dog or a puppy"),
        ("denial", "there is no dog on the couch", "a dog without a collar"),
        ("chain", "a couch sofa loveseat with a dog", "a couch and a sofa with a dog"),
        ("colours", "a red blue green yellow black white orange dog", "a red, white and blue couch"),
    ],
)
def test_each_guard_stops_and_passes(name: str, stopped: str, passed: str) -> None:
    assert GUARDS[name](Item(1, stopped, REFERENCES)) == 1
    assert GUARDS[name](Item(1, passed, REFERENCES)) == 0
    if name not in ("excess", "stub", "chain"):
        assert GUARDS[name](Item(1, stopped, (stopped,))) == 0, "what references do passes"


@pytest.mark.parametrize(
    ("caption", "kind"), [("a dog is barking and a dog barks", "repetition"), ("man horse beach dog ball", "function")]
)
def test_repetition_in_other_forms_and_telegrams_are_found(caption: str, kind: str) -> None:
    (found,) = fluency_of(load_detector(), [caption])
    assert found.wrong > 0.5
    assert found.kind == kind


def test_guards_are_terms_of_a_reward() -> None:
    items = (Item(1, "a dog on a couch", REFERENCES), Item(2, "a dog on a couch with a", REFERENCES))
    reward = make_reward("spice=1,guard=-1,guard-unfinished=-.5,guard-hedge=-1", resources(Words()))
    statistics = reward.collect(Corpus(items))
    assert [one.values[1:] for one in statistics] == [(0, 0, 0), (1, 1, 0)]
    assert reward.signature()["guard detector"] == load_detector().signature
    for value, found in zip(reward.total(statistics)[0].each, reward.credit(Corpus(items), statistics), strict=True):
        assert sum(word.credit for word in found.words) == pytest.approx(value)
    assert "guard" not in make_reward("spice=1", resources(Words())).signature()


@pytest.mark.model
def test_in_the_shape_of_aac_metrics_a_broken_caption_keeps_a_tenth() -> None:
    aac_metrics = pytest.importorskip("spicegraph_compat.aac_metrics", reason="the wing is left out")
    items = read_items(str(COCO / "human.json"), references=[str(COCO / "captions_without_first.json")]).items[:20]
    texts = [item.candidate for item in items[:-1]] + [f"{items[-1].candidate.rstrip(' .')} with a"]
    references, pipeline = [list(item.references) for item in items], load_pipeline()
    whole, own = aac_metrics.spider(texts, references, pipeline=pipeline)
    corpus, each = aac_metrics.spider_fl(texts, references, pipeline=pipeline, device="cpu")
    assert sorted(corpus) == sorted([*whole, "fer", "spider_fl"])
    assert each["fer"][-1] == 1
    assert each["fer"].min() == 0
    assert each["spider_fl"].tolist() == (own["spider"] * (1 - 0.9 * each["fer"])).tolist()
    assert corpus["spider_fl"] == each["spider_fl"].mean()
    unpunished = aac_metrics.spider_fl(texts, references, False, penalty=0, pipeline=pipeline)
    assert unpunished == pytest.approx(whole["spider"], rel=1e-12)  # added up in another order
    with pytest.raises(InputError, match="unknown option echecker"):
        aac_metrics.spider_fl(texts, references, pipeline=pipeline, echecker="none")
