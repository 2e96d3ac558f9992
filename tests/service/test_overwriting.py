"""No command overwrites what it reads, by whatever path, link or URL its output names the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main
from spicegraph_service.cli.app import is_input, make_app
from spicegraph_service.output.terminal import refuse_overwriting
from spicegraph_service.platforms import jar
from spicegraph_service.platforms.benchmarks import score_submission
from spicegraph_service.registry import commands

INPUTS = {
    "a.json": [{"image_id": 1, "test": "a dog", "refs": ["a brown dog"]}],
    "results.json": [{"image_id": 1, "caption": "a dog"}],
    "other.json": [{"image_id": 1, "caption": "a cat"}],
    "annotations.json": {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a brown dog"}]},
}
SCORED = ("--references", "annotations.json", "--metrics", "bleu")
CASES = {
    "score": (("score", "a.json", "--metrics", "bleu"), "a.json"),
    "score, references": (("score", "results.json", *SCORED), "annotations.json"),
    "score of systems": (("score", "results.json", "mine=other.json", *SCORED), "other.json"),
    "score, another format": (("score", "a.json", "--metrics", "bleu", "--format", "csv"), "a.json"),
    "score, parses": (("score", "a.json", "--parses", "parses.conllu", "--format", "json"), "parses.conllu"),
    "score, cache": (("score", "a.json", "--cache", "parses.db", "--format", "json"), "parses.db"),
    "score, categories": (("score", "a.json", "--categories", "own.toml", "--format", "json"), "own.toml"),
    "score on ray": (("score", "a.jsonl", "--engine", "ray", "--metrics", "bleu"), "a.jsonl"),
    "score a folder on ray": (("score", "lines", "--engine", "ray", "--metrics", "bleu"), "lines/b.jsonl"),
    "compare": (("compare", "results.json", "other.json", *SCORED), "other.json"),
    "compare, references": (("compare", "results.json", "other.json", *SCORED), "annotations.json"),
    "report": (("report", "mine=results.json", "other.json", *SCORED), "results.json"),
    "bounds": (("bounds", "results.json", *SCORED), "annotations.json"),
    "bounds, other": (("bounds", "results.json", *SCORED, "--other", "other.json"), "other.json"),
    "agree captions": (("agree", "captions", "a.json"), "a.json"),
    "agree pairs": (("agree", "pairs", "a.json", "--annotations", "annotations.json"), "annotations.json"),
    "agree hallucinations": (("agree", "hallucinations", "a.json", "--metrics", "chair"), "a.json"),
    "agree systems": (("agree", "systems", "a.json", "mine=other.json"), "other.json"),
    "agree words": (("agree", "words", "annotations.json", "--system", "mine=other.json"), "other.json"),
    "idf": (("idf", "annotations.json"), "annotations.json"),
    "vectors": (("vectors", "build", "annotations.json"), "annotations.json"),
    "vectors, extended": (("vectors", "build", "annotations.json", "--extend", "other.json"), "other.json"),
    "capevalkit": (
        ("platform", "capevalkit", "--predictions", "results.json", "--references", "annotations.json"),
        "annotations.json",
    ),
}
SPELLINGS = ("same", "dotted", "absolute", "URL", "symbolic link", "hard link", "linked folder")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, content in INPUTS.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "lines").mkdir()
    for name in ("a.jsonl", "parses.conllu", "parses.db", "own.toml", "lines/b.jsonl"):
        (tmp_path / name).write_text("what must stay")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spelled(path: Path, how: str) -> str:
    """Return the path of a file below the working folder, or that of a link to it."""
    relative = path.relative_to(Path.cwd())
    if how == "symbolic link":
        Path("link").symlink_to(relative)
        return "link"
    if how == "hard link":
        os.link(path, "hard")
        return "hard"
    if how == "linked folder":
        Path("elsewhere").symlink_to(path.parent)
        return f"elsewhere/{path.name}"
    return {"same": str(relative), "dotted": f"./lines/../{relative}", "absolute": str(path), "URL": path.as_uri()}[how]


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("case", [case for case in CASES if case != "score a folder on ray"])
def test_an_output_that_is_an_input_is_refused_before_work(case, how, folder, capsys):
    arguments, target = CASES[case]
    before = (folder / target).read_bytes()
    assert main([*arguments, "-o", spelled(folder / target, how)]) == 2
    assert "would overwrite an input of the command" in capsys.readouterr().err
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize("how", [how for how in SPELLINGS if how != "hard link"])
def test_an_output_in_a_folder_that_is_read_is_refused(how, folder, capsys):
    arguments, target = CASES["score a folder on ray"]
    assert main([*arguments, "-o", spelled(folder / target, how)]) == 2
    assert "would overwrite an input of the command (lines)" in capsys.readouterr().err
    assert (folder / target).read_text() == "what must stay"


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_cache_that_is_an_input_is_refused_before_work(how, folder, capsys):
    target = folder / "results.json"
    before = target.read_bytes()
    assert main(["score", "results.json", *SCORED, "--cache", spelled(target, how)]) == 2
    assert capsys.readouterr().err.endswith(
        "would overwrite an input of the command (results.json); name another file\n"
    )
    assert target.read_bytes() == before


def test_a_cache_makes_no_folder(folder, capsys):
    assert main(["score", "a.json", "--cache", "missing/parses.db", "--metrics", "bleu"]) == 2
    assert f"--cache missing/parses.db: there is no folder {folder / 'missing'}" in capsys.readouterr().err
    assert not (folder / "missing").exists()


def test_standard_input_from_a_file_counts(folder):
    command = [sys.executable, "-m", "spicegraph_service", "score", "-", "--metrics", "bleu", "-o", "a.json"]
    with Path("a.json").open("rb") as stream:
        ended = subprocess.run(command, stdin=stream, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "would overwrite an input of the command (standard input)" in ended.stderr
    assert json.loads(Path("a.json").read_text()) == INPUTS["a.json"]


def test_the_jars_command_line_refuses_too(folder, capsys):
    assert jar.main(["a.json", "-out", "./a.json"]) == 2
    assert "would overwrite an input" in capsys.readouterr().err
    assert json.loads(Path("a.json").read_text()) == INPUTS["a.json"]


def test_codabench_does_not_write_over_references(folder):
    for name, source, target in (("ref", "annotations.json", "scores.json"), ("res", "results.json", "r.json")):
        (folder / name).mkdir()
        (folder / source).rename(folder / name / target)
    with pytest.raises(InputError, match="would overwrite an input"):
        score_submission(folder, folder / "ref", metrics=("bleu",))


def test_earlier_outputs_are_written_anew(folder):
    (folder / "old.json").write_text("an earlier result")
    assert main(["score", "a.json", "--metrics", "bleu", "-o", "old.json"]) == 0
    assert "Bleu_1" in Path("old.json").read_text()


def test_the_same_object_is_refused():
    with pytest.raises(InputError, match="would overwrite"):
        refuse_overwriting(["s3://bucket/a/"], ["s3://bucket/b", "s3://bucket/a"])


def test_what_is_not_there_is_not_overwritten(folder):
    sources = ["a\0b", "b" * 5000, "s3://bucket/b", "new.json", "/dev/null", "a.json"]
    refuse_overwriting(["a" * 5000, "a\0b", "s3://bucket/a", "new.json", "/dev/null"], sources)


def leaves(command, *path):
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from leaves(each, *path, name)
    else:
        yield " ".join(path), command


def test_commands_that_write_declare_what_they_read():
    """A new command is guarded by its declaration; this set grows only by commands that read no file."""
    without_input = {
        path
        for path, command in leaves(get_command(make_app(*commands())))
        if any(str(p.name).startswith("output") for p in command.params)
        and not any(is_input(p) for p in command.params if isinstance(p, TyperArgument | TyperOption))
    }
    assert without_input == {"challenge leaderboard", "challenge report"}
