"""SPICE as a metric: items to counts by category, counts to mean F-scores."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from spicegraph_parser.graph import SceneGraph, merge, merge_concepts
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.core.categories import ALL, CategoryScore, Counts
from spicegraph_scorer.core.facts import FactsInOrder, FactSource
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category, categories_digest
from spicegraph_scorer.metrics.spice.match import (
    NO_MATCH,
    CategoryCounts,
    Match,
    count_concepts,
    count_match,
    group_by_length,
    match_tuples,
    select_categories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.graph import ConceptGraph, SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.tokens import Corpus


class MergedReferences(NamedTuple):
    """What all candidates of an image have in common: tuples, their places by length, and by category."""

    tuples: tuple[SceneTuple, ...]
    by_length: Mapping[int, list[int]]
    categories: Mapping[str, Category]
    selected: Mapping[str, frozenset[int]]


class ReferenceCache:
    """Keeps the merged references of the images that were scored last, about 20 kB each.

    Args:
        images: how many images; an image is known by the metric and its references.
    """

    def __init__(self, images: int) -> None:
        self._images = images
        self._merged: OrderedDict[tuple[str, tuple[str, ...]], MergedReferences] = OrderedDict()

    def get(
        self,
        metric: str,
        references: tuple[str, ...],
        categories: Mapping[str, Category],
        merge: Callable[[], tuple[SceneTuple, ...]],
    ) -> MergedReferences:
        """Return an image's references, which are merged if they are not known.

        Args:
            metric: the name of the metric, which says how references are merged.
            references: the captions.
            categories: what is counted beside the total; other categories are selected anew.
            merge: gives the tuples.
        """
        key = (metric, references)
        known = self._merged.get(key)
        if known is not None and known.categories is categories:
            self._merged.move_to_end(key)
            return known
        tuples = known.tuples if known else merge()
        made = MergedReferences(tuples, group_by_length(tuples), categories, select_categories(tuples, categories))
        self._merged[key] = made
        if len(self._merged) > self._images:
            self._merged.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True)
class SpiceStatistic:
    """One item's counts, in total and by category, and the match that they were counted from, if it was kept."""

    counts: Mapping[str, Counts]
    match: Match = NO_MATCH

    def f1(self, category: str) -> float | None:
        """Return the item's F1 in a category: ``None`` without reference tuples (but for All)."""
        counts = self.counts[category]
        return counts.f1 if counts.reference or category == ALL else None


def score_graphs(
    candidate: SceneGraph, reference: SceneGraph, *, categories: Mapping[str, Category] = CATEGORIES
) -> SpiceStatistic:
    """Match two scene graphs and count."""
    match = match_tuples(candidate.tuples(), reference.tuples())
    return SpiceStatistic(count_match(match, categories=categories), match)


@dataclass(frozen=True, slots=True)
class Spice(Metric[SpiceStatistic]):
    """SPICE 1.0 (Anderson et al., ECCV 2016), or with ``exact`` its variant ``-noSynsets``.

    The corpus value of a category is the mean of the items' F1 over the items whose references have such
    tuples.

    With ``evidence`` every statistic keeps its match, from which reports and explanations are drawn; without, there
    are the counts only, in half the time and a hundredth of the memory. ``references`` keeps merged references from one
    corpus to the next.
    """

    needs: ClassVar[Needs] = Needs(facts=True, data=frozenset({"categories"}))

    source: FactSource
    exact: bool = False
    categories: Mapping[str, Category] = field(default_factory=lambda: CATEGORIES)
    lexicon: Lexicon = field(default_factory=load_lexicon)
    evidence: bool = True
    references: ReferenceCache | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """``spice`` or ``spice-exact``."""
        return "spice-exact" if self.exact else "spice"

    def signature(self) -> dict[str, str]:
        """Return metric, pipeline and lexicon, and the categories of the user's own, if there are any."""
        own = categories_digest(self.categories)
        return {
            "metric": self.name,
            "pipeline": self.source.signature,
            "lexicon": "none" if self.exact else self.lexicon.signature,
            **({} if own is None else {"categories": own}),
        }

    def collect(self, corpus: Corpus) -> list[SpiceStatistic]:
        """Parse every distinct caption once, and return the counts of every item."""
        found = FactsInOrder(self.source, corpus.items)
        if self.evidence:
            cache = self.references or ReferenceCache(1)  # items of one image usually follow each other
            return [self._matched(item, found, cache) for item in corpus.items]
        return list(self._counted(corpus.items, found))

    def _matched(self, item: Item, found: FactsInOrder, cache: ReferenceCache) -> SpiceStatistic:
        def merged() -> tuple[SceneTuple, ...]:
            return self.graph([found.facts(text) for text in item.references]).tuples()

        references = cache.get(self.name, item.references, self.categories, merged)
        candidate = self.graph([found.facts(item.candidate)]).tuples()
        match = match_tuples(candidate, references.tuples, by_length=references.by_length)
        return SpiceStatistic(count_match(match, categories=self.categories, reference=references.selected), match)

    def _counted(self, items: Iterable[Item], found: FactsInOrder) -> Iterator[SpiceStatistic]:
        merged = partial(merge_concepts, lexicon=self.lexicon, exact=self.exact)
        references: dict[tuple[str, ...], ConceptGraph] = {}
        for item in items:
            if item.references not in references:  # items of one image usually follow each other
                references = {item.references: merged([found.facts(text) for text in item.references])}
            candidate = merged([found.facts(item.candidate)])
            counts = count_concepts(candidate, references[item.references], categories=self.categories)
            yield SpiceStatistic(CategoryCounts.of(counts))

    def graph(self, captions: Iterable[Sequence[Fact]]) -> SceneGraph:
        """Merge the facts of one image's captions as this mode merges."""
        return merge(captions, self.lexicon, exact=self.exact)

    def total(self, statistics: Sequence[SpiceStatistic]) -> tuple[Score, ...]:
        """Return ``SPICE`` and one score a category (``SPICE_Color`` ...)."""
        name = "SPICE-exact" if self.exact else "SPICE"
        return tuple(
            _score(name if category == ALL else f"{name}_{category}", [s.f1(category) for s in statistics])
            for category in (ALL, *self.categories)
        )

    def compact(self, statistic: SpiceStatistic) -> SpiceStatistic:
        """Return the statistic without its match."""
        return statistic if statistic.match is NO_MATCH else replace(statistic, match=NO_MATCH)

    @staticmethod
    def by_category(statistic: SpiceStatistic) -> dict[str, CategoryScore]:
        """Return an item's scores and counts by category, ``All`` first."""
        return {name: CategoryScore.of(counts, name) for name, counts in statistic.counts.items()}

    def explain(self, statistic: SpiceStatistic, *, changes: int = 3) -> Match:
        """Return the match that the counts come from."""
        del changes
        return statistic.match


def _score(name: str, each: list[float | None]) -> Score:
    defined = [value for value in each if value is not None]
    return Score(name, _mean(defined), tuple(each))


def _mean(values: list[float]) -> float | None:
    """Return the mean, rounded once: it does not depend on the order of the items."""
    return math.fsum(values) / len(values) if values else None
