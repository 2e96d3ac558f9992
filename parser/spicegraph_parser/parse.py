"""A small frozen view of a dependency graph, and its CoNLL-U form.

Nothing here knows which parser made the graph. Labels are basic Universal Dependencies v1, as CoreNLP 3.6
prints them, or their collapsed form (``nmod:on``, ``conj:and``); :func:`spicegraph_parser.collapse.collapse`
turns the first into the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Caption", "Edge", "Parse", "Word", "find_spans", "read_conllu", "write_conllu"]

_COLUMNS = 10
_DETACHED = -1


class Word(NamedTuple):
    """A token: its form, PTB tag, lower-cased lemma, and its span in the caption (code points, end excluded).

    A parse read from a file without its text has spans of -1.
    """

    form: str
    tag: str
    lemma: str
    start: int = _DETACHED
    end: int = _DETACHED


class Edge(NamedTuple):
    """A dependency ``label(head, dependent)``; words count from 1, and head 0 is the root."""

    label: str
    head: int
    dependent: int


@dataclass(frozen=True, slots=True)
class Parse:
    """One sentence: its words and its dependency edges."""

    words: tuple[Word, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and the parses of its sentences, in order; an empty caption has none."""

    text: str
    sentences: tuple[Parse, ...]


def read_conllu(lines: Iterable[str], *, source: str = "CoNLL-U") -> Iterator[Caption]:
    """Read captions from CoNLL-U lines.

    A block is a sentence. ``# newdoc`` starts a caption; a file without any has one caption a block.
    ``# text`` gives the caption's text (of several in one caption, the longest counts: a file may repeat the
    whole caption or give each sentence its own). Word spans are found in that text. Columns used: ID FORM
    LEMMA XPOS HEAD DEPREL, and DEPS when it is filled, which then replaces HEAD and DEPREL (an enhanced
    graph). Multi-word token ranges and empty nodes are refused.

    Raises:
        InputError: a line is not CoNLL-U; the message names the source, the line and the reason.
    """
    block: list[tuple[int, str]] = []
    texts: list[str] = []
    sentences: list[_Rows] = []
    is_open = has_documents = False

    def caption() -> Caption:
        text = max(texts, key=len) if texts else " ".join(row.form for rows in sentences for row in rows)
        return Caption(text, tuple(_align(rows, text, at) for rows, at in _cursors(sentences, text)))

    def close_block() -> None:
        nonlocal is_open
        if block:
            sentences.append(_rows(block, source))
            block.clear()
            is_open = True

    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r\n")
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.split()[:1] == ["newdoc"]:
                close_block()
                if is_open:
                    yield caption()
                    sentences, texts = [], []
                is_open = has_documents = True
            elif key.strip() == "text":
                texts.append(value.strip())
        elif line.strip():
            block.append((number, line))
        else:
            close_block()
            if sentences and not has_documents:
                yield caption()
                sentences, texts, is_open = [], [], False
    close_block()
    if is_open:
        yield caption()


class _Row(NamedTuple):
    form: str
    lemma: str
    tag: str
    edges: tuple[Edge, ...]


_Rows = list[_Row]


def _rows(block: list[tuple[int, str]], source: str) -> _Rows:
    rows: _Rows = []
    for expected, (number, line) in enumerate(block, start=1):
        where = f"{source}, line {number}"
        cells = line.split("\t")
        if len(cells) != _COLUMNS:
            raise InputError(f"{where}: a CoNLL-U line has 10 tab-separated columns, this one has {len(cells)}")
        if cells[0] != str(expected):
            raise InputError(f"{where}: column ID is {cells[0]!r}, expected {expected} (plain words only)")
        form, lemma = cells[1], cells[2] if cells[2] != "_" else cells[1]
        rows.append(_Row(form, lemma.lower(), cells[4], tuple(_cell_edges(cells, expected, len(block), where))))
    return rows


def _cell_edges(cells: list[str], dependent: int, size: int, where: str) -> Iterator[Edge]:
    if cells[6:9] == ["_", "_", "_"]:  # a word that the graph left out
        return
    pairs = (
        [(cells[6], cells[7])]
        if cells[8] == "_"
        else [(head, label) for head, _, label in (part.partition(":") for part in cells[8].split("|"))]
    )
    for head, label in pairs:
        if not (head.isascii() and head.isdigit()) or int(head) > size:
            raise InputError(f"{where}: column HEAD is {head!r}, expected a word number from 0 to {size}")
        if not label or label == "_":
            raise InputError(f"{where}: column DEPREL is empty")
        yield Edge(label, int(head), dependent)


def _cursors(sentences: list[_Rows], text: str) -> Iterator[tuple[_Rows, int]]:
    """Pair each sentence with the place in the text where the search for its words starts."""
    cursor = 0
    for rows in sentences:
        yield rows, cursor
        cursor = max([cursor, *(end for _, end in find_spans([row.form for row in rows], text, cursor))])


def _align(rows: _Rows, text: str, cursor: int) -> Parse:
    spans = find_spans([row.form for row in rows], text, cursor)
    words = tuple(Word(row.form, row.tag, row.lemma, *span) for row, span in zip(rows, spans, strict=True))
    return Parse(words, tuple(edge for row in rows for edge in row.edges))


def find_spans(forms: Iterable[str], text: str, cursor: int = 0) -> Iterator[tuple[int, int]]:
    """Find words in a text, from left to right; one that is not there (``-LRB-``) has the span (-1, -1)."""
    for form in forms:
        found = text.find(form, cursor)
        if found < 0:
            yield _DETACHED, _DETACHED
        else:
            cursor = found + len(form)
            yield found, cursor


def write_conllu(captions: Iterable[Caption]) -> Iterator[str]:
    """Write captions as CoNLL-U lines (without line ends) that :func:`read_conllu` reads back.

    A word with one incoming edge has it in HEAD and DEPREL; a word with several or none, as in a collapsed
    graph, has all of them in DEPS.
    """
    for caption in captions:
        yield "# newdoc"
        yield f"# text = {' '.join(caption.text.split())}"
        if not caption.sentences:
            yield ""
        for parse in caption.sentences:
            above: dict[int, list[Edge]] = {}
            for edge in parse.edges:
                above.setdefault(edge.dependent, []).append(edge)
            for index, word in enumerate(parse.words, start=1):
                incoming = above.get(index, [])
                head, label, deps = "_", "_", "_"
                if len(incoming) == 1:
                    head, label = str(incoming[0].head), incoming[0].label
                elif incoming:
                    deps = "|".join(f"{edge.head}:{edge.label}" for edge in incoming)
                yield "\t".join(
                    (str(index), word.form, word.lemma, "_", word.tag, "_", head, label, deps, "_"),
                )
            yield ""
