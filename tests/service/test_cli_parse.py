"""``spicegraph parse``: what it reads as one caption, and what it shows of scene graphs."""

from __future__ import annotations

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


def test_a_caption_of_one_word_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "dog"]) == 2
    told = "error: dog: there is no such file; a caption of one word: echo dog | spicegraph parse\n"
    assert capsys.readouterr().err == told
    assert main(["parse", "dog.txt"]) == 2
    assert capsys.readouterr().err == "error: dog.txt: there is no such file\n"


def test_a_trace_is_of_the_scene_parser_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "A surgeon without gloves sits", "--trace"]) == 2
    assert "--trace shows the passes of the scene parser" in capsys.readouterr().err
    with pytest.raises(InputError, match="has no passes to trace"):
        load_pipeline().trace(["a dog"])


@pytest.mark.model
def test_pipelines_prints_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines"]) == 0
    assert capsys.readouterr().out == f"{load_pipeline().signature}\n\n{model_card()}"
    assert main(["pipelines", "other"]) != 0
    assert "other has no model card here; those with one are en_caption" in capsys.readouterr().err
