"""Facts of captions: what gives them, and how long they are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.items import Item


Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is going on, how much of it is done, and of how much."""


class FactSource(Protocol):
    """What turns captions into facts: a spaCy pipeline, a store in front of one, a table of parses."""

    @property
    def signature(self) -> str:
        """Name and version of what parses, for the signature of a score."""
        ...

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        ...


@dataclass(frozen=True, slots=True)
class FactTable:
    """A source of facts of captions that are parsed already; it can be sent to another process."""

    signature: str
    known: Mapping[str, tuple[Fact, ...]]

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order."""
        return map(self.known.__getitem__, texts)


class FactsInOrder:
    """The facts of the items' captions, as the source finds them: items are scored while others are parsed.

    They are kept only until every item has them that has the caption, so that memory does not grow with the corpus.
    """

    def __init__(self, source: FactSource, items: Sequence[Item]) -> None:
        self._uses = Counter(text for item in items for text in (item.candidate, *item.references))
        texts = list(self._uses)
        self._coming = zip(texts, source.facts(texts), strict=True)
        self._known: dict[str, Sequence[Fact]] = {}

    def facts(self, text: str) -> Sequence[Fact]:
        """Return the facts of one of the captions; at most as often as items have it."""
        while text not in self._known:
            parsed, facts = next(self._coming)
            self._known[parsed] = facts
        self._uses[text] -= 1
        return self._known[text] if self._uses[text] else self._known.pop(text)
