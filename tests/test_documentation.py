"""What the documentation names exists: the targets of its links, files of the repository, make's targets, scripts' options.

``tests/e2e/test_docs.py`` runs the blocks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "parser",
    "scorer",
    "service",
    "wings",
    "proto",
    "docs",
    "training",
    "tools",
    "bench",
    "examples",
    "deploy",
    "tests",
)
PAGES = sorted(
    [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md") if "node_modules" not in path.parts)]
)  # fmt: skip
MADE_BY_THE_BUILD = {ROOT / "docs" / "reference" / name for name in ("commands.md", "rules.md", "grpc.md")}
NOT_KEPT = ("training/work", "tests/golden/...")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*\w/?")
_SCRIPT = re.compile(r"(?:^|[\s`])((?:training|bench|tools)/\w+\.py)((?:[^`\n\\#]|\\\n)*)")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_MAKE = re.compile(r"(?:`|\$ |```\w*\n)make ([a-z][a-z0-9-]*)")


def anchor(heading: str) -> str:
    """Return what a link to a heading names, as GitHub and mkdocs make it."""
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def headings(page: Path) -> set[str]:
    return {anchor(line.lstrip("# ")) for line in page.read_text("utf-8").splitlines() if line.startswith("#")}


def link_faults(page: Path) -> list[str]:
    """Return the links within the repository that lead nowhere."""
    faults = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, part = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target in MADE_BY_THE_BUILD:
            continue
        if not target.exists() or (part and target.suffix == ".md" and part not in headings(target)):
            faults.append(link)
    return faults


def path_faults(text: str) -> list[str]:
    """Return the files and folders of the repository that code spans name and that do not exist."""
    spans = (span for span in _CODE.findall(_FENCE.sub("", text)) if not re.search(r"[<>*{]|NAME", span))
    named = {found.group().rstrip(".") for span in spans if (found := _PATH.match(span))}
    return sorted(name for name in named if not (ROOT / name).exists() and not name.startswith(NOT_KEPT))


def option_faults(text: str) -> list[str]:
    """Return the scripts that do not exist, and the options that a script's source does not declare."""
    faults = []
    for script, rest in _SCRIPT.findall(text):
        if not (ROOT / script).is_file():
            faults.append(script)
            continue
        faults += [f"{script} --{option}" for option in _OPTION.findall(rest) if not declares(ROOT / script, option)]
    return faults


def declares(script: Path, option: str) -> bool:
    """Return whether a script, or a module of its folder that it imports, has an option, by name or as a field."""
    source = script.read_text("utf-8")
    beside = (
        script.with_name(f"{module}.py") for module in re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
    )
    source += "".join(path.read_text("utf-8") for path in beside if path.is_file())
    return f'"--{option}"' in source or f"    {option.replace('-', '_')}:" in source


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_everything_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    unknown_targets = sorted(set(_MAKE.findall(text)) - TARGETS)
    assert not [*link_faults(page), *path_faults(text), *option_faults(text), *unknown_targets]


def test_what_does_not_exist_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n[a](#a-page) [b](#b) [c](missing.md) [d](https://example.org)\n", "utf-8")
    assert link_faults(page) == ["#b", "missing.md"]
    assert path_faults("`tools/lock.sh`, `tools/none.py`, `training/work/x`") == ["tools/none.py"]
    assert option_faults("`bench/none.py`\n`bench/rewards.py --seconds 3 --nothing`") == [
        "bench/none.py",
        "bench/rewards.py --nothing",
    ]
    assert set(_MAKE.findall("`make nothing`, `make demo`\n$ make test\nto make sure")) == {"nothing", "demo", "test"}
