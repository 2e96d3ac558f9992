"""Captions as the COCO metrics see them: Penn Treebank tokens, lower-cased, without punctuation.

Each caption is tokenized alone, so that its score does not depend on the captions around it. The COCO toolkit
gives Java all captions as one text, in which a caption's last tokens can depend on the next caption (63 of
616,767 COCO captions); ``together=True`` does the same.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from spicegraph_parser.ptb import tokenize_lines, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_scorer.items import Item

__all__ = ["PUNCTUATION", "TOKENIZER", "TokenizedItem", "Tokens", "tokenize_items", "tokenize_texts"]

Tokens = tuple[str, ...]

PUNCTUATION: Final = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
"""What the COCO toolkit removes. Its list names brackets in capitals as well, which no token has any more."""

TOKENIZER: Final = "ptb-coco, each caption alone"
"""The tokenizer's part of a metric's signature."""


@dataclass(frozen=True, slots=True)
class TokenizedItem:
    """An item's captions as tokens; a caption with nothing left has none, and keeps its place."""

    candidate: Tokens
    references: tuple[Tokens, ...]


def tokenize_texts(
    texts: Sequence[str], *, together: bool = False, keep: Literal["words", "all"] = "words"
) -> tuple[Tokens, ...]:
    """Tokenize captions: lower-cased PTB tokens, with punctuation removed unless ``keep="all"``.

    ``together=True`` reads the captions as the COCO toolkit does, as the lines of one text.

    >>> tokenize_texts(["A man's dog (brown).", "!"])
    (('a', 'man', "'s", 'dog', '-lrb-', 'brown', '-rrb-'), ())
    >>> tokenize_texts(["The letter K.", "A man"], together=True)[0], tokenize_texts(["The letter K."])[0]
    (('the', 'letter', 'k'), ('the', 'letter', 'k.'))
    """
    removed = PUNCTUATION if keep == "words" else frozenset[str]()
    if together:
        return tuple(_lowered(line, removed) for line in tokenize_lines(texts))
    known = {text: _lowered(words(text), removed) for text in dict.fromkeys(texts)}
    return tuple(map(known.__getitem__, texts))


def tokenize_items(items: Sequence[Item], *, together: bool = False) -> tuple[TokenizedItem, ...]:
    """Tokenize the captions of items, equal texts once.

    ``together=True`` reads all candidates as one text and all references as another, in the order of the
    items: the numbers that the COCO toolkit prints.
    """
    candidates = tokenize_texts([item.candidate for item in items], together=together)
    references = iter(tokenize_texts([text for item in items for text in item.references], together=together))
    return tuple(
        TokenizedItem(candidate, tuple(next(references) for _ in item.references))
        for item, candidate in zip(items, candidates, strict=True)
    )


def _lowered(tokens: Iterable[str], removed: frozenset[str]) -> Tokens:
    # Interned, a word takes memory once and not in every caption.
    return tuple([sys.intern(token) for token in map(str.lower, tokens) if token not in removed])
