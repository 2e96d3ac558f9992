"""A parser for tests that need facts and no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class WordFacts:
    """A parser for tests: every word is an object, ``adjective_noun`` is one with an attribute."""

    signature = "words-1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        for text in texts:
            self.seen.append(text)
            yield tuple(fact for word in text.split() for fact in self._word(word))

    def _word(self, word: str) -> Iterator[Fact]:
        adjective, _, noun = word.rpartition("_")
        if adjective and noun:
            yield Fact((noun, adjective), "amod", ())
        yield Fact((noun or word,), "objects", ())
