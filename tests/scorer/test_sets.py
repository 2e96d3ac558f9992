"""Several candidates of an image that are scored together: AllSPICE, the best and the mean, in Python and by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spicegraph_parser import InputError, load_pipeline
from spicegraph_scorer import FactCache, Item, Resampling, score, score_sets
from spicegraph_service.cli import main
from wings import needs_graded

COCO = Path(__file__).parents[2] / "examples" / "coco"
SETS = {1: ["a cat", "a dog runs"], 2: ["two red cars"]}
REFERENCES = {1: ["a dog runs fast"], 2: ["red cars", "two cars"]}


def coco() -> dict[int, list[str]]:
    captions: dict[int, list[str]] = {}
    for row in json.loads((COCO / "captions.json").read_text("utf-8"))["annotations"]:
        captions.setdefault(row["image_id"], []).append(row["caption"])
    return captions


def singles(sets, references):
    return [Item(f"{i}#{n}", text, tuple(references[i])) for i, texts in sets.items() for n, text in enumerate(texts)]


@pytest.mark.model
def test_all_spice_of_one_candidate_is_spice() -> None:
    references = coco()
    results = {row["image_id"]: row["caption"] for row in json.loads((COCO / "retrieval.json").read_text("utf-8"))}
    facts = FactCache(load_pipeline())
    together = score_sets({i: [text] for i, text in results.items()}, references, pipeline=facts)
    alone = score([Item(i, text, tuple(references[i])) for i, text in results.items()], pipeline=facts)
    for all_spice, spice in zip(together, alone, strict=True):
        assert all_spice["AllSPICE"] == all_spice["SPICE_average"] == all_spice["SPICE_oracle"] == spice["SPICE"]
        assert all_spice.categories["AllSPICE"] == spice.categories["SPICE"]
    assert together["AllSPICE_Color"] == alone["SPICE_Color"]


@pytest.mark.model
def test_all_references_as_candidates_say_everything() -> None:
    references = coco()
    found = score_sets(references, references)
    assert len(found) == 200
    for image in found:
        assert image["AllSPICE"] == 1.0
        assert image["AllSPICE"] >= image["SPICE_oracle"] >= image["SPICE_average"]


@pytest.mark.model
def test_candidates_of_a_set_are_merged_as_references_are() -> None:
    # One says the dog, the other its colour and the couch: together they say what the reference says, alone they don't.
    sets = {1: ["A dog lies on a couch.", "A brown dog."], 2: ["A cat."]}
    found = score_sets(sets, {1: ["A brown dog lies on a couch."], 2: ["A cat."]})
    first = next(iter(found))
    assert first["AllSPICE"] == 1.0
    assert first["SPICE_oracle"] < 1.0


def test_best_and_mean_by_hand() -> None:
    each = {item.id: item["ROUGE_L"] for item in score(singles(SETS, REFERENCES), "rouge")}
    found = score_sets(SETS, REFERENCES, "rouge")
    first, second = found
    assert first.scores == {
        "ROUGE_L_average": pytest.approx((each["1#0"] + each["1#1"]) / 2),
        "ROUGE_L_oracle": each["1#1"],
    }
    assert second["ROUGE_L_average"] == second["ROUGE_L_oracle"] == each["2#0"]
    assert found["ROUGE_L_oracle"] == pytest.approx((each["1#1"] + each["2#0"]) / 2)
    assert {item["image_id"] for item in found.to_dict()["items"]} == {1, 2}


def test_document_frequencies_count_each_image_once() -> None:
    alone = score([Item(i, texts[-1], tuple(REFERENCES[i])) for i, texts in SETS.items()], "cider")
    found = score_sets({i: texts[-1:] * (4 if i == 1 else 1) for i, texts in SETS.items()}, REFERENCES, "cider")
    assert [item["CIDEr_oracle"] for item in found] == [item["CIDEr"] for item in alone]


@needs_graded
def test_where_lower_is_better_the_best_is_the_lowest() -> None:
    sets, references = {1: ["a dog and a cat", "a dog"]}, {1: ["a dog runs"]}
    found = score_sets(sets, references, "chair")
    assert found["CHAIRi_oracle"] == 0.0
    assert found["CHAIRi_average"] == 0.25
    assert found["CHAIR_Recall_oracle"] == 1.0


@pytest.mark.model
def test_intervals_and_the_toolkits_text() -> None:
    found = score_sets(SETS, REFERENCES, "spice,rouge", confidence=Resampling(20, 1), spice_text="coco")
    assert set(found.confidence) >= {"AllSPICE", "AllSPICE_Color", "SPICE_oracle", "ROUGE_L_average"}
    assert found.signature["metrics"]["all-spice"]["text"] == "ptb-coco, each caption alone"


def test_every_fault_is_in_one_message() -> None:
    with pytest.raises(InputError, match=r"empty sets: 1 image: 'a'; sets without references: 2 images: 7, 8"):
        score_sets({"a": [], 7: ["a dog"], 8: ["a cat"]}, {"a": ["a dog"]})
    with pytest.raises(InputError, match=r"1#2.*is empty"):
        score_sets({1: ["a dog", " "]}, {1: ["a dog"]})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(SETS))
    (tmp_path / "r.json").write_text(json.dumps(REFERENCES))
    return tmp_path


@pytest.mark.model
def test_the_command_has_what_python_has(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["score", "c.json", "--references", "r.json", "--candidates", "set", "--metrics", "spice,cider"]
    assert main([*command, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = score_sets(SETS, REFERENCES, "spice,cider")
    assert printed["corpus"] == json.loads(json.dumps(expected.corpus))
    assert [row["image_id"] for row in printed["items"]] == [1, 2]
    assert printed["signature"]["candidates"] == {"min": 1, "max": 2, "scored": "set"}
    assert main(command) == 0
    table = capsys.readouterr().out
    assert "AllSPICE by category" in table
    assert "CIDEr_oracle" in table
    assert main([*command, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("image_id,SPICE_average,SPICE_oracle,AllSPICE,")


@pytest.mark.model
def test_marks_of_models_are_in_the_signature(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "c.json").write_text(json.dumps({"1": ["a cat <eos>", "a dog runs"], "2": ["two red cars"]}))
    command = ["score", "c.json", "--references", "r.json", "--candidates", "set", "--metrics", "rouge"]
    assert main([*command, "--format", "json"]) == 2
    capsys.readouterr()
    assert main([*command, "--format", "json", "--control-tokens", "strip"]) == 0
    assert json.loads(capsys.readouterr().out)["signature"]["control_tokens"]


@needs_graded
@pytest.mark.parametrize("more", [["--explain", "--metrics", "chair", "--format", "json"], ["--format", "spice"]])
def test_what_a_set_does_not_have_is_refused(more: list[str], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "c.json", "--references", "r.json", "--candidates", "set", *more]) == 2
    assert "--candidates set: a set has no --explain" in capsys.readouterr().err
