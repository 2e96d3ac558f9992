"""A report of sets: the captions of an image, what they say and miss as one, and the mean and best of each score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spicegraph_scorer import score_sets
from spicegraph_service.cli import main

pytestmark = pytest.mark.model

SETS = {
    1: ["a brown dog", "A dog lies on a couch.", "a cat"],
    2: ["two red cars"],
    3: ["A man rides a horse.", "A man on a brown horse."],
}
REFERENCES = {
    1: ["A brown dog lies on a sofa.", "A dog on a red couch"],
    2: ["red cars", "two cars"],
    3: ["a man rides a black horse", "a person on a horse"],
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(SETS))
    (tmp_path / "d.json").write_text(json.dumps({image: texts[:1] * 2 for image, texts in SETS.items()}))
    (tmp_path / "r.json").write_text(json.dumps(REFERENCES))
    return tmp_path


def report(*more: str, output: str = "report.json") -> str:
    command = ["report", "c.json", *more, "--references", "r.json", "--candidates", "set", "--draws", "20"]
    assert main([*command, "-o", output]) == 0
    return Path(output).read_text("utf-8")


@pytest.fixture
def made() -> dict[str, Any]:
    return json.loads(report("--metrics", "spice,rouge,cider"))


@pytest.mark.parametrize("text", ["written", "coco"])
def test_the_table_has_what_the_library_gives(text: str) -> None:
    metrics = "spice,rouge,cider,bleu"
    made = json.loads(report("--metrics", metrics, "--spice-text", text))
    expected = score_sets(SETS, REFERENCES, metrics, spice_text=text)
    (system,) = made["systems"]
    rows = {row["name"]: row["value"] for row in system["scores"]}
    rows |= {f"SPICE_{row['name']}": row["f"] for row in system["categories"][1:]}
    values = expected.scores
    assert rows == {name.replace("AllSPICE", "SPICE"): value for name, value in values.items()}
    assert {"SPICE_average", "SPICE_oracle"} <= set(made["metrics"])
    assert made["of_sets"] is True
    each = {image["id"]: image["candidates"][0]["scores"][0] for image in made["images"]}
    assert each == {item.id: item["AllSPICE"] for item in expected}


def test_an_image_shows_its_captions_and_what_they_say_and_miss(made: dict[str, Any]) -> None:
    view = made["images"][0]["candidates"][0]
    text = view["caption"]
    assert text.split("\n") == SETS[1]
    words = {
        tuple(each["strings"]): [text[a:b] for mention in each["mentions"] for a, b in mention["spans"]]
        for each in view["candidate"]
    }
    assert words["dog",] == ["dog", "dog"]
    assert words["dog", "brown"] == ["brown", "dog"]
    assert words["dog", "lie on", "couch"] == ["dog", "lies", "on", "couch"]
    assert words["cat",] == ["cat"]
    assert [each["strings"] for each in view["candidate"] if not each["partners"]] == [["cat"]]
    missed = [each["strings"] for each in view["reference"] if not each["partners"]]
    assert missed == [["dog", "on", "sofa/couch"], ["sofa/couch", "red"]]
    lines = [(line["start"], line["end"]) for line in view["description"]["candidate"]["sentences"][0]]
    assert [text[start:end] for start, end in lines] == SETS[1]


def test_pages_and_tables_name_what_they_show() -> None:
    table = report("d.json", "--metrics", "spice,rouge", output="report.md")
    assert "AllSPICE" in table.splitlines()[4]
    for row in ("| AllSPICE |", r"| SPICE\_average |", r"| SPICE\_oracle |", r"| ROUGE\_L\_oracle |"):
        assert row in table
    assert "Sets of captions: AllSPICE" in table
    page = report("--metrics", "spice", output="report.html")
    assert '<th scope="row">AllSPICE' in page
    assert "Sets of captions: AllSPICE" in page


def test_reports_of_single_captions_are_as_before(files: Path) -> None:
    (files / "one.json").write_text(json.dumps({image: texts[0] for image, texts in SETS.items()}))
    assert main(["report", "one.json", "--references", "r.json", "--draws", "20", "-o", "one.md"]) == 0
    assert "AllSPICE" not in (files / "one.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--candidates", "best"], "--candidates best: a report is of one caption of each image, or of the set"),
        (["--candidates", "set", "--server", "localhost:1"], "--candidates set: a server's report is of one caption"),
        ([], "several"),
    ],
)
def test_what_a_report_does_not_have_is_refused(
    more: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "c.json", "--references", "r.json", *more, "-o", "report.html"]) == 2
    assert reason in capsys.readouterr().err
