"""Several systems at once: side by side, with the numbers that each has alone."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.pipelines import CaptionPipeline
from spicegraph_service.cli import main
from spicegraph_service.cli.options import system_names
from spicegraph_service.output import tables
from wings import needs_graded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from spicegraph_parser.spice.rules import Fact

REFERENCES = {"1": ["A brown dog runs.", "The two dogs run."], "2": ["A cat on a red sofa."]}
SYSTEMS = {
    "a": {"1": "a brown dog", "2": "a red sofa"},
    "b": {"1": "a cat on a bench", "2": "a cat"},
    "c": {"2": "a cat on a red sofa", "1": "a brown dog runs"},
}
BESIDE = ("--references", "references.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "references.json").write_text(json.dumps(REFERENCES))
    for name, captions in SYSTEMS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(captions))
    return tmp_path


def _output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["score", *arguments, *BESIDE]) == 0
    return capsys.readouterr().out


@pytest.mark.model
def test_json_holds_what_each_system_has_alone(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--metrics", "all", "--format", "json", "--confidence")
    found = json.loads(_output(capsys, "a.json", "mine=b.json", "c.json", *options))
    alone = [json.loads(_output(capsys, f"{name}.json", *options)) for name in SYSTEMS]
    assert found == {"systems": [{"name": n, **one} for n, one in zip(("a", "mine", "c"), alone, strict=True)]}


@pytest.mark.model
def test_no_caption_is_parsed_twice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parsed: list[str] = []
    facts = CaptionPipeline.facts

    def counted(self: CaptionPipeline, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        wanted = list(texts)
        parsed.extend(wanted)
        return facts(self, wanted)

    monkeypatch.setattr(CaptionPipeline, "facts", counted)
    _output(capsys, "a.json", "b.json", "c.json")
    texts = [
        *(text for texts in REFERENCES.values() for text in texts),
        *(t for s in SYSTEMS.values() for t in s.values()),
    ]
    assert sorted(parsed) == sorted(texts)


def test_a_table_has_a_row_per_metric_and_a_column_per_system(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"bleu": "BLEU-1", "rouge": "ROUGE_L"}
    shown = _output(capsys, "a.json", "b.json", "c.json", "--metrics", ",".join(names))
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.strip()}
    assert lines["Metric"] == ["a", "b", "c"]
    corpora = [
        json.loads(_output(capsys, f"{name}.json", "--metrics", "rouge", "--format", "json"))["corpus"]
        for name in SYSTEMS
    ]
    assert lines["ROUGE_L"] == [f"{corpus['ROUGE_L']:.4f}" for corpus in corpora]
    assert "\x1b" not in shown


def test_long_names_are_listed_and_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    long = "a-system-whose-name-is-longer-than-a-column"
    shown = _output(capsys, f"{long}=a.json", "b.json", "--metrics", "rouge")
    assert shown.startswith(f"(1) {long}\n(2) b\n")


@needs_graded
def test_the_best_and_the_worst_value_of_a_row_are_marked_on_a_terminal_with_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "is_terminal", lambda _: True)
    monkeypatch.setattr(tables, "console_width", lambda: 80)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    marked = _output(capsys, "a.json", "b.json", "c.json", "--metrics", "rouge,chair")
    rows = {line.split()[0]: line for line in marked.splitlines() if line.strip()}
    assert "\x1b[1;32m1.0000\x1b[0m" in rows["ROUGE_L"]
    assert rows["ROUGE_L"].count("\x1b[1;32m") == 1
    assert "\x1b[1;32m0.0000\x1b[0m" in rows["CHAIRs"]  # b's bench is not in the image: lower is better
    assert "\x1b[1;32m0.5000" not in rows["CHAIRs"]
    assert rows["ROUGE_L"].count("\x1b[31m") == 1
    monkeypatch.setenv("NO_COLOR", "1")
    plain = _output(capsys, "a.json", "b.json", "--metrics", "rouge")
    assert "32m" not in plain
    assert "31m" not in plain


def test_names_differ() -> None:
    assert system_names(["a.json", "b.json"]) == ("a", "b")
    assert system_names(["x/a.json", "y/a.json", "b.json"]) == ("x/a.json", "y/a.json", "b")
    assert system_names(["a.json"] * 3) == ("a.json", "a.json (2)", "a.json (3)")
    assert system_names(["m=a.json", "m=b.json", "m=a.json"]) == ("m=a.json", "m=b.json", "m=a.json (2)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--format", "spice", "--metrics", "spice"),
            "several systems are written as table, json, csv, latex, markdown, not as spice",
        ),
        (("-o", "out.parquet"), "several systems are written as table, json, csv, latex, markdown, not as parquet"),
        (("--partial", "c=less.json"), "less.json: can't be scored beside a.json: image 1 is in only one of the two"),
    ],
)
def test_what_cannot_stand_side_by_side_is_one_error(
    arguments: tuple[str, ...], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "less.json").write_text(json.dumps({"2": "a cat"}))
    others = () if "--partial" in arguments else ("b.json",)
    before = {path.name for path in folder.iterdir()}
    assert main(["score", "a.json", *others, *BESIDE, "--metrics", "rouge", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == before


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-", "-", *BESIDE]) == 2
    assert "standard input (-) is named more than once" in capsys.readouterr().err


def test_other_references_in_the_files_themselves_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, reference in {"x": "a dog", "y": "a cat"}.items():
        (folder / f"{name}.json").write_text(json.dumps([{"image_id": 1, "test": "a dog", "refs": [reference]}]))
    assert main(["score", "x.json", "y.json", "--metrics", "rouge"]) == 2
    assert "image 1 has other references" in capsys.readouterr().err


def test_a_file_holds_the_table_or_the_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = _output(capsys, "a.json", "b.json", "--metrics", "rouge", "-o", "out.txt")
    assert (folder / "out.txt").read_text() == shown
    assert _output(capsys, "a.json", "b.json", "--metrics", "rouge", "-o", "out.json.gz") == shown
    assert _output(capsys, "a.json", "b.json", "--metrics", "rouge", "-o", "o.json", "--format", "json") == ""
    assert [one["name"] for one in json.loads((folder / "o.json").read_text())["systems"]] == ["a", "b"]


@pytest.mark.model
def test_several_systems_are_a_table_of_the_paper_s_with_the_best_marked(capsys: pytest.CaptureFixture[str]) -> None:
    systems = ("a.json", "b.json", "c.json", "--metrics", "spice,bleu", "--format")
    lines = list(csv.DictReader(_output(capsys, *systems, "csv").splitlines()))
    assert [line["System"] for line in lines] == ["a", "b", "c", "Images"]
    assert list(lines[0])[:8] == ["System", "SPICE", "Object", "Relation", "Attribute", "Color", "Count", "Size"]
    alone = json.loads(_output(capsys, "c.json", "--metrics", "spice,bleu", "--format", "json"))["corpus"]
    assert float(lines[2]["SPICE"]) == alone["SPICE"]
    assert float(lines[2]["Color"]) == alone["SPICE_categories"]["Color"]["f"]
    assert float(lines[2]["Bleu_4"]) == alone["Bleu_4"]
    assert (lines[3]["SPICE"], lines[3]["Color"], lines[3]["Size"]) == ("2", "2", "0")
    markdown = _output(capsys, *systems, "markdown")
    assert "| c | **" in markdown
    assert "corrected for" in markdown
    latex = _output(capsys, *systems, "latex")
    assert r"c & \textbf{" in latex
    assert latex.rstrip().endswith(r"\end{tabular}")
