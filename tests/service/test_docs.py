"""The documentation: it builds without a warning, asks nobody for anything, and every block in it runs."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
WITH_BLOCKS = [path for path in PAGES if "```" in path.read_text(encoding="utf-8")]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALL = re.compile(r"(pip install \S+( +#.*)?\n?)+")
_MARK = "--- block"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the output that follows it, if a page shows one."""

    language: str
    text: str


def blocks(path: Path) -> list[Block]:
    return [Block(*match.groups()) for match in _FENCE.finditer(path.read_text(encoding="utf-8"))]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, with their here-documents, each with the output that is shown."""
    command: list[str] = []
    output: list[str] = []
    end = ""
    for line in text.splitlines():
        if end:
            command.append(line)
            end = "" if line == end else end
        elif line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(output)
            command, output = [line[2:]], []
            found = re.search(r"<<'(\w+)'", line)
            end = found[1] if found else ""
        else:
            output.append(line)
    if command:
        yield "\n".join(command), "\n".join(output)


def as_pattern(shown: str) -> re.Pattern[str]:
    """Return what an output must match: ``...`` stands for anything, also for any lines."""
    return re.compile(".*".join(map(re.escape, shown.split("..."))) + r"\s*", re.DOTALL)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the examples and nothing else of the repository."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    """Return an environment in which the commands of this installation come first and no cache is outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPICEGRAPH_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "HOME": str(place), "HF_HOME": str(place / "hf"), "PYTHONWARNINGS": "ignore"}


def script(page: list[Block]) -> tuple[str, list[tuple[str, str]]]:
    """Return a shell script of a page's console blocks, and what each command must print."""
    lines = ["set -eo pipefail", "trap 'jobs -p | xargs -r kill' EXIT"]
    expected = []
    for block in page:
        for command, shown in commands(block.text) if block.language == "console" else ():
            lines += [f"echo '{_MARK}'", command]
            expected.append((command, shown))
    return "\n".join(lines) + "\n", expected


@pytest.mark.model
@pytest.mark.parametrize("path", WITH_BLOCKS, ids=lambda path: path.relative_to(ROOT / "docs").as_posix())
def test_every_block_runs(path: Path, place: Path) -> None:
    page = blocks(path)
    unknown = {block.language for block in page} - {"console", "python", "sh", "output"}
    assert not unknown, "write how such a block is run"
    assert all(_INSTALL.fullmatch(block.text) for block in page if block.language == "sh"), "only pip install"
    text, expected = script(page)
    if expected:
        done = subprocess.run(["bash", "-c", text], cwd=place, env=environment(place), capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
        outputs = done.stdout.split(f"{_MARK}\n")[1:]
        ran = expected[: len(outputs)]
        assert done.returncode == 0, f"{ran[-1][0]}\n{done.stderr}"
        for (command, shown), output in zip(expected, outputs, strict=True):
            assert not shown or as_pattern(shown).fullmatch(output), f"{command}\n{output}"
    follows = dict(itertools.pairwise(page))
    for block in (block for block in page if block.language == "python"):
        done = subprocess.run([sys.executable, "-c", block.text], cwd=place, env=environment(place), capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
        assert done.returncode == 0, f"{textwrap.indent(block.text, '    ')}\n{done.stderr}"
        after = follows.get(block)
        if after is not None and after.language == "output":
            assert done.stdout == after.text


def test_pages_with_commands_are_found() -> None:
    assert len(WITH_BLOCKS) > 10
    assert list(commands("$ cat > x <<'END'\n$ not a command\nEND\n$ b\nout\n...\n")) == [
        ("cat > x <<'END'\n$ not a command\nEND", ""),
        ("b", "out\n..."),
    ]
    assert as_pattern("a\n...\nz").fullmatch("a\nb\nc\nz\n")
    assert not as_pattern("a").fullmatch("ab")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_the_site_has_every_page(site: Path) -> None:
    for path in PAGES:
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    made = {name: (site / "reference" / f"{name}.html").read_text() for name in ("commands", "rules", "grpc")}
    assert "spicegraph score" in made["commands"]
    assert "passive_agent" in made["rules"]
    assert "EvaluationService" in made["grpc"]
    assert "read_items" in (site / "reference" / "scorer.html").read_text()
    assert "tuple F1" in (site / "from-java.html").read_text(), "the README's table"


_LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?(https?:)?//([^"'\s>]+)""")


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not _LOADED.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        assert not re.search(r"""url\(["']?(https?:)?//""", style.read_text(encoding="utf-8")), style


def test_every_command_and_metric_is_in_the_documentation() -> None:
    from spicegraph_service.cli.app import COMMANDS

    written = "\n".join(path.read_text(encoding="utf-8") for path in (*PAGES, ROOT / "README.md", *ROOT.glob("*/*.md")))
    assert not [name for name in COMMANDS if f"spicegraph {name}" not in written]
