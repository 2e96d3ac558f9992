"""Messages, docstrings and documentation are written in plain English: turns of phrase that crept in stay out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".proto", ".toml", ".yml", ".j2", ".js", ".sh"}
FOLDERS = ("parser", "scorer", "service", "proto", "docs", "training", "tools", "bench", "examples", "deploy")
OTHER_TEXT = ("_pb2", "NOTICE", "LICENSE")
COMPARATIVE = (
    r"longer\b|more\b|less\b|fewer|worse|better|larger|slower|smaller|faster|higher|lower|different|farther|further"
)
A_UNIT = "row|item|line|image|caption|column|word|record|block|process|metric|group|task|system|pair|page|chunk|score|module|command|machine|file"

PATTERNS = {
    "is not a": rf"(?<!there )(?<!this )(?<!here )\b(?:is|are|was|were|be|being) no (?!{COMPARATIVE}|matter|one\b|way\b)[a-z]",
    "does not need a": r"\b(?:holds?|knows?|needs?|says?|makes?|gives?|takes?|loads?|shows?|sees?|wants?) no [a-z]",
    "lacks the": r"\b(?:has|have|had) not the\b",
    "per image": rf"(?<!and )\b(?:an?|one|each|every) [a-z]+ an? (?:{A_UNIT})\b(?! of| with| in| that)"
    rf"|\b(?:bytes|kB|MB|GB|ms|us|number) an? (?:{A_UNIT}|rater)\b|\bone a line\b",
    "shows its format": r"\b(?:its|the) content says\b|\bwhat [a-z ]{1,20} stands for says\b",
    "says": r"\b(?:is|are|was|were|be|been) told\b(?! apart)|\btold (?:by|to|of)\b|\btells? of\b|\btells\b(?!.{0,30}\bapart)",
    "differently": r"otherwise than|\bnot any ?more\b|\bany more\b(?= *[\"`.;:)])",
    "note": r"takes? note of\b",
    "there is no": r"\b(?:that|which|it|what) (?:is|are|was|were) none\b(?! of)",
    "what": r"\bthat which\b|\bof that of\b|\bthose which\b|\bof which (?:it|they) (?:is|are)\b",
    "available": r"\bto be had\b|\bis not to be\b|\bsuch as it is\b|\bwhatever it is\b(?! given)",
}
"""What to write instead, and the pattern of what is to be replaced."""


def prose() -> list[tuple[str, str]]:
    """Return every file that people read, as its path and its text."""
    top = [path for path in ROOT.iterdir() if path.name != "CHANGELOG.md"]
    paths = [*top, *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    ours = [p for p in paths if p.suffix in SUFFIXES and p.is_file() and not any(part in p.name for part in OTHER_TEXT)]
    return [(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in sorted(ours)]


@pytest.mark.parametrize("instead", PATTERNS)
def test_prose_is_plain(instead):
    pattern = re.compile(PATTERNS[instead], re.IGNORECASE)
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in prose()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, f'write "{instead}" or the like in place of:\n' + "\n".join(found)


@pytest.mark.parametrize(
    ("instead", "sentence"),
    [
        ("is not a", "the file is no zip archive"),
        ("does not need a", "the command needs no pipeline"),
        ("lacks the", "the token has not the scope"),
        ("per image", "one caption an image"),
        ("per image", "three kB an item"),
        ("shows its format", "what a file is, its content says"),
        ("says", "the server is told when to stop"),
        ("differently", "scores otherwise than here"),
        ("note", "take note of the limit"),
        ("there is no", "a message that is none"),
        ("what", "the sum of that which counts"),
        ("available", "where uvloop is to be had"),
    ],
)
def test_each_pattern_finds_its_phrase(instead, sentence):
    assert re.search(PATTERNS[instead], sentence)
