"""SPICE as a metric: items to counts by category, counts to mean F-scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from spicegraph_parser.graph import SceneGraph, merge, merge_concepts
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.core.facts import FactsInOrder, FactSource
from spicegraph_scorer.core.metric import Score
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category
from spicegraph_scorer.metrics.spice.counting import count_concepts
from spicegraph_scorer.metrics.spice.counts import CategoryCounts, count_match
from spicegraph_scorer.metrics.spice.custom import categories_digest
from spicegraph_scorer.metrics.spice.match import NO_MATCH, Match, match_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.graph import ConceptGraph
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.items import Corpus, Item

__all__ = ["FactSource", "FactsInOrder", "Spice", "SpiceStatistic", "category_means", "score_graphs"]

Graph = TypeVar("Graph")


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
class Spice:
    """SPICE 1.0 (Anderson et al., ECCV 2016), or with ``exact`` its variant ``-noSynsets``.

    The corpus value of a category is the mean of the items' F1 over the items whose references have such
    tuples.

    With ``evidence`` every statistic keeps its match, from which reports and explanations are drawn; without, there
    are the counts only, in half the time and a hundredth of the memory.
    """

    source: FactSource
    exact: bool = False
    categories: Mapping[str, Category] = field(default_factory=lambda: CATEGORIES)
    lexicon: Lexicon = field(default_factory=load_lexicon)
    evidence: bool = True

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
            return list(_compared(corpus.items, found, self.graph, partial(score_graphs, categories=self.categories)))
        merged = partial(merge_concepts, lexicon=self.lexicon, exact=self.exact)
        return list(_compared(corpus.items, found, merged, partial(_score_concepts, categories=self.categories)))

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


def _score_concepts(
    candidate: ConceptGraph, reference: ConceptGraph, *, categories: Mapping[str, Category]
) -> SpiceStatistic:
    return SpiceStatistic(CategoryCounts.of(count_concepts(candidate, reference, categories=categories)))


def _compared(
    items: Iterable[Item],
    found: FactsInOrder,
    merged: Callable[[Iterable[Sequence[Fact]]], Graph],
    compare: Callable[[Graph, Graph], SpiceStatistic],
) -> Iterator[SpiceStatistic]:
    references: dict[tuple[str, ...], Graph] = {}
    for item in items:
        if item.references not in references:  # items of one image usually follow each other
            references = {item.references: merged([found.facts(text) for text in item.references])}
        yield compare(merged([found.facts(item.candidate)]), references[item.references])


def _score(name: str, each: list[float | None]) -> Score:
    defined = [value for value in each if value is not None]
    return Score(name, _mean(defined), tuple(each))


@dataclass(frozen=True, slots=True)
class CategoryMeans:
    """A category over a corpus: the means as SPICE takes them, and the sums of the counts.

    ``f``, ``pr``, ``re`` are means over the ``items`` whose references have such tuples (all items for
    ``All``), ``None`` if there is none. ``micro`` sums the counts of *every* item, so that a colour, count or
    size that no reference has still costs precision.
    """

    f: float | None
    pr: float | None
    re: float | None
    items: int
    micro: Counts


def category_means(statistics: Sequence[SpiceStatistic]) -> dict[str, CategoryMeans]:
    """Return the means and micro counts of every category of the statistics, ``All`` first."""
    means = {}
    for category in statistics[0].counts if statistics else ():
        counts = [statistic.counts[category] for statistic in statistics]
        defined = [c for c in counts if c.reference or category == ALL]
        means[category] = CategoryMeans(
            _mean([c.f1 for c in defined]),
            _mean([c.precision for c in defined]),
            _mean([c.recall for c in defined]),
            len(defined),
            sum(counts, Counts()),
        )
    return means


def _mean(values: list[float]) -> float | None:
    """Return the mean, rounded once: it does not depend on the order of the items."""
    return math.fsum(values) / len(values) if values else None
