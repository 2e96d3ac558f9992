"""Parsed captions: a small frozen view of dependency graphs, and its CoNLL-U form.

Nothing here knows which parser made a graph. Labels are basic Universal Dependencies v1, as CoreNLP 3.6
prints them, or their collapsed form (``nmod:on``, ``conj:and``); :func:`spicegraph_parser.collapse.collapse`
turns the first into the second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from spicegraph_parser.errors import InputError, LimitError, expect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


Arc = tuple[str, int, int]
"""An edge as a plain tuple: label, head, dependent. An :class:`Edge` is one, with names."""

Span = tuple[int, int]
"""Where a word stands in its caption: first code point, and the one behind the last."""


class Parse:
    """One sentence: its words and its dependency edges.

    A parse is made from words and edges, or :meth:`from_columns`, and never changes. It is held by column
    (``forms``, ``tags``, ``lemmas``, ``arcs``), which is what the stages from the parser to the facts read;
    ``words`` and ``edges`` are made from the columns whenever they are asked for.

    >>> parse = Parse((Word("Dogs", "NNS", "dog", 0, 4),), (Edge("root", 0, 1),))
    >>> parse.lemmas, parse.arcs
    (('dog',), (('root', 0, 1),))
    """

    __slots__ = ("_spans", "arcs", "forms", "lemmas", "tags")

    def __init__(self, words: Iterable[Word], edges: Iterable[Edge]) -> None:
        rows = tuple(words)
        self.forms: tuple[str, ...] = tuple([word.form for word in rows])
        self.tags: tuple[str, ...] = tuple([word.tag for word in rows])
        self.lemmas: tuple[str, ...] = tuple([word.lemma for word in rows])
        self.arcs: tuple[Arc, ...] = tuple([(edge.label, edge.head, edge.dependent) for edge in edges])
        self._spans: tuple[Span, ...] | str = tuple([(word.start, word.end) for word in rows])

    @classmethod
    def from_columns(
        cls,
        forms: Iterable[str],
        tags: Iterable[str],
        lemmas: Iterable[str],
        arcs: Iterable[Arc],
        spans: Iterable[Span] | str,
    ) -> Self:
        """Make a parse from its columns; ``spans`` may be the text in which they are found when somebody asks."""
        parse = cls.__new__(cls)
        parse.forms, parse.tags, parse.lemmas, parse.arcs = tuple(forms), tuple(tags), tuple(lemmas), tuple(arcs)
        parse._spans = spans if isinstance(spans, str) else tuple(spans)
        return parse

    def with_arcs(self, arcs: Iterable[Arc]) -> Self:
        """Return the same words with other edges."""
        return self.from_columns(self.forms, self.tags, self.lemmas, arcs, self._spans)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where each word stands in the caption; (-1, -1) where that is not known."""
        spans = self._spans
        return tuple(find_spans(self.forms, spans)) if isinstance(spans, str) else spans

    @property
    def words(self) -> tuple[Word, ...]:
        """The words, in order."""
        rows = zip(self.forms, self.tags, self.lemmas, self.spans, strict=True)
        return tuple([Word(form, tag, lemma, start, end) for form, tag, lemma, (start, end) in rows])

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The dependency edges."""
        return tuple(map(Edge._make, self.arcs))

    def __eq__(self, other: object) -> bool:
        """Say whether words and edges are equal."""
        if not isinstance(other, Parse):
            return NotImplemented
        return self.words == other.words and self.arcs == other.arcs

    def __hash__(self) -> int:
        return hash((self.forms, self.arcs))

    def __repr__(self) -> str:
        return f"Parse(words={self.words!r}, edges={self.edges!r})"


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and the parses of its sentences, in order; an empty caption has none."""

    text: str
    sentences: tuple[Parse, ...]


def read_conllu(lines: Iterable[str], *, source: str = "CoNLL-U") -> Iterator[Caption]:
    """Read captions from CoNLL-U lines.

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

    def caption() -> Caption:
        text = max(texts, key=len) if texts else " ".join(word.form for rows in sentences for word, _ in rows)
        return Caption(text, tuple(_aligned(sentences, text)))

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


_Rows = list[tuple[Word, list[Edge]]]
"""The words of a sentence, without their spans, each with the edges that lead to it."""


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
        pairs = (
            [(cells[6], cells[7])] if cells[8] == "_" else [part.partition(":")[::2] for part in cells[8].split("|")]
        )
        edges = []
        for head, label in pairs if cells[6:9] != ["_", "_", "_"] else ():  # else a word that the graph left out
            if not (head.isascii() and head.isdigit()) or int(head) > len(block):
                raise InputError(f"{where}: column HEAD is {head!r}, expected a word number from 0 to {len(block)}")
            if not label or label == "_":
                raise InputError(f"{where}: column DEPREL is empty")
            edges.append(Edge(label, int(head), expected))
        rows.append((Word(form, cells[4], lemma.lower()), edges))
    return rows


def _aligned(sentences: list[_Rows], text: str) -> Iterator[Parse]:
    """Yield the parses of sentences whose words are looked for in the text, each sentence behind the one before."""
    cursor = 0
    for rows in sentences:
        spans = list(find_spans([word.form for word, _ in rows], text, cursor))
        words = [word._replace(start=start, end=end) for (word, _), (start, end) in zip(rows, spans, strict=True)]
        yield Parse(words, [edge for _, edges in rows for edge in edges])
        cursor = max([cursor, *(end for _, end in spans)])


def find_spans(forms: Iterable[str], text: str, cursor: int = 0) -> Iterator[Span]:
    """Find words in a text, from left to right; one that is not there (``-LRB-``) has the span (-1, -1)."""
    for form in forms:
        start = text.find(form, cursor)
        if start < 0:
            yield _DETACHED, _DETACHED
        else:
            cursor = start + len(form)
            yield start, cursor


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


def is_word(text: str) -> bool:
    """Say whether a text holds a letter or a digit, without which it cannot name anything.

    Example:
        >>> is_word("dog's"), is_word("!!!")
        (True, False)
    """
    return any(map(str.isalnum, text))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a table that is written as text."""
    return frozenset(text.split())


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a table that is written as text: commas divide them, and the second of a pair may be missing.

    >>> word_pairs("ies y, s")
    (('ies', 'y'), ('s', ''))
    """
    return tuple((first, " ".join(rest)) for first, *rest in map(str.split, text.split(",")))


MAX_CAPTION_LENGTH = 100_000
"""Longest caption that is parsed, in characters."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def normalise(text: str, index: int = 0) -> str:
    """Return what a pipeline reads of a caption.

    Raises:
        InputError: it is not a string.
        LimitError: it is longer than ``MAX_CAPTION_LENGTH``; the message names it by its index.

    >>> normalise(" a  dog ")
    'a dog'
    """
    expect(text, str, f"caption {index}", "a string")
    if len(text) > MAX_CAPTION_LENGTH:
        raise LimitError(f"caption {index} has {len(text)} characters, the limit is {MAX_CAPTION_LENGTH}")
    return " ".join(without_surrogates(text).split())


def without_surrogates(text: str) -> str:
    """Return the text with the same length and without lone surrogates, which UTF-8 cannot hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
