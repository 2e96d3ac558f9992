"""A metric from outside the package: with this folder on ``PYTHONPATH``, every process has it.

It needs all that a metric can need: parsed captions, weights of the corpus, evidence and categories.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spicegraph_scorer import metrics
from spicegraph_scorer.core.categories import ALL, CategoryScore, Counts
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Weigh

    Kept = tuple[Item, set[str], set[str]]


class RarityStatistic(NamedTuple):
    """The weights of the candidate's objects and of those that a reference has; ``words`` are the evidence."""

    found: float
    whole: float
    counts: Counts
    words: tuple[str, ...] | None


@dataclass(frozen=True)
class Why:
    """The candidate's objects that no reference has."""

    words: tuple[str, ...]

    def to_dict(self) -> Mapping[str, Any]:
        return {"invented": list(self.words)}


def references_with(corpus: Corpus) -> Counter[str]:
    """Count the items whose references have a word."""
    return Counter(w for item in corpus.items for w in {w for text in item.references for w in text.split()})


@dataclass(frozen=True)
class Rarity(Metric[RarityStatistic]):
    """The share of the candidate's objects that a reference has; rare words weigh more."""

    needs: ClassVar[Needs] = Needs(facts=True)
    means: ClassVar[bool] = False
    explains: ClassVar[bool] = True

    source: FactSource
    weights: Counter[str] | None = None

    @property
    def name(self) -> str:
        return "rarity"

    def signature(self) -> dict[str, str]:
        return {"metric": self.name, "pipeline": self.source.signature}

    @property
    def weigh(self) -> Weigh | None:
        return references_with if self.weights is None else None

    def weighted(self, weights: Counter[str]) -> Rarity:
        return replace(self, weights=weights)

    def defer(self, corpus: Corpus) -> list[Kept]:
        """Keep the objects: nothing is parsed at the end."""
        return [self._kept(item) for item in corpus.items]

    def _kept(self, item: Item) -> Kept:
        mine, *theirs = [{f.words[0] for f in facts} for facts in self.source.facts([item.candidate, *item.references])]
        return item, mine, set().union(*theirs)

    def finish(self, kept: Sequence[Kept]) -> list[RarityStatistic]:
        weights = self.weights
        if weights is None:
            weights = references_with(Corpus(tuple(item for item, _, _ in kept)))
        return [_statistic(mine, known, weights) for _, mine, known in kept]

    def collect(self, corpus: Corpus) -> list[RarityStatistic]:
        return self.finish(self.defer(corpus))

    def total(self, statistics: Sequence[RarityStatistic]) -> tuple[Score, ...]:
        value = _share(math.fsum(s.found for s in statistics), math.fsum(s.whole for s in statistics))
        each = tuple(_share(s.found, s.whole) for s in statistics)
        long = [s.counts.precision if s.counts.candidate > 1 else None for s in statistics]
        defined = [one for one in long if one is not None]
        mean = math.fsum(defined) / len(defined) if defined else None
        return Score("Rarity", value, each), Score("Rarity_Several", mean, tuple(long))

    def columns(self, statistics: Sequence[RarityStatistic]) -> Any:
        import numpy as np

        rows = [
            (s.found, s.whole, s.counts.precision, 1) if s.counts.candidate > 1 else (s.found, s.whole, 0, 0)
            for s in statistics
        ]
        return np.array(rows, np.float64).reshape(-1, 4)

    def from_sums(self, sums: Any) -> Mapping[str, Any]:
        import numpy as np

        with np.errstate(invalid="ignore"):
            return {"Rarity": sums[:, 0] / sums[:, 1], "Rarity_Several": sums[:, 2] / sums[:, 3]}

    def compact(self, statistic: RarityStatistic) -> RarityStatistic:
        return statistic._replace(words=None)

    @staticmethod
    def by_category(statistic: RarityStatistic) -> dict[str, CategoryScore]:
        several = statistic.counts if statistic.counts.candidate > 1 else Counts()
        return {ALL: CategoryScore.of(statistic.counts, ALL), "Several": CategoryScore.of(several, "Several")}

    def explain(self, statistic: RarityStatistic, *, changes: int = 3) -> Why | None:
        return None if statistic.words is None else Why(statistic.words[:changes])


def _statistic(mine: set[str], known: set[str], weights: Counter[str]) -> RarityStatistic:
    found = math.fsum(1 / (1 + weights[word]) for word in mine & known)
    whole = math.fsum(1 / (1 + weights[word]) for word in mine)
    counts = Counts(len(mine & known), len(mine), len(known))
    return RarityStatistic(found, whole, counts, tuple(sorted(mine - known)))


def _share(found: float, whole: float) -> float | None:
    return found / whole if whole else None


def _rarity(resources: Resources) -> Metric[Any]:
    return Rarity(resources.facts())


metrics.METRICS["rarity"] = metrics.MetricEntry(Rarity, _rarity)
