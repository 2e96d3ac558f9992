"""Read the reference parser's parses."""

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from captions import json_captions
from heldout import Hashes
from styles import plain


@dataclass(frozen=True, slots=True)
class Sentence:
    """One parsed sentence; ``heads`` are 1-based word numbers, 0 for the root."""

    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption's text and its sentences."""

    text: str
    sentences: tuple[Sentence, ...]


def sentence(rows: list[list[str]]) -> Sentence:
    """Build a sentence from the columns of its CoNLL-U lines."""
    return Sentence(
        words=tuple(row[1] for row in rows),
        lemmas=tuple(row[2] for row in rows),
        tags=tuple(row[4] for row in rows),
        heads=tuple(int(row[6]) for row in rows),
        labels=tuple(row[7] for row in rows),
    )


def is_complete(rows: list[list[str]]) -> bool:
    """Whether every word has a head (the reference leaves some words of a few odd sentences out)."""
    return bool(rows) and all(row[6].isdigit() for row in rows)


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Group the lines of a CoNLL-U file by caption."""
    block: list[str] = []
    for line in lines:
        if line.startswith("# newdoc"):
            if block:
                yield block
            block = []
        else:
            block.append(line.rstrip("\n"))
    if block:
        yield block


def text(block: Iterable[str]) -> str:
    """Return the text of a caption's lines."""
    return next(line.removeprefix("# text = ") for line in block if line.startswith("# text = "))


def caption(block: list[str]) -> Caption | None:
    """Build a caption from its lines, or return None where a sentence is not wholly parsed.

    A block without its closing blank line is one that is being written.
    """
    if block[-1]:
        return None
    sentences: list[list[list[str]]] = [[]]
    for line in block:
        if line and not line.startswith("# "):
            sentences[-1].append(line.split("\t"))
        elif not line:
            sentences.append([])
    whole = [rows for rows in sentences if rows]
    if not whole or not all(map(is_complete, whole)):
        return None
    return Caption(text(block), tuple(map(sentence, whole)))


def read(path: Path, hashes: Hashes) -> Iterator[Caption]:
    """Yield the captions of a CoNLL-U file (gzipped or not) that are wholly parsed and not held out by hashes."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        whole = filter(None, map(caption, blocks(lines)))
        yield from (own for own in whole if not hashes.covers(own.text))


def without_evaluation(captions: Iterable[Caption], paths: Iterable[Path]) -> list[Caption]:
    """Return the captions whose text is in none of the evaluation files, case and end punctuation aside."""
    evaluation = {plain(text) for path in paths for text in json_captions(path)}
    return [caption for caption in captions if plain(caption.text) not in evaluation]
