"""An option of the server is declared once: flag, help, environment, settings file, bounds and `config` follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_type_hints

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main
from spicegraph_service.cli.app import command_line, flattened
from spicegraph_service.cli.settings import options_of
from spicegraph_service.config import ServerConfig

FIELDS = [field.name for field in fields(ServerConfig)]
HINTS = get_type_hints(ServerConfig, include_extras=True)
BOUNDED = [name for name in FIELDS for option in HINTS[name].__metadata__ if option.min is not None]


def options() -> Any:
    command = command_line("serve").commands["serve"]
    assert isinstance(command, TyperCommand)
    return options_of(command)


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_is_an_option_with_help_and_a_variable(name: str) -> None:
    option = options()[name.replace("_", "-")]
    assert option.envvar == f"SPICEGRAPH_{name.upper()}"
    assert option.help


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_hold_for_the_command_line_and_for_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (declared,) = HINTS[name].__metadata__
    flag = f"--{name.replace('_', '-')}"
    value = type(getattr(ServerConfig(), name))(declared.min - 1)
    assert main(["serve", flag, str(value)]) == 2
    assert "must be at least" in capsys.readouterr().err
    with pytest.raises(InputError, match=f"{flag}: must be at least {declared.min:g}"):
        replace(ServerConfig(), **{name: value}).check()


def test_environment_and_settings_file(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worked example: ``--max-bodies`` is one field of ``ServerConfig``, and acts in ``rpc/http.py``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPICEGRAPH_SETTINGS", raising=False)
    (tmp_path / "spicegraph.toml").write_text("[serve]\nmax-bodies = 100\n")
    monkeypatch.setenv("SPICEGRAPH_MAX_SETS", "7")
    assert main(["config", "serve"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if "--" in line}
    assert rows["--max-bodies"] == ["100", "file"]
    assert rows["--max-sets"] == ["7", "environment"]
    assert rows["--max-items"] == ["2000", "default"]


@dataclass(frozen=True, kw_only=True)
class Base:
    """A group.

    Options:
        first: What one says, in words
            and lines.
        second: To be said otherwise.
    """

    first: Annotated[int, typer.Option()] = 1
    second: Annotated[int, typer.Option()] = 2


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    """A group that says one thing anew.

    Options:
        second: So (http://example.org): 1.
    """

    third: Annotated[int, typer.Option(help="With the option.")] = 3


def test_help_of_options_stands_in_docstrings() -> None:
    """Those of a group are those of its bases, too; the command's own help goes without them."""

    def command(name: Annotated[str, typer.Argument()], *, group: Derived) -> None:
        """Do something.

        It takes long.

        Options:
            name: What it is done to.
        """

    app = typer.Typer()
    app.command()(flattened(command))
    app.command("other")(lambda: None)
    made = get_command(app).commands["command"]
    assert {parameter.name: parameter.help for parameter in made.params if parameter.name != "quiet"} == {
        "name": "What it is done to.",
        "first": "What one says, in words and lines.",
        "second": "So (http://example.org): 1.",
        "third": "With the option.",
    }
    assert made.help == "Do something.\n\nIt takes long."


def test_every_option_has_help() -> None:
    def without_help(command: Any, name: str) -> list[str]:
        if isinstance(command, TyperGroup):
            parts = [without_help(part, f"{name} {key}") for key, part in command.commands.items()]
            return [line for part in parts for line in part]
        options = (each for each in command.params if isinstance(each, TyperOption))
        return [f"{name} {option.opts[0]}" for option in options if not option.help]

    assert without_help(command_line(), "spicegraph") == []
