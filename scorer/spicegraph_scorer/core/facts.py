"""Facts of captions: what gives them, and how long they are kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from spicegraph_parser.spice.rules import Fact, FactPool

if TYPE_CHECKING:
    from spicegraph_scorer.core.items import Item


Progress: TypeAlias = Callable[[str, int, int], None]  # What is going on, how much of it is done, of how much.


class FactSource(Protocol):
    """Parser of captions into facts: a pipeline, a cached pipeline, or a table of parses.

    One that reads a single language says which: its attribute ``language`` is that one's code.
    """

    @property
    def signature(self) -> str:
        """Name and version of the parser, for the signature of a score."""
        ...

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        ...


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A source of facts that a function gives; other processes can have it if they can have the function."""

    signature: str
    facts: Callable[[Iterable[str]], Iterator[tuple[Fact, ...]]]
    language: str | None = None

    @classmethod
    def of_table(cls, signature: str, known: Mapping[str, tuple[Fact, ...]]) -> Self:
        """Return the source of captions that are parsed already."""
        return cls(signature, partial(map, known.__getitem__))


@dataclass(frozen=True, slots=True)
class FactCache:
    """A source that parses no caption twice, whichever metric asks and however often; equal facts are one object."""

    source: FactSource
    progress: Progress | None = None
    keep: bool = field(default=True, kw_only=True)  # False: the one metric that asks knows how long it needs facts
    places: bool = field(default=True, kw_only=True)  # facts keep where their words stand, which takes memory
    known: dict[str, tuple[Fact, ...]] = field(default_factory=dict, repr=False)
    pool: FactPool = field(default_factory=FactPool, repr=False)

    @property
    def signature(self) -> str:
        """The signature of the parser."""
        return self.source.signature

    @property
    def language(self) -> str | None:
        """The code of the language that the source reads, if it says so."""
        language: str | None = getattr(self.source, "language", None)
        return language

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order; those that are new are parsed as they are asked for."""
        wanted = list(texts)
        if not self.keep:
            yield from self._parsed(wanted)
            return
        new = [text for text in dict.fromkeys(wanted) if text not in self.known]
        coming = zip(new, self._parsed(new), strict=True)
        for text in wanted:
            while text not in self.known:
                parsed, facts = next(coming)
                self.known[parsed] = self.pool.share(
                    facts if self.places else (Fact(fact.words, fact.rule, ()) for fact in facts)
                )
            yield self.known[text]

    def learn(self, texts: Iterable[str]) -> FactCache:
        """Parse the captions that are new; return this cache."""
        deque(self.facts(texts), maxlen=0)
        return self

    def _parsed(self, texts: Sequence[str]) -> Iterator[tuple[Fact, ...]]:
        for done, facts in enumerate(self.source.facts(texts), start=1):
            if self.progress:
                self.progress("parsing captions", done, len(texts))
            yield facts


def captions_of(items: Iterable[Item]) -> Iterator[str]:
    """Yield the captions of items, in the order in which they are compared."""
    return (text for item in items for text in (item.candidate, *item.references))


class FactsInOrder:
    """The facts of items' captions, as the source finds them: items are scored while others are parsed."""

    # They are kept only until every item has them that has the caption, so that memory does not grow with the corpus.

    def __init__(self, source: FactSource, captions: Iterable[str]) -> None:
        self._uses = Counter(captions)
        texts = list(self._uses)
        self._coming = zip(texts, source.facts(texts), strict=True)
        self._known: dict[str, Sequence[Fact]] = {}

    def take(self, text: str) -> Sequence[Fact]:
        """Return the facts of one of the captions; at most as often as it was named."""
        while text not in self._known:
            parsed, facts = next(self._coming)
            self._known[parsed] = facts
        self._uses[text] -= 1
        return self._known[text] if self._uses[text] else self._known.pop(text)
