"""What the scene parser reads of a text: of which kind it is, and its passages without the marks of Markdown.

SPICE's own graphs are made of the text as it stands; a description that was written by a model has lists, headings and
bold words, and often lost the ends of its lines.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.analyser import ReadTokens, read_tokens
from spicegraph_parser.spice.parse import find_spans, normalise
from spicegraph_scenes.words import WORDS, is_noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_scenes.network import Names

_MARKED: Final = re.compile(r"[\n*`#]|__|[.!?][A-Z]")
"""What only a text has that is not read as it stands."""

_MARKER: Final = r"[ \t]*(?:[-*•+][ \t]+|\d{1,2}[.)][ \t]+|#{1,6}[ \t]+|>[ \t]+)"
_ENDS: Final = re.compile(rf"\n[ \t]*\n\s*|\n(?={_MARKER})")
"""Where a passage ends: at an empty line, and before a line of a list and a heading."""

_HEADING: Final = re.compile(r"(?m)^[ \t]*#{1,6}[ \t].*$")
_FIRST: Final = re.compile(rf"\A(?:{_MARKER})+")
_MARKS: Final = re.compile(r"\*+|_{2,}|`+")
_JOINED: Final = re.compile(r"(?<=[a-z0-9'\")\]])([.!?])(?=(?:[A-Z][a-z]+|A|I)[\s,'])")
"""Where a sentence starts without a space ("over the scene.The moon")."""

LONGEST_CAPTION: Final = 40  # words up to which several sentences are captions: descriptions of pictures have more
_FOREIGN: Final = 0.2  # least share of nouns that photographs lack; none of DiscoSG's first 100 descriptions has it


def read_text(text: str, index: int) -> ReadTokens:
    """Return the tokens of a text, a list's item and a heading as sentences; raises LimitError where it is too long."""
    normal = normalise(text, index)
    if not _MARKED.search(text):
        return read_tokens(text, normal)
    passages = [_JOINED.sub(r"\1 ", normalise(part)) for part in _parts(text)]
    read = [read_tokens(passage, passage) for passage in passages if passage]
    if not read:
        return read_tokens(text, normal)
    ptb = list(chain.from_iterable(tokens.ptb for tokens in read))
    forms = list(chain.from_iterable(tokens.forms for tokens in read))
    lengths = list(chain.from_iterable(tokens.lengths for tokens in read))
    return ReadTokens(ptb, forms, lengths, list(find_spans(forms, text)))


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a text that are read apart, without their marks; a heading is one."""
    for part in _ENDS.split(text):
        heading = _HEADING.match(part)
        for own in (part[: heading.end()], part[heading.end() :]) if heading else (part,):
            yield _MARKS.sub(" ", _FIRST.sub("", own))


class Kind(IntEnum):
    """Kinds of texts, each with the number of its conventions in the network's weights."""

    PHOTOGRAPH = 0
    OTHER = 1
    DESCRIPTION = 2


def kind_of(forms: Sequence[str], lengths: Sequence[int], names: Names) -> Kind:
    """Return the kind of a text of sentences.

    It is of another kind where a fifth of its words are nouns that captions of photographs lack, and else a description
    if it has several sentences and more than ``LONGEST_CAPTION`` words.
    """
    words = [form.lower() for form in forms if form[0].isalpha()]
    foreign = sum(word not in names.known and word not in WORDS["told"] and is_noun(word) for word in words)
    if foreign and foreign >= _FOREIGN * len(words):
        return Kind.OTHER
    return Kind.DESCRIPTION if len(lengths) > 1 and len(forms) > LONGEST_CAPTION else Kind.PHOTOGRAPH
