"""``detail``: correctness and coverage of descriptions, from the claims of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from spicegraph_detail.claims import MEANING_SHARE, SUPPORT_EXPONENT, WHOLE_SHARE, Claims, claims_of
from spicegraph_detail.differences import Differences, differences_of
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.metric import Metric, Needs, Score, Working
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.graded.texts import load_meaning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.items import Item

NAME: Final = "Detail"
CORRECTNESS: Final = f"{NAME}_Correctness"
COVERAGE: Final = f"{NAME}_Coverage"
_AT_A_TIME: Final = 128
_PARTS: Final[tuple[str, ...]] = ("pipeline", "lexicon", "vectors", "meaning")


@dataclass(frozen=True, slots=True)
class DetailStatistic:
    """An item's correctness and coverage, in [0, 1], and the claims or differences behind them, if they were kept."""

    correctness: float
    coverage: float
    evidence: Claims | Differences | None = None

    @property
    def both(self) -> float:
        """The harmonic mean of correctness and coverage, 0 where both are 0."""
        total = self.correctness + self.coverage
        return 2 * self.correctness * self.coverage / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Detail(Metric[DetailStatistic]):
    """``detail``: of what a candidate says, how much holds, and of what its references say, how much it says.

    Facts are those of SPICE-G, whose likeness, weights, verdicts and table of meanings are used
    (:func:`spicegraph_detail.claims.claims_of` has the formula). ``Detail`` is the harmonic mean of
    ``Detail_Correctness`` and ``Detail_Coverage``; all are in [0, 1]. The order of references does not matter, and it
    matters little whether they are several captions, a list of facts or one text. Corpus scores are means of the
    items' scores. The evidence is the claims of both sides or, with ``differences``, what both sides do not agree on.

    Example:
        >>> from spicegraph_scorer import Item, score
        >>> sorted(score([Item(1, "A dog lies on a couch.", ("A brown dog lies on a sofa.",))], ["detail"]).corpus)
        ['Detail', 'Detail_Correctness', 'Detail_Coverage']
    """

    needs: ClassVar[Needs] = Needs(facts=True, loose=True, data=frozenset({"vectors", "meaning"}))
    explains: ClassVar[bool] = True

    graded: SpiceG
    evidence: bool = True
    differences: bool = False

    name = "detail"

    @classmethod
    def of(cls, given: Resources) -> Detail:
        """Return the metric ``detail``."""
        graded = replace(SpiceG.of(given), categories={}, evidence=True, references=None)
        return cls(graded, evidence=given.evidence)

    def signature(self) -> Mapping[str, str]:
        """Return formula, pipeline, lexicon, vectors and table of meanings."""
        graded = self.graded.signature()
        kept: dict[str, str] = {name: graded[name] for name in _PARTS if name in graded}
        shares = f"{MEANING_SHARE:g} {WHOLE_SHARE:g}"
        support = f"{SUPPORT_EXPONENT:g}"
        return {"metric": self.name, "formula": "3", **kept, "meaning shares": shares, "support": support}

    def make_ready(self) -> None:
        """Build the vectors' table for words that they lack."""
        self.graded.make_ready()

    def collect(self, corpus: Corpus) -> list[DetailStatistic]:
        """Return the statistic of each item; graphs are kept for 128 items at a time."""
        meaning = self.graded.meaning or load_meaning()
        statistics = []
        for start in range(0, len(corpus.items), _AT_A_TIME):
            for graded in self.graded.collect(Corpus(corpus.items[start : start + _AT_A_TIME])):
                if graded.match is None:
                    raise ValueError("SPICE-G kept no match")
                claims = claims_of(graded.match, self.graded.vectors, meaning)
                texts = graded.match.texts
                evidence = (
                    None
                    if not self.evidence
                    else differences_of(claims, texts.candidate, texts.references)
                    if self.differences
                    else claims
                )
                statistics.append(DetailStatistic(claims.correctness, claims.coverage, evidence))
        return statistics

    def total(self, statistics: Sequence[DetailStatistic]) -> tuple[Score, ...]:
        """Return ``Detail``, ``Detail_Correctness`` and ``Detail_Coverage``."""
        return (
            Score.mean(NAME, [statistic.both for statistic in statistics]),
            Score.mean(CORRECTNESS, [statistic.correctness for statistic in statistics]),
            Score.mean(COVERAGE, [statistic.coverage for statistic in statistics]),
        )

    def compact(self, statistic: DetailStatistic) -> DetailStatistic:
        """Return the scores alone."""
        return replace(statistic, evidence=None)

    def workings(self, corpus: Corpus, statistics: Sequence[DetailStatistic]) -> list[tuple[Working, ...]]:
        """Return how much holds, how much is said, and their harmonic mean."""
        del corpus
        text = "{} of what the description says holds, {} of what the references say is said: harmonic mean {}"
        return [(Working(NAME, text, (s.correctness, s.coverage, s.both)),) for s in statistics]

    def explain(self, statistic: DetailStatistic, *, changes: int = 3) -> Claims | Differences | None:
        """Return the claims of both sides, or the differences."""
        del changes
        return statistic.evidence


def make_differences(_text: str, resources: Resources) -> Detail:
    """Return ``detail`` with differences for evidence: what a service asks workers for."""
    return replace(Detail.of(replace(resources, evidence=True)), differences=True)


def find_differences(items: Sequence[Item], *, pipeline: str = DEFAULT_PIPELINE) -> list[Differences]:
    """Return the differences of each item, in the items' order.

    Args:
        items: candidates with their references: several captions, facts, or one long text.
        pipeline: the name of what parses them.

    Raises:
        DataError: the pipeline is not installed.

    Example:
        >>> from spicegraph_scorer import Item
        >>> (found,) = find_differences([Item(1, "A black dog lies on a couch.", ("A brown dog lies on a sofa.",))])
        >>> [(one.kind, one.aspect, one.claim, one.reference) for one in found.differences]
        [('contradicted', 'colour', 'black dog', 'brown dog')]
    """
    source = FactCache(load_pipeline(pipeline))
    statistics = make_differences("", Resources(lambda: source)).collect(Corpus(tuple(items)))
    return [statistic.evidence for statistic in statistics if isinstance(statistic.evidence, Differences)]
