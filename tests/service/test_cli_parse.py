"""``spicegraph parse``: what it reads as one caption, and what it shows of scene graphs."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import load_pipeline, model_card
from spicegraph_scorer.readers.read import read_captions
from spicegraph_scorer.readers.records import looks_like_one_text
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path

_TWO_LINES = "A dog lies on a bed and\na cat sleeps near two dogs.\n"


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> object:
    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_json_lines_hold_captions_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "a dog\\nand a cat", "id": 1}\n\n{"text": "a car"}\n', encoding="utf-8")
    assert read_captions(str(path))[1] == ["a dog\nand a cat", "a car"]


def test_every_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": 3}\n{"id": 1}\n["a"]\n{\n{"text": "a dog"}\n', encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_captions(str(path))
    message = str(error.value)
    assert [f"line {number}" in message for number in range(1, 6)] == [True, True, True, True, False]


def test_one_text_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(_TWO_LINES, encoding="utf-8")
    assert read_captions(str(path), is_one_text=True)[1] == [_TWO_LINES.strip()]
    assert read_captions(str(path))[1] == _TWO_LINES.splitlines()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (_TWO_LINES, True),
        ("A dog sits.\n\nA cat sleeps.", True),
        ("A dog sits.\nA cat sleeps.", False),
        ("a dog\na cat", False),
        ("a dog\n\na cat", False),
        ("A dog", False),
        ("", False),
    ],
)
def test_lines_that_look_like_one_text(text: str, wanted: bool) -> None:
    assert looks_like_one_text(text.splitlines()) == wanted


@pytest.mark.model
def test_a_hint_says_that_lines_look_like_one_text(stdin, capsys) -> None:
    stdin(_TWO_LINES)
    assert main(["parse", "--graph-style", "scene"]) == 0
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), "--text" in err) == (2, True)
    stdin(_TWO_LINES)
    assert main(["parse", "--graph-style", "scene", "--text"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["text"] for line in out.splitlines()] == [_TWO_LINES.strip()]
    assert err == ""


@pytest.mark.model
def test_factual_has_numbers_in_digits_and_says_what_is_apart(stdin, capsys) -> None:
    stdin("two dogs without a hat\n")
    assert main(["parse", "--graph-style", "scene", "--format", "factual"]) == 0
    out, err = capsys.readouterr()
    assert out == "( dogs , is , 2 )\n"
    assert err.startswith("caption 1, apart (denied): ")
    assert "hat" in err


@pytest.mark.model
def test_a_table_has_what_is_apart_with_its_reason(stdin, capsys) -> None:
    stdin("There are no people on the street.\n")
    assert main(["parse", "--graph-style", "scene", "--format", "table"]) == 0
    assert "apart: denied" in capsys.readouterr().out


@pytest.mark.model
def test_pipelines_prints_the_card_of_the_scene_parser(capsys) -> None:
    assert main(["pipelines", "scene"]) == 0
    signature, _, card = capsys.readouterr().out.partition("\n\n")
    assert signature == load_pipeline("scene").signature
    assert card == model_card("scene")
    assert all(name in card for name in ("DOCCI", "ImageInWords", "Localized Narratives", "## Known weaknesses"))
    assert main(["pipelines", "other"]) != 0
    assert "en_caption and scene" in capsys.readouterr().err


def test_a_caption_of_one_word_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "dog"]) == 2
    told = "error: dog: there is no such file; a caption of one word: echo dog | spicegraph parse\n"
    assert capsys.readouterr().err == told
    assert main(["parse", "dog.txt"]) == 2
    assert capsys.readouterr().err == "error: dog.txt: there is no such file\n"


@pytest.mark.model
def test_a_trace_has_the_passes_that_changed_something(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the scene parser alone."""
    caption = "A surgeon without gloves sits"
    assert main(["parse", caption, "--graph-style", "scene", "--trace"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == caption.lower()
    assert "  not_seen: + denied gloves" in out
    assert "  denied_modifiers: + relation surgeon - with - gloves" in out
    assert main(["parse", caption, "--trace"]) == 2
    assert "--trace shows the passes of the scene parser" in capsys.readouterr().err
    with pytest.raises(InputError, match="has no passes to trace"):
        load_pipeline().trace([caption])
