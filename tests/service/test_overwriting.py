"""No command overwrites what it reads, by whatever path, link or URL its output names the file."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from overwriting import INPUTS, SCORED, SPELLINGS, check_refused, input_folder, spelled, writers_without_input
from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main
from spicegraph_service.output.terminal import refuse_overwriting
from wings import needs_graded

__all__ = ["input_folder"]

RAY = pytest.mark.skipif(find_spec("spicegraph_scale") is None, reason="the wing is left out")
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
    "idf": (("idf", "annotations.json"), "annotations.json"),
    "vectors": (("vectors", "build", "annotations.json"), "annotations.json"),
    "vectors, extended": (("vectors", "build", "annotations.json", "--extend", "other.json"), "other.json"),
}


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=RAY if "ray" in case else needs_graded if "vectors" in case else ())
        for case in CASES
        if case != "score a folder on ray"
    ],
)
def test_an_output_that_is_an_input_is_refused_before_work(case, how, input_folder, capsys):
    check_refused(*CASES[case], how, input_folder, capsys)


@RAY
@pytest.mark.parametrize("how", [how for how in SPELLINGS if how != "hard link"])
def test_an_output_in_a_folder_that_is_read_is_refused(how, input_folder, capsys):
    arguments, target = CASES["score a folder on ray"]
    assert main([*arguments, "-o", spelled(input_folder / target, how)]) == 2
    assert "would overwrite an input of the command (lines)" in capsys.readouterr().err
    assert (input_folder / target).read_text() == "what must stay"


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_cache_that_is_an_input_is_refused_before_work(how, input_folder, capsys):
    target = input_folder / "results.json"
    before = target.read_bytes()
    assert main(["score", "results.json", *SCORED, "--cache", spelled(target, how)]) == 2
    assert capsys.readouterr().err.endswith(
        "would overwrite an input of the command (results.json); name another file\n"
    )
    assert target.read_bytes() == before


def test_a_cache_makes_no_folder(input_folder, capsys):
    assert main(["score", "a.json", "--cache", "missing/parses.db", "--metrics", "bleu"]) == 2
    assert f"--cache missing/parses.db: there is no folder {input_folder / 'missing'}" in capsys.readouterr().err
    assert not (input_folder / "missing").exists()


def test_standard_input_from_a_file_counts(input_folder):
    command = [sys.executable, "-m", "spicegraph_service", "score", "-", "--metrics", "bleu", "-o", "a.json"]
    with Path("a.json").open("rb") as stream:
        ended = subprocess.run(command, stdin=stream, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "would overwrite an input of the command (standard input)" in ended.stderr
    assert json.loads(Path("a.json").read_text()) == INPUTS["a.json"]


def test_earlier_outputs_are_written_anew(input_folder):
    (input_folder / "old.json").write_text("an earlier result")
    assert main(["score", "a.json", "--metrics", "bleu", "-o", "old.json"]) == 0
    assert "Bleu_1" in Path("old.json").read_text()


def test_the_same_object_is_refused():
    with pytest.raises(InputError, match="would overwrite"):
        refuse_overwriting(["s3://bucket/a/"], ["s3://bucket/b", "s3://bucket/a"])


def test_what_is_not_there_is_not_overwritten(input_folder):
    sources = ["a\0b", "b" * 5000, "s3://bucket/b", "new.json", "/dev/null", "a.json"]
    refuse_overwriting(["a" * 5000, "a\0b", "s3://bucket/a", "new.json", "/dev/null"], sources)


def test_commands_that_write_declare_what_they_read():
    """A new command is guarded by its declaration; only challenges have commands that write what no file was read for."""
    assert not {path for path in writers_without_input() if not path.startswith("challenge ")}
