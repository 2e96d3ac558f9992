"""Fluency as a metric, and SPIDEr-FL: SPIDEr that a broken caption loses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from spicegraph_graded.fluency.detector import KINDS, Detector, load_detector, sentences_of
from spicegraph_scorer.core.credit import Credit, CreditPart, Words
from spicegraph_scorer.core.metric import Metric, Needs, Score, Weigh, Working
from spicegraph_scorer.metrics.cider import Spider, SpiderStatistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.data import Resources
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.tokens import Corpus

THRESHOLD: Final = 0.9  # the probability above which a caption counts as broken, as FENSE and DCASE set it
PENALTY: Final = 0.9  # the share of SPIDEr that a broken caption loses in SPIDEr-FL
_REMEMBERED: Final = 20_000  # texts
_remembered: Final[dict[tuple[str, str], FluencyStatistic]] = {}
"""What was found, by detector and text: the guards of a reward ask for what its fluency has just read."""


class FluencyStatistic(NamedTuple):
    """The probability that something is wrong, and of each kind of error, of a caption's worst sentence, in [0, 1]."""

    wrong: float
    kinds: tuple[float, ...]

    @property
    def is_broken(self) -> bool:
        """Whether the probability is above :data:`THRESHOLD`."""
        return self.wrong > THRESHOLD

    @property
    def kind(self) -> str:
        """The likeliest kind of error."""
        return KINDS[max(range(len(KINDS)), key=self.kinds.__getitem__)]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values: the probability of an error, whether that counts as one, and that of each kind."""
        kinds: dict[str, Json] = dict(zip(KINDS, self.kinds, strict=True))
        return {"wrong": self.wrong, "is_broken": self.is_broken, "kinds": kinds}


def fluency_of(detector: Detector, texts: Sequence[str]) -> list[FluencyStatistic]:
    """Return the statistic of each text; a text without words is unfinished. Those of the last texts are remembered."""
    keys = [(detector.signature, text) for text in texts]
    fluencies = {key: known for key in keys if (known := _remembered.get(key))}
    if new := list(dict.fromkeys(text for key, text in zip(keys, texts, strict=True) if key not in fluencies)):
        found = {(detector.signature, text): fluency for text, fluency in zip(new, _found(detector, new), strict=True)}
        fluencies |= found
        if len(_remembered) + len(new) > _REMEMBERED:
            _remembered.clear()
        _remembered.update(islice(found.items(), max(0, len(found) - _REMEMBERED), None))
    return [fluencies[key] for key in keys]


def _found(detector: Detector, texts: Sequence[str]) -> Iterator[FluencyStatistic]:
    parts = list(map(sentences_of, texts))
    shares = iter(detector.probabilities(list(chain.from_iterable(parts))).tolist())
    for sentences in parts:
        worst = min(islice(shares, len(sentences)), key=itemgetter(0))
        if not sentences[0]:
            worst = [float(kind == "unfinished") for kind in ("none", *KINDS)]
        yield FluencyStatistic(1 - worst[0], tuple(worst[1:]))


@dataclass(frozen=True, slots=True)
class Fluency(Metric[FluencyStatistic]):
    """How well-formed captions are, after FENSE (Zhou et al., ICASSP 2022), by a linear model in place of its BERT.

    ``Fluency`` is 1 minus the probability that the worst sentence is broken, in [0, 1]; ``FluencyError`` is 1 for
    captions where that probability is above the threshold, else 0.
    """

    english: ClassVar[bool] = True
    credits: ClassVar[bool] = True
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"FluencyError"})
    explains: ClassVar[bool] = True

    detector: Detector

    name = "fluency"

    @classmethod
    def of(cls, _: Resources) -> Fluency:
        """Return the metric ``fluency``."""
        return cls(load_detector())

    def signature(self) -> Mapping[str, str]:
        """Return which detector it is, and the threshold."""
        return {"detector": f"linear {self.detector.signature}", "threshold": str(THRESHOLD)}

    def collect(self, corpus: Corpus) -> list[FluencyStatistic]:
        """Return the probabilities of each candidate."""
        return fluency_of(self.detector, [item.candidate for item in corpus.items])

    def total(self, statistics: Sequence[FluencyStatistic]) -> tuple[Score, ...]:
        """Return ``Fluency`` and ``FluencyError``."""
        return (
            Score.mean("Fluency", [1 - statistic.wrong for statistic in statistics]),
            Score.mean("FluencyError", [float(statistic.is_broken) for statistic in statistics]),
        )

    def working(self, statistic: FluencyStatistic) -> tuple[Working, ...]:
        """Return the probability of each kind of error."""
        kinds = "; ".join(f"{kind} {{}}" for kind in KINDS)
        text = f"1 - {{}}, the probability of an error ({kinds})"
        return (Working("Fluency", text, (statistic.wrong, *statistic.kinds)),)

    def credit(self, corpus: Corpus, statistics: Sequence[FluencyStatistic]) -> list[Credit]:
        """Divide fluency equally among the words: it is the whole caption that is well-formed."""
        pairs = zip(corpus.items, [1 - statistic.wrong for statistic in statistics], strict=True)
        return [Words(item.candidate).credit(value, [(CreditPart(self.name, (), value), ())]) for item, value in pairs]

    def explain(self, statistic: FluencyStatistic, *, changes: int = 3) -> FluencyStatistic:
        """Return the probability of each kind of error."""
        del changes
        return statistic


SpiderFlStatistic: TypeAlias = tuple[SpiderStatistic, FluencyStatistic]  # one item's, of both metrics


@dataclass(frozen=True, slots=True)
class SpiderFl(Metric[SpiderFlStatistic]):
    """SPIDEr-FL: SPIDEr, times .1 for a caption that counts as broken, as in the DCASE challenge."""

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Spider.needs
    highest: ClassVar[float] = Spider.highest

    spider: Spider
    fluency: Fluency

    name = "spider-fl"

    @classmethod
    def of(cls, given: Resources) -> SpiderFl:
        """Return the metric ``spider-fl``."""
        return cls(Spider.of(given), Fluency.of(given))

    def signature(self) -> Mapping[str, str]:
        """Return the signatures of both metrics, and the penalty."""
        return {**self.spider.signature(), **self.fluency.signature(), "penalty": str(PENALTY), "metric": self.name}

    def collect(self, corpus: Corpus) -> list[SpiderFlStatistic]:
        """Return both statistics of every item."""
        return list(zip(self.spider.collect(corpus), self.fluency.collect(corpus), strict=True))

    def total(self, statistics: Sequence[SpiderFlStatistic]) -> tuple[Score, ...]:
        """Return ``SPIDEr-FL``, in [0, 5.5]; ``None`` where CIDEr-D is undefined."""
        (whole,) = self.spider.total([spider for spider, _ in statistics])
        each = [
            value if value is None or not fluency.is_broken else value * (1 - PENALTY)
            for value, (_, fluency) in zip(whole.each, statistics, strict=True)
        ]
        return (Score.mean("SPIDEr-FL", each),)

    def workings(self, corpus: Corpus, statistics: Sequence[SpiderFlStatistic]) -> list[tuple[Working, ...]]:
        """Return the SPIDEr and the probability of an error."""
        del corpus
        values = self.spider.total([spider for spider, _ in statistics])[0].each
        text = f"SPIDEr ({{}}); a tenth of it where the probability of an error ({{}}) is above {THRESHOLD}"
        pairs = zip(values, statistics, strict=True)
        return [(Working("SPIDEr-FL", text, (value, fluency.wrong)),) for value, (_, fluency) in pairs]

    def compact(self, statistic: SpiderFlStatistic) -> SpiderFlStatistic:
        """Return the statistic without SPICE's match."""
        return self.spider.compact(statistic[0]), statistic[1]

    @property
    def weigh(self) -> Weigh | None:
        """The weighing function of CIDEr-D."""
        return self.spider.weigh

    def weighted(self, weights: Any) -> SpiderFl:
        """Return the metric with the document frequencies of a corpus."""
        return replace(self, spider=self.spider.weighted(weights))

    def defer(self, corpus: Corpus, *, evidence: bool = False) -> list[tuple[Any, FluencyStatistic]]:
        """Return each item's deferred SPIDEr statistic and its fluency."""
        kept = self.spider.defer(corpus, evidence=evidence)
        return list(zip(kept, self.fluency.collect(corpus), strict=True))

    def finish(self, kept: Sequence[tuple[Any, FluencyStatistic]], *, weights: Any = None) -> list[SpiderFlStatistic]:
        """Return both statistics of every item."""
        spider = self.spider.finish([spider for spider, _ in kept], weights=weights)
        return list(zip(spider, [each for _, each in kept], strict=True))
