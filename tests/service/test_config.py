"""An option of the server is declared once: flag, help, environment, settings file, bounds and `config` follow."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest
from typer.core import TyperCommand

from spicegraph_parser.errors import InputError
from spicegraph_service.cli import main
from spicegraph_service.cli.app import command_line
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
    assert option.help or name.startswith("log_")


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
