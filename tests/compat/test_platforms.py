"""EvalAI, Codabench, CapEvalKit and the SPICE program's command line: their shapes around the same scores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_compat.benchmarks import score_submission
from spicegraph_compat.evalai import evaluate
from spicegraph_compat.jar import main as jar
from spicegraph_parser.errors import InputError
from spicegraph_scorer import read_items, score
from spicegraph_service.cli import main as spicegraph

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_scorer.core.results import Result

pytestmark = pytest.mark.model

CAPTIONS = {1: "A man rides a brown horse.", 2: "Two red cars on a road."}
REFERENCES = {1: ["A man is riding a horse.", "The brown horse."], 2: ["Two cars.", "Some red cars are on the road."]}
JAR = [{"image_id": n, "test": CAPTIONS[n], "refs": REFERENCES[n]} for n in CAPTIONS]
ANNOTATIONS = {
    "annotations": [{"image_id": n, "caption": caption} for n, texts in REFERENCES.items() for caption in texts]
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the captions in the files of each platform."""
    (tmp_path / "ref").mkdir()
    (tmp_path / "res").mkdir()
    (tmp_path / "in.json").write_text(json.dumps(JAR))
    (tmp_path / "ref" / "captions.json").write_text(json.dumps(ANNOTATIONS))
    (tmp_path / "res" / "mine.json").write_text(json.dumps([{"image_id": n, "caption": CAPTIONS[n]} for n in CAPTIONS]))
    (tmp_path / "predictions.jsonl").write_text(
        "".join(json.dumps({"id": n, "caption": CAPTIONS[n]}) + "\n" for n in CAPTIONS)
    )
    (tmp_path / "references.jsonl").write_text(
        "".join(json.dumps({"id": n, "references": REFERENCES[n]}) + "\n" for n in (*CAPTIONS,))
        + '{"id": 3, "references": ["an image without a prediction"]}\n'
    )
    return tmp_path


@pytest.fixture
def expected(files: Path) -> Result:
    return score(read_items(str(files / "in.json")).items, ("spice", "bleu"))


def test_evalai(files: Path, expected: Result) -> None:
    output = evaluate(
        str(files / "ref" / "captions.json"),
        str(files / "res" / "mine.json"),
        "test-phase",
        metrics=("spice", "bleu"),
        submission_metadata={"team": "x"},
    )
    scores = output["submission_result"]
    assert output["result"] == [{"test-phase": scores}]
    assert isinstance(scores, dict)
    assert scores["spice"] == expected.corpus["SPICE"]
    assert scores["bleu_4"] == expected.corpus["Bleu_4"]
    assert "spice_size_f" not in scores  # no reference has a size: undefined
    json.dumps(output, allow_nan=False)


def test_codabench(files: Path, expected: Result, capsys: pytest.CaptureFixture[str]) -> None:
    output = files / "out"
    status = spicegraph(["platform", "codabench", str(files), str(output), "--metrics", "spice,bleu"])
    scores = json.loads((output / "scores.json").read_text())
    page = (output / "detailed_results.html").read_text()
    assert status == 0
    assert scores["spice"] == expected.corpus["SPICE"]
    assert scores["bleu_1"] == expected.corpus["Bleu_1"]
    assert "bleu_4" in capsys.readouterr().out
    assert "<h2>SPICE by category</h2>" in page
    assert "Content-Security-Policy" in page
    for texts in REFERENCES.values():
        assert not any(text in page for text in texts), "private references"


def test_codabench_shows_references_only_when_told(files: Path) -> None:
    score_submission(files, files / "out", show_references=True)
    page = (files / "out" / "detailed_results.html").read_text()
    assert '<h2 id="images">' in page


def test_codabench_says_which_file_is_wrong(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "res" / "second.json").write_text("[]")
    assert spicegraph(["platform", "codabench", str(files), str(files / "out")]) == 2
    assert "must contain exactly one file, contains 2 (mine.json, second.json)" in capsys.readouterr().err
    (files / "res" / "second.json").unlink()
    (files / "res" / "mine.json").write_text('[{"image_id": 1, "caption": ""}]')
    with pytest.raises(InputError, match="image_id 1"):
        score_submission(files, files / "out")
    assert not (files / "out").exists()


def test_codabench_says_that_the_output_is_no_folder(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "out").write_text("")
    assert spicegraph(["platform", "codabench", str(files), str(files / "out"), "--metrics", "rouge"]) == 2
    assert "out: can't be made a folder (File exists)" in capsys.readouterr().err


def test_capevalkit(files: Path, expected: Result, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--predictions", str(files / "predictions.jsonl"), "--references", str(files / "references.jsonl")]
    status = spicegraph(
        ["platform", "capevalkit", *arguments, "--output", str(files / "o.json"), "--metrics", "spice,bleu"]
    )
    output = json.loads((files / "o.json").read_text())
    assert status == 0
    assert output["SPICE"] == expected.corpus["SPICE"]
    assert list(output["per_item"]) == ["1", "2"]
    assert [row["SPICE"] for row in output["per_item"].values()] == [row["SPICE"] for row in expected.item_scores()]
    left_out = f"1 image of the 3 in {files}/references.jsonl left out: no candidate"
    assert capsys.readouterr().err == f"warning: {files}/predictions.jsonl: {left_out}\n"


def test_capevalkit_says_nothing_where_every_image_has_a_prediction(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references = files / "references.jsonl"
    references.write_text("".join(references.read_text().splitlines(keepends=True)[:2]))
    arguments = ["--predictions", str(files / "predictions.jsonl"), "--references", str(references)]
    assert spicegraph(["platform", "capevalkit", *arguments, "-o", str(files / "o.json"), "--metrics", "rouge"]) == 0
    assert capsys.readouterr().err == ""


def test_references_that_were_submitted_are_pointed_out(files: Path) -> None:
    """EvalAI's function is called from a program, which gets Python's own warning."""
    given, sent = files / "given.jsonl", files / "sent.jsonl"
    given.write_text("".join(json.dumps({"id": n, "references": REFERENCES[1]}) + "\n" for n in range(6)))
    sent.write_text("".join(json.dumps({"id": n, "candidate": REFERENCES[1][0]}) + "\n" for n in range(6)))
    with pytest.warns(UserWarning, match="sent.jsonl: 6 of 6 candidates equal one of their own references"):
        evaluate(str(given), str(sent), "test-phase", metrics=("rouge",))


# The form of a block as SPICE 1.0 printed it on Java 17 for a file of two images.
BLOCK = """All tuples
  f-score:\t{f:.3f} (SPICE metric)
  precision:\t{pr:.3f}
  recall:\t{re:.3f}
  true pos:\t{tp}
  false pos:\t{fp}
  false neg:\t{fn}
  num images:\t2
"""


def test_the_jars_command_line_prints_the_same_lines(
    files: Path, expected: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jar([str(files / "in.json"), "-threads", "1"]) == 0
    out, err = capsys.readouterr()
    (means,) = (run.categories()["All"] for run in expected.runs if run.name == "spice")
    counts = {"tp": means.micro.matched, "fp": means.micro.candidate - means.micro.matched}
    counts["fn"] = means.micro.reference - means.micro.matched
    block = BLOCK.format(f=means.f, pr=means.pr, re=means.re, **counts)
    head, _, tail = out.partition("SPICE evaluation took: ")
    assert head == f"********  SPICE Evaluation  ********\n\n{block}\n"
    assert tail.endswith(" s\n")
    assert err == ""


def test_the_jars_command_line_prints_the_same_blocks(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert jar([str(files / "in.json"), "-subset", "-threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = ["All", "Relation", "Cardinality", "Attribute", "Size", "Color", "Object"]
    assert [line for line in lines if line.endswith(" tuples")] == [f"{name} tuples" for name in names]
    assert "  f-score:\tNaN (SPICE metric)" in lines  # Size
    assert lines.count("  num images:\t0") == 1


@pytest.mark.parametrize("flags", [(), ("-subset",), ("-detailed",), ("-detailed", "-subset", "-noSynsets")])
def test_the_jars_command_line_writes_the_same_json(
    files: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status = jar([str(files / "in.json"), "-out", str(files / "o.json"), *flags, "-silent", "-threads", "1"])
    assert (status, *capsys.readouterr()) == (0, "", "")
    rows = json.loads((files / "o.json").read_text())
    metric = "spice-exact" if "-noSynsets" in flags else "spice"
    whole = score(read_items(str(files / "in.json")).items, [metric])
    assert [row["image_id"] for row in rows] == [1, 2]
    assert list(rows[0]) == ["image_id", "scores", *(["test_tuples", "ref_tuples"] if "-detailed" in flags else [])]
    assert list(rows[0]["scores"])[1:] == (list(whole.runs[0].categories())[1:] if "-subset" in flags else [])
    for row, scores in zip(rows, whole.item_scores(), strict=True):
        categories = next(iter(scores[key] for key in scores if key.endswith("_categories")))
        assert row["scores"]["All"] == {**categories["All"], "numImages": 1}  # type: ignore[call-overload, dict-item, index]


def test_the_jars_cache_and_its_errors(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(files / "in.json"), "-out", str(files / "o.json"), "-silent", "-threads", "1"]
    assert jar([*arguments, "-cache", str(files / "new" / "cache")]) == 0
    first = (files / "o.json").read_text()
    assert jar([*arguments, "-cache", str(files / "new" / "cache")]) == 0
    assert (files / "o.json").read_text() == first
    assert len(list((files / "new" / "cache").iterdir())) >= 1
    for wrong in (["-threads", "0"], ["-threads", "x"], ["--nonsense"]):
        assert jar([*arguments, *wrong]) == 2
    assert jar([]) == 2
    assert jar(["missing.json"]) == 2
    assert "missing.json: there is no such file" in capsys.readouterr().err
    assert jar([*arguments, "-cache", str(files / "in.json")]) == 2
    assert "in.json: can't be made a folder (File exists)" in capsys.readouterr().err
