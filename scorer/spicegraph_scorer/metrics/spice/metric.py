"""SPICE: counts of one item's tuples, scores of a corpus, and scores of tuples that are ready."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar

from spicegraph_parser.errors import InputError, expect_list
from spicegraph_parser.spice.graph import ConceptGraph, SceneGraph, SceneTuple, merge, merge_concepts
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.categories import ALL, Category, CategoryScore, Counts
from spicegraph_scorer.core.facts import FactsInOrder, FactSource, FunctionSource, captions_of
from spicegraph_scorer.core.metric import Metric, Needs, Score
from spicegraph_scorer.core.tokens import SPICE_TEXTS, Corpus, SpiceText, toolkit_text
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, categories_digest
from spicegraph_scorer.metrics.spice.languages import Side, categories_in, sides_of
from spicegraph_scorer.metrics.spice.match import (
    NO_MATCH,
    CategoryCounts,
    Match,
    count_concepts,
    count_match,
    group_by_length,
    match_credit,
    match_tuples,
    select_categories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.index import Synonyms
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.items import Item, ItemId
    from spicegraph_scorer.core.results import Json, Result

T = TypeVar("T")
_Facts = tuple[FactsInOrder, FactsInOrder]  # of candidates, and of references
_Merged = tuple[tuple[SceneTuple, ...], dict[int, list[int]], dict[str, frozenset[int]]]
"""What all candidates of an image have in common: the references' tuples, their places by length, and by category."""


def categories_of(given: Resources) -> Mapping[str, Category]:
    """Return the categories that a metric counts: the user's own, or SPICE's."""
    return CATEGORIES if given.data.categories is None else given.data.categories


class ReferenceCache(Generic[T]):
    """LRU cache of values derived from images' references, about 20 kB each."""

    def __init__(self, images: int) -> None:
        self._images = images
        self._kept: OrderedDict[tuple[str, ...], T] = OrderedDict()

    @classmethod
    def of(cls, given: Resources) -> Self | None:
        """Return a cache for as many images as are to be kept; ``None``: none are."""
        return cls(given.images) if given.images else None

    def get(self, references: tuple[str, ...], make: Callable[[], T]) -> T:
        """Return the cached value, computing it on a miss."""
        known = self._kept.get(references)
        if known is None:
            known = self._kept[references] = make()
            if len(self._kept) > self._images:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(references)
        return known


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

    ``text``: captions as written, as the SPICE program parses them by itself, or ``coco``: tokens without punctuation,
    as within the COCO toolkit. ``evidence``: every statistic keeps its match; without, there are the counts only, in
    half the time and a hundredth of the memory. ``language`` is that of the captions; with ``across``, references are
    in another one.
    """

    needs: ClassVar[Needs] = Needs(
        facts=True, data=frozenset({"categories", "spice_text", "language", "reference_language"})
    )
    matches: ClassVar[bool] = True
    credits: ClassVar[bool] = True

    source: FactSource
    exact: bool = False
    categories: Mapping[str, Category] = field(default_factory=lambda: CATEGORIES)
    lexicon: Synonyms = field(default_factory=load_lexicon)
    evidence: bool = True
    text: SpiceText = "written"
    references: ReferenceCache[Any] | None = field(default=None, compare=False, repr=False)
    language: str = "en"
    across: Side | None = None

    @classmethod
    def of(cls, given: Resources, *, exact: bool = False) -> Spice:
        """Return the metric ``spice``."""
        side, across = sides_of(given.data, given.facts(), exact=exact)
        return cls(
            side.source,
            exact=exact,
            categories=(
                categories_in(side.language, across=across is not None)
                if given.data.categories is None
                else given.data.categories
            ),
            lexicon=side.lexicon,
            language=side.language,
            across=across,
            evidence=given.evidence,
            text=given.data.spice_text or "written",
            references=ReferenceCache.of(given),
        )

    @classmethod
    def of_exact(cls, given: Resources) -> Spice:
        """Return the metric ``spice-exact``."""
        return cls.of(given, exact=True)

    @property
    def name(self) -> str:
        """``spice`` or ``spice-exact``."""
        return "spice-exact" if self.exact else "spice"

    def signature(self) -> dict[str, str]:
        """Return metric, pipeline, text and lexicon, and the categories of the user's own, if there are any."""
        digest = categories_digest(self.categories)
        return {
            "metric": self.name,
            "pipeline": self.source.signature,
            "text": SPICE_TEXTS[self.text],
            "lexicon": "none" if self.exact else self.lexicon.signature,
            **({} if digest is None else {"categories": digest}),
            **({} if self.language == "en" else {"language": self.language}),
            **(
                {}
                if self.across is None
                else {
                    "reference language": self.across.language,
                    "reference pipeline": self.across.source.signature,
                    "reference lexicon": self.across.lexicon.signature,
                }
            ),
        }

    @property
    def facts(self) -> FactSource:
        """Fact source for captions, with their text prepared for the parser."""
        return self._read(self.source)

    def _read(self, source: FactSource) -> FactSource:
        if self.text == "written":
            return source
        return FunctionSource(source.signature, lambda texts: source.facts(map(toolkit_text, texts)))

    def _facts_in_order(self, items: Sequence[Item]) -> _Facts:
        """Return the fact iterators of candidates and of references."""
        if self.across is None:
            facts = FactsInOrder(self.facts, captions_of(items))
            return facts, facts
        return (
            FactsInOrder(self.facts, (item.candidate for item in items)),
            FactsInOrder(self._read(self.across.source), (text for item in items for text in item.references)),
        )

    def reads(self, item: Item) -> Item:
        """Return an item with its captions as they are parsed."""
        if self.text == "written":
            return item
        return replace(
            item, candidate=toolkit_text(item.candidate), references=tuple(map(toolkit_text, item.references))
        )

    def collect(self, corpus: Corpus) -> list[SpiceStatistic]:
        """Parse every distinct caption once, and return the counts of every item."""
        facts = self._facts_in_order(corpus.items)
        cache = self.references or ReferenceCache(1)  # items of one image usually follow each other
        score = self._matched if self.evidence else self._counted
        return [score(item, facts, cache) for item in corpus.items]

    def _matched(self, item: Item, facts: _Facts, cache: ReferenceCache[_Merged]) -> SpiceStatistic:
        of_candidates, of_references = facts

        def merged() -> _Merged:
            captions = [of_references.take(text) for text in item.references]
            tuples = merge(captions, self._reference_lexicon, exact=self.exact).tuples()
            return tuples, group_by_length(tuples), select_categories(tuples, self.categories)

        references, by_length, selected = cache.get(item.references, merged)
        candidate = self.graph([of_candidates.take(item.candidate)]).tuples()
        match = match_tuples(candidate, references, by_length=by_length)
        return SpiceStatistic(count_match(match, categories=self.categories, reference=selected), match)

    def _counted(self, item: Item, facts: _Facts, cache: ReferenceCache[ConceptGraph]) -> SpiceStatistic:
        of_candidates, of_references = facts
        merged = partial(merge_concepts, exact=self.exact)
        references = cache.get(
            item.references,
            lambda: merged([of_references.take(text) for text in item.references], self._reference_lexicon),
        )
        candidate = merged([of_candidates.take(item.candidate)], self.lexicon)
        return SpiceStatistic(CategoryCounts.of(count_concepts(candidate, references, categories=self.categories)))

    @property
    def _reference_lexicon(self) -> Synonyms:
        return self.lexicon if self.across is None else self.across.lexicon

    def graph(self, captions: Iterable[Sequence[Fact]]) -> SceneGraph:
        """Merge the facts of one image's captions as this mode merges."""
        return merge(captions, self.lexicon, exact=self.exact)

    def total(self, statistics: Sequence[SpiceStatistic]) -> tuple[Score, ...]:
        """Return ``SPICE`` and one score a category (``SPICE_Color`` ...)."""
        name = "SPICE-exact" if self.exact else "SPICE"
        return tuple(
            Score.mean(name if category == ALL else f"{name}_{category}", [s.f1(category) for s in statistics])
            for category in (ALL, *self.categories)
        )

    def compact(self, statistic: SpiceStatistic) -> SpiceStatistic:
        """Return the statistic without its match."""
        return statistic if statistic.match is NO_MATCH else replace(statistic, match=NO_MATCH)

    @staticmethod
    def by_category(statistic: SpiceStatistic) -> dict[str, CategoryScore]:
        """Return an item's scores and counts by category, ``All`` first."""
        return {name: CategoryScore.of(counts, name) for name, counts in statistic.counts.items()}

    @staticmethod
    def empty_graphs(statistic: SpiceStatistic) -> tuple[bool, bool]:
        """Say whether the candidate, and whether all references, have no tuple."""
        counts = statistic.counts[ALL]
        return not counts.candidate, not counts.reference

    def credit(self, corpus: Corpus, statistics: Sequence[SpiceStatistic]) -> list[Credit]:
        """Divide F1 among the words; see :func:`spicegraph_scorer.metrics.spice.match.tuple_credits`."""
        if any(statistic.match is NO_MATCH for statistic in statistics):
            raise ValueError("the statistic has no match to divide")
        pairs = zip(corpus.items, statistics, strict=True)
        return [match_credit(statistic.match, item.candidate) for item, statistic in pairs]

    def explain(self, statistic: SpiceStatistic, *, changes: int = 3) -> Match:
        """Return the match that the counts come from."""
        del changes
        return statistic.match


class ScoredTuple(NamedTuple):
    """A merged tuple as SPICE prints it (subject, relation, object) and whether it found a partner."""

    tuple: tuple[str, ...]
    truth_value: bool


@dataclass(frozen=True, slots=True)
class TupleResult:
    """The SPICE result of one item."""

    scores: dict[str, dict[str, float | int | None]]  # by category f, pr, re (None: undefined), tp, fp, fn
    statistic: SpiceStatistic  # holds the match

    @property
    def candidate(self) -> tuple[ScoredTuple, ...]:
        """The merged tuples of the candidate, matched ones first."""
        return scored_tuples(self.statistic.match)[0]

    @property
    def reference(self) -> tuple[ScoredTuple, ...]:
        """The merged tuples of the references, matched ones first."""
        return scored_tuples(self.statistic.match)[1]


def score_tuples(
    candidate: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    exact: bool = False,  # noqa: FBT001, FBT002 (public signature)
    *,
    categories: Mapping[str, Category] = CATEGORIES,
) -> TupleResult:
    """Score ready tuples of a candidate against those of its references.

    Args:
        candidate: tuples (object), (object, attribute) or (subject, object, relation), in a parser's order.
        references: one such list per reference caption.
        exact: no synonyms (SPICE's ``-noSynsets``).
        categories: what is counted beside the total.

    Example:
        >>> result = score_tuples([["sofa"], ["sofa", "brown"]], [[["couch"], ["couch", "brown"]]])
        >>> result.scores["All"]["f"]
        1.0
    """
    lexicon = load_lexicon()
    candidate_facts = [_facts(candidate, "candidate")]
    expect_list(references, "references", "a list of lists of tuples")
    reference_facts = [_facts(tuples, f"references[{index}]") for index, tuples in enumerate(references)]
    graphs = merge(candidate_facts, lexicon, exact=exact), merge(reference_facts, lexicon, exact=exact)
    statistic = score_graphs(*graphs, categories=categories)
    scores = {name: CategoryScore.of(counts, name).to_dict() for name, counts in statistic.counts.items()}
    return TupleResult(scores, statistic)


def _facts(tuples: Sequence[Sequence[str]], field: str) -> list[Fact]:
    expect_list(tuples, field, "a list of tuples")
    facts = []
    for index, words in enumerate(tuples):
        if not isinstance(words, list | tuple) or not 1 <= len(words) <= 3:
            raise InputError(f"{field}[{index}]: a tuple is a list of one to three words, got {words!r}")
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise InputError(f"{field}[{index}]: a word is a non-empty string, got {words!r}")
        facts.append(Fact(tuple(words), "ready", ()))
    return facts


def scored_tuples(match: Match) -> tuple[tuple[ScoredTuple, ...], tuple[ScoredTuple, ...]]:
    """Return both sides of a match as SPICE prints them, matched tuples first."""
    # A reference tuple counts as true when it is the first partner of a candidate tuple.
    firsts = {partners[0] for partners in match.candidate_partners if partners}
    candidate = [
        ScoredTuple(t.strings, bool(p)) for t, p in zip(match.candidate, match.candidate_partners, strict=True)
    ]
    reference = [ScoredTuple(t.strings, index in firsts) for index, t in enumerate(match.reference)]
    return tuple(sorted(candidate, key=_unmatched)), tuple(sorted(reference, key=_unmatched))


def _unmatched(scored: ScoredTuple) -> bool:
    return not scored.truth_value


JAR_METRICS: Final = ("spice", "spice-exact")  # The metrics whose results the program's output can hold.


def jar_output(result: Result, *, detailed: bool = True, subset: bool = True) -> list[dict[str, Json]]:
    """Return SPICE 1.0's JSON of a result, as its options ``-detailed`` and ``-subset`` write it."""
    # Undefined values are None (null), where the program prints its NaN.
    return list(jar_rows(result, detailed=detailed, subset=subset))


def jar_rows(result: Result, *, detailed: bool = True, subset: bool = True) -> Iterator[dict[str, Json]]:
    """Yield the rows of :func:`jar_output` one item at a time."""
    run = next((run for run in result.runs if run.name in JAR_METRICS), None)
    if run is None:
        raise InputError("the SPICE format holds SPICE results: ask for the metric spice or spice-exact")
    return (
        jar_item(item.id, statistic, detailed=detailed, subset=subset)
        for item, statistic in zip(result.items, run.statistics, strict=True)
    )


def jar_item(
    image_id: ItemId, statistic: SpiceStatistic, *, detailed: bool = True, subset: bool = True
) -> dict[str, Json]:
    """Return one item's scores and tuples, the tuples in the program's order."""
    scores: dict[str, Json] = {
        name: {**CategoryScore.of(counts, name).to_dict(), "numImages": 1}
        for name, counts in statistic.counts.items()
        if subset or name == ALL
    }
    item: dict[str, Json] = {"image_id": image_id, "scores": scores}
    if not detailed:
        return item
    candidate, reference = scored_tuples(statistic.match)
    return {**item, "test_tuples": _tuples(candidate), "ref_tuples": _tuples(reference)}


def _tuples(scored: Iterable[ScoredTuple]) -> list[dict[str, Json]]:
    return [{"tuple": list(strings), "truth_value": truth_value} for strings, truth_value in scored]
