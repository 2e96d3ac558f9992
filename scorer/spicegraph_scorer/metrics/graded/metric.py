"""SPICE-G as a metric: scene graphs matched by degrees instead of all or nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from spicegraph_parser.graph import SceneGraph, merge, merge_counted
from spicegraph_parser.lexicon import Lexicon, load_lexicon
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.core.facts import FactsInOrder
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.metrics.graded.explain import GradedExplanation, explain_match
from spicegraph_scorer.metrics.graded.facts import Told, comparable_facts, content_words, read_caption
from spicegraph_scorer.metrics.graded.matching import (
    GradedMatch,
    Nodes,
    TextMatch,
    counted_nodes,
    matches_of,
    nodes_of,
    sides_of,
    supports,
    word_sides,
)
from spicegraph_scorer.metrics.graded.vectors import Vectors, load_vectors
from spicegraph_scorer.metrics.graded.verdicts import Verdicts, judge
from spicegraph_scorer.metrics.graded.weighing import Weighed, alignments, weigh
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category, categories_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.tokens import Corpus

NAME: Final = "SPICE-G"
_FORMULA: Final = "4"
_AT_A_TIME: Final = 512  # items whose vectors are made together
_NO_TEXTS: Final = TextMatch()


class _Reading(NamedTuple):
    """Captions as the metric compares them: their merged graph, and the content words of each."""

    graph: Nodes
    words: Sequence[frozenset[str]]


def _reading_of(graph: SceneGraph) -> _Reading:
    """Return what a graph that has its evidence says."""
    told: defaultdict[int, list[Fact]] = defaultdict(list)
    for part in (graph.objects, graph.attributes, graph.relations):
        for node in part:
            for caption, fact in node.evidence:
                told[caption].append(fact)
    return _Reading(nodes_of(graph), list(map(content_words, told.values())))


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
    (:func:`spicegraph_scorer.metrics.graded.weighing.alignments`). Categories are of tuples alone.
    Plurals, quantities and denials are read as :func:`spicegraph_scorer.metrics.graded.facts.comparable_facts` says.
    Scores are in [0, 1]; they agree better with people's ratings than SPICE's, and are not comparable to them.
    A candidate whose words follow one another as they do not in captions loses its score in part or whole
    (:meth:`spicegraph_scorer.metrics.graded.order.WordOrder.share`).
    The corpus value of a category is the mean of the items' F1 over the items whose references have such tuples.

    Without ``texts``, facts alone are compared: neither order nor alignment is looked at.
    With ``evidence`` every statistic keeps its match, from which explanations are drawn; without, there are the
    weights only, in less time.

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

    def _compared(self, items: Sequence[Item], found: FactsInOrder) -> list[GradedStatistic]:
        facts = {text: found.facts(text) for item in items for text in (item.candidate, *item.references)}
        told = {text: read_caption(said) for text, said in facts.items()}
        compared = dict.fromkeys(texts for item in items for texts in ((item.candidate,), item.references))
        readings = {texts: self._reading([told[text] for text in texts]) for texts in compared}
        pairs = [(readings[item.candidate,], readings[item.references]) for item in items]
        return self._statistics(pairs, self._texts(items))

    def _texts(self, items: Sequence[Item]) -> list[TextMatch]:
        if not self.texts:
            return [TextMatch(candidate=item.candidate) for item in items]
        order = self.vectors.order
        aligned = alignments([(item.candidate, item.references) for item in items])
        return [
            TextMatch(1.0 if order is None else order.share(item.candidate, item.references), value, item.candidate)
            for item, value in zip(items, aligned, strict=True)
        ]

    def _reading(self, captions: Sequence[Told]) -> _Reading:
        facts, words = [told.facts for told in captions], [told.words for told in captions]
        if self.evidence:
            return _Reading(nodes_of(merge(facts, self.lexicon, loose=True)), words)
        return _Reading(counted_nodes(merge_counted(facts, self.lexicon)), words)

    def compare(self, candidate: SceneGraph, reference: SceneGraph, *, texts: TextMatch = _NO_TEXTS) -> GradedStatistic:
        """Compare two graphs that :meth:`graph` made: a candidate's and that of all its references.

        Args:
            candidate: its graph.
            reference: the graph of the references.
            texts: what the texts say beside the graphs, which do not know them.
        """
        return self.compare_all([(candidate, reference)], texts=[texts])[0]

    def compare_all(
        self, pairs: Sequence[tuple[SceneGraph, SceneGraph]], *, texts: Sequence[TextMatch] | None = None
    ) -> list[GradedStatistic]:
        """Compare pairs of graphs; vectors and arrays are made once for all of them.

        Args:
            pairs: as for :meth:`compare`.
            texts: what each pair's texts say beside the graphs; ``None``: nothing.
        """
        readings = {id(graph): _reading_of(graph) for pair in pairs for graph in pair}
        of_pairs = [(readings[id(mine)], readings[id(theirs)]) for mine, theirs in pairs]
        return self._statistics(of_pairs, [_NO_TEXTS] * len(pairs) if texts is None else texts)

    def _statistics(
        self, pairs: Sequence[tuple[_Reading, _Reading]], texts: Sequence[TextMatch]
    ) -> list[GradedStatistic]:
        of_pairs = {id(reading): reading for pair in pairs for reading in pair}
        readings, places = list(of_pairs.values()), {known: place for place, known in enumerate(of_pairs)}
        vocabulary = sorted(set().union(*chain.from_iterable(reading.words for reading in readings)))
        strings = chain.from_iterable(reading.graph.strings for reading in readings)
        rows = self.vectors.rows(chain(strings, [(word,) for word in vocabulary]))
        mine, theirs = ([places[id(pair[side])] for pair in pairs] for side in (0, 1))
        order = [text.order for text in texts]
        graphs = sides_of([reading.graph for reading in readings], rows)
        found = supports(graphs, mine, theirs, rows, partners=self.evidence)
        words = word_sides([reading.words for reading in readings], vocabulary, rows)
        found_words = supports(words, mine, theirs, rows, partners=False)
        weights = weigh(graphs, *found, self.categories, order)
        of_words = weigh(words, *found_words, {}, order)
        for sums, other, text in zip(weights, of_words, texts, strict=True):
            sums[ALL] = sums[ALL].mixed(other[ALL], None if text.aligned is None else text.aligned * text.order)
        matches = matches_of(graphs, mine, theirs, found, texts) if self.evidence else [None] * len(pairs)
        return list(map(GradedStatistic, weights, matches))

    def explain(self, statistic: GradedStatistic, *, changes: int = 3) -> GradedExplanation:
        """Explain an item's score: every tuple's best partner, and the changes that would raise it most.

        Raises:
            ValueError: the statistic has no match (it comes from another process, or from a metric without evidence).
        """
        match = statistic.match
        if match is None:
            raise ValueError("the statistic has no match to explain")
        reference = _reading_of(match.reference.graph)
        bare = replace(self, evidence=False, categories={})

        def rescore(changed: Sequence[Sequence[Fact]]) -> list[float]:
            pairs = [(bare._reading([read_caption(facts)]), reference) for facts in changed]
            return [found.weights[ALL].f1 for found in bare._statistics(pairs, [match.texts] * len(pairs))]

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
            Score.mean(NAME if category == ALL else f"{NAME}_{category}", [s.f1(category) for s in statistics])
            for category in (ALL, *self.categories)
        )

    def compact(self, statistic: GradedStatistic) -> GradedStatistic:
        """Return the statistic without its match."""
        return replace(statistic, match=None)

    @staticmethod
    def by_category(statistic: GradedStatistic) -> dict[str, CategoryScore]:
        """Return an item's scores by category, ``All`` first; nothing is counted."""
        return {name: statistic.scores(name) for name in statistic.weights}
