"""Captions as the COCO metrics see them: Penn Treebank tokens, lower-cased, without punctuation."""
# Each caption is tokenized alone. The COCO toolkit gives Java all captions as one text, in which a caption's last
# tokens can depend on the next caption (63 of 616,767 COCO captions); ``together=True`` does the same.

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final, Literal, overload

from spicegraph_parser.ptb import tokenize_lines, words

if TYPE_CHECKING:
    from spicegraph_scorer.core.items import Item

Tokens = tuple[str, ...]

PUNCTUATION: Final = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
"""What the COCO toolkit removes. Its list names brackets in capitals as well, which no longer occur in tokens."""

TOKENIZER: Final = "ptb-coco, each caption alone"  # The tokenizer's part of a metric's signature.

SpiceText = Literal["written", "coco"]  # The text that SPICE parses: captions, or the toolkit's tokens.

SPICE_TEXTS: Final[Mapping[SpiceText, str]] = {"written": "as written", "coco": TOKENIZER}  # What signatures say of it.


@dataclass(frozen=True, slots=True)
class TokenizedItem:
    """An item's captions as tokens; a caption with nothing left has none, and keeps its place."""

    candidate: Tokens
    references: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedItems(Sequence[TokenizedItem]):
    """Many items as tokens, in four bytes per word: an item is put together when it is asked for."""

    vocabulary: tuple[str, ...]
    words: array[int]  # the numbers of the captions' words, caption after caption
    starts: array[int]  # caption k is from starts[k] to starts[k + 1]
    captions: array[int]  # of the items, the candidate first
    firsts: array[int]  # item i has the captions from firsts[i] to firsts[i + 1]

    @classmethod
    def of(cls, items: Iterable[TokenizedItem]) -> TokenizedItems:
        """Put items together whose captions are tokens already."""
        numbered = _Numbered()
        captions, firsts = array("i"), array("q", [0])
        for item in items:
            captions.extend(map(numbered.add, (item.candidate, *item.references)))
            firsts.append(len(captions))
        return numbered.items(captions, firsts)

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @overload
    def __getitem__(self, index: int) -> TokenizedItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TokenizedItem, ...]: ...
    def __getitem__(self, index: int | slice) -> TokenizedItem | tuple[TokenizedItem, ...]:
        """Return an item, or those of a slice."""
        if isinstance(index, slice):
            return tuple(map(self._item, range(*index.indices(len(self)))))
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[TokenizedItem]:
        return map(self._item, range(len(self)))

    def numbers(self) -> Iterator[list[array[int]]]:
        """Yield each item's captions, the candidate first, as numbers: equal ones where words are equal."""
        words, starts = self.words, self.starts
        for first, end in pairwise(self.firsts):
            yield [words[starts[caption] : starts[caption + 1]] for caption in self.captions[first:end]]

    def _item(self, index: int) -> TokenizedItem:
        candidate, *references = self.captions[self.firsts[index] : self.firsts[index + 1]]
        return TokenizedItem(self._tokens(candidate), tuple(map(self._tokens, references)))

    def _tokens(self, caption: int) -> Tokens:
        numbers = self.words[self.starts[caption] : self.starts[caption + 1]]
        return tuple([self.vocabulary[number] for number in numbers])


def tokenize_texts(
    texts: Sequence[str], *, together: bool = False, keep: Literal["words", "all"] = "words"
) -> tuple[Tokens, ...]:
    """Tokenize captions: lower-cased PTB tokens, with punctuation removed unless ``keep="all"``.

    ``together=True`` reads the captions as the COCO toolkit does, as the lines of one text.

    >>> tokenize_texts(["A man's dog (brown).", "!"])
    (('a', 'man', "'s", 'dog', '-lrb-', 'brown', '-rrb-'), ())
    """
    removed = PUNCTUATION if keep == "words" else frozenset[str]()
    if together:
        return tuple(_lowered(line, removed) for line in tokenize_lines(texts))
    known = {text: _lowered(words(text), removed) for text in dict.fromkeys(texts)}
    return tuple(map(known.__getitem__, texts))


def toolkit_text(text: str) -> str:
    """Return a caption as ``pycocoevalcap/eval.py`` hands it to SPICE: tokens, lower-cased, without punctuation."""
    return " ".join(_lowered(words(text), PUNCTUATION))


def tokenize_items(items: Sequence[Item], *, together: bool = False) -> TokenizedItems:
    """Tokenize items, equal texts once; ``together``: all candidates, or references, as one text, as the toolkit."""
    numbered = _Numbered()
    number = numbered.lines if together else numbered.texts
    candidates = number(item.candidate for item in items)
    references = number(chain.from_iterable(item.references for item in items))
    captions, firsts = array("i"), array("q", [0])
    for item in items:
        captions.append(next(candidates))
        captions.extend(islice(references, len(item.references)))
        firsts.append(len(captions))
    return numbered.items(captions, firsts)


@dataclass(frozen=True)
class Corpus:
    """Items that are scored together, and what every n-gram metric derives from them once."""

    items: tuple[Item, ...]

    @cached_property
    def tokens(self) -> TokenizedItems:
        """The items after COCO's PTB tokenization, in the order of ``items``."""
        return tokenize_items(self.items)


class _Numbered:
    """Captions' words as numbers, in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words = array("i")
        self._starts = array("q", [0])
        self._known: dict[str, int] = {}

    def texts(self, texts: Iterable[str]) -> Iterator[int]:
        """Yield the number of each caption, tokenized alone; equal ones have one."""
        for text in texts:
            number = self._known.get(text)
            if number is None:
                number = self._known[text] = self.add(_lowered(words(text), PUNCTUATION))
            yield number

    def lines(self, texts: Iterable[str]) -> Iterator[int]:
        """Yield the number of each caption, tokenized as the lines of one text."""
        return (self.add(_lowered(line, PUNCTUATION)) for line in tokenize_lines(texts))

    def add(self, tokens: Iterable[str]) -> int:
        """Keep a caption, and return its number."""
        numbers = self._numbers
        self._words.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
        self._starts.append(len(self._words))
        return len(self._starts) - 2

    def items(self, captions: array[int], firsts: array[int]) -> TokenizedItems:
        """Return the items that have these captions."""
        return TokenizedItems(tuple(self._numbers), self._words, self._starts, captions, firsts)


def _lowered(tokens: Iterable[str], removed: frozenset[str]) -> Tokens:
    # Interned, a word takes memory once and not in every caption.
    return tuple([sys.intern(token) for token in map(str.lower, tokens) if token not in removed])
