"""What commands read, and each way to name it: no output may be one of these."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from spicegraph_service.cli import main
from spicegraph_service.cli.app import is_input, make_app
from spicegraph_service.registry import commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from click import Command

INPUTS = {
    "a.json": [{"image_id": 1, "test": "a dog", "refs": ["a brown dog"]}],
    "results.json": [{"image_id": 1, "caption": "a dog"}],
    "other.json": [{"image_id": 1, "caption": "a cat"}],
    "annotations.json": {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a brown dog"}]},
}
SCORED = ("--references", "annotations.json", "--metrics", "bleu")
SPELLINGS = ("same", "dotted", "absolute", "URL", "symbolic link", "hard link", "linked folder")


@pytest.fixture
def input_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in INPUTS.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "lines").mkdir()
    for name in ("a.jsonl", "parses.conllu", "parses.db", "own.toml", "lines/b.jsonl"):
        (tmp_path / name).write_text("what must stay")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spelled(path: Path, how: str) -> str:
    """Return the path of a file below the working folder, or that of a link to it."""
    relative = path.relative_to(Path.cwd())
    if how == "symbolic link":
        Path("link").symlink_to(relative)
        return "link"
    if how == "hard link":
        os.link(path, "hard")
        return "hard"
    if how == "linked folder":
        Path("elsewhere").symlink_to(path.parent)
        return f"elsewhere/{path.name}"
    return {"same": str(relative), "dotted": f"./lines/../{relative}", "absolute": str(path), "URL": path.as_uri()}[how]


def check_refused(
    arguments: Sequence[str], target: str, how: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command refuses to write to a file that it reads, however its output names the file."""
    before = (folder / target).read_bytes()
    assert main([*arguments, "-o", spelled(folder / target, how)]) == 2
    assert "would overwrite an input of the command" in capsys.readouterr().err
    assert (folder / target).read_bytes() == before


def _leaves(command: Command, *path: str) -> Iterator[tuple[str, Command]]:
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from _leaves(each, *path, name)
    else:
        yield " ".join(path), command


def writers_without_input() -> set[str]:
    """Return the commands that write a file and declare none that they read."""
    return {
        path
        for path, command in _leaves(get_command(make_app(*commands())))
        if any(str(p.name).startswith("output") for p in command.params)
        and not any(is_input(p) for p in command.params if isinstance(p, TyperArgument | TyperOption))
    }
