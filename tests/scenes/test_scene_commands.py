"""``spicegraph parse`` and ``score`` with ``--graph-style scene``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from spicegraph_parser.pipelines import load_pipeline, model_card
from spicegraph_service.cli import main

_TWO_LINES = "A dog lies on a bed and\na cat sleeps near two dogs.\n"


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> object:
    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


@pytest.mark.model
def test_graphs_as_people_draw_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The style reaches tuples, scores and their signature; parses that are given have no style."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    captions, source = str(tmp_path / "captions.txt"), str(tmp_path / "in.json")
    Path(captions).write_text("A man rides a brown horse.\n", encoding="utf-8")
    Path(source).write_text(json.dumps([{"image_id": 1, "test": "two red cars", "refs": ["two cars"]}]))
    status, out, err = run("parse", captions, "--graph-style", "scene", "--format", "factual")
    assert (status, err) == (0, "")
    assert out.startswith("( man , ride , horse )")
    status, out, _ = run("score", source, "--metrics", "spice,spice-g", "--graph-style", "scene", "--format", "json")
    signature = json.loads(out)["signature"]["metrics"]
    assert status == 0
    assert all(metric["pipeline"].startswith("scene-") for metric in signature.values())
    status, out, err = run("parse", captions, "--graph-style", "scene", "--conllu")
    assert (status, out) == (2, "")
    assert "--graph-style scene reads captions" in err


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


@pytest.mark.model
def test_a_trace_has_the_passes_that_changed_something(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the scene parser alone."""
    caption = "A surgeon without gloves sits"
    assert main(["parse", caption, "--graph-style", "scene", "--trace"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == caption.lower()
    assert "  not_seen: + denied gloves" in out
    assert "  denied_modifiers: + relation surgeon - with - gloves" in out
