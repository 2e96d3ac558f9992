"""What holds for every command holds for those of platforms, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from empty_candidates import check_empty_candidates, files
from metric_data import check_other_files_are_refused, check_unused_is_refused, metric_data_folder, run
from overwriting import INPUTS, SPELLINGS, check_refused, input_folder
from spicegraph_compat import jar
from spicegraph_compat.benchmarks import score_submission
from spicegraph_graded.spice_g.vectors import VectorTable
from spicegraph_parser.errors import InputError
from table_width import check_table_width, table_folder

__all__ = ["files", "input_folder", "metric_data_folder", "table_folder"]

CAPEVALKIT = (
    *("platform", "capevalkit", "--predictions", "{}/predictions.jsonl"),
    *("--references", "{}/references.jsonl", "-o", "{}/out.json"),
)
CODABENCH = ("platform", "codabench", "{}/in", "{}/out", "--show-references")


@pytest.mark.model
@pytest.mark.parametrize("command", [CAPEVALKIT, CODABENCH], ids=["capevalkit", "codabench"])
def test_platforms_compute_with_the_given_vectors(command, metric_data_folder, capsys):
    values = []
    for own in ((), ("--vectors", "{}/toy.npz")):
        assert run(metric_data_folder, *command, "--metrics", "spice-g", *own) == 0
        written = metric_data_folder / ("out.json" if command == CAPEVALKIT else "out/scores.json")
        found = json.loads(written.read_text())
        values.append({name.lower(): value for name, value in found.items()}["spice-g"])
    capsys.readouterr()
    assert values[0] != values[1]
    if command == CODABENCH:
        assert (
            VectorTable.read(metric_data_folder / "toy.npz").signature
            in (metric_data_folder / "out/detailed_results.html").read_text()
        )


@pytest.mark.model
@pytest.mark.parametrize("command", [CAPEVALKIT, CODABENCH], ids=["capevalkit", "codabench"])
def test_a_file_that_no_metric_uses_is_refused(command, metric_data_folder, capsys):
    check_unused_is_refused(command, "--vectors", metric_data_folder, capsys)


@pytest.mark.model
def test_a_file_that_is_no_table_is_one_error(metric_data_folder, capsys):
    check_other_files_are_refused(CAPEVALKIT, metric_data_folder, capsys)


READING = ("platform", "capevalkit", "--predictions", "results.json", "--references", "annotations.json")


@pytest.mark.model
@pytest.mark.parametrize("command", [("platform", "codabench", ".", "out"), (*READING, "-o", "out.json")])
def test_empty_candidates_are_refused_or_scored(command, files, capsys):
    check_empty_candidates(command, files, capsys)


@pytest.mark.model
def test_no_number_is_cut_at_60_or_80_columns(table_folder, capsys, monkeypatch):
    check_table_width(("platform", "codabench", ".", "out", "--metrics", "coco"), table_folder, capsys, monkeypatch)


@pytest.mark.parametrize("how", SPELLINGS)
def test_an_output_that_is_an_input_is_refused_before_work(how, input_folder, capsys):
    check_refused(READING, "annotations.json", how, input_folder, capsys)


def test_the_jars_command_line_refuses_too(input_folder, capsys):
    assert jar.main(["a.json", "-out", "./a.json"]) == 2
    assert "would overwrite an input" in capsys.readouterr().err
    assert json.loads(Path("a.json").read_text()) == INPUTS["a.json"]


def test_codabench_does_not_write_over_references(input_folder):
    for name, source, target in (("ref", "annotations.json", "scores.json"), ("res", "results.json", "r.json")):
        (input_folder / name).mkdir()
        (input_folder / source).rename(input_folder / name / target)
    with pytest.raises(InputError, match="would overwrite an input"):
        score_submission(input_folder, input_folder / "ref", metrics=("bleu",))
