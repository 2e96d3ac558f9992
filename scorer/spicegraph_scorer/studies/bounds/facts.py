"""The facts of all captions of a study, parsed before the first is scored, and kept small."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spicegraph_parser.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.metrics import Progress

__all__ = ["StudyFacts"]


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """A source that parses no caption twice and keeps the facts without their places in the caption.

    Scores need no places, and equal facts are kept once: hundreds of thousands of captions then fit into memory.
    """

    source: FactSource
    progress: Progress | None = None
    known: dict[str, tuple[Fact, ...]] = field(default_factory=dict, repr=False)
    shared: dict[tuple[tuple[str, ...], str], Fact] = field(default_factory=dict, repr=False)

    @property
    def signature(self) -> str:
        """The signature of what parses."""
        return self.source.signature

    def learn(self, texts: Iterable[str]) -> StudyFacts:
        """Parse the texts that are new; return this source."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        for done, (text, facts) in enumerate(zip(new, self.source.facts(new), strict=True), start=1):
            self.known[text] = tuple([self._small(fact.words, fact.rule) for fact in facts])
            if self.progress:
                self.progress("parsing captions", done, len(new))
        return self

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order, after parsing those that are new."""
        wanted = list(texts)
        self.learn(wanted)
        return map(self.known.__getitem__, wanted)

    def _small(self, words: tuple[str, ...], rule: str) -> Fact:
        key = words, rule
        fact = self.shared.get(key)
        if fact is None:
            fact = self.shared[key] = Fact(words, rule, ())
        return fact
