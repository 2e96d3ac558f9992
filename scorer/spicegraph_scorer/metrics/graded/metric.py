"""SPICE-G as a metric: scene graphs matched by degrees instead of all or nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from spicegraph_parser.graph import SceneGraph, merge, merge_counted
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.core.facts import FactsInOrder
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.metrics.graded.alignment import alignment, weighed_words
from spicegraph_scorer.metrics.graded.explain import GradedExplanation, explain_match
from spicegraph_scorer.metrics.graded.facts import comparable_facts, content_words
from spicegraph_scorer.metrics.graded.matching import (
    GradedMatch,
    GraphArrays,
    Nodes,
    TextMatch,
    Weighed,
    counted_nodes,
    degrees,
    graph_arrays,
    nodes_of,
    supports,
    weigh,
    weighed_against,
    word_nodes,
)
from spicegraph_scorer.metrics.graded.vectors import Rows, Vectors, load_vectors
from spicegraph_scorer.metrics.graded.verdicts import Verdicts, judge
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category, categories_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.tokens import Corpus

NAME: Final = "SPICE-G"
_FORMULA: Final = "4"
_AT_A_TIME: Final = 512  # items whose vectors are made together
_NO_TEXTS: Final = TextMatch()


class _Reading(NamedTuple):
    """Captions as the metric compares them: their merged graph, and their content words alone."""

    graph: Nodes
    words: Nodes


_Sides = tuple[GraphArrays, GraphArrays]  # of a reading: graph and words


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
    """SPICE-G: precision, recall and F1 of scene-graph tuples and of words that match by degrees.

    A tuple is supported as far as the other side has one like it: the cosine of their words' vectors, drawn down
    where the words stand at other objects. Tuples weigh more the rarer their word is and the more references have
    them; one that the references contradict (another colour or count) weighs twice in precision. Precision is a power
    mean with exponent 3/4 of the candidate's supports, recall a mean of the references'. Half of both is that of the
    captions' content words alone, compared in the same way without regard to what they are said of; and a fifth of F1
    is the alignment of the candidate's text with the best reference
    (:func:`spicegraph_scorer.metrics.graded.alignment.alignment`). Categories are of tuples alone.
    Plurals, quantities and denials are read as :func:`spicegraph_scorer.metrics.graded.facts.comparable_facts` says.
    Scores are in [0, 1]; they agree better with people's ratings than SPICE's, and are not comparable to them.
    A candidate whose words follow one another as they do not in captions loses its score in part or whole
    (:meth:`spicegraph_scorer.metrics.graded.order.WordOrder.share`).
    The corpus value of a category is the mean of the items' F1 over the items whose references have such tuples.

    Without ``texts``, facts alone are compared: neither order nor alignment is looked at.
    With ``evidence`` every statistic keeps its match, from which explanations are drawn; without, there are the
    weights only, in three quarters of the time.

    Example:
        >>> from spicegraph_parser import load_pipeline
        >>> from spicegraph_scorer.core.tokens import Corpus
        >>> from spicegraph_scorer.core.items import Item
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
    texts: bool = True

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
            **({} if self.texts else {"texts": "unread"}),
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
        facts = {text: found.facts(text) for item in items for text in (item.candidate, *item.references)}
        told = {text: comparable_facts(said) for text, said in facts.items()}
        compared = dict.fromkeys(texts for item in items for texts in ((item.candidate,), item.references))
        readings = {texts: self._reading([told[text] for text in texts]) for texts in compared}
        pairs = [(readings[item.candidate,], readings[item.references]) for item in items]
        texts = self._texts(items) if self.texts else [TextMatch(candidate=item.candidate) for item in items]
        return self._statistics(pairs, texts)

    def _texts(self, items: Sequence[Item]) -> list[TextMatch]:
        order = self.vectors.order
        said = dict.fromkeys(text for item in items for text in (item.candidate, *item.references))
        words = {text: weighed_words(text) for text in said}
        return [
            TextMatch(
                1.0 if order is None else order.share(item.candidate, item.references),
                alignment(words[item.candidate], [words[text] for text in item.references]),
                item.candidate,
            )
            for item in items
        ]

    def _reading(self, told: Sequence[Sequence[Fact]]) -> _Reading:
        if self.evidence:
            return _Reading(nodes_of(merge(told, self.lexicon, loose=True)), self._words(told))
        return _Reading(counted_nodes(merge_counted(told, self.lexicon)), self._words(told))

    def _words(self, told: Iterable[Iterable[Fact]]) -> Nodes:
        return word_nodes(map(content_words, told), self.lexicon)

    def _reading_of(self, graph: SceneGraph) -> _Reading:
        told: defaultdict[int, list[Fact]] = defaultdict(list)
        for part in (graph.objects, graph.attributes, graph.relations):
            for node in part:
                for caption, fact in node.evidence:
                    told[caption].append(fact)
        return _Reading(nodes_of(graph), self._words(told.values()))

    def compare(self, candidate: SceneGraph, reference: SceneGraph, *, texts: TextMatch = _NO_TEXTS) -> GradedStatistic:
        """Compare two graphs that :meth:`graph` made: a candidate's and that of all its references.

        Args:
            candidate: its graph.
            reference: the graph of the references.
            texts: what the texts say beside the graphs, which do not know them.
        """
        return next(self.compare_all([(candidate, reference)], texts=[texts]))

    def compare_all(
        self, pairs: Sequence[tuple[SceneGraph, SceneGraph]], *, texts: Iterable[TextMatch] | None = None
    ) -> Iterator[GradedStatistic]:
        """Compare pairs of graphs; vectors and arrays are made once for all of them.

        Args:
            pairs: as for :meth:`compare`.
            texts: what each pair's texts say beside the graphs; ``None``: nothing.
        """
        readings = {id(graph): self._reading_of(graph) for pair in pairs for graph in pair}
        shares = [_NO_TEXTS] * len(pairs) if texts is None else texts
        return self._statistics([(readings[id(mine)], readings[id(theirs)]) for mine, theirs in pairs], shares)

    def _statistics(
        self, pairs: Sequence[tuple[_Reading, _Reading]], texts: Iterable[TextMatch]
    ) -> Iterator[GradedStatistic]:
        readings = {id(reading): reading for pair in pairs for reading in pair}
        nodes = [nodes for reading in readings.values() for nodes in reading]
        rows = self.vectors.rows([strings for part in nodes for strings in part.strings])
        sides = graph_arrays(nodes, rows)
        both = dict(zip(readings, zip(sides[::2], sides[1::2], strict=True), strict=True))
        for (mine, theirs), found in zip(pairs, texts, strict=True):
            yield self._statistic(both[id(mine)], both[id(theirs)], rows, found)

    def _statistic(
        self,
        candidate: tuple[GraphArrays, GraphArrays],
        reference: tuple[GraphArrays, GraphArrays],
        rows: Rows,
        texts: TextMatch,
    ) -> GradedStatistic:
        (mine, my_words), (theirs, their_words) = candidate, reference
        weights, match = self._match(mine, theirs, rows, texts, self.categories)
        of_words, words = self._match(my_words, their_words, rows, texts, {})
        aligned = None if texts.aligned is None else texts.aligned * texts.order
        weights[ALL] = weights[ALL].mixed(of_words[ALL], aligned)
        return GradedStatistic(weights, match and replace(match, words=words))

    def _match(
        self, mine: GraphArrays, theirs: GraphArrays, rows: Rows, texts: TextMatch, categories: Mapping[str, Category]
    ) -> tuple[dict[str, Weighed], GradedMatch | None]:
        if not self.evidence:
            forward, backward, contradicted = degrees(mine, theirs, rows)
            sides = weighed_against(mine, contradicted), theirs
            return weigh(sides, (forward, backward), categories, order=texts.order), None
        precision, recall = supports(mine, theirs, rows)
        sides = weighed_against(mine, precision.contradicted if precision.contradicted.any() else None), theirs
        weights = weigh(sides, (precision.support, recall.support), categories, order=texts.order)
        return weights, GradedMatch(*sides, precision, recall, texts)

    def explain(self, statistic: GradedStatistic, *, changes: int = 3) -> GradedExplanation:
        """Explain an item's score: every tuple's best partner, and the changes that would raise it most.

        Raises:
            ValueError: the statistic has no match (it comes from another process, or from a metric without evidence).
        """
        match = statistic.match
        if match is None or match.words is None:
            raise ValueError("the statistic has no match to explain")
        theirs, words = match.reference, match.words
        strings = [c.strings for side in (theirs, words.reference) for c in side.concepts]

        def rescore(facts: Sequence[Fact]) -> float:
            told = comparable_facts(facts)
            nodes = nodes_of(merge([told], self.lexicon, loose=True)), self._words([told])
            rows = self.vectors.rows([*nodes[0].strings, *nodes[1].strings, *strings])
            mine, my_words = graph_arrays(nodes, rows)
            references = theirs.placed(rows), words.reference.placed(rows)
            return self._statistic((mine, my_words), references, rows, match.texts).weights[ALL].f1

        return explain_match(match, self.vectors, rescore, changes=changes)

    def verdicts(self, statistic: GradedStatistic, *, threshold: float | None = None) -> Verdicts:
        """Say which words and tuples of an item's candidate its references support, contradict or do not mention.

        Args:
            statistic: of a metric with evidence.
            threshold: probability of being wrong above which a word is flagged, in [0, 1], such as that of
                :func:`spicegraph_scorer.metrics.graded.verdicts.conformal_threshold` over words that are known to be
                right; ``None``: a tenth of the right words of the shipped calibration are above it.

        Raises:
            ValueError: the statistic has no match.
        """
        if statistic.match is None:
            raise ValueError("the statistic has no match to judge")
        return judge(statistic.match, statistic.match.texts.candidate, self.vectors, threshold=threshold)

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
