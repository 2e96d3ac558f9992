"""Diversity of sets of captions: figures of the usual scripts, worked values, contradictions, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spicegraph_parser import InputError, load_pipeline
from spicegraph_scorer import DocumentFrequencies, FactCache
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_service.cli import main
from spicegraph_studies.diversity import distinct_share, find_diversity, mutual_bleu, self_cider

COCO = Path(__file__).parents[2] / "examples" / "coco" / "captions.json"

# The first five captions of each of the 200 images of examples/coco as five samples of one system: what the script of
# self-critical training prints, on the toolkit's tokens.
SCRIPT = {
    "Div_1": 0.5342697386566988,
    "Div_2": 0.7454133267586568,
    "Vocabulary": 1434.0,
    "Self_CIDEr": 0.871300,
    "mBLEU_1": 0.6202464213741826,
    "mBLEU_2": 0.4226257296046336,
    "mBLEU_3": 0.2842551630738076,
    "mBLEU_4": 0.18873118374574752,
}


def five_of_each() -> dict[int, list[str]]:
    sets: dict[int, list[str]] = {}
    for row in json.loads(COCO.read_text("utf-8"))["annotations"]:
        sets.setdefault(row["image_id"], []).append(row["caption"])
    return {image: captions[:5] for image, captions in sets.items()}


def test_figures_are_those_of_the_usual_script() -> None:
    values = find_diversity(five_of_each()).values()
    assert {name: values[name] for name in SCRIPT} == pytest.approx(SCRIPT, abs=1e-6)


def test_self_cider_is_that_of_the_shim() -> None:
    compat = pytest.importorskip("spicegraph_compat.pycocoevalcap", reason="the wing is left out")
    sets = dict(list(five_of_each().items())[:20])
    tokens = [[" ".join(words) for words in tokenize_texts(captions)] for captions in sets.values()]
    scorer = compat.PlainCider(
        df=DocumentFrequencies.from_references([[tuple(text.split()) for text in texts] for texts in tokens])
    )
    shares = []
    for kernel in scorer.my_self_cider(tokens):
        roots = np.sqrt(np.clip(np.linalg.eigvalsh(kernel / 10), 0, None))
        shares.append(-np.log(roots[-1] / roots.sum()) / np.log(len(roots)))
    assert find_diversity(sets).self_cider == pytest.approx(np.mean(shares), abs=1e-9)


def test_div_by_hand() -> None:
    captions = [("a", "dog", "runs"), ("a", "dog", "sits")]
    assert distinct_share(captions, 1) == 4 / 6
    assert distinct_share(captions, 2) == 3 / 6
    assert distinct_share([()], 1) is None


def test_equal_captions_have_no_diversity_and_unrelated_ones_all() -> None:
    assert self_cider(np.full((4, 4), 10.0)) == 0.0
    assert self_cider(np.eye(4) * 10) == 1.0
    assert self_cider(np.zeros((2, 2))) is None
    found = find_diversity({1: ["a dog runs", "a dog runs"], 2: ["two cats sleep", "snow on mountains"]})
    assert [one.self_cider for one in found.sets] == [0.0, 1.0]
    assert mutual_bleu({1: ["a dog runs here", "a dog runs here"]}) == pytest.approx((1, 1, 1, 1), abs=1e-6)


def test_sets_of_different_sizes_count_where_they_can() -> None:
    found = find_diversity({1: ["a dog", "a cat", "a cow"], 2: ["a man"]}, training=["A dog.", "a horse"])
    assert [one.captions for one in found.sets] == [3, 1]
    assert found.sets[1].self_cider is None
    assert found.novel == 3 / 4
    assert found.vocabulary == 5


@pytest.mark.model
@pytest.mark.parametrize(
    ("first", "second", "aspect"),
    [
        ("A brown dog lies on a couch.", "A black dog lies on a couch.", "colour"),
        ("Two dogs lie on a couch.", "Three dogs lie on a couch.", "count"),
        ("A small dog lies on a couch.", "A big dog lies on a couch.", "size"),
        ("A man wears a hat.", "A man wears no hat.", "denial"),
    ],
)
def test_contradictions_are_counted_by_pairs(first: str, second: str, aspect: str) -> None:
    facts = FactCache(load_pipeline())
    (one,) = find_diversity({1: [first, second, first]}, facts=facts).sets
    assert one.graph is not None
    assert one.graph.pairs == 3
    assert one.graph.contradicting == {aspect: 2, "any": 2}
    (same,) = find_diversity({1: [first, first]}, facts=facts).sets
    assert same.graph is not None
    assert same.graph.contradicting == {"any": 0}
    assert same.graph.objects + same.graph.attributes + same.graph.relations == same.graph.of_one


def test_what_is_no_set_is_refused() -> None:
    with pytest.raises(InputError, match="no image has several captions"):
        find_diversity({1: ["a dog"], 2: ["a cat"]})
    with pytest.raises(InputError, match=r"2 images without captions, or with an empty one: 'a', 7"):
        find_diversity({"a": [], 7: ["a dog", " "], 8: ["a", "b"]})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets.json").write_text(
        json.dumps({"1": ["A brown dog.", "A black dog."], "2": ["Two men.", "Two men."]})
    )
    (tmp_path / "other.json").write_text(json.dumps({"1": ["A dog.", "A cat."], "2": ["Two men.", "A tree."]}))
    (tmp_path / "refs.json").write_text(json.dumps({"1": ["A brown dog."], "2": ["Two men on horses.", "Men."]}))
    return tmp_path


@pytest.mark.model
def test_the_command_compares_systems_and_draws_quality_against_diversity(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["diversity", "mine=sets.json", "other.json", "--references", "refs.json", "--training", "refs.json"]
    assert main([*command, "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["systems"]
    assert (first["name"], second["name"]) == ("mine", "other")
    assert first["corpus"]["Contradicting_colour"] == 0.5
    assert first["corpus"]["Novel"] == 0.75
    names = {"CIDEr_average", "CIDEr_oracle", "SPICE_average", "SPICE_oracle", "AllSPICE"}
    assert set(first["quality"]) == names
    assert first["quality"]["SPICE_average"] < first["quality"]["SPICE_oracle"] <= 1
    assert second["corpus"]["Self_CIDEr"] > first["corpus"]["Self_CIDEr"]
    assert [image["image_id"] for image in first["images"]] == [1, 2]
    assert main([*command, "-o", "page.html"]) == 0
    page = (files / "page.html").read_text("utf-8")
    for name in names:
        assert f"{name} and self-CIDEr" in page
    assert main(["diversity", "sets.json", "--no-graphs", "--format", "csv", "--table", "images"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("sets,1,2,")


def test_figures_can_be_asked_for_by_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["diversity", "sets.json", "--format", "json", "--references", "refs.json"]
    assert main([*command, "--metrics", "div-2, Self-CIDEr, mbleu,rouge"]) == 0
    (system,) = json.loads(capsys.readouterr().out)["systems"]
    assert list(system["corpus"]) == ["Div_2", "mBLEU_1", "mBLEU_2", "mBLEU_3", "mBLEU_4", "Self_CIDEr"]
    assert set(system["quality"]) == {"ROUGE_L_average", "ROUGE_L_oracle"}
    assert main([*command, "--metrics", "vocabulary"]) == 0
    (system,) = json.loads(capsys.readouterr().out)["systems"]
    assert (system["corpus"], "quality" in system) == ({"Vocabulary": 6.0}, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sets.json", "--metrics", "novel"], "novel says which captions are not in --training FILE"),
        (["sets.json", "--metrics", "div-3"], "there is no metric 'div-3'"),
        (["refs1.json"], "no image has several captions"),
        (["sets.json", "--references", "refs1.json"], "--references: 1 image without references: 2"),
        (["missing.json"], "missing.json"),
        (["sets.json", "--format", "csv", "--table", "x"], "there is no table 'x'; there are figures, images"),
    ],
)
def test_wrong_input_is_one_message(
    arguments: list[str], said: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "refs1.json").write_text(json.dumps({"1": ["A brown dog."]}))
    assert main(["diversity", *arguments, "--no-graphs"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
