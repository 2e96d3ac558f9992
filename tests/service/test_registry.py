"""Commands and services as packages register them, and the kit that they may use."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import DataError
from spicegraph_service import kit, registry
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    registry.commands.cache_clear()
    registry.services.cache_clear()
    yield
    registry.commands.cache_clear()
    registry.services.cache_clear()


def install(folder: Path, entries: str, code: str = "", module: str = "stranger") -> None:
    """Lay a package out as an installer does."""
    (folder / "stranger-1.0.dist-info").mkdir()
    (folder / "stranger-1.0.dist-info" / "entry_points.txt").write_text(entries)
    (folder / f"{module}.py").write_text(code)


def test_a_command_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from spicegraph_service.kit import Command\n"
        "TABLE = (Command('greet', 'stranger:greet', 'Greet somebody.', 'Others'),)\n"
        "def greet(name: str) -> None:\n    print('good day', name)\n"
    )
    install(tmp_path, "[console_scripts]\na = b:c\n\n[spicegraph.commands]\nstranger = stranger:TABLE\n", code)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(registry.commands())[-1] == "greet"
    assert main(["--help"]) == 0
    assert "Greet somebody." in capsys.readouterr().out
    assert main(["greet", "you"]) == 0
    assert capsys.readouterr().out == "good day you\n"
    sys.modules.pop("stranger")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import nothing_of_the_kind", "can't be loaded: No module named 'nothing_of_the_kind'"),
        (
            "from spicegraph_service.kit import Command\nTABLE = (Command('score', '', '', ''),)",
            "the command 'score' is registered twice",
        ),
    ],
)
def test_a_faulty_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, error: str
) -> None:
    install(tmp_path, "[spicegraph.commands]\nfaulty = faulty_stranger:TABLE\n", code, "faulty_stranger")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["score", "--help"]) == 2
    shown = capsys.readouterr().err
    assert error in shown
    assert "faulty_stranger" in shown
    sys.modules.pop("faulty_stranger", None)


def test_a_wing_that_was_left_out_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "[spicegraph.commands]\na = left_out.registration:TABLE\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "score" in registry.commands()


def test_nothing_registered_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(DataError, match="install spicegraph"):
        registry.commands()


def test_the_kit_gives_what_type_checkers_see() -> None:
    stub = ast.parse(Path(kit.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = {
        alias.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert len(imports) > 100
    assert set(imports) == set(dir(kit))
    for name, module in imports.items():
        assert getattr(kit, name) is getattr(sys.modules[module], name)
    with pytest.raises(AttributeError, match="no attribute 'wrongs'"):
        kit.wrongs  # type: ignore[attr-defined]  # noqa: B018
