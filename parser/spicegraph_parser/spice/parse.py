"""Parsed captions: a small frozen view of dependency graphs.

Labels are basic Universal Dependencies v1, as CoreNLP 3.6 prints them, or their collapsed form (``nmod:on``,
``conj:and``), which :func:`spicegraph_parser.spice.collapse.collapse` makes.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from spicegraph_parser.errors import LimitError, expect
from spicegraph_parser.languages import ENGLISH, Language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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


Arc = tuple[str, int, int]  # label, head, dependent: an :class:`Edge` is one, with names
Span = tuple[int, int]  # where a word stands in its caption: first code point, and the one behind the last


class Parse:
    """One sentence: its words and its dependency edges, held by column; ``words`` and ``edges`` are made on demand.

    ``language`` is what the rules read it as.

    >>> parse = Parse((Word("Dogs", "NNS", "dog", 0, 4),), (Edge("root", 0, 1),))
    >>> parse.lemmas, parse.arcs
    (('dog',), (('root', 0, 1),))
    """

    __slots__ = ("_spans", "arcs", "forms", "language", "lemmas", "tags")

    def __init__(self, words: Iterable[Word], edges: Iterable[Edge], language: Language = ENGLISH) -> None:
        rows = tuple(words)
        self.forms: tuple[str, ...] = tuple([word.form for word in rows])
        self.tags: tuple[str, ...] = tuple([word.tag for word in rows])
        self.lemmas: tuple[str, ...] = tuple([word.lemma for word in rows])
        self.arcs: tuple[Arc, ...] = tuple([(edge.label, edge.head, edge.dependent) for edge in edges])
        self._spans: tuple[Span, ...] | str = tuple([(word.start, word.end) for word in rows])
        self.language = language

    @classmethod
    def from_columns(
        cls,
        forms: Iterable[str],
        tags: Iterable[str],
        lemmas: Iterable[str],
        arcs: Iterable[Arc],
        spans: Iterable[Span] | str,
        *,
        language: Language = ENGLISH,
    ) -> Self:
        """Make a parse from its columns; ``spans`` may be the text in which they can be found."""
        parse = cls.__new__(cls)
        parse.forms, parse.tags, parse.lemmas, parse.arcs = tuple(forms), tuple(tags), tuple(lemmas), tuple(arcs)
        parse._spans = spans if isinstance(spans, str) else tuple(spans)
        parse.language = language
        return parse

    def with_arcs(self, arcs: Iterable[Arc]) -> Self:
        """Return the same words with other edges."""
        return self.from_columns(self.forms, self.tags, self.lemmas, arcs, self._spans, language=self.language)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where each word is in the caption; (-1, -1) if unknown."""
        spans = self._spans
        return tuple(find_spans(self.forms, spans)) if isinstance(spans, str) else spans

    @property
    def names(self) -> tuple[str, ...]:
        """The words as relations and quantities name them: in English as written, like SPICE; else lemmas."""
        return self.forms if self.language is ENGLISH else self.lemmas

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


def find_spans(forms: Iterable[str], text: str, cursor: int = 0) -> Iterator[Span]:
    """Find words in a text, from left to right; one that is not there (``-LRB-``) has the span (-1, -1)."""
    for form in forms:
        start = text.find(form, cursor)
        if start < 0:
            yield _DETACHED, _DETACHED
        else:
            cursor = start + len(form)
            yield start, cursor


def is_word(text: str) -> bool:
    """Say whether a text holds a letter or a digit, without which it cannot name anything."""
    return any(map(str.isalnum, text))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a table that is written as text."""
    return frozenset(text.split())


@cache
def tables(package: str) -> Mapping[str, Any]:
    """Return the tables that a package has in its file ``words.toml``, by name: words as text, or words by words."""
    return tomllib.loads(files(package).joinpath("words.toml").read_text(encoding="utf-8"))


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a table that is written as text: "ies y, s" holds ("ies", "y") and ("s", "")."""
    return tuple((first, " ".join(rest)) for first, *rest in map(str.split, text.split(",")))


MAX_CAPTION_LENGTH = 100_000  # Longest caption that is parsed, in characters.


def normalise(text: str, index: int = 0) -> str:
    """Return a caption's text with normalised whitespace and no surrogates; errors name its index."""
    expect(text, str, f"caption {index}", "a string")
    if len(text) > MAX_CAPTION_LENGTH:
        raise LimitError(f"caption {index} has {len(text)} characters, the limit is {MAX_CAPTION_LENGTH}")
    return " ".join(without_surrogates(text).split())


def without_surrogates(text: str) -> str:
    """Return the text with the same length and without lone surrogates, which UTF-8 cannot hold."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)
