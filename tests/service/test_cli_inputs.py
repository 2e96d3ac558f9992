"""``score`` and ``parse`` with the formats of other tools, as people call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_scorer.readers.parses import Notation
from spicegraph_service.cli import main
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line; return exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def scores(out: str) -> dict[str, float]:
    return {row["image_id"]: row["scores"]["ROUGE_L"] for row in map(json.loads, out.splitlines())}


def test_csv(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("image_id,caption,gold\nx,a dog,a dog\ny,a cat,a dog\n")
    told = ("--columns", "references=gold")
    status, out, err = run("score", str(table), *told, "--metrics", "rouge", "--format", "jsonl")
    assert status == 0
    first = "first: id x, 'a dog' against 'a dog'"
    assert err == f"{table}: CSV (id: image_id, candidate: caption, references: gold), 2 items; {first}\n"
    assert scores(out) == pytest.approx({"x": 1.0, "y": 0.5})
    assert run("score", str(table), "--columns", "nonsense")[::2][0] == 2


def test_plain_text_with_two_files_of_references(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    for name, text in {"c": "a dog\na cat\n", "r1": "a cat\na cat\n", "r2": "a dog\n\n"}.items():
        (tmp_path / name).write_text(text)
    files = ("--references", str(tmp_path / "r1"), "--references", str(tmp_path / "r2"))
    status, out, err = run("score", str(tmp_path / "c"), *files, "--metrics", "rouge", "--format", "jsonl")
    first = "first: id 1, 'a dog' against 'a cat' and 1 more"
    assert (status, err) == (0, f"{tmp_path}/c: plain text, 2 items; references: plain text; {first}\n")
    assert scores(out) == pytest.approx({1: 1.0, 2: 1.0})


@pytest.mark.model
def test_several_candidates(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"1": ["a cat", "a dog runs"], "2": ["two red cars"]}')
    (tmp_path / "r.json").write_text('{"1": ["a dog runs fast"], "2": ["red cars", "two cars"]}')
    both = (str(tmp_path / "c.json"), "--references", str(tmp_path / "r.json"), "--metrics", "spice,spider")
    assert run("score", *both)[0] == 2
    status, out, err = run("score", *both, "--candidates", "best", "--format", "json")
    result = json.loads(out)
    assert status == 0
    assert "3 items of 2 images" in err
    assert [item["image_id"] for item in result["items"]] == [1, 2]
    assert result["signature"]["candidates"] == {"min": 1, "max": 2, "scored": "best by SPIDEr"}
    each = json.loads(run("score", *both, "--candidates", "each", "--format", "json")[1])
    assert [item["image_id"] for item in each["items"]] == ["1#1", "1#2", "2#1"]
    assert result["items"][0]["scores"] == each["items"][1]["scores"]


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("( man , ride , horse", "has a '(' without its ')'"),
        ("( man , ride , horse ) , ( horse , is", "has a '(' without its ')'"),
        ("man , ride , horse )", "has a ')' without its '('"),
        ("( man ) ) , ( horse )", "has a ')' without its '('"),
        ("( man , ( ride ) , horse )", "has parentheses inside of parentheses"),
        ("( man , ride , big , horse )", "has 4 entries where a fact has at most 3: 'man , ride , big , horse'"),
        ("( man , , horse )", "has nothing between two commas or parentheses: 'man , , horse'"),
        ("()", "has nothing between two commas or parentheses: ''"),
    ],
)
def test_a_graph_with_a_fault_is_no_caption(
    text: str, reason: str, run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    rows = [
        {"id": 7, "candidate": "a man (left) rides (fast)", "references": ["( man , ride , horse )", text]},
        {"id": 8, "candidate": text, "references": ["nice, a horse :)", "(left) a man"]},
    ]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, out, err = run("score", str(tmp_path / "g.jsonl"), "--graphs")
    assert (status, out) == (2, "")
    assert err.splitlines()[1:] == [
        f"error: {tmp_path}/g.jsonl: 2 faults",
        f"  item 1 (image_id 7), references[1]: {reason}",
        f"  item 2 (image_id 8), candidate: {reason}",
    ]


@pytest.mark.parametrize(("same", "warned"), [(10, True), (9, True), (8, False)])
def test_references_given_as_candidates_are_pointed_out(
    same: int, warned: bool, run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    rows = [
        {"id": n, "candidate": "a  dog " if n < same else "a cat", "references": ["the dog", "a dog"]}
        for n in range(10)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    note = f"warning: {tmp_path}/r.jsonl: {same} of 10 candidates equal one of their own references; is it the right"
    source = str(tmp_path / "r.jsonl")
    commands = (("score", source), ("compare", source, f"B={source}", "--draws", "2"))
    for command in commands:
        status, _, err = run(*command, "--metrics", "rouge")
        assert status == 0
        assert (note in err) == warned


def test_graphs_and_parses(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    graph = {"id": 1, "candidate": "( dog , is , brown )", "references": ["A dog lies there. It is brown."]}
    (tmp_path / "g.jsonl").write_text(json.dumps(graph))
    base = ("score", str(tmp_path / "g.jsonl"), "--graphs", "--format", "json")
    short = json.loads(run(*base)[1])
    assert short["items"][0]["scores"]["SPICE_categories"]["Attribute"]["tp"] == 0
    parsers = EXAMPLES / "other_parsers"
    given = run(
        "score", str(parsers / "captions.jsonl"), "--parses", str(parsers / "parses.conllu"), "--format", "json"
    )
    assert given[0] == 0
    assert json.loads(given[1])["signature"]["metrics"]["spice"]["pipeline"].startswith("parses-")


@pytest.mark.model
def test_parse_in_the_forms_of_other_parsers(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("A man rides a brown horse.\n\n")
    assert run("parse", str(tmp_path / "c.txt"), "--format", "factual")[1] == (
        "( man , ride , horse ) , ( horse , is , brown )\n\n"
    )
    first, second = map(json.loads, run("parse", str(tmp_path / "c.txt"), "--format", "sng")[1].splitlines())
    assert [entity["head"] for entity in first["entities"]] == ["man", "horse"]
    assert second == {"entities": [], "relations": []}
    conllu = str(EXAMPLES / "other_parsers" / "parses.conllu")
    status, out, _ = run("parse", "--conllu", conllu, "--format", "factual")
    assert (status, out.splitlines()[1]) == (0, "( man , ride , horse )")
    assert run("parse", "--conllu", conllu, "--scheme", "ud3")[0] == 2


@pytest.mark.model
def test_graphs_are_written_and_read_back_in_every_notation(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("A man rides two brown horses near a big fence.\nThere is a dog.\n")

    def groups(*arguments: str) -> list[list[str]]:
        status, out, _ = run("parse", str(tmp_path / arguments[0]), *arguments[1:], "--format", "factual")
        assert status == 0
        return [sorted(line.removeprefix("( ").removesuffix(" )").split(" ) , ( ")) for line in out.splitlines()]

    for notation in Notation:
        status, out, _ = run("parse", str(tmp_path / "c.txt"), "--format", notation)
        (tmp_path / "graphs").write_text(out)
        assert status == 0
        assert groups("graphs", "--graphs", notation) == groups("c.txt"), notation
    (tmp_path / "graphs").write_text(run("parse", str(tmp_path / "c.txt"), "--format", "dsg")[1])
    dsg = json.loads((tmp_path / "graphs").read_text().splitlines()[0])
    kinds = {row.partition(" (")[0] for row in dsg["qid2tuple"].values()}
    assert kinds >= {
        "entity - whole",
        "relation - action",
        "attribute - color",
        "attribute - count",
        "attribute - size",
    }
    for form in ("graphml", "json-ld", "svg", "table", "jsonl"):
        assert run("parse", str(tmp_path / "graphs"), "--graphs", "dsg", "--format", form)[0] == 0
    for options in (["--format", "sng"], ["--conllu"], ["--graph-style", "scene"]):
        status, _, error = run("parse", str(tmp_path / "graphs"), "--graphs", "dsg", *options)
        assert (status, "--graphs gives graphs that are ready" in error) == (2, True)


def test_every_command_loads_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in commands():
        assert main([name, "--help"]) == 0, name
        assert capsys.readouterr().out.startswith(f"Usage: spicegraph {name}")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in commands().items():
        assert f"{name} " in shown
        assert command.summary in shown, "cut off: make it shorter"


def test_inputs_says_what_a_file_is_taken_for(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    marked = tmp_path / "marked.jsonl"
    marked.write_text('{"id": 1, "candidate": "a dog <eos>", "references": ["the dog"]}\n')
    status, out, said = run("inputs", str(marked))
    assert (status, out.splitlines()[1:]) == (0, ["items: 1 item", "  1: a dog <eos> || the dog"])
    assert "what models leave behind" in said
    broken = tmp_path / "broken.csv"
    broken.write_text("audiocap_id,youtube_id,start_time,caption\n1,abc,30,an engine chugs\nwith speech\n")
    status, _, error = run("inputs", str(broken))
    assert (status, "row 3: has 1 column, expected 4: a caption of the row before" in error) == (2, True)
    assert "give it with --references" not in error
