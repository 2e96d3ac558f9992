"""The share of the references' words that a candidate has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer import Metric, Score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer import Corpus, Item


@dataclass(frozen=True, slots=True)
class WordRecall(Metric[float]):
    """Words are lower-cased and split at spaces; each counts once. The corpus score is the mean of the items."""

    @property
    def name(self) -> str:
        """The name in ``pyproject.toml``."""
        return "word-recall"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two numbers to be comparable."""
        return {"metric": self.name, "words": "lower-cased, split at spaces", "version": "1"}

    def collect(self, corpus: Corpus) -> list[float]:
        """Return the statistic of each item, which here is the score itself, in [0, 1]."""
        return [recall(item) for item in corpus.items]

    def total(self, statistics: Sequence[float]) -> tuple[Score, ...]:
        """Return the scores: the corpus value, and that of each item."""
        return (Score.mean("WordRecall", tuple(statistics)),)


def recall(item: Item) -> float:
    """Return the share of the references' words that the candidate has.

    Example:
        >>> from spicegraph_scorer import Item
        >>> recall(Item(1, "a brown dog", ("a dog", "the dog runs")))
        0.5
    """
    wanted = {word for text in item.references for word in text.lower().split()}
    said = set(item.candidate.lower().split())
    return len(wanted & said) / len(wanted) if wanted else 0.0
