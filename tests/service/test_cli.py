"""The commands as people call them: output, files, exit status, and what is said on standard error."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
SAID = "SPICE input, 2 items; first: id 2, 'a brown dog runs' against 'a dog is running' and 1 more"
JAR = [
    {"image_id": 2, "test": "a brown dog runs", "refs": ["a dog is running", "the brown dog"]},
    {"image_id": 1, "test": "two red cars", "refs": ["two cars", "cars on a road"]},
]
CAPTIONS = 'A man rides a brown horse.\n\nTwo <b>dogs</b> & "cats" in the park 🐶\n'


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.json"
    path.write_text(json.dumps(JAR))
    return str(path)


@pytest.fixture
def captions(tmp_path: Path) -> str:
    path = tmp_path / "captions.txt"
    path.write_text(CAPTIONS, encoding="utf-8")
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line; return exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


Run = "Callable[..., tuple[int, str, str]]"


def test_version_and_help(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("--version") == (0, "spicegraph 0.1.0\n", "")
    for command in ((), ("parse",), ("score",)):
        status, out, _ = run(*command, "--help")
        assert status == 0
        assert out.startswith("Usage: spicegraph")


@pytest.mark.parametrize(
    "arguments",
    [("frobnicate",), ("score",), ("score", "in.json", "--format", "xml"), ("score", "a", "b"), ("parse", "--colour")],
)
def test_a_wrong_command_ends_with_2(run: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err


def test_json(run: Callable[..., tuple[int, str, str]], source: str) -> None:
    status, out, err = run("score", source, "--metrics", "bleu, rouge", "--format", "json")
    result = json.loads(out)
    assert (status, err) == (0, f"{source}: {SAID}\n")
    assert list(result["corpus"]) == ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L"]
    assert [item["image_id"] for item in result["items"]] == [2, 1]


def test_json_lines_and_csv_hold_one_item_each(run: Callable[..., tuple[int, str, str]], source: str) -> None:
    rows = [
        json.loads(line) for line in run("score", source, "--metrics", "rouge", "--format", "jsonl")[1].splitlines()
    ]
    table = list(csv.DictReader(io.StringIO(run("score", source, "--metrics", "rouge", "--format", "csv")[1])))
    assert [row["image_id"] for row in rows] == [2, 1]
    assert [row["image_id"] for row in table] == ["2", "1"]
    assert [float(row["ROUGE_L"]) for row in table] == [row["scores"]["ROUGE_L"] for row in rows]


def test_table_is_plain_in_a_pipe(run: Callable[..., tuple[int, str, str]], source: str) -> None:
    status, out, err = run("score", source, "--metrics", "bleu")
    assert (status, err) == (0, f"{source}: {SAID}\n")
    assert "Bleu_4" in out
    assert "\x1b" not in out
    assert "items:2|references:min=2,max=2" in out


def test_output_file_takes_its_format_from_its_ending_and_the_table_is_shown(
    run: Callable[..., tuple[int, str, str]], source: str, tmp_path: Path
) -> None:
    status, out, _ = run("score", source, "--metrics", "bleu", "-o", str(tmp_path / "out.json"))
    assert status == 0
    assert "Bleu_4" in out
    assert json.loads((tmp_path / "out.json").read_text())["corpus"]["Bleu_1"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json"]


def test_output_file_with_a_format_leaves_standard_output_empty(
    run: Callable[..., tuple[int, str, str]], source: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    said = f"{source}: {SAID}\n"
    assert run("score", source, "--metrics", "bleu", "--format", "csv", "-o", str(path)) == (0, "", said)
    assert path.read_text().startswith("image_id,Bleu_1")
    umask = os.umask(0o022)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize(
    ("content", "message"),
    [("[", "is not JSON"), (json.dumps([{**JAR[0], "test": ""}]), "item 1 (image_id 2), test: is empty")],
)
def test_bad_input_ends_with_2_one_message_and_no_file(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "in.json").write_text(content)
    output = tmp_path / "out.json"
    output.write_text("what was there before")
    status, out, err = run("score", str(tmp_path / "in.json"), "-o", str(output))
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err
    assert output.read_text() == "what was there before"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics", "bleurt"), "there is no metric 'bleurt' (did you mean bleu?); the metrics are spice, "),
        (("--metrics", ","), "no metric is asked for"),
        (("-o", "missing/folder/out.json"), "there is no folder"),
        (("-o", "."), "is a folder"),
        (("--references", "missing.json"), "missing.json: there is no such file"),
        (("--pipeline", "no_such_pipeline"), "'no_such_pipeline' is not installed"),
        (("--graph-style", "scene", "--pipeline", "en_core_web_sm"), "--graph-style scene has a parser of its own"),
        (("--metrics", "bleu", "--format", "spice"), "add spice or spice-exact to --metrics"),
        (
            ("--metrics", "bleu", "--format", "csv", "--confidence"),
            "--confidence: intervals are of corpus scores, but csv",
        ),
        (("--metrics", "bleu", "-o", "out.doc"), "out.doc: this command can't write .doc; it can write .json, .jsonl"),
        (("--metrics", "bleu", "--columns", "candidate=other"), "has no column 'other'; its columns are"),
    ],
)
def test_bad_options_end_with_2(
    run: Callable[..., tuple[int, str, str]], source: str, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = run("score", source, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_warnings_are_one_line_on_standard_error(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(JAR[:1]))
    status, out, err = run("score", str(tmp_path / "one.json"), "--metrics", "cider", "--format", "json")
    assert status == 0
    assert json.loads(out)["corpus"] == {"CIDEr": None}
    said, warning = err.splitlines()
    assert "one.json: SPICE input, 1 item; first: id 2" in said
    assert warning.startswith("warning: CIDEr is undefined")


def test_a_warning_is_said_once_however_many_metrics_give_it(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(JAR[:1]))
    for _ in range(2):  # and again in the next run of the same process
        status, _, err = run("score", str(tmp_path / "one.json"), "--metrics", "cider,cider-r,cider-plain")
        assert status == 0
        assert err.count("warning: CIDEr is undefined") == 1


def test_a_subset_of_the_references_needs_partial(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    rows = json.loads((EXAMPLES / "retrieval.json").read_text())[:20]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    arguments = (
        "score",
        str(tmp_path / "r.json"),
        "--references",
        str(EXAMPLES / "captions.json"),
        "--metrics",
        "bleu",
    )
    status, _, err = run(*arguments)
    assert status == 2
    assert "180 of 200 images of " in err
    assert "--partial" in err
    status, out, _ = run(*arguments, "--partial", "--format", "jsonl")
    assert (status, len(out.splitlines())) == (0, 20)


def test_the_bar_is_for_terminals_only_and_the_format_is_always_said(
    run: Callable[..., tuple[int, str, str]], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"{source}: {SAID}\n"
    assert run("score", source, "--metrics", "bleu", "--format", "json")[2] == said
    monkeypatch.setattr("spicegraph_service.output.terminal.is_terminal", lambda _stream: True)
    _, _, err = run("score", source, "--metrics", "bleu", "--format", "json")
    assert err.startswith(said)
    assert len(err) > len(said)


@pytest.mark.model
def test_spice_format_is_the_jars(run: Callable[..., tuple[int, str, str]], source: str) -> None:
    status, out, _ = run("score", source, "--format", "spice")
    items = json.loads(out)
    assert status == 0
    assert [item["image_id"] for item in items] == [2, 1]
    assert list(items[0]) == ["image_id", "scores", "test_tuples", "ref_tuples"]
    assert items[0]["scores"]["All"]["numImages"] == 1
    assert items[0]["scores"]["Size"]["f"] is None


@pytest.mark.model
def test_main_job_on_the_examples(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, _ = run(
        "score",
        str(EXAMPLES / "human.json"),
        "--references",
        str(EXAMPLES / "captions_without_first.json"),
        "-o",
        str(tmp_path / "out.json"),
    )
    assert status == 0
    assert "SPICE by category" in out
    result = json.loads((tmp_path / "out.json").read_text())
    assert len(result["items"]) == 200
    assert 0.15 < result["corpus"]["SPICE"] < 0.30
    assert result["corpus"]["SPICE_categories"]["Object"]["items"] == 200


@pytest.mark.model
def test_parse_gives_one_line_a_caption(run: Callable[..., tuple[int, str, str]], captions: str) -> None:
    status, out, err = run("parse", captions)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert [row["text"] for row in rows] == CAPTIONS.splitlines()
    assert ["horse", "brown"] in rows[0]["tuples"]
    assert rows[1] == {"text": "", "tuples": [], "rules": [], "spans": []}


@pytest.mark.model
def test_parse_reads_standard_input(run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a red car\n")))
    assert json.loads(run("parse")[1])["tuples"][0] == ["car", "red"]


@pytest.mark.model
def test_parse_draws_pictures_that_are_xml(run: Callable[..., tuple[int, str, str]], captions: str) -> None:
    status, out, _ = run("parse", captions, "--format", "svg")
    assert status == 0
    assert ET.fromstring(out).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.model
def test_parse_table_and_dot(run: Callable[..., tuple[int, str, str]], captions: str) -> None:
    table = run("parse", captions, "--format", "table")[1]
    assert "(horse, brown)" in table
    assert "(man, ride, horse)" in table  # as people say it
    assert ["man", "horse", "ride"] in json.loads(run("parse", captions)[1].splitlines()[0])["tuples"]  # SPICE's order
    assert run("parse", captions, "--format", "dot")[1].count("digraph") == 3


def test_parse_of_ready_parses(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "p.conllu").write_text(
        "# text = red cars\n1\tred\tred\t_\tJJ\t_\t2\tamod\t_\t_\n2\tcars\tcar\t_\tNNS\t_\t0\troot\t_\t_\n\n"
    )
    status, out, _ = run("parse", str(tmp_path / "p.conllu"), "--conllu")
    assert status == 0
    assert json.loads(out) == {
        "text": "red cars",
        "tuples": [["car", "red"], ["car"]],
        "rules": ["amod", "objects"],
        "spans": [[[[4, 8]], [[0, 3]]], [[[4, 8]]]],
    }


def test_parse_refuses_bad_lines_and_bad_parses(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes(b"fine\na \0 b\n")
    assert run("parse", str(tmp_path / "c.txt"))[::2] == (
        2,
        f"error: {tmp_path}/c.txt: line 2: holds a NUL character\n",
    )
    (tmp_path / "p.conllu").write_text("1\tred\n")
    status, out, err = run("parse", str(tmp_path / "p.conllu"), "--conllu")
    assert (status, out) == (2, "")
    assert "p.conllu, line 1: a CoNLL-U line has 10 tab-separated columns" in err


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    rows = [{"image_id": n, "test": "a dog", "refs": ["the dog"]} for n in range(1, 20_001)]
    (tmp_path / "in.json").write_text(json.dumps(rows))
    command = [sys.executable, "-m", "spicegraph_service", "score", str(tmp_path / "in.json")]
    with subprocess.Popen(
        [*command, "--metrics", "rouge", "--format", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"image_id":1,')
        process.stdout.close()
        assert process.stderr.read().endswith(b"SPICE input, 20,000 items; first: id 1, 'a dog' against 'the dog'\n")
        assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_one_clear_error(run: Callable[..., tuple[int, str, str]], source: str) -> None:
    status, _, err = run("score", source, "--metrics", "bleu", "-o", "/dev/full")
    assert status == 2
    assert err.endswith("error: /dev/full: can't be written (No space left on device)\n")
    command = [sys.executable, "-m", "spicegraph_service", "score", source, "--metrics", "bleu"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == ["error: standard output: can't be written (No space left on device)"]


def test_ctrl_c_while_a_command_is_loaded_ends_quietly(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr("spicegraph_service.cli.app.resolve_name", interrupted)
    assert run("score") == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("parse", "--format", "xml"), "Invalid value for '--format': 'xml' is not one of 'jsonl', 'table'"),
        (("compare", "a", "b", "--draws", "0"), "Invalid value for '--draws': must be at least 1"),
        (("score", "a", "--workers", "two"), "Invalid value for '--workers': must be a valid integer"),
    ],
)
def test_a_wrong_option_is_named_in_our_words(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
