"""The documentation: it builds without a warning, asks nobody for anything, and every block in it runs.

How a fenced block is run:

- ``console``: the commands after ``$``; what is shown below a command is its output, with or without what it
  says on standard error (``...`` stands for anything);
- ``python``: a program; an ``output`` block after it is what it prints; one behind the line ``<!-- continued -->`` goes on with the
  program before it;
- a block with a title is the file of that name;
- ``sh``, ``bash``: commands that need what is not here (a package registry, another machine, the reader's own data). They are not
  run; every command and option of ours in them must exist;
- ``json``, ``toml`` and ``yaml`` without a title must be valid; ``text`` is a picture of something.

The blocks of a page run in their order in one folder, so that a later one can use the files of an earlier one. Commands and
programs of most pages are forks of one process, which has loaded the packages (``warm_programs.py``); those of a few pages start
as a reader's do.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml  # type: ignore[import-untyped]  # there are no types for it in the lock

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from markdown_blocks import PAGES, WITH_BLOCKS, Block, find_blocks, join_python_programs
from nltk_data import write_nltk_data
from spicegraph_service import registry
from spicegraph_service.cli import main
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.executable).parent
FRENCH = {"chien": ["dog.n.01"], "canapé": ["sofa.n.01"], "divan": ["sofa.n.01"], "plage": ["beach.n.01"]}
AS_INSTALLED = {ROOT / "README.md", ROOT / "docs" / "five-minutes.md", ROOT / "service" / "README.md"}
PORTS = ("50051", "50951", "50952")  # in the pages; each is another one here, so that nothing else is in the way

_MARK = "--- block"


@dataclass(frozen=True)
class Step:
    """A line or more for the shell, and what it must print; empty: anything."""

    command: str
    shown: str


def steps(page: list[Block]) -> Iterator[Step]:
    """Yield what the shell runs of a page, in its order."""
    program = printed = ""
    for block, after in zip(page, [*page[1:], None], strict=True):
        if block.title is not None:
            yield Step(f"cat > {block.title} <<'END_OF_FILE'\n{block.text}END_OF_FILE", "")
        elif block.language == "console":
            yield from commands(block.text)
        elif block.language == "python":
            shown = after.text if after is not None and after.language == "output" else ""
            program, printed = (program + block.text, printed + shown) if block.continued else (block.text, shown)
            yield Step(f"python - <<'END_OF_PROGRAM'\n{program}END_OF_PROGRAM", printed)


def commands(text: str) -> Iterator[Step]:
    """Yield the commands of a console block, each with the output that is shown."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.splitlines()
        while first.endswith("\\"):
            first = f"{first}\n{rest.pop(0)}"
        yield Step(first, "\n".join(rest))


def as_pattern(shown: str) -> re.Pattern[str]:
    """Return what an output must match: ``...`` stands for anything, also for any lines."""
    return re.compile(".*".join(map(re.escape, shown.rstrip("\n").split("..."))) + r"\s*", re.DOTALL)


def free_port() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return str(bound.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the examples and nothing else of the repository; a home with words in French for nltk."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_nltk_data(tmp_path / "nltk_data", {"fra": FRENCH})
    return tmp_path


@pytest.fixture(scope="module")
def warm_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with programs of this installation that have loaded all before they start."""
    folder = tmp_path_factory.mktemp("programs")
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests/support/warm_programs.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        wait_until(lambda: process.poll() is not None or (folder / "ready").exists(), timeout_s=300)
        yield folder
        process.terminate()


def environment(place: Path, programs: Path = INSTALLED) -> dict[str, str]:
    """Return an environment in which the commands of this installation come first and no cache is outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPICEGRAPH_")}
    path = os.pathsep.join([str(programs), str(INSTALLED), os.environ["PATH"]])
    homes = {"HOME": str(place), "HF_HOME": str(place / "hf"), "XDG_DATA_HOME": str(place / "data")}
    return kept | homes | {"PATH": path, "PYTHONWARNINGS": "ignore"}


def run_steps(
    expected: list[Step], place: Path, *, programs: Path = INSTALLED, stop: bool = True
) -> tuple[subprocess.CompletedProcess[str], list[str], list[str]]:
    """Run steps in a folder, to the first that fails if ``stop``; return also what each prints and says on stderr."""
    lines = [f"set -{'e' if stop else ''}o pipefail", "trap 'jobs -p | xargs -r kill' EXIT"]
    lines += [f"echo '{_MARK}' | tee /dev/stderr\n{step.command}" for step in expected]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=place, env=environment(place, programs), capture_output=True, text=True, timeout=400, check=False)  # fmt: skip
    outputs, said = (text.split(f"{_MARK}\n")[1:] for text in (done.stdout, done.stderr))
    return done, outputs, said


@pytest.mark.model
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.relative_to(ROOT).as_posix(), marks=() if path in AS_INSTALLED else pytest.mark.full("pages")
        )
        for path in WITH_BLOCKS
    ],
)
def test_every_block_runs(path: Path, place: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    for port in PORTS:
        text = text.replace(port, free_port())
    page = find_blocks(text)
    unknown = {block.language for block in page} - {"console", "python", "sh", "output", "text", *CHECKS}
    assert not unknown, "write how such a block is run"
    for block in page:
        CHECKS.get(block.language, str)(block.text)
    expected = list(steps(page))
    # Not a parameter: tests with a fixture of their file run on one worker, and these are a minute's work.
    programs = INSTALLED if path in AS_INSTALLED or not expected else request.getfixturevalue("warm_programs")
    done, outputs, said = run_steps(expected, place, programs=programs)
    assert done.returncode == 0, f"{expected[len(outputs) - 1].command}\n{done.stderr}"
    for step, output, errors in zip(expected, outputs, said, strict=True):
        shown = as_pattern(step.shown or "...")
        assert shown.fullmatch(output) or shown.fullmatch(errors + output), f"{step.command}\n{errors}{output}"


@pytest.mark.full("pages")
def test_warm_programs_are_processes_as_others(warm_programs: Path, place: Path) -> None:
    """Arguments, folder, environment, standard input and output, and codes are those of the shell that starts them."""
    program = "import os, sys; print(__name__, sys.argv, os.environ['WORD'], sorted(os.listdir())); sys.exit(3)"
    commands = (
        f'WORD=x python - <<< "{program}" || echo "code $?"',
        "echo 'a dog' | spicegraph parse -",
        'spicegraph parse nothing.txt || echo "code $?"',
        "python -c 'import sys; print(sys.prefix)'",
    )
    started = [Step(command, "") for command in commands]
    _, outputs, said = run_steps(started, place, programs=warm_programs)
    _, *expected = run_steps(started, place)
    assert [outputs, said] == expected
    assert outputs[0] == "__main__ ['-'] x ['examples', 'nltk_data']\ncode 3\n"


@cache
def help_of(*command: str) -> str:
    with redirect_stdout(io.StringIO()) as shown:
        code = main([*command, "--help"])
    return shown.getvalue() if code == 0 else ""


def check_commands(text: str) -> None:
    """Hold the commands of ours in a shell block against their help."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.replace("$(", " ").replace(")", " "), comments=True)
        starts = [place for place, word in enumerate(words) if word.rpartition("/")[2] == "spicegraph"]
        for start in starts:
            command, *rest = *words[start + 1 :], "&"
            if command not in registry.commands():
                assert command.startswith(("&", "-")), line
                continue
            sub = [rest[0]] if rest and f"\n  {rest[0]} " in help_of(command).partition("Commands:")[2] else []
            known = set(re.findall(r"--?[\w-]+", help_of(command, *sub)))
            assert known, line
            given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            assert given <= known, f"{line}: {given - known}"


def check_json(text: str) -> None:
    """Documents, one behind the other: JSON Lines, or one over several lines."""
    decoder = json.JSONDecoder()
    rest = text.strip()
    while rest:
        _, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()


CHECKS: Mapping[str, Callable[[str], object]] = {
    "bash": check_commands,
    "csv": str,
    "json": check_json,
    "sh": check_commands,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


def test_blocks_and_commands_are_found() -> None:
    assert len(WITH_BLOCKS) > 20
    (block,) = find_blocks('a\n```csv title="x.csv"\n1\n```\nb\n')
    assert block == Block("csv", "x.csv", "1\n")
    first, second = steps(
        find_blocks("```python\nx = 1\n```\n<!-- continued -->\n```python\nprint(x)\n```\n```output\n1\n```\n")
    )
    assert (first.shown, second.shown) == ("", "1\n")
    assert "x = 1\nprint(x)\n" in second.command
    assert list(commands("$ a \\\n  b\n$ c\nout\n...\n")) == [Step("a \\\n  b", ""), Step("c", "out\n...")]
    assert as_pattern("a\n...\nz").fullmatch("a\nb\nc\nz\n")
    assert not as_pattern("a").fullmatch("ab")
    check_commands(
        "token=$(spicegraph token create me --scope score)\nvenv/bin/spicegraph score x --metrics \\\n  coco -o y"
    )
    with pytest.raises(AssertionError, match="--no-such"):
        check_commands("spicegraph score a.json --no-such 1")
    with pytest.raises(AssertionError):
        check_commands("spicegraph scare a.json")


def test_programs_are_found() -> None:
    page = (
        "```python\nx = 1\n```\n<!-- continued -->\n```python\nprint(x)\n```\n```sh\nls\n```\n```python\ny = 2\n```\n"
    )
    assert join_python_programs(page) == ["x = 1\nprint(x)\n", "y = 2\n"]


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


@pytest.mark.full("pages")
def test_the_site_has_every_page(site: Path) -> None:
    for path in PAGES:
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    copies = {
        name: (site / f"{name}.html").read_text()
        for name in ("changelog", "challenges", "contributing", "deployment", "server")
    }
    assert 'href="challenges.html"' in copies["server"], "links lead to the copy on the site"
    assert 'href="how-to/graded.html#which-words-are-wrong"' in copies["server"]
    assert 'href="architecture.html"' in copies["contributing"]
    made = {name: (site / "reference" / f"{name}.html").read_text() for name in ("commands", "rules", "grpc")}
    assert "spicegraph score" in made["commands"]
    assert "passive_agent" in made["rules"]
    assert "EvaluationService" in made["grpc"]
    assert "read_items" in (site / "reference" / "scorer.html").read_text()
    assert "tuple F1" in (site / "from-java.html").read_text(), "the README's table"
    assert "&gt;&gt;&gt;" in (site / "reference" / "scorer.html").read_text(), "examples as code"
    assert not [page for page in site.rglob("*.html") if re.search(r":(func|class|data|meth):", page.read_text())]


@pytest.mark.full("pages")
def test_pages_can_be_searched_from_disk(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


_LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?(https?:)?//([^"'\s>]+)""")


@pytest.mark.full("pages")
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not _LOADED.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        assert not re.search(r"""url\(["']?(https?:)?//""", style.read_text(encoding="utf-8")), style


def test_every_command_and_metric_is_in_the_documentation() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in (*PAGES, ROOT / "README.md", *ROOT.glob("*/*.md")))
    assert not [name for name in registry.commands() if f"spicegraph {name}" not in written]
