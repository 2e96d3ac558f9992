"""SPICE-G as a metric: scene graphs matched by degrees instead of all or nothing."""
# A fifth of the total's F1 is how many of its words a candidate's text shares with the most similar reference. As in
# METEOR (Denkowski and Lavie 2014), words match by their stems, function words count less, recall counts more, and the
# best reference decides; there are no synonyms and no penalty for chunks.

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, chain, islice, repeat, starmap
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from spicegraph_graded.spice_g import matching
from spicegraph_graded.spice_g.credit import Shares, graded_credit, shares_of
from spicegraph_graded.spice_g.explain import GradedExplanation, explain_match
from spicegraph_graded.spice_g.facts import comparable_facts, content_words, read_caption
from spicegraph_graded.spice_g.texts import (
    PRECISION_SHARE,
    Meaning,
    cosines,
    load_meaning,
    meaning_of,
    weighted_stem,
    words_of_text,
)
from spicegraph_graded.spice_g.vectors import Rows, Vectors, load_vectors, vectors_of
from spicegraph_graded.spice_g.verdicts import Verdicts, WordVerdict, judge, object_words, told_by_captions
from spicegraph_parser.caption_pipeline.layout import ranges
from spicegraph_parser.spice.graph import SceneGraph, merge, merge_counted
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer.core.categories import ALL, Category, CategoryScore
from spicegraph_scorer.core.facts import FactsInOrder, FactSource, captions_of
from spicegraph_scorer.core.metric import Metric, Needs, Score, Working
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, DIGITS, NUMERALS, categories_digest
from spicegraph_scorer.metrics.spice.metric import ReferenceCache, categories_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.spice.index import Lexicon
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.tokens import Corpus

NAME: Final = "SPICE-G"
_AT_A_TIME: Final = 512  # items whose vectors are made together
_NO_TEXTS: Final = matching.TextMatch()


# Captions as the metric compares them: their merged graph, and the content words of each.
_Reading: TypeAlias = "tuple[matching.Nodes, Sequence[frozenset[str]]]"


def _reading_of(graph: SceneGraph) -> _Reading:
    """Return the nodes of a graph with evidence, and its captions' content words."""
    return matching.nodes_of(graph), list(map(content_words, told_by_captions(graph)))


@dataclass(frozen=True, slots=True, eq=False)
class GradedStatistic:
    """One item's weights, in total and by category, and the match they come from (``None`` once it was sent off)."""

    weights: Mapping[str, Weighed]
    match: matching.GradedMatch | None = None

    def f1(self, category: str) -> float | None:
        """Return the item's F1 in a category: ``None`` without reference tuples (but for All)."""
        return self.scores(category).f

    def scores(self, category: str) -> CategoryScore:
        """Return the scores of a category: ``None`` without reference tuples (but for All)."""
        weighed = self.weights[category]
        if not weighed.reference and category != ALL:
            return CategoryScore(None, None, None)
        return CategoryScore(weighed.f1, weighed.precision, weighed.recall)


_COUNTS: Final = "Cardinality"


def _counting(categories: Mapping[str, Category]) -> Mapping[str, Category]:
    """Return categories in which digits are counts, too, also where references have both "2" and "two"."""
    return {**categories, _COUNTS: Category(2, keys=NUMERALS | DIGITS)}


@dataclass(frozen=True, slots=True)
class SpiceG(Metric[GradedStatistic]):
    """SPICE-G: precision, recall and F1 of scene-graph tuples and of words that match by degrees, in [0, 1].

    A tuple is supported as far as the other side has one like it: the cosine of their words' vectors, drawn down
    where the words stand at other objects. Tuples weigh more the rarer their word is and the more references have
    them; one that the references contradict (another colour or count) weighs twice in precision. Precision is a power
    mean with exponent 3/4 of the candidate's supports, recall a mean of the references'. Half of both is that of the
    captions' content words alone, compared in the same way without regard to what they are said of; and a fifth of F1
    is the alignment of the candidate's text with the best reference. Categories are of tuples
    alone: their corpus value is the mean of the items' F1 over the items whose references have such tuples.
    Plurals, quantities and denials are read as :func:`spicegraph_graded.spice_g.facts.comparable_facts` says.
    A candidate whose words follow one another as they do not in captions loses its score in part or whole
    (:meth:`spicegraph_graded.spice_g.texts.WordOrder.share`).

    Without ``texts``, facts alone are compared: neither order nor alignment is looked at. With ``evidence`` every
    statistic keeps its match, from which explanations are drawn; without, there are the weights only, in less time.
    """

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(facts=True, loose=True, data=frozenset({"categories", "vectors", "meaning"}))
    explains: ClassVar[bool] = True
    credits: ClassVar[bool] = True

    source: FactSource
    categories: Mapping[str, Category] = field(default_factory=lambda: _counting(CATEGORIES))
    vectors: Vectors = field(default_factory=load_vectors)
    lexicon: Lexicon = field(default_factory=load_lexicon)
    evidence: bool = True
    texts: bool = True
    references: ReferenceCache[_Reading] | None = field(default=None, compare=False, repr=False)
    meaning: Meaning | None = field(default_factory=load_meaning)

    @classmethod
    def of(cls, given: Resources) -> SpiceG:
        """Return the metric ``spice-g``."""
        return cls(
            given.facts(),
            _counting(categories_of(given)),
            vectors_of(given.data.vectors),
            evidence=given.evidence,
            references=ReferenceCache.of(given),
            meaning=meaning_of(given.data.meaning),
        )

    @property
    def name(self) -> str:
        """The name by which it is asked for."""
        return "spice-g"

    def signature(self) -> dict[str, str]:
        """Return metric, formula and its share, pipeline, lexicon tables, and categories of the user, if any."""
        own = {name: category for name, category in self.categories.items() if name != _COUNTS}
        digest = categories_digest(own)
        formula = {"formula": "4"}
        if self.meaning is not None:
            share = f"{matching.MEANING_SHARE:g}"
            formula = {"formula": "5", "meaning": self.meaning.signature, "meaning share": share}
        return {
            "metric": self.name,
            **formula,
            "pipeline": self.source.signature,
            "lexicon": self.lexicon.signature,
            "vectors": self.vectors.signature,
            "counts": "words and digits",
            **({} if digest is None else {"categories": digest}),
            **({} if self.texts else {"texts": "unread"}),
        }

    def make_ready(self) -> None:
        """Build the vectors' table for words that they lack."""
        self.vectors.unknown.make_ready()

    def collect(self, corpus: Corpus) -> list[GradedStatistic]:
        """Parse every distinct caption once, and return the weights of every item."""
        facts = FactsInOrder(self.source, captions_of(corpus.items))
        items = iter(corpus.items)
        statistics: list[GradedStatistic] = []
        while batch := list(islice(items, _AT_A_TIME)):
            statistics += self._compared(batch, facts)
        return statistics

    def _compared(self, items: Sequence[Item], facts_in_order: FactsInOrder) -> list[GradedStatistic]:
        facts = {text: facts_in_order.take(text) for item in items for text in (item.candidate, *item.references)}
        cache = self.references or ReferenceCache(len(items))
        told: dict[str, tuple[Sequence[Fact], frozenset[str]]] = {}

        def read(*texts: str) -> _Reading:
            told.update({text: read_caption(facts[text]) for text in texts if text not in told})
            return self._reading([told[text] for text in texts])

        readings = {text: read(text) for text in dict.fromkeys(item.candidate for item in items)}
        pairs = [
            (readings[item.candidate], cache.get(item.references, partial(read, *item.references))) for item in items
        ]
        return self._statistics(pairs, self._texts(items))

    def _texts(self, items: Sequence[Item]) -> list[matching.TextMatch]:
        if not self.texts:
            return [matching.TextMatch(candidate=item.candidate) for item in items]
        order = self.vectors.order
        texts = TextArrays.of([(item.candidate, item.references) for item in items])
        aligned = texts.alignments()
        nobody: list[float | None] = [None] * len(items)
        meant: Sequence[float | None] = nobody if self.meaning is None else texts.meanings(self.meaning)
        shares = [1.0 if order is None else order.share(item.candidate, item.references) for item in items]
        return [
            matching.TextMatch(share, value, whole, item.candidate, item.references)
            for item, share, value, whole in zip(items, shares, aligned, meant, strict=True)
        ]

    def _reading(self, captions: Iterable[tuple[Sequence[Fact], frozenset[str]]]) -> _Reading:
        facts, words = zip(*captions, strict=True)
        if self.evidence:
            return matching.nodes_of(merge(facts, self.lexicon, loose=True)), words
        return matching.counted_nodes(*merge_counted(facts, self.lexicon)), words

    def compare(
        self, candidate: SceneGraph, reference: SceneGraph, *, texts: matching.TextMatch = _NO_TEXTS
    ) -> GradedStatistic:
        """Compare two graphs that :meth:`graph` made: a candidate's and that of all its references."""
        return self.compare_all([(candidate, reference)], texts=[texts])[0]

    def compare_all(
        self, pairs: Sequence[tuple[SceneGraph, SceneGraph]], *, texts: Sequence[matching.TextMatch] | None = None
    ) -> list[GradedStatistic]:
        """Compare pairs of graphs; vectors and arrays are made once for all of them."""
        readings = {id(graph): _reading_of(graph) for pair in pairs for graph in pair}
        of_pairs = [(readings[id(candidate)], readings[id(reference)]) for candidate, reference in pairs]
        return self._statistics(of_pairs, [_NO_TEXTS] * len(pairs) if texts is None else texts)

    def _statistics(
        self, pairs: Sequence[tuple[_Reading, _Reading]], texts: Sequence[matching.TextMatch]
    ) -> list[GradedStatistic]:
        graphs, words, candidates, references, rows = self._laid_out(pairs)
        order = [text.order for text in texts]
        cells, word_cells = (matching.cells_of(sides, candidates, references, rows) for sides in (graphs, words))
        supports = cells.supports(partners=self.evidence)
        weights = weigh(graphs, *supports, self.categories, order)
        of_words = weigh(words, *word_cells.supports(partners=False), {}, order)
        for sums, other, text in zip(weights, of_words, texts, strict=True):
            sums[ALL] = sums[ALL].mixed(other[ALL], None if text.aligned is None else text.aligned * text.order)
        if any(text.meaning is not None for text in texts):
            plain = plain_f1((graphs, cells), (words, word_cells)).tolist()
            for sums, said, text in zip(weights, plain, texts, strict=True):
                sums[ALL] = sums[ALL]._replace(meant=_meant(said, text))
        matches = (
            matching.matches_of(graphs, candidates, references, supports, texts)
            if self.evidence
            else [None] * len(pairs)
        )
        return list(map(GradedStatistic, weights, matches))

    def working(self, statistic: GradedStatistic) -> tuple[Working, ...]:
        """Return how far the caption is supported (P), how much of the references it covers (R), and F1."""
        text = "P {} (the share of the caption that is supported), R {} (the share of the references covered), F {}"
        total = statistic.weights[ALL]
        return (Working(NAME, text, (total.precision, total.recall, statistic.f1(ALL))),)

    def _laid_out(
        self, pairs: Sequence[tuple[_Reading, _Reading]]
    ) -> tuple[matching.Sides, matching.Sides, list[int], list[int], Rows]:
        """Return the graphs and words of distinct readings as arrays, the numbers of each pair's two, and all rows."""
        of_pairs = {id(reading): reading for reading in chain.from_iterable(pairs)}
        readings, places = list(of_pairs.values()), {known: number for number, known in enumerate(of_pairs)}
        vocabulary = sorted(set().union(*chain.from_iterable(words for _, words in readings)))
        strings = chain.from_iterable(graph.strings for graph, _ in readings)
        rows = self.vectors.rows(chain(strings, [(word,) for word in vocabulary]))
        candidates, references = ([places[id(pair[side])] for pair in pairs] for side in (0, 1))
        graphs = matching.sides_of([graph for graph, _ in readings], rows)
        word_sides = matching.word_sides([words for _, words in readings], vocabulary, rows)
        return graphs, word_sides, candidates, references, rows

    def credit(self, corpus: Corpus, statistics: Sequence[GradedStatistic]) -> list[Credit]:
        """Divide F1 among the words; see :mod:`spicegraph_graded.spice_g.credit`."""
        matches = [statistic.match for statistic in statistics]
        if None in matches:
            raise ValueError("the statistic has no match to divide")
        divided: list[Credit] = []
        for start in range(0, len(matches), _AT_A_TIME):
            some = [match for match in matches[start : start + _AT_A_TIME] if match is not None]
            graphs = {id(side.graph): side.graph for match in some for side in (match.candidate, match.reference)}
            known = {number: _reading_of(graph) for number, graph in graphs.items()}
            pairs = [(known[id(match.candidate.graph)], known[id(match.reference.graph)]) for match in some]
            of_graphs, of_words, candidates, references, rows = self._laid_out(pairs)
            both = of_graphs, of_words
            cells = [matching.cells_of(sides, candidates, references, rows) for sides in both]
            tuples, words = (shares_of(*compared) for compared in zip(cells, both, strict=True))
            plain: Iterable[tuple[Shares, Shares] | None] = repeat(None, len(some))
            if self.meaning is not None and self.texts:
                plain = zip(
                    *(shares_of(*compared, plain=True) for compared in zip(cells, both, strict=True)), strict=True
                )
            order = self.vectors.order if self.texts else None
            for number, (match, *shares, of_plain) in enumerate(zip(some, tuples, words, plain, strict=True), start):
                names = sorted(frozenset[str]().union(*pairs[number - start][0][1]))
                score = statistics[number].weights[ALL].f1
                players = shares[0], (names, shares[1]), of_plain
                item = corpus.items[number]
                divided.append(graded_credit(item, match, *players, score=score, order=order, meaning=self.meaning))
        return divided

    def explain(self, statistic: GradedStatistic, *, changes: int = 3) -> GradedExplanation:
        """Explain an item's score: every tuple's best partner, and the changes that would raise it most."""
        match = statistic.match
        if match is None:
            raise ValueError("the statistic has no match to explain")
        reference = _reading_of(match.reference.graph)
        bare = replace(self, evidence=False, categories={})
        texts, meant = match.texts._replace(meaning=None), statistic.weights[ALL].meant  # the text stays as it is

        def rescore(changed: Sequence[Sequence[Fact]]) -> list[float]:
            pairs = [(bare._reading([read_caption(facts)]), reference) for facts in changed]
            return [
                rescored.weights[ALL]._replace(meant=meant).f1
                for rescored in bare._statistics(pairs, [texts] * len(pairs))
            ]

        return explain_match(match, self.vectors, rescore, meaning=self.meaning, changes=changes)

    def verdicts(self, statistic: GradedStatistic, *, threshold: float | None = None) -> Verdicts:
        """Say which words and tuples of an item's candidate its references support, contradict or do not mention."""
        if statistic.match is None:
            raise ValueError("the statistic has no match to judge")
        return judge(statistic.match, statistic.match.texts.candidate, self.vectors, threshold=threshold)

    def suspects(self, statistic: GradedStatistic) -> list[tuple[WordVerdict, bool]]:
        """Return the verdict on each word of an item's candidate, and whether the word is an object."""
        words = self.verdicts(statistic).words
        objects = object_words(statistic.match) if statistic.match else frozenset()
        return [(word, word.word in objects) for word in words]

    def graph(self, captions: Iterable[Sequence[Fact]]) -> SceneGraph:
        """Merge the facts of one image's captions, loose words included, tuples that say nothing left out."""
        return merge(map(comparable_facts, captions), self.lexicon, loose=True)

    def total(self, statistics: Sequence[GradedStatistic]) -> tuple[Score, ...]:
        """Return ``SPICE-G`` and one score a category (``SPICE-G_Color`` ...)."""
        return tuple(
            Score.mean(NAME + f"_{category}" * (category != ALL), [s.f1(category) for s in statistics])
            for category in (ALL, *self.categories)
        )

    def compact(self, statistic: GradedStatistic) -> GradedStatistic:
        """Return the statistic without its match."""
        return replace(statistic, match=None)

    @staticmethod
    def by_category(statistic: GradedStatistic) -> dict[str, CategoryScore]:
        """Return an item's scores by category, ``All`` first; nothing is counted."""
        return {name: statistic.scores(name) for name in statistic.weights}


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'."""

    supported: float
    candidate: float
    found: float
    reference: float
    aligned: float | None = None  # the alignment of the texts: of the total alone, and where texts were read
    meant: float = 0.0  # what the meaning of the whole adds; below 0 where it is less than the words'

    @property
    def precision(self) -> float:
        """Supported share of the candidate's weight, in [0, 1]; 0 without any."""
        return self.supported / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 where both are 0; four fifths of it and a fifth of ``aligned``."""
        precision, recall = self.precision, self.recall
        score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        if self.aligned is not None:
            score += matching.ALIGNED_SHARE * (self.aligned - score)
        return min(max(score + self.meant, 0.0), 1.0) if self.meant else score

    def mixed(self, words: Weighed, aligned: float | None) -> Weighed:
        """Return the total: half of the support is that of the words alone, if there are any, on either side."""
        supported, recalled = self.supported, self.found
        if words.candidate:
            supported += matching.WORDS_SHARE * (words.precision * self.candidate - supported)
        if words.reference:
            recalled += matching.WORDS_SHARE * (words.recall * self.reference - recalled)
        return Weighed(supported, self.candidate, recalled, self.reference, aligned)


def weigh(
    sides: matching.Sides,
    precision: matching.Supports,
    recall: matching.Supports,
    categories: Mapping[str, Category],
    order: Sequence[float],
) -> list[dict[str, Weighed]]:
    """Add up the weights of each comparison in total (``All``) and by category; ``order`` cuts every support."""
    # The supported part of a candidate's weight is the power mean of its tuples' support: two tuples with half of their
    # support cost less than one without any. (Formula 3 had the exponent 1/2, which costs longer captions more than
    # people think.) A category holds its own tuples; what supports them may be of another.
    left = np.array(order, np.float64)
    candidate_weights = matching.precision_weights(sides, precision)
    reference_weights = sides.weights[recall.tuples]
    powers = (precision.support * np.repeat(left, precision.counts)) ** matching.PRECISION_EXPONENT * candidate_weights
    recalled = recall.support * np.repeat(left, recall.counts) * reference_weights
    columns = [_weighed(_sums(precision, powers, candidate_weights), _sums(recall, recalled, reference_weights))]
    concepts = list(chain.from_iterable(graph.concepts for graph in sides.nodes)) if categories else []
    places = [np.flatnonzero(sides.kinds == kind) for kind in range(3)]
    of_kind = [[concepts[index] for index in of] for of in places] if concepts else [[], [], []]
    for category in categories.values():
        takes = np.zeros(len(sides.kinds))  # 1 for each tuple that belongs to it
        kind = category.length - 1
        takes[places[kind]] = 1 if category.takes_all else category.takes(of_kind[kind])
        in_candidate, in_reference = takes[precision.tuples], takes[recall.tuples]
        columns.append(
            _weighed(
                _sums(precision, powers * in_candidate, candidate_weights * in_candidate),
                _sums(recall, recalled * in_reference, reference_weights * in_reference),
            )
        )
    names = ALL, *categories
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain_f1(
    graphs: tuple[matching.Sides, matching.Cells], words: tuple[matching.Sides, matching.Cells]
) -> matching.Weights:
    """Return F1 of tuples and of words of each comparison where neither places nor contradictions and denials count."""
    means = []
    for sides, cells in (graphs, words):
        for side, power in zip(cells.plain_supports(), (matching.PRECISION_EXPONENT, 1.0), strict=True):
            weights = sides.weights[side.tuples]
            supported, whole = _sums(side, side.support.astype(np.float64) ** power * weights, weights)
            mean = np.divide(supported, whole, out=np.zeros_like(whole), where=whole > 0)
            means.append((mean ** (1 / power), whole > 0))
    halves = [
        np.where(said & spoken, of_tuples + matching.WORDS_SHARE * (of_words - of_tuples), of_tuples)
        for (of_tuples, said), (of_words, spoken) in zip(means[:2], means[2:], strict=True)
    ]
    both = halves[0] + halves[1]
    scores: matching.Weights = np.divide(2 * halves[0] * halves[1], both, out=np.zeros_like(both), where=both > 0)
    return scores


def _sums(side: matching.Supports, *values: matching.Weights) -> list[matching.Weights]:
    """Return the sum of values of each comparison, added up in order."""
    comparison: matching.Integers = np.repeat(np.arange(len(side.counts)), side.counts)
    # of nothing, bincount returns integers
    return [np.bincount(comparison, column, len(side.counts)).astype(np.float64, copy=False) for column in values]


def _weighed(precision_sums: Sequence[matching.Weights], recall_sums: Sequence[matching.Weights]) -> list[Weighed]:
    powers, weights = precision_sums
    shares = np.divide(powers, weights, out=np.zeros_like(powers), where=weights > 0)
    supported = weights * shares ** (1 / matching.PRECISION_EXPONENT)
    return list(starmap(Weighed, np.stack([supported, weights, *recall_sums], axis=1).tolist()))


class TextArrays(NamedTuple):
    """The texts of items as arrays, equal ones once."""

    words: Sequence[str]
    of_words: matching.Integers  # the place in words of each word of each text, text by text
    lengths: matching.Integers  # how many words each text has
    candidates: matching.Integers  # a text for each pair of an item's candidate with a reference
    references: matching.Integers  # the other text of the pair
    counts: matching.Integers  # how many pairs each item has

    @classmethod
    def of(cls, items: Sequence[tuple[str, Sequence[str]]]) -> TextArrays:
        """Lay out each candidate with its references."""
        texts = chain.from_iterable((candidate, *references) for candidate, references in items)
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        words = list(map(words_of_text, numbers))
        known = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
        counts = np.array([len(references) for _, references in items], np.intp)
        return cls(
            list(known),
            np.fromiter(map(known.__getitem__, chain.from_iterable(words)), np.intp),
            np.array(list(map(len, words)), np.intp),
            np.repeat(np.array([numbers[candidate] for candidate, _ in items], np.intp), counts),
            np.fromiter(map(numbers.__getitem__, chain.from_iterable(references for _, references in items)), np.intp),
            counts,
        )

    def alignments(self) -> list[float]:
        """Return how well each candidate is aligned with its best reference: P R / (.75 P + .25 R), in [0, 1]."""
        # P and R are the shares of the candidate's and the reference's weight that match; a word matches as often as
        # both have it.
        forms = list(map(weighted_stem, self.words))
        # sorted, so that a text's sums are added up in the same order whatever else is in the batch
        stems = {form: number for number, form in enumerate(sorted({form for form, _ in forms}))}
        size, count = max(len(stems), 1), len(self.lengths)
        weights = np.array([weight for _, weight in forms])[self.of_words]
        of_words = np.array([stems[form] for form, _ in forms], np.intp)[self.of_words]
        texts = np.repeat(np.arange(count), self.lengths)
        totals = np.bincount(texts, weights, count)
        said, positions = np.unique(texts * size + of_words, return_inverse=True)  # each text's stems, text by text
        said_weights = np.bincount(positions, weights, len(said))
        ends = np.searchsorted(said, np.arange(count + 1) * size)

        candidates, references = self.candidates, self.references
        lengths = ends[references + 1] - ends[references]
        reference_places = ranges(ends[references], lengths)
        wanted = np.repeat(candidates, lengths) * size + said[reference_places] % size
        candidate_places = np.searchsorted(said, wanted).clip(max=max(len(said) - 1, 0))
        common = np.where(
            said[candidate_places] == wanted,
            np.minimum(said_weights[candidate_places], said_weights[reference_places]),
            0,
        )
        matched = np.bincount(np.repeat(np.arange(len(references)), lengths), common, len(references))
        # P = matched / said, R = matched / length, so that matched cancels out once
        both = (1 - PRECISION_SHARE) * totals[references] + PRECISION_SHARE * totals[candidates]
        values = np.divide(matched, both, out=np.zeros_like(both), where=both > 0).tolist()
        ends_of_items = accumulate(self.counts.tolist())
        return [
            max(values[end - count : end], default=0.0)
            for count, end in zip(self.counts.tolist(), ends_of_items, strict=True)
        ]

    def meanings(self, meaning: Meaning) -> list[float]:
        """Return the cosine of each candidate and the sum of its references, each at length 1, in [0, 1]."""
        places = np.array(list(map(meaning.place, self.words)), np.intp)[self.of_words]
        vectors = meaning.sums(places, self.lengths)
        likenesses = np.zeros(len(self.counts))
        said = np.flatnonzero(self.counts)
        starts = (self.counts.cumsum() - self.counts)[said]
        if said.size:
            sums = np.add.reduceat(vectors[self.references], starts)
            likenesses[said] = cosines(vectors[self.candidates[starts]], sums)
        values: list[float] = likenesses.tolist()
        return values


def _meant(said: float, text: matching.TextMatch) -> float:
    """Return the gain in F1 from the meaning score; ``said`` is F1 without texts."""
    if text.meaning is None:
        return 0.0
    aligned = said if text.aligned is None else text.aligned
    plain_score = said + matching.ALIGNED_SHARE * (aligned - said)
    return matching.MEANING_SHARE * text.order * (text.meaning - plain_score)
