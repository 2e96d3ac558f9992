"""Commands of studies: what they point out, and what they must not load."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from pathlib import Path

UNUSED = {"google.protobuf", "grpc", "sqlalchemy", "spacy", "spicegraph_service.report"}
"""What ``bounds`` without a page does not use."""


@pytest.mark.parametrize(("same", "warned"), [(10, True), (9, True), (8, False)])
def test_references_given_as_candidates_are_pointed_out(
    same: int, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "r.jsonl"
    rows = [
        {"id": n, "candidate": "a  dog " if n < same else "a cat", "references": ["the dog", "a dog"]}
        for n in range(10)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["bounds", str(source), "--lower", "none", "--metrics", "rouge"]) == 0
    note = f"warning: {source}: {same} of 10 candidates equal one of their own references; is it the right"
    assert (note in capsys.readouterr().err) == warned


@pytest.mark.slow
def test_what_bounds_do_not_use_is_not_loaded(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"id": n, "candidate": "a dog runs", "references": ["a dog", "a cat"]} for n in range(3)]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    program = f"from spicegraph_service.cli import main; assert not main(['bounds', '{items}', '--metrics', 'spice'])"
    program += "; import json, sys; sys.stderr.write('\\n' + json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert UNUSED.isdisjoint(json.loads(done.stderr.splitlines()[-1]))


def test_studies_are_a_group_of_the_help_behind_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(part) for part in ("\nScore:\n", "\nStudy:\n", "  agree ", "  bounds ", "\nPrepare:\n")]
    assert places[:2] == sorted(places[:2])
    assert places[1] < min(places[2:4]) < max(places[2:4]) < places[4]


def test_help_of_agree_shows_options_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agree", "captions", "--help"]) == 0
    shown = capsys.readouterr().out
    places = [
        shown.index(f"\n{part}:\n") for part in ("Protocol", "Input", "Metrics", "Output", "Tests", "Speed", "Parsing")
    ]
    assert places == sorted(places)
