"""``detail``: correctness and coverage of descriptions, from the claims of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from spicegraph_graded.detail.claims import (
    MEANING_SHARE,
    SUPPORT_EXPONENT,
    WHOLE_SHARE,
    Claims,
    claims_of,
    sentence_spans,
)
from spicegraph_graded.detail.differences import Differences, differences_of
from spicegraph_graded.spice_g.metric import GradedStatistic, SpiceG
from spicegraph_graded.spice_g.texts import load_meaning
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scenes.passages import LONGEST_CAPTION
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.metric import Metric, Needs, Score, Working
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.items import Item

NAME: Final = "Detail"
DESCRIPTION_LEVEL: Final = 0.9  # brings the harmonic mean below SPICE-G's level: nobody gains by length alone
_AT_A_TIME: Final = 32  # more need more memory and are no faster


@dataclass(frozen=True, slots=True)
class DetailStatistic:
    """An item's correctness, coverage and ``Detail``, in [0, 1], and the claims or differences, if they were kept."""

    correctness: float
    coverage: float
    both: float
    evidence: Claims | Differences | None = None


def description_share(candidate: str, references: Sequence[str]) -> float:
    """Return how far a candidate is scored as a description rather than a caption, in [0, 1].

    A description has more than 40 words, as for the scene parser; sentences that are said again have no more. All of
    it where a reference is one, nothing where neither is; where the candidate alone is, half of it at twice the length
    of the longest reference.
    """
    words, longest = _words(candidate), max(map(_words, references), default=0)
    if longest > LONGEST_CAPTION:
        return 1.0
    return 1 - longest / words if words > LONGEST_CAPTION else 0.0


def _words(text: str) -> int:
    return sum(len(said.split()) for said in {text[a:b].lower() for a, b in sentence_spans(text)})


@dataclass(frozen=True, slots=True)
class Detail(Metric[DetailStatistic]):
    """``detail``: the correctness of a candidate's claims, and their coverage of the references' claims.

    Facts are those of SPICE-G, whose likeness, weights, verdicts and table of meanings are used
    (:func:`spicegraph_graded.detail.claims.claims_of` has the formula). ``Detail`` is the harmonic mean of
    ``Detail_Correctness`` and ``Detail_Coverage`` where a reference is a description, of more than 40 words; between
    captions it is SPICE-G, and for a description against captions a mean of SPICE-G and .9 of the harmonic mean
    (:func:`description_share`). All are in [0, 1]. The order of references does not matter, and it
    matters little whether they are several captions, a list of facts or one text. Corpus scores are means of the
    items' scores. The evidence is the claims of both sides or, with ``differences``, what both sides do not agree on.

    Example:
        >>> from spicegraph_scorer import Item, score
        >>> sorted(score([Item(1, "A dog lies on a couch.", ("A brown dog lies on a sofa.",))], ["detail"]).corpus)
        ['Detail', 'Detail_Correctness', 'Detail_Coverage']
    """

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(facts=True, loose=True, data=frozenset({"vectors", "meaning"}))
    explains: ClassVar[bool] = True

    graded: SpiceG
    evidence: bool = True
    differences: bool = False

    @classmethod
    def of(cls, given: Resources) -> Detail:
        """Return the metric ``detail``."""
        graded = replace(SpiceG.of(given), categories={}, evidence=True, references=None)
        return cls(graded, evidence=given.evidence)

    @property
    def name(self) -> str:
        """``detail``."""
        return NAME.lower()

    def signature(self) -> Mapping[str, str]:
        """Return formula, pipeline, lexicon, vectors and table of meanings."""
        graded = self.graded.signature()
        kept = {name: graded[name] for name in ("pipeline", "lexicon", "vectors", "meaning") if name in graded}
        shares = f"{MEANING_SHARE:g} {WHOLE_SHARE:g}"
        fixed = {"meaning shares": shares, "support": f"{SUPPORT_EXPONENT:g}"}
        return {"metric": self.name, "formula": "5", **kept, **fixed}

    def make_ready(self) -> None:
        """Build the vectors' table for words that they lack."""
        self.graded.make_ready()

    def collect(self, corpus: Corpus) -> list[DetailStatistic]:
        """Return the statistic of each item; graphs are kept for 32 items at a time."""
        statistics: list[DetailStatistic] = []
        for start in range(0, len(corpus.items), _AT_A_TIME):
            statistics += map(self._statistic, self.graded.collect(Corpus(corpus.items[start : start + _AT_A_TIME])))
        return statistics

    def _statistic(self, graded: GradedStatistic) -> DetailStatistic:
        if graded.match is None:
            raise ValueError("SPICE-G kept no match")
        claims = claims_of(graded.match, self.graded.vectors, self.graded.meaning or load_meaning())
        correctness, coverage, texts = claims.correctness, claims.coverage, graded.match.texts
        total = correctness + coverage
        both = 2 * correctness * coverage / total if total else 0.0
        share, caption = description_share(texts.candidate, texts.references), graded.weights[ALL].f1
        if share < 1:
            both = caption + share * (DESCRIPTION_LEVEL * both - caption)
        evidence: Claims | Differences | None = claims if self.evidence else None
        if self.evidence and self.differences:
            evidence = differences_of(claims, texts.candidate, texts.references)
        return DetailStatistic(correctness, coverage, both, evidence)

    def total(self, statistics: Sequence[DetailStatistic]) -> tuple[Score, ...]:
        """Return ``Detail``, ``Detail_Correctness`` and ``Detail_Coverage``."""
        return (
            Score.mean(NAME, [statistic.both for statistic in statistics]),
            Score.mean(f"{NAME}_Correctness", [statistic.correctness for statistic in statistics]),
            Score.mean(f"{NAME}_Coverage", [statistic.coverage for statistic in statistics]),
        )

    def compact(self, statistic: DetailStatistic) -> DetailStatistic:
        """Return the scores alone."""
        return replace(statistic, evidence=None)

    def working(self, statistic: DetailStatistic) -> tuple[Working, ...]:
        """Return the working of the score: correctness, coverage and both together."""
        text = f"correctness {{}} of the description, coverage {{}} of the references: {NAME} {{}}"
        return (Working(NAME, text, (statistic.correctness, statistic.coverage, statistic.both)),)

    def explain(self, statistic: DetailStatistic, *, changes: int = 3) -> Claims | Differences | None:
        """Return the claims of both sides, or the differences."""
        del changes
        return statistic.evidence


def make_differences(_text: str, resources: Resources) -> Detail:
    """Return ``detail`` with differences as evidence, for a service's workers."""
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
