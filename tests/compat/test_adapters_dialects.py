"""The calls of training and evaluation repositories, as they make them: the shapes, and the numbers of the originals."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections import OrderedDict, defaultdict
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pycocoevalcap.cider.cider import Cider as TheirCider
from pycocoevalcap.rouge.rouge import Rouge as TheirRouge
from pycocotools.coco import COCO as TheirCOCO

from spicegraph_compat import pycocoevalcap as ours
from spicegraph_compat.pycocoevalcap import (
    COCO,
    Bleu,
    Cider,
    CiderD,
    COCOEvalCap,
    COCOEvalCapSpice,
    Meteor,
    PTBTokenizer,
    Rouge,
    compute_scores,
)
from spicegraph_compat.shim.paths import module_spec
from spicegraph_parser.errors import DataError, InputError
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.metrics.cider import CiderWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GTS = {
    391: ["a man rides a horse", "man on a horse"],
    522: ["a dog"],
    184: ["the cat sat on the mat", "a cat"],
    318: ["two red cars on a road"],
}
RES = {391: ["a man on horse"], 522: ["a big dog runs"], 184: ["the cat"], 318: ["one blue car on a road"]}
LISTED = [{"image_id": image_id, "caption": caption} for image_id, caption in RES.items()]


class LetterFacts:
    """Every word is an object: enough to tell images apart."""

    signature = "letters"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return (tuple(Fact((word,), "objects", ()) for word in text.split()) for text in texts)


def annotations() -> dict[str, Any]:
    captions = [(image_id, text) for image_id, texts in GTS.items() for text in texts]
    return {
        "info": {"description": "four images"},
        "images": [{"id": image_id, "file_name": f"{image_id}.jpg"} for image_id in GTS],
        "annotations": [{"id": n, "image_id": i, "caption": text} for n, (i, text) in enumerate(captions, start=900)],
    }


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(annotations()))
    return path


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("pycocoevalcap.eval", "COCOEvalCap", ours.COCOEvalCap),
        ("pycocoevalcap.eval", "Spice", ours.Spice),
        ("pycocoevalcap.eval_spice", "COCOEvalCapSpice", ours.COCOEvalCapSpice),
        ("pycocoevalcap.bleu.bleu", "Bleu", ours.Bleu),
        ("pycocoevalcap.cider.cider", "Cider", ours.Cider),
        ("pycocoevalcap.cider.cider_scorer", "CiderScorer", ours.CiderScorer),
        ("pycocoevalcap.meteor.meteor", "Meteor", ours.Meteor),
        ("pycocoevalcap.rouge.rouge", "Rouge", ours.Rouge),
        ("pycocoevalcap.spice.spice", "Spice", ours.Spice),
        ("pycocoevalcap.tokenizer.ptbtokenizer", "PTBTokenizer", ours.PTBTokenizer),
        ("pyciderevalcap.cider.cider", "Cider", ours.PlainCider),
        ("pyciderevalcap.ciderD.ciderD", "CiderD", ours.CiderD),
        ("pyciderevalcap.tokenizer.ptbtokenizer", "PTBTokenizer", ours.PTBTokenizer),
        ("pycocotools.coco", "COCO", ours.COCO),
    ],
)
def test_the_shim_has_the_originals_names(module: str, name: str, expected: type) -> None:
    spec = module_spec(module, module)
    assert spec is not None
    filled = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(filled)
    assert getattr(filled, name) is expected


@pytest.mark.parametrize("path", ["pycocoevalcap.wmd", "pycocoevalcap.eval.other"])
def test_other_paths_do_not_exist(path: str) -> None:
    assert module_spec(path, path) is None


def test_self_critical_reward_of_image_captioning_pytorch() -> None:
    """Two samples and one greedy caption per image, each an entry of its own; frequencies of the batch."""
    texts = [["a man on horse", "a horse", "a man"], ["a big dog", "a dog runs", "a cat"]]
    gts = OrderedDict(enumerate([GTS[391], GTS[522], GTS[184]]))
    res = [{"image_id": n // 3, "caption": [text]} for n, text in enumerate([*texts[0], *texts[1], *texts[0]])]
    value, scores = CiderD(df="corpus").compute_score(gts, res)
    expanded = {n: gts[entry["image_id"]] for n, entry in enumerate(res)}
    expected, each = TheirCider().compute_score(expanded, {n: entry["caption"] for n, entry in enumerate(res)})
    assert value == pytest.approx(expected, abs=1e-12)
    assert np.allclose(scores, each, atol=1e-12, rtol=0)
    assert scores.shape == (9,)
    assert CiderD().method() == "CIDEr-D"


@pytest.mark.parametrize("cider", [Cider(GTS), Cider(gts=GTS)])
def test_references_given_to_cider_are_its_document_frequencies(cider: Cider) -> None:
    """Meshed-Memory Transformer's ``Cider(gts)``: a batch is weighed by the training set, not by itself."""
    batch = {image_id: GTS[image_id] for image_id in (184, 391)}
    candidates = {image_id: RES[image_id] for image_id in batch}
    whole = dict(zip(GTS, TheirCider().compute_score(GTS, RES)[1], strict=True))
    scores = cider.compute_score(batch, candidates)[1]
    assert np.allclose(scores, [whole[image_id] for image_id in batch], atol=1e-12, rtol=0)
    assert not np.allclose(scores, Cider().compute_score(batch, candidates)[1], atol=0.01)
    assert str(cider) == "CIDEr"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cider(GTS, GTS),
        lambda: Cider(GTS, df="other"),
        lambda: Cider(GTS, gts=GTS),
        lambda: Cider(["a dog"]),  # type: ignore[arg-type]
        lambda: CiderD(sigma=15.0),
        lambda: CiderD(n=2),
        lambda: PTBTokenizer("references"),
    ],
)
def test_arguments_are_used_or_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def written(folder: Path, content: object) -> Path:
    path = folder / "train-idxs.p"
    path.write_bytes(pickle.dumps(content, protocol=2))
    return path


@pytest.mark.parametrize("named", [False, True])
def test_frequencies_in_the_pickles_of_training_repositories(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for texts in GTS.values():
        words = [text.split() for text in texts]
        for ngram in {tuple(w[i : i + n]) for w in words for n in range(1, 5) for i in range(len(w) - n + 1)}:
            counts[ngram] += 1
    folder = tmp_path / "data"
    folder.mkdir()
    path = written(folder, {"document_frequency": counts, "ref_len": 4})
    monkeypatch.chdir(tmp_path)
    scores = CiderD(df="train-idxs" if named else path).compute_score(GTS, LISTED)[1]
    assert np.allclose(scores, TheirCider().compute_score(GTS, RES)[1], atol=1e-12, rtol=0)
    one = CiderD(df=path).compute_score(GTS, LISTED[:1])[1]
    assert one[0] == scores[0] != 0


def test_frequencies_of_coco_val_are_a_mapping_alone(tmp_path: Path) -> None:
    path = written(tmp_path, {("a",): 40000.0, ("dog",): 500.0, ("a", "dog"): 400.0})
    assert CiderD(df=path).cider_scorer.ref_len == pytest.approx(np.log(40504))
    assert CiderD(df=path).compute_score({1: ["a dog"]}, {1: ["a dog"]})[0] == pytest.approx(5.0)


class Harmful:
    """A pickle that would run a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (subprocess.getoutput, ("touch harmed",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Harmful(), "getoutput, which is not read"),
        ({"document_frequency": {("a",): 1.0}}, "does not hold document frequencies"),
        ({"document_frequency": {"a": 1.0}, "ref_len": 3}, "an n-gram is not a tuple of words"),
        ([1, 2], "does not hold document frequencies"),
    ],
)
def test_other_pickles_are_refused(
    content: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        CiderD(df=path)
    assert message in str(caught.value)
    assert not Path("harmed").exists()


def test_missing_frequencies_say_where_they_were_sought() -> None:
    with pytest.raises(DataError, match=r"no such file; tried coco-train, data/coco-train.npz, data/coco-train.p"):
        CiderD(df="coco-train")


def test_written_frequencies_are_read_too(tmp_path: Path) -> None:
    frequencies = DocumentFrequencies.from_references([[tuple(t.split()) for t in texts] for texts in GTS.values()])
    frequencies.write(tmp_path / "own.npz")
    for df in (frequencies, tmp_path / "own.npz", str(tmp_path / "own.npz")):
        assert np.array_equal(Cider(df=df).compute_score(GTS, RES)[1], Cider().compute_score(GTS, RES)[1])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"image_id": 391}, 'expected {"image_id": ..., "caption": [candidate]}'),
        ({"image_id": 7, "caption": ["a"]}, "id 7, gts: is missing"),
        ({"image_id": 391, "caption": "a"}, "id 391, res: is 'a', expected a list of strings"),
        ({"image_id": 391, "caption": ["a", "b"]}, "id 391, res: holds 2 captions, expected one"),
        ("a dog", "res[1]: is 'a dog'"),
    ],
)
def test_faulty_lists_of_results(entry: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        CiderD().compute_score(GTS, [LISTED[0], entry])
    assert message in str(caught.value)


def test_plain_cider_neither_clips_nor_looks_at_length() -> None:
    """``pyciderevalcap.cider.cider``: a caption that repeats its reference has the same direction."""
    gts = {1: ["a dog runs"], 2: ["two cats"]}
    res = [{"image_id": 1, "caption": ["a dog runs"]}, {"image_id": 2, "caption": ["two cats"]}]
    same = ours.PlainCider(df="corpus").compute_score(gts, res)
    assert same[1][0] == pytest.approx(7.5)  # no n-gram of four words
    longer = [{"image_id": 1, "caption": ["a dog runs"]}, {"image_id": 2, "caption": ["two cats two cats"]}]
    assert ours.PlainCider().compute_score(gts, longer)[1][1] > CiderD().compute_score(gts, longer)[1][1]


def test_self_cider_of_image_captioning_pytorch() -> None:
    """Weights from all references; every caption of an image against every other."""
    cider = ours.PlainCider(df="corpus")
    with pytest.raises(InputError, match="compute_doc_freq"):
        cider.my_self_cider([["a", "b"]])
    for texts in GTS.values():
        cider.cider_scorer += (None, texts)
    cider.cider_scorer.compute_doc_freq()
    cider.cider_scorer.ref_len = np.log(float(len(cider.cider_scorer.crefs)))
    (matrix,) = cider.my_self_cider([["a man rides a horse", "a dog", "a man rides a horse"]])
    assert matrix.shape == (3, 3)
    assert np.allclose(matrix, matrix.T)
    assert matrix[0, 2] == pytest.approx(10.0) == pytest.approx(matrix[0, 0])
    assert matrix[0, 1] == pytest.approx(
        ours.PlainCider(df=_frequencies()).compute_score({1: ["a dog"]}, {1: ["a man rides a horse"]})[0]
    )
    with pytest.raises(InputError, match="ref_len follows"):
        cider.cider_scorer.ref_len = 1.0


def _frequencies() -> DocumentFrequencies:
    return DocumentFrequencies.from_references([[tuple(t.split()) for t in texts] for texts in GTS.values()])


def test_cider_scorer_adds_up() -> None:
    scorer, other = ours.CiderScorer("a man on horse", GTS[391]), ours.CiderScorer()
    for image_id in (522, 184, 318):
        other += (RES[image_id][0], GTS[image_id])
    scorer += other
    assert scorer.size() == 4
    value, each = TheirCider().compute_score(GTS, RES)
    assert scorer.compute_score()[0] == pytest.approx(value, abs=1e-12)
    assert np.allclose(scorer.compute_score()[1], each, atol=1e-12, rtol=0)
    scorer += (None, ["a dog"])
    with pytest.raises(InputError, match="1 of 5 entries have no candidate"):
        scorer.compute_score()


@pytest.mark.parametrize(
    ("captions", "expected"),
    [
        ({1: ["A dog."], 2: ["Two cats!"]}, {1: ["a dog"], 2: ["two cats"]}),
        (["A dog.", "Two cats!"], {0: ["a dog"], 1: ["two cats"]}),
        ([["A dog.", "Dogs!"], ("Two cats!",)], {0: ["a dog", "dogs"], 1: ["two cats"]}),
        ([{"image_id": 7, "caption": "A dog."}], [{"image_id": 7, "caption": ["a dog"]}]),
        (
            [{"image_id": 7, "caption": "A dog."}, {"image_id": 7, "caption": ""}],
            [{"image_id": 7, "caption": ["a dog"]}, {"image_id": 7, "caption": [""]}],
        ),
        ({}, {}),
        ([], {}),
    ],
)
def test_tokenizer_takes_every_shape_also_on_the_class(captions: Any, expected: object) -> None:
    assert PTBTokenizer.tokenize(captions) == expected
    assert PTBTokenizer("res").tokenize(captions) == expected


def test_tokenizer_names_what_is_no_caption() -> None:
    with pytest.raises(InputError, match=r"id 3: 5 is not a caption"):
        PTBTokenizer.tokenize({3: [5]})  # type: ignore[list-item]


def test_scores_of_meshed_memory_transformer() -> None:
    corpus, images = compute_scores(GTS, RES)
    assert list(corpus) == list(images) == ["BLEU", "METEOR", "ROUGE", "CIDEr"]
    assert len(corpus["BLEU"]) == 4
    assert corpus["CIDEr"] == Cider().compute_score(GTS, RES)[0]
    assert corpus["METEOR"] == Meteor().compute_score(GTS, RES)[0]
    assert images["ROUGE"].tolist() == Rouge().compute_score(GTS, RES)[1].tolist()


def test_rouge_of_one_image() -> None:
    assert Rouge().calc_score(RES[391], GTS[391]) == pytest.approx(TheirRouge().calc_score(RES[391], GTS[391]))
    with pytest.raises(InputError):
        Rouge().calc_score(["a", "b"], GTS[391])


def test_bleu_subclass_with_its_own_verbose() -> None:
    class Silent(Bleu):
        def compute_score(self, gts: Any, res: Any) -> Any:  # type: ignore[override]
            return super().compute_score(gts=gts, res=res, verbose=0)

    assert Silent(4).compute_score(GTS, RES) == Bleu(4).compute_score(GTS, RES)


def test_coco_has_what_the_demo_notebook_calls(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, theirs = COCO(references), TheirCOCO(str(references))
    capsys.readouterr()
    for ids in ([], [184], [391, 318], 522):
        assert mine.getAnnIds(imgIds=ids) == theirs.getAnnIds(imgIds=ids)  # type: ignore[arg-type]
    assert mine.loadAnns(mine.getAnnIds(imgIds=184)) == theirs.loadAnns(theirs.getAnnIds(imgIds=184))
    assert mine.loadImgs(391) == theirs.loadImgs(391)
    assert mine.getImgIds() == theirs.getImgIds() == list(GTS)
    assert (mine.anns, mine.imgs, mine.imgToAnns) == (theirs.anns, theirs.imgs, theirs.imgToAnns)
    assert mine.dataset == theirs.dataset
    mine.showAnns(mine.loadAnns(mine.getAnnIds(imgIds=184)))
    assert capsys.readouterr().out == "the cat sat on the mat\na cat\n"


@pytest.mark.parametrize("as_given", [list, np.array, "file"])
def test_results_from_a_list_an_array_or_a_file(as_given: Any, references: Path, tmp_path: Path) -> None:
    results = [{"image_id": 318, "caption": "two cars", "extra": 1}, {"image_id": 184, "caption": ""}]
    if as_given == "file":
        given: Any = tmp_path / "results.json"
        given.write_text(json.dumps(results))
    else:
        given = as_given(results)
    found = COCO(references).loadRes(given)
    theirs = TheirCOCO(str(references)).loadRes([dict(row) for row in results])
    assert found.dataset["annotations"] == theirs.dataset["annotations"]
    assert found.getImgIds() == theirs.getImgIds() == [184, 318]
    assert found.imgToAnns[522] == []
    assert "id" not in results[0]  # the caller's own objects are left alone


def test_index_made_by_hand_as_lmms_eval_does() -> None:
    coco = COCO()
    coco.dataset = annotations()
    coco.createIndex()
    evaluation = COCOEvalCap(coco, coco.loadRes([{"image_id": i, "caption": RES[i][0]} for i in GTS]), "corpus")
    assert evaluation.params["image_id"] == list(GTS)
    assert evaluation.cocoRes.imgToAnns[391][0]["caption"] == RES[391][0]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([{"image_id": 5, "caption": "a"}], "result 1 (image_id 5), image_id: is not in the references"),
        ([{"image_id": 391, "caption": None}], "result 1 (image_id 391), caption: is None, expected a string"),
        ([{"image_id": None, "caption": "a"}], "result 1, image_id: is null, expected an integer or a string"),
        ([{"caption": "a"}], "expected {"),
        ([], "contains no result"),
        (np.zeros((2, 7)), "result 1: is [0.0, "),
        ({"391": "a"}, "is not a list"),
    ],
)
def test_faulty_results(results: Any, message: str, references: Path) -> None:
    with pytest.raises(InputError) as caught:
        COCO(references).loadRes(results)
    assert message in str(caught.value)


def test_setters_of_the_evaluation(references: Path) -> None:
    coco = COCO(references)
    evaluation = COCOEvalCap(coco, coco.loadRes([{"image_id": 522, "caption": "a dog"}]))
    evaluation.setEval(0.5, "Own")
    evaluation.setImgToEvalImgs([0.25, 0.75], [391, 522], "Own")
    evaluation.setEvalImgs()
    assert evaluation.eval == {"Own": 0.5}
    assert evaluation.evalImgs == [{"image_id": 391, "Own": 0.25}, {"image_id": 522, "Own": 0.75}]


def test_all_spice_takes_the_captions_of_an_image_as_one_graph(references: Path) -> None:
    """ImageCaptioning.pytorch's eval_multi: several samples per image."""
    coco = COCO(references)
    samples = [{"image_id": 522, "caption": text} for text in ("a dog", "a cat", "the dog")]
    samples += [{"image_id": 184, "caption": "the cat"}]
    evaluation = COCOEvalCapSpice(coco, coco.loadRes(samples), pipeline=LetterFacts())
    evaluation.params["image_id"] = evaluation.cocoRes.getImgIds()
    evaluation.evaluate()
    together = {"tp": 2.0, "fp": 2.0, "fn": 0.0}  # a, dog of the reference; cat, the are not in it
    assert {key: evaluation.imgToEval[522]["SPICE"]["All"][key] for key in together} == together  # type: ignore[index]
    assert list(evaluation.eval) == ["SPICE"]
    one = COCOEvalCap(coco, coco.loadRes([{"image_id": 184, "caption": "the cat"}]), pipeline=LetterFacts())
    one.params["image_id"] = [184]
    with pytest.warns(CiderWarning):
        one.evaluate()
    assert str(evaluation.imgToEval[184]["SPICE"]) == str(one.imgToEval[184]["SPICE"])  # NaN differs from NaN
    several = COCOEvalCap(coco, coco.loadRes(samples), pipeline=LetterFacts())
    several.params["image_id"] = [522]
    with pytest.raises(InputError, match="id 522, res: holds 3 captions, expected one"):
        several.evaluate()
