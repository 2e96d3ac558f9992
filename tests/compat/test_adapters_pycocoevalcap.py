"""The shapes and numbers of pycocoevalcap, which is run beside ours where it needs no Java."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu as TheirBleu
from pycocoevalcap.cider.cider import Cider as TheirCider
from pycocoevalcap.rouge.rouge import Rouge as TheirRouge

from spicegraph_compat.pycocoevalcap import COCO, Bleu, Cider, COCOEvalCap, Meteor, PTBTokenizer, Rouge, Spice
from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GTS = {
    391: ["a man rides a horse", "man on a horse"],
    522: ["a dog"],
    184: ["the cat sat on the mat", "a cat"],
    318: ["two red cars on a road"],
}
RES = {391: ["a man on horse"], 522: ["a big dog runs"], 184: ["the cat"], 318: ["one blue car"]}
CATEGORIES = {"All", "Relation", "Cardinality", "Attribute", "Size", "Color", "Object"}


class LetterFacts:
    """Every word is an object: enough to tell images apart."""

    signature = "letters"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return (tuple(Fact((word,), "objects", ()) for word in text.split()) for text in texts)


@pytest.fixture
def spice() -> Spice:
    return Spice(pipeline=LetterFacts())


@pytest.mark.parametrize("n", [1, 2, 4])
def test_bleu(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    mine, each = Bleu(n).compute_score(GTS, RES)
    assert capsys.readouterr().out == ""
    theirs, theirs_each = TheirBleu(n).compute_score(GTS, RES, verbose=0)
    assert mine == pytest.approx(theirs, abs=1e-12)
    assert np.allclose(each, theirs_each, atol=1e-12, rtol=0)
    assert type(mine[0]) is float
    assert Bleu().method() == "Bleu"


@pytest.mark.parametrize(("mine", "theirs"), [(Rouge, TheirRouge), (Cider, TheirCider)])
def test_rouge_and_cider(mine: type[Rouge | Cider], theirs: type) -> None:
    value, each = mine().compute_score(GTS, RES)
    expected, expected_each = theirs().compute_score(GTS, RES)
    assert value == pytest.approx(expected, abs=1e-12)
    assert np.allclose(each, expected_each, atol=1e-12, rtol=0)
    assert (type(value), type(each)) == (type(expected), type(expected_each))
    assert mine().method() == theirs().method()


@pytest.mark.filterwarnings("ignore:CIDEr is undefined")
def test_cider_of_a_single_image_is_0_as_in_the_original() -> None:
    value, each = Cider().compute_score({1: ["a dog"]}, {1: ["a dog"]})
    assert (value, each.tolist()) == (0.0, [0.0])


def test_meteor_gives_floats() -> None:
    value, each = Meteor().compute_score(GTS, RES)
    assert isinstance(value, float)
    assert len(each) == 4
    assert all(0 <= score < 1 for score in each)
    assert each[0] > 0.2
    assert Meteor().method() == "METEOR"


def test_spice_shapes(spice: Spice) -> None:
    value, scores = spice.compute_score(GTS, RES)
    assert type(value) is float
    assert value == pytest.approx(sum(score["All"]["f"] for score in scores) / 4)
    for score in scores:
        assert score.keys() == CATEGORIES
        for counts in score.values():
            assert counts.keys() == {"pr", "re", "f", "fn", "numImages", "fp", "tp"}
            assert all(type(number) is float for number in counts.values())
    assert math.isnan(scores[0]["Color"]["f"])
    assert spice.method() == "SPICE"


def test_spice_scores_are_in_the_order_of_the_sorted_ids(spice: Spice) -> None:
    scores = spice.compute_score(GTS, RES)[1]
    for image_id, score in zip(sorted(GTS), scores, strict=True):
        alone = spice.compute_score({image_id: GTS[image_id]}, {image_id: RES[image_id]})[1][0]
        assert score["All"] == alone["All"]
    assert len({score["All"]["f"] for score in scores}) == 4  # else a wrong order could pass


def test_tokenizer() -> None:
    captions = {2: [{"caption": "A man's dog.", "id": 1}, {"caption": "Two\ndogs, (running)!"}], 1: [{"caption": "!"}]}
    assert PTBTokenizer().tokenize(captions) == {2: ["a man 's dog", "two dogs -lrb- running -rrb-"], 1: [""]}


@pytest.mark.parametrize(
    ("gts", "res", "message"),
    [
        ({1: ["a"], 2: ["b"]}, {1: ["a"]}, "id 2, res: is missing"),
        ({1: ["a"]}, {1: ["a"], 3: ["b"]}, "id 3, gts: is missing"),
        ({1: ["a"]}, {1: ["a", "b"]}, "id 1, res: holds 2 captions, expected one"),
        ({1: ["a"]}, {1: []}, "id 1, res: contains no caption"),
        ({1: []}, {1: ["a"]}, "id 1, gts: contains no caption"),
        ({1: "a"}, {1: ["a"]}, "id 1, gts: is 'a', expected a list of strings"),
        ({1: ["a", None]}, {1: ["a"]}, "id 1, gts[1]: is None, expected a string"),
    ],
)
@pytest.mark.parametrize("scorer", [Bleu(), Rouge(), Cider(), Meteor(), Spice(pipeline=LetterFacts())])
def test_captions_that_do_not_pair_up(
    scorer: Bleu | Rouge | Cider | Meteor | Spice,
    gts: dict[int | str, list[str]],
    res: dict[int | str, list[str]],
    message: str,
) -> None:
    with pytest.raises(InputError) as caught:
        scorer.compute_score(gts, res)
    assert message in str(caught.value)
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("make", [lambda: Bleu(5), lambda: Bleu(0), lambda: Cider(n=3), lambda: Cider(sigma=1.0)])
def test_options_that_do_not_exist_are_refused(make: object) -> None:
    with pytest.raises(InputError):
        make()  # type: ignore[operator]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A COCO pair with ids in no order."""
    annotations = tmp_path / "annotations.json"
    results = tmp_path / "results.json"
    captions = [{"id": n, "image_id": i, "caption": c} for i, texts in GTS.items() for n, c in enumerate(texts)]
    annotations.write_text(json.dumps({"images": [{"id": i} for i in GTS], "annotations": captions}))
    results.write_text(json.dumps([{"image_id": i, "caption": RES[i][0]} for i in reversed(GTS)]))
    return annotations, results


def test_evaluation_puts_every_score_on_its_own_image(files: tuple[Path, Path]) -> None:
    """The original's imgToEval[391]["SPICE"] is image 184's score here: its list is sorted, its ids are not."""
    references = COCO(files[0])
    evaluation = COCOEvalCap(references, references.loadRes(files[1]), pipeline=LetterFacts())
    evaluation.evaluate()
    keys = ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr", "SPICE"]
    assert list(evaluation.eval) == keys
    assert list(evaluation.imgToEval) == list(GTS)
    assert evaluation.evalImgs == list(evaluation.imgToEval.values())
    rouge = dict(zip(GTS, TheirRouge().compute_score(GTS, RES)[1], strict=True))
    for image_id, scores in evaluation.imgToEval.items():
        assert list(scores) == ["image_id", *keys]
        assert scores["image_id"] == image_id
        assert scores["ROUGE_L"] == pytest.approx(rouge[image_id])
        alone = Spice(pipeline=LetterFacts()).compute_score({image_id: GTS[image_id]}, {image_id: RES[image_id]})
        assert isinstance(scores["SPICE"], dict)
        assert scores["SPICE"]["All"] == alone[1][0]["All"]


def test_evaluation_of_chosen_images(files: tuple[Path, Path]) -> None:
    references = COCO(files[0])
    evaluation = COCOEvalCap(references, references.loadRes(files[1]), pipeline=LetterFacts())
    evaluation.params["image_id"] = [522, 184]
    evaluation.evaluate()
    assert list(evaluation.imgToEval) == [522, 184]


def test_evaluation_takes_the_objects_of_pycocotools(files: tuple[Path, Path], capsys: object) -> None:
    from pycocotools.coco import COCO as TheirCOCO

    theirs = TheirCOCO(str(files[0]))
    evaluation = COCOEvalCap(theirs, theirs.loadRes(str(files[1])), pipeline=LetterFacts())
    evaluation.evaluate()
    ours = COCO(files[0])
    expected = COCOEvalCap(ours, ours.loadRes(files[1]), pipeline=LetterFacts())
    expected.evaluate()
    assert evaluation.eval == pytest.approx(expected.eval)


def test_results_of_unknown_images_are_refused(files: tuple[Path, Path]) -> None:
    files[1].write_text(json.dumps([{"image_id": 5, "caption": "a dog"}]))
    with pytest.raises(InputError, match=r"image_id 5.*is not in the references"):
        COCO(files[0]).loadRes(files[1])


NGRAMS = Path(__file__).parents[1] / "golden" / "ngram" / "ngram_scores.json.gz"


@pytest.mark.slow
@pytest.mark.parametrize("system", ["near", "far", "human"])
def test_evaluation_gives_the_toolkits_corpus_scores(system: str) -> None:
    """The numbers that pycocoevalcap printed, Java tokenizer and METEOR included."""
    spice_rows = Path(__file__).parents[1] / "golden" / "spice" / "spice_scores.jsonl.gz"
    with gzip.open(spice_rows, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["system"] == system]
    with gzip.open(NGRAMS, "rt", encoding="utf-8") as stream:
        golden = json.load(stream)[system]["corpus"]

    class Captions:
        def __init__(self, captions: dict[int | str, list[str]]) -> None:
            self.imgToAnns = {i: [{"caption": text} for text in texts] for i, texts in captions.items()}

        def getImgIds(self) -> list[int | str]:
            return list(self.imgToAnns)

    evaluation = COCOEvalCap(
        Captions({row["image_id"]: row["references"] for row in rows}),
        Captions({row["image_id"]: [row["candidate"]] for row in rows}),
        pipeline=LetterFacts(),
    )
    evaluation.evaluate()
    for name, value in golden.items():
        assert evaluation.eval[name] == pytest.approx(value, abs=1e-6), name
