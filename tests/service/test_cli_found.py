"""What is found on the command line: groups of commands, likely options, captions, metrics by their printed names, ids."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from typer import Context
from typer.core import TyperGroup

from spicegraph_scorer.metrics import BY_NAME_ONLY, GROUPS, METRICS, metric_names
from spicegraph_service.cli.app import command_line, main
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = (143, 7, 2014)


@pytest.fixture
def annotations(tmp_path: Path) -> str:
    rows = [{"image_id": image, "caption": "a dog runs"} for image in IMAGES]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"images": [{"id": image} for image in IMAGES], "annotations": rows}))
    return str(path)


def results(folder: Path, ids: list[Any]) -> str:
    path = folder / "results.json"
    path.write_text(
        json.dumps([{"image_id": image, "caption": "a dog sits" + " down" * n} for n, image in enumerate(ids)])
    )
    return str(path)


def test_help_shows_commands_in_four_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    groups = (
        "Score",
        *(["Study"] if "Study" in {command.group for command in commands().values()} else []),
        "Prepare",
        "Server",
    )
    places = [shown.index(f"\n{group}:\n") for group in groups]
    assert places == sorted(places)
    assert "\nCommands:" not in shown


@pytest.mark.parametrize(
    ("command", "headings"),
    [
        ("score", ["Input", "Metrics", "Output", "Intervals", "Speed", "Parsing", "Server", "Options"]),
        ("report", ["Input", "Metrics", "Output", "Page", "Tests", "Speed", "Parsing", "Server", "Options"]),
        ("serve", ["Addresses", "Parsing and metrics", "State", "Security", "Limits", "Time", "Log and monitoring"]),
    ],
)
def test_help_shows_options_under_headings(
    command: str, headings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{heading}:\n") for heading in headings]
    assert places == sorted(places)
    assert shown.count("\nOptions:\n") == 1


def test_values_are_named_in_words_for_people() -> None:
    """No option and no argument shows the name of a type of Python."""

    def helps(command: Any, name: str) -> dict[str, str]:
        if isinstance(command, TyperGroup):
            parts = [helps(part, f"{name} {key}") for key, part in command.commands.items()]
            return {key: text for part in parts for key, text in part.items()}
        return {name: command.get_help(Context(command))}

    shown = helps(command_line(), "spicegraph")
    assert len(shown) > 20
    assert not {name for name, text in shown.items() if re.search(r"<(int|float|str|list|path|bool)\b", text)}


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["score", "a.json", "--refrences", "b.json"], "--references"),
        (["score", "a.json", "--metric", "spice"], "--metrics"),
        (["score", "a.json", "--outptu", "b.json"], "--output"),
        (["serve", "--port", "50051"], "--address"),
    ],
)
def test_an_unknown_option_names_the_likely_one(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert meant in last
    assert last.count("--") <= 3, "the option itself, and two at most"


@pytest.mark.parametrize("option", ["--zzz", "-Z"])
def test_an_option_like_no_other_names_none(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "a.json", option]) == 2
    assert "Possible" not in capsys.readouterr().err


@pytest.mark.model
def test_parse_takes_a_caption(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "A man rides a brown horse."]) == 0
    assert json.loads(capsys.readouterr().out)["tuples"][0] == ["man", "horse", "ride"]
    assert main(["parse", "horse"]) == 2, "a word is a file's name"


def test_all_has_no_historic_variant_and_no_score_twice(
    annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(GROUPS["all"]) == set(METRICS) - BY_NAME_ONLY
    assert main(["score", results(tmp_path, list(IMAGES)), "--references", annotations, "--metrics", "all"]) == 0
    table = capsys.readouterr().out.split("by category")[0]
    names = [line.split()[0] for line in table.splitlines() if line.startswith(" ") and line[1].isalpha()]
    assert len(names) == len(set(names))
    assert {"CIDEr", "METEOR"} <= set(names)
    assert not {"CIDEr-D", "CIDEr-plain"} & set(names)


def test_metrics_are_known_by_what_is_printed_for_them() -> None:
    assert metric_names(["SPICE", "ROUGE_L", "Bleu_4", "CIDEr", "METEOR"]) == (
        "spice",
        "rouge",
        "bleu",
        "cider",
        "meteor",
    )
    assert metric_names(["COCO"]) == GROUPS["coco"]


def test_quiet_prints_nothing_that_a_file_holds(
    annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", results(tmp_path, list(IMAGES)), "--references", annotations, "--metrics", "rouge"]
    assert main([*command, "-q", "-o", str(tmp_path / "o.json")]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "o.json").read_text())["corpus"]["ROUGE_L"] > 0
    assert main([*command, "-q"]) == 0
    assert "ROUGE_L" in capsys.readouterr().out


def test_numbers_that_are_written_as_strings_are_taken_and_told(
    annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results(tmp_path, [str(image) for image in IMAGES])
    assert main(["score", path, "--references", annotations, "--metrics", "rouge", "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert [row["image_id"] for row in json.loads(shown.out)["items"]] == list(IMAGES)
    assert f"{len(IMAGES)} ids are strings here and numbers in the references: taken as equal" in shown.err


def test_ids_that_differ_in_how_they_are_written(
    annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"COCO_val2014_{image:012d}.jpg" for image in IMAGES]
    command = ["score", results(tmp_path, ids), "--references", annotations, "--metrics", "rouge"]
    assert main(command) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("say so: --ids number.")
    assert main([*command, "--ids", "number", "--format", "json"]) == 0
    assert [row["image_id"] for row in json.loads(capsys.readouterr().out)["items"]] == list(IMAGES)


def test_two_images_of_one_number_are_not_mixed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captions = {"a1.jpg": ["a dog"], "b1.jpg": ["a cat"]}
    (tmp_path / "references.json").write_text(json.dumps(captions))
    command = ["score", results(tmp_path, ["1"]), "--references", str(tmp_path / "references.json")]
    assert main([*command, "--ids", "number", "--partial"]) == 2
    assert "image_id: is not in the references" in capsys.readouterr().err


def test_two_results_of_one_number_are_shown_as_they_are_written(
    annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results(tmp_path, [f"a_{IMAGES[0]}.jpg", f"b_{IMAGES[0]}.jpg"])
    assert main(["score", path, "--references", annotations, "--ids", "number", "--partial"]) == 2
    told = f"is also the id of item 1, as 'b_{IMAGES[0]}.jpg' is image {IMAGES[0]}"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<!DOCTYPE html>\n<html><body>404</body></html>", "is an HTML page: was an error or login page saved"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "is a pointer of Git LFS"),
        ("null\n", "is null, expected a list of items"),
    ],
)
def test_what_is_saved_in_place_of_a_file(
    content: str, reason: str, annotations: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_text(content)
    assert main(["score", str(tmp_path / "results.json"), "--references", annotations]) == 2
    assert f"results.json: {reason}" in capsys.readouterr().err
