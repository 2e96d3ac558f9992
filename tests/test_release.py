"""What a release says of itself agrees: the version stands in three places, and each paper can be read by who reads it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # there are no types for it in the lock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from release import faults  # noqa: E402


def test_this_version_can_be_built() -> None:
    assert faults(ROOT, None) == []


@pytest.mark.parametrize(
    ("tag", "said"),
    [("v0.1.0", []), ("v0.2.0", ["the tag is v0.2.0, pyproject.toml has 0.1.0"]), ("0.1.0", ["the tag is 0.1.0, pyproject.toml has 0.1.0"])],
)  # fmt: skip
def test_a_tag_is_the_version(tag: str, said: list[str], tmp_path: Path) -> None:
    papers(tmp_path, logged="0.1.0] - 2026-12-01")
    assert faults(tmp_path, tag) == said


def test_every_paper_that_disagrees_is_named(tmp_path: Path) -> None:
    papers(tmp_path, cited="0.0.9", logged="0.1.0] - unreleased")
    assert faults(tmp_path, "v0.1.0") == [
        "CITATION.cff: version is 0.0.9, pyproject.toml has 0.1.0",
        "CHANGELOG.md: 0.1.0 has no date but 'unreleased'",
    ]


def papers(folder: Path, *, cited: str = "0.1.0", logged: str) -> None:
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {cited}\n")
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{logged}\n")


@pytest.mark.parametrize(
    "path",
    [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))],
    ids=lambda path: path.name,
)
def test_papers_are_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict)


def test_checks_before_a_commit_are_those_of_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    lint = (ROOT / "Makefile").read_text("utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in lint.splitlines()[1:]]
    run = [hook["entry"].replace(" --fix", "") for hook in hooks]
    assert [command.replace(" --check", "") for command in commands] == [entry.replace(" --check", "") for entry in run]
