"""Parses as CoNLL-U: read from files that another parser made, and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_parser.languages import ENGLISH, Language
from spicegraph_parser.spice.parse import Caption, Edge, Parse, Word, find_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def read_conllu(lines: Iterable[str], *, source: str = "CoNLL-U", language: Language = ENGLISH) -> Iterator[Caption]:
    """Read captions from CoNLL-U lines; ``language``: the language of the captions.

    A block is a sentence. ``# newdoc`` starts a caption; a file without any has one caption per block.
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
                    yield _caption(sentences, texts, language)
                    sentences, texts = [], []
                is_open = has_documents = True
            elif key.strip() == "text":
                texts.append(value.strip())
        elif line.strip():
            block.append((number, line))
        else:
            close_block()
            if sentences and not has_documents:
                yield _caption(sentences, texts, language)
                sentences, texts, is_open = [], [], False
    close_block()
    if is_open:
        yield _caption(sentences, texts, language)


def _caption(sentences: Sequence[_Rows], texts: Sequence[str], language: Language) -> Caption:
    """Return the caption of sentences; of several texts the longest counts."""
    text = max(texts, key=len) if texts else " ".join(word.form for rows in sentences for word, _ in rows)
    parses, cursor = [], 0
    for rows in sentences:  # its words are looked for behind those of the sentence before
        spans = list(find_spans([word.form for word, _ in rows], text, cursor))
        words = [word._replace(start=start, end=end) for (word, _), (start, end) in zip(rows, spans, strict=True)]
        parses.append(Parse(words, [edge for _, edges in rows for edge in edges], language))
        cursor = max([cursor, *(end for _, end in spans)])
    return Caption(text, tuple(parses))


_Rows = list[tuple[Word, list[Edge]]]  # a sentence's words, without their spans, each with the edges that lead to it


def _rows(block: list[tuple[int, str]], source: str) -> _Rows:
    rows: _Rows = []
    for expected, (number, line) in enumerate(block, start=1):
        where = f"{source}, line {number}"
        cells = line.split("\t")
        if len(cells) != 10:
            raise InputError(f"{where}: a CoNLL-U line has 10 tab-separated columns, this one has {len(cells)}")
        if cells[0] != str(expected):
            raise InputError(f"{where}: column ID is {cells[0]!r}, expected {expected} (plain words only)")
        form, lemma = cells[1], cells[2] if cells[2] != "_" else cells[1]
        edges = [Edge(label, head, expected) for head, label in _edges(cells, where, len(block))]
        rows.append((Word(form, cells[4], lemma.lower()), edges))
    return rows


def _edges(cells: Sequence[str], where: str, words: int) -> Iterator[tuple[int, str]]:
    """Yield the heads of a word of a block of so many words, with their labels; none: the graph left it out."""
    pairs = [(cells[6], cells[7])] if cells[8] == "_" else [part.partition(":")[::2] for part in cells[8].split("|")]
    for head, label in pairs if cells[6:9] != ["_", "_", "_"] else ():
        if not (head.isascii() and head.isdigit()) or int(head) > words:
            raise InputError(f"{where}: column HEAD is {head!r}, expected a word number from 0 to {words}")
        if not label or label == "_":
            raise InputError(f"{where}: column DEPREL is empty")
        yield int(head), label


def write_conllu(captions: Iterable[Caption]) -> Iterator[str]:
    """Write captions as CoNLL-U lines (without ends); a word with several incoming edges or none has them in DEPS."""
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
                yield "\t".join((str(index), word.form, word.lemma, "_", word.tag, "_", head, label, deps, "_"))
            yield ""
