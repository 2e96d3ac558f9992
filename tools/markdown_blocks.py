"""The fenced blocks of Markdown pages, and the Python programs that they make up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
READMES = [
    ROOT / "README.md",
    *sorted((ROOT / "examples").glob("*/*.md")),
    *sorted((ROOT / "examples" / "challenges").glob("*/*.md")),
    *sorted(
        path
        for part in ("parser", "scorer", "service", "wings", "training", "deploy")
        for path in (ROOT / part).rglob("*.md")
    ),
]
WITH_BLOCKS = [path for path in (*PAGES, *READMES) if "```" in path.read_text(encoding="utf-8")]

_FENCE = re.compile(r"^(<!-- continued -->\n+)?```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its file name if any, its text, and whether it continues a program."""

    language: str
    title: str | None
    text: str
    continued: bool = False


def find_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [Block(language, title or None, body, bool(mark)) for mark, language, title, body in _FENCE.findall(text)]


def join_python_programs(text: str) -> list[str]:
    """Return the Python programs of a page, each with the blocks that continue it."""
    programs: list[str] = []
    for block in find_blocks(text):
        if block.language == "python":
            programs[-1:] = [programs[-1] + block.text] if block.continued else [*programs[-1:], block.text]
    return programs
