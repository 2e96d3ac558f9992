"""Settings files: what they give, what wins over them, and what is wrong in them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path

Captured = pytest.CaptureFixture[str]
ITEM = {"id": 1, "candidate": "a dog", "references": ["a dog", "the dog"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.jsonl").write_text(json.dumps(ITEM) + "\n")
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv("SPICEGRAPH_SETTINGS", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("spicegraph.toml", 'metrics = "bleu"\n[score]\nmetrics = "rouge"\n'),
        ("pyproject.toml", '[tool.spicegraph]\nmetrics = "bleu"\n[tool.spicegraph.score]\nmetrics = "rouge"\n'),
    ],
)
def test_a_file_gives_options_and_what_is_typed_wins(folder: Path, capsys: Captured, name: str, content: str) -> None:
    (folder / name).write_text(content)
    for arguments, expected in (((), "ROUGE_L"), (("--metrics", "bleu"), "Bleu_1")):
        assert main(["score", "a.jsonl", "--format", "json", *arguments]) == 0
        written = capsys.readouterr()
        assert expected in json.loads(written.out)["corpus"]
        assert f"settings: {folder / name}" in written.err
    assert main(["config", "score"]) == 0
    shown = capsys.readouterr().out
    assert str(folder / name) in shown
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.strip().startswith("--")}
    assert rows["--metrics"] == ["rouge", "file"]
    assert rows["--workers"] == ["1", "default"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('metrcs = "bleu"', "'metrcs': no command has this option"),
        ("[scor]\nworkers = 1", "'scor': there is no such command"),
        ("[score]\nworkerz = 1", "'workerz': the command has no such option"),
        ('[score]\nworkers = "many"', "workers: "),
        ("metrics = ", "is not TOML"),
        ('empty = "maybe"', "empty: 'maybe' is not one of 'refuse', 'zero'"),
        ("workers = 0", "workers: must be at least 1"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(folder: Path, capsys: Captured, content: str, reason: str) -> None:
    (folder / "spicegraph.toml").write_text(content)
    assert main(["score", "a.jsonl"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {folder / 'spicegraph.toml'}")
    assert reason in error


@pytest.mark.slow
def test_commands_that_settings_do_not_concern_are_not_loaded(folder: Path) -> None:
    (folder / "spicegraph.toml").write_text('metrics = "bleu"\nworkers = 1\n[idf]\noutput = "x.npz"\n')
    code = (
        "import sys; from spicegraph_service.cli import main; main(['score', '--help']); "
        "print(*(name for name in sys.modules if name.startswith('spicegraph_service.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in done.stderr.split()}
    assert {"score", "learn"} <= loaded
    assert not {"bounds", "agree", "serve", "challenge", "config"} & loaded


def test_quiet_commands_do_not_name_the_file(folder: Path, capsys: Captured) -> None:
    (folder / "spicegraph.toml").write_text('metrics = "rouge"\n')
    assert main(["score", "a.jsonl", "--quiet"]) == 0
    assert not capsys.readouterr().err


def test_quiet_commands_write_no_notes(folder: Path, capsys: Captured) -> None:
    assert main(["score", "a.jsonl", "--metrics", "rouge"]) == 0
    assert "1 item" in capsys.readouterr().err
    assert main(["score", "a.jsonl", "--metrics", "rouge", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_every_option_of_serve_can_be_given_by_the_environment(capsys: Captured) -> None:
    """Those of services, too, which other packages bring."""
    assert main(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    options = set(re.findall(r"^  --([a-z-]+)", shown, re.MULTILINE))
    assert len(options) > 30
    text = " ".join(shown.split())
    assert not {name for name in options if f"SPICEGRAPH_{name.replace('-', '_').upper()}" not in text}
