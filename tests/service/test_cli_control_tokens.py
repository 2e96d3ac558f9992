"""What commands do with what models leave behind in captions, and with captions that have no graph."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from spicegraph_service.cli import main

pytestmark = pytest.mark.model

ITEMS = [
    ("a brown dog runs <eos> <pad> <pad>", ["A dog runs on the grass.", "A brown dog is running."]),
    ("two people ride bikes on a road <eos> <pad> <pad>", ["Two men ride bikes.", "Men are riding down a road."]),
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, end in (("marked", " <eos> <pad> <pad>"), ("clean", "")):
        rows = [
            {"image_id": i, "test": t.removesuffix(" <eos> <pad> <pad>") + end, "refs": r}
            for i, (t, r) in enumerate(ITEMS)
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    return tmp_path


COMMANDS = {
    "score": ("score", "marked.json", "-o", "out.json"),
    "compare": ("compare", "marked.json", "clean.json", "--draws", "10", "-o", "out.json"),
    "report": ("report", "marked.json", "--draws", "10", "--format", "json", "-o", "out.json"),
    "reward": ("reward", "marked.json", "--terms", "spice=1", "-o", "out.json"),
    "differences": ("differences", "marked.json", "--format", "jsonl", "-o", "out.json"),
}
WINGS = {"reward": "spicegraph_graded", "differences": "spicegraph_graded"}


def of_wing(command: str) -> pytest.MarkDecorator:
    left_out = command in WINGS and find_spec(WINGS[command]) is None
    return pytest.mark.skipif(left_out, reason="the wing is left out")


@pytest.mark.parametrize("command", [pytest.param(command, marks=of_wing(command)) for command in COMMANDS])
def test_every_command_refuses_them_or_takes_them_off(command, files, capsys):
    assert main(list(COMMANDS[command])) == 2
    said = capsys.readouterr().err
    assert said.count("2 of 2 candidates contain what models leave behind, such as 'a brown dog runs <eos>") == 1
    assert "--control-tokens strip" in said
    assert not (files / "out.json").exists()
    assert main([*COMMANDS[command], "--control-tokens", "strip"]) == 0
    assert "which was taken off: <pad>, <eos>" in capsys.readouterr().err
    written = (files / "out.json").read_text()
    if command != "differences":
        assert json.loads(written)["signature"]["control_tokens"] == {
            "stripped": {"<pad>": 4, "<eos>": 2},
            "candidates": 2,
        }


def test_stripped_captions_score_as_clean_ones(files):
    assert main(["score", "marked.json", "-o", "marked.csv", "--control-tokens", "strip"]) == 0
    assert main(["score", "clean.json", "-o", "clean.csv"]) == 0
    assert (files / "marked.csv").read_text() == (files / "clean.csv").read_text()


def test_the_program_s_own_output_keeps_them(files, capsys):
    assert main(["score", "marked.json", "--format", "spice", "-o", "kept.json"]) == 0
    assert "which is scored as words: <pad>, <eos>" in capsys.readouterr().err
    jar = pytest.importorskip("spicegraph_compat.jar", reason="the wing is left out").main
    assert jar(["marked.json", "-out", "jar.json", "-detailed", "-subset", "-silent"]) == 0
    assert "which is scored as words" in capsys.readouterr().err
    assert json.loads((files / "jar.json").read_text()) == json.loads((files / "kept.json").read_text())
    tuples = json.loads((files / "kept.json").read_text())[0]["test_tuples"]
    assert any("<pad>" in word or "pad" in word for each in tuples for word in each["tuple"])
    assert main(["score", "marked.json", "--format", "spice", "--control-tokens", "refuse"]) == 2


def test_the_best_of_several_candidates_keeps_the_rule(files):
    (files / "several.jsonl").write_text(
        '{"id": 1, "candidate": ["a dog <eos>", "a cat <eos>"], "references": ["a dog"]}\n'
        '{"id": 2, "candidate": ["two men <eos>"], "references": ["two men"]}\n'
    )
    arguments = ["score", "several.jsonl", "--candidates", "best", "-o", "best.json", "--control-tokens"]
    assert main([*arguments, "keep"]) == 0
    assert json.loads((files / "best.json").read_text())["signature"]["control_tokens"]["kept"] == {"<eos>": 3}
    assert main([*arguments, "strip"]) == 0
    assert json.loads((files / "best.json").read_text())["corpus"]["SPICE"] == 1.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")
@pytest.mark.full("ray")
def test_ray_does_the_same(files, capsys):
    pytest.importorskip("spicegraph_scale")
    pytest.importorskip("ray")
    rows = [{"id": i, "candidate": text, "references": refs} for i, (text, refs) in enumerate(ITEMS)]
    (files / "marked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ["score", "marked.jsonl", "--metrics", "bleu,spice", "-o"]
    assert main([*arguments, "out.json", "--engine", "ray"]) == 2
    assert (
        "contains what models leave behind, such as 'a brown dog runs <eos>" in capsys.readouterr().err
    )  # of each part
    assert main([*arguments, "out.json", "--engine", "ray", "--control-tokens", "strip"]) == 0
    assert "which was taken off: <pad>, <eos>" in capsys.readouterr().err
    assert main([*arguments, "local.json", "--control-tokens", "strip"]) == 0
    assert json.loads((files / "out.json").read_text()) == json.loads((files / "local.json").read_text())


def test_captions_without_a_graph_are_told(files, capsys):
    (files / "some.jsonl").write_text(
        '{"id": 1, "candidate": "Some dogs.", "references": ["two dogs"]}\n'
        '{"id": 2, "candidate": "a dog", "references": ["a dog"]}\n'
    )
    told = "1 of 2 candidates has an empty graph, which SPICE scores 0, such as 'Some dogs.' (image_id 1)"
    assert main(["score", "some.jsonl", "-o", "some.json"]) == 0
    assert f"warning: some.jsonl: {told}" in capsys.readouterr().err
    assert json.loads((files / "some.json").read_text())["empty_graphs"]["candidates"] == 1
    assert main(["compare", "a=some.jsonl", "b=some.jsonl", "--draws", "10"]) == 0
    assert f"warning: b: {told}" in capsys.readouterr().err
    for form in ("html", "json", "markdown"):
        assert main(["report", "some.jsonl", "--draws", "10", "--format", form, "-o", "page"]) == 0
        assert f"warning: some: {told}" in capsys.readouterr().err
        assert "have an empty graph" in (page := (files / "page").read_text()) or "has an empty graph" in page
