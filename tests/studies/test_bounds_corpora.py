"""Bounds of several data sets side by side, captions drawn at random, and words at hyphens."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import InputError
from spicegraph_scorer import DocumentFrequencies, MetricData, score
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_service.cli import main
from spicegraph_studies.bounds import BoundsStudy, find_bounds
from spicegraph_studies.bounds.corpora import drawn, is_corpus, split_hyphens

if TYPE_CHECKING:
    from pathlib import Path

FIRST = {
    "1": ["A brown dog lies on a couch.", "A well-known dog lies on a couch.", "A dog sleeps."],
    "2": ["Two men ride horses.", "Two men ride brown horses.", "Two men on a beach.", "Men ride."],
}
SECOND = {
    "a": ["A child runs.", "A child in red runs."],
    "b": ["Two dogs play.", "Dogs play."],
    "c": ["A man.", "A man!"],
}
BOTH = ["bounds", "ONE=first.json", "TWO=second.json", "--draws", "20"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, corpus in (("first", FIRST), ("second", SECOND)):
        (tmp_path / f"{name}.json").write_text(json.dumps(corpus))
    (tmp_path / "system.json").write_text(json.dumps([{"image_id": 1, "test": "a dog", "refs": ["a dog", "the dog"]}]))
    return tmp_path


def test_each_corpus_has_what_it_has_alone(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--metrics", "rouge,bleu-sentence", "--format", "json", "--lower", "intra"]
    assert main([*BOTH, *options]) == 0
    corpora = json.loads(capsys.readouterr().out)["corpora"]
    assert [each["name"] for each in corpora] == ["ONE", "TWO"]
    for corpus, file in zip(corpora, ("first.json", "second.json"), strict=True):
        assert main(["bounds", "--references", file, "--draws", "20", *options]) == 0
        assert {key: value for key, value in corpus.items() if key != "name"} == json.loads(capsys.readouterr().out)


def test_document_frequencies_are_those_of_each_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BOTH, "--metrics", "cider-plain", "--cider-scale", "1", "--lower", "none", "--format", "json"]) == 0
    corpora = json.loads(capsys.readouterr().out)["corpora"]
    for corpus, captions in zip(corpora, (FIRST, SECOND), strict=True):
        own = DocumentFrequencies.from_references([tokenize_texts(texts) for texts in captions.values()])
        expected = find_bounds(
            BoundsStudy.of(captions), metrics=["cider-plain"], data=MetricData(frequencies=own, cider_scale=1.0)
        )
        assert corpus["trials"][0]["scores"]["CIDEr-plain"]["value"] == expected.human.scores[0].value
        # A round is a corpus as any other: the first captions against the rest.
        items = BoundsStudy.of(captions).corpus(tuple(map(tuple, captions.values())), 0).items
        first = score(items, "cider-plain", frequencies=own, cider_scale=1.0)["CIDEr-plain"]
        assert corpus["trials"][0]["scores"]["CIDEr-plain"]["rounds"][0] == pytest.approx(first, abs=1e-12)


def test_tables_and_page_have_every_corpus(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--metrics", "rouge,bleu-sentence", "--lower", "intra,inter"]
    assert main([*BOTH, *options]) == 0
    table = capsys.readouterr().out
    assert "ONE: 2 images, 7 captions, each scored against the 2 to 3 others of its image." in table
    for title in ("(upper bound)", "Lower bounds", "tau-b of every two scores of people, over captions", "over images"):
        assert title in table
    assert "corpora:ONE=" in table
    assert main([*BOTH, *options, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["corpus"], row["trial"]) for row in rows} == {
        (corpus, trial) for corpus in ("ONE", "TWO") for trial in ("human", "intra", "inter")
    }
    assert main([*BOTH, *options, "-o", "page.html"]) == 0
    page = (files / "page.html").read_text("utf-8")
    assert page.count('<svg class="plot"') == 2
    assert "ROUGE_L of people in each corpus" in page


def test_captions_are_drawn_by_the_seed() -> None:
    captions = {image: tuple(f"caption {n}" for n in range(9)) for image in range(50)}
    chosen = drawn(captions, 3, 1)
    assert chosen == drawn(captions, 3, 1)
    assert chosen != drawn(captions, 3, 2)
    assert all(len(texts) == 3 and list(texts) == sorted(set(texts)) for texts in chosen.values())
    assert len({text for texts in chosen.values() for text in texts}) == 9
    assert drawn({1: ("a", "b")}, 3, 1) == {1: ("a", "b")}


def test_drawing_and_hyphens_are_in_the_signature(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--metrics", "rouge", "--lower", "none", "--format", "json", "--draw", "2", "--seed", "3"]
    assert main([*BOTH, *options, "--split-hyphens"]) == 0
    first, second = json.loads(capsys.readouterr().out)["corpora"]
    assert first["captions"] == 4
    assert first["signature"]["drawn"] == "2 captions of each image, seed 3"
    assert second["signature"]["hyphens"] == "split"


def test_words_are_split_at_hyphens(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    assert split_hyphens("a black-and-white dog - see -x y-") == "a black and white dog - see -x y-"
    (files / "h.json").write_text(json.dumps({"1": ["a well-known dog", "a well known dog"]}))
    shares = []
    for option in ("--keep-hyphens", "--split-hyphens"):
        command = ["bounds", "H=h.json", option, "--metrics", "rouge", "--lower", "none", "--format", "json"]
        assert main(command) == 0
        shares.append(json.loads(capsys.readouterr().out)["trials"][0]["scores"]["ROUGE_L"]["value"])
    assert shares[0] < shares[1] == 1.0


def test_what_is_a_corpus(files: Path) -> None:
    assert is_corpus("first.json")
    assert not is_corpus("system.json")
    assert not is_corpus("-")
    (files / "results.json").write_text('[{"image_id": 1, "caption": "a dog"}]')
    assert not is_corpus("results.json")
    (files / "faulty.json").write_text('{"1": ["a dog", 7]}')
    with pytest.raises(InputError, match=r"faulty.json"):
        is_corpus("faulty.json")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first.json", "--captions", "2", "--draw", "2"], "--captions, --draw: the first captions of an image"),
        (["first.json", "--draw", "1"], "at least 2 of each image are needed"),
        (["first.json", "second.json", "--draw", "3"], "3 images with fewer than 3 captions"),
        (["first.json", "system.json"], "first.json: holds references"),
    ],
)
def test_wrong_input_is_one_message(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bounds", *arguments, "--metrics", "rouge", "--lower", "none"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
