"""SPICE-G as a metric: scene graphs matched by degrees instead of all or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final

from spicegraph_parser.graph import SceneGraph, merge, merge_counted
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.core.facts import FactsInOrder
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.metrics.graded.explain import GradedExplanation, explain_match
from spicegraph_scorer.metrics.graded.facts import comparable_facts
from spicegraph_scorer.metrics.graded.matching import (
    GradedMatch,
    GraphArrays,
    Nodes,
    Weighed,
    counted_nodes,
    degrees,
    graph_arrays,
    nodes_of,
    supports,
    weigh,
)
from spicegraph_scorer.metrics.graded.vectors import Rows, Vectors, load_vectors
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category
from spicegraph_scorer.metrics.spice.custom import categories_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Corpus, Item

NAME: Final = "SPICE-G"
_FORMULA: Final = "3"
_AT_A_TIME: Final = 512  # items whose vectors are made together


@dataclass(frozen=True, slots=True, eq=False)
class GradedStatistic:
    """One item's weights, in total and by category, and the match they come from (``None`` once it was sent off)."""

    weights: Mapping[str, Weighed]
    match: GradedMatch | None = None

    def f1(self, category: str) -> float | None:
        """Return the item's F1 in a category: ``None`` without reference tuples (but for All)."""
        return self.scores(category).f

    def scores(self, category: str) -> CategoryScore:
        """Return the scores of a category: ``None`` without reference tuples (but for All)."""
        weighed = self.weights[category]
        if not weighed.reference and category != ALL:
            return CategoryScore(None, None, None)
        return CategoryScore(weighed.f1, weighed.precision, weighed.recall)


@dataclass(frozen=True, slots=True)
class SpiceG(Metric[GradedStatistic]):
    """SPICE-G: precision, recall and F1 of scene-graph tuples that match by degrees.

    A tuple is supported as far as the other side has one like it: the cosine of their words' vectors, drawn down
    where the words stand at other objects. Tuples weigh more the rarer their word is and the more references have
    them. Precision is a power mean with exponent 1/2 of the candidate's supports, recall a mean of the references'.
    Plurals, quantities and denials are read as :func:`spicegraph_scorer.metrics.graded.facts.comparable_facts` says.
    Scores are in [0, 1]; they agree better with people's ratings than SPICE's, and are not comparable to them.
    A candidate whose words follow one another as they do not in captions loses its score in part or whole
    (:meth:`spicegraph_scorer.metrics.graded.order.WordOrder.share`).
    The corpus value of a category is the mean of the items' F1 over the items whose references have such tuples.

    With ``evidence`` every statistic keeps its match, from which explanations are drawn; without, there are the
    weights only, in three quarters of the time.

    Example:
        >>> from spicegraph_parser import load_pipeline
        >>> from spicegraph_scorer.core.items import Corpus, Item
        >>> metric = SpiceG(load_pipeline())
        >>> statistics = metric.collect(Corpus((Item(1, "a dog on a couch", ("a puppy lies on a sofa",)),)))
        >>> 0.4 < metric.total(statistics)[0].value < 0.9
        True
    """

    needs: ClassVar[Needs] = Needs(facts=True, loose=True, data=frozenset({"categories", "vectors"}))
    explains: ClassVar[bool] = True

    source: FactSource
    categories: Mapping[str, Category] = field(default_factory=lambda: CATEGORIES)
    vectors: Vectors = field(default_factory=load_vectors)
    lexicon: Lexicon = field(default_factory=load_lexicon)
    evidence: bool = True

    @property
    def name(self) -> str:
        """``spice-g``."""
        return "spice-g"

    def signature(self) -> dict[str, str]:
        """Return metric, formula, pipeline, lexicon and vectors, and the categories of the user's own, if any."""
        own = categories_digest(self.categories)
        return {
            "metric": self.name,
            "formula": _FORMULA,
            "pipeline": self.source.signature,
            "lexicon": self.lexicon.signature,
            "vectors": self.vectors.signature,
            **({} if own is None else {"categories": own}),
        }

    def collect(self, corpus: Corpus) -> list[GradedStatistic]:
        """Parse every distinct caption once, and return the weights of every item."""
        found = FactsInOrder(self.source, corpus.items)
        items = iter(corpus.items)
        statistics: list[GradedStatistic] = []
        while batch := list(islice(items, _AT_A_TIME)):
            statistics += self._compared(batch, found)
        return statistics

    def _compared(self, items: Sequence[Item], found: FactsInOrder) -> Iterator[GradedStatistic]:
        nodes = {texts: self._nodes(map(found.facts, texts)) for texts in {item.references: None for item in items}}
        pairs = [(self._nodes([found.facts(i.candidate)]), nodes[i.references]) for i in items]
        order = self.vectors.order
        shares = [1.0] * len(items) if order is None else [order.share(i.candidate, i.references) for i in items]
        return self._statistics(pairs, shares)

    def _nodes(self, captions: Iterable[Sequence[Fact]]) -> Nodes:
        if self.evidence:
            return nodes_of(self.graph(captions))
        return counted_nodes(merge_counted(map(comparable_facts, captions), self.lexicon))

    def compare(self, candidate: SceneGraph, reference: SceneGraph, *, order: float = 1.0) -> GradedStatistic:
        """Compare two graphs that :meth:`graph` made: a candidate's and that of all its references.

        Args:
            candidate: its graph.
            reference: the graph of the references.
            order: what the order of the candidate's words leaves of its score; a graph does not know it.
        """
        return next(self.compare_all([(candidate, reference)], orders=[order]))

    def compare_all(
        self, pairs: Sequence[tuple[SceneGraph, SceneGraph]], *, orders: Iterable[float] | None = None
    ) -> Iterator[GradedStatistic]:
        """Compare pairs of graphs; vectors and arrays are made once for all of them.

        Args:
            pairs: as for :meth:`compare`.
            orders: what the order of each candidate's words leaves of its score; ``None``: all of it.
        """
        nodes = {id(graph): nodes_of(graph) for pair in pairs for graph in pair}
        shares = [1.0] * len(pairs) if orders is None else orders
        return self._statistics([(nodes[id(mine)], nodes[id(theirs)]) for mine, theirs in pairs], shares)

    def _statistics(self, pairs: Sequence[tuple[Nodes, Nodes]], orders: Iterable[float]) -> Iterator[GradedStatistic]:
        references = {id(reference): reference for _, reference in pairs}
        graphs = (*references.values(), *(candidate for candidate, _ in pairs))
        rows = self.vectors.rows([strings for nodes in graphs for strings in nodes.strings])
        sides = graph_arrays(graphs, rows)
        theirs = dict(zip(references, sides, strict=False))  # of the graphs, references are the first
        for mine, (_, reference), share in zip(sides[len(references) :], pairs, orders, strict=True):
            yield self._statistic(mine, theirs[id(reference)], rows, share)

    def _statistic(self, candidate: GraphArrays, reference: GraphArrays, rows: Rows, order: float) -> GradedStatistic:
        sides = candidate, reference
        if not self.evidence:
            return GradedStatistic(weigh(sides, degrees(*sides, rows), self.categories, order=order))
        precision, recall = supports(*sides, rows)
        weights = weigh(sides, (precision.support, recall.support), self.categories, order=order)
        return GradedStatistic(weights, GradedMatch(candidate, reference, precision, recall, order))

    def explain(self, statistic: GradedStatistic, *, changes: int = 3) -> GradedExplanation:
        """Explain an item's score: every tuple's best partner, and the changes that would raise it most.

        Raises:
            ValueError: the statistic has no match (it comes from another process, or from a metric without evidence).
        """
        match = statistic.match
        if match is None:
            raise ValueError("the statistic has no match to explain")
        reference = match.reference

        def rescore(facts: Sequence[Fact]) -> float:
            candidate = nodes_of(self.graph([facts]))
            strings = [c.strings for found in reference.tuples for c in found.concepts]
            rows = self.vectors.rows((*candidate.strings, *strings))
            changed = self._statistic(graph_arrays([candidate], rows)[0], reference.placed(rows), rows, match.order)
            return changed.weights[ALL].f1

        return explain_match(match, self.vectors, rescore, changes=changes)

    def graph(self, captions: Iterable[Sequence[Fact]]) -> SceneGraph:
        """Merge the facts of one image's captions, loose words included, tuples that say nothing left out."""
        return merge(map(comparable_facts, captions), self.lexicon, loose=True)

    def total(self, statistics: Sequence[GradedStatistic]) -> tuple[Score, ...]:
        """Return ``SPICE-G`` and one score a category (``SPICE-G_Color`` ...)."""
        return tuple(
            _score(NAME if category == ALL else f"{NAME}_{category}", [s.f1(category) for s in statistics])
            for category in (ALL, *self.categories)
        )

    def compact(self, statistic: GradedStatistic) -> GradedStatistic:
        """Return the statistic without its match."""
        return replace(statistic, match=None)

    @staticmethod
    def by_category(statistic: GradedStatistic) -> dict[str, CategoryScore]:
        """Return an item's scores by category, ``All`` first; nothing is counted."""
        return {name: statistic.scores(name) for name in statistic.weights}


def _score(name: str, each: list[float | None]) -> Score:
    return Score(name, _mean([value for value in each if value is not None]), tuple(each))


def _mean(values: list[float]) -> float | None:
    """Return the mean, rounded once: it does not depend on the order of the items."""
    return math.fsum(values) / len(values) if values else None
