"""ROUGE-S of the COCO paper, and BLEU of one order alone: what studies and notebooks report beside the toolkit's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from spicegraph_scorer.core.metric import Matrix, Metric, Score, Vector
from spicegraph_scorer.core.tokens import TOKENIZER, Corpus
from spicegraph_scorer.metrics.bleu import Bleu, BleuStatistic
from spicegraph_scorer.metrics.rouge import BETA, RougeLStatistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.data import Resources

_DISTANCE: Final = 4  # words, at most, from the first to the second of a pair


@dataclass(frozen=True, slots=True)
class RougeS(Metric[RougeLStatistic]):
    """ROUGE-S, in [0, 1]: ordered pairs of words at most four apart; the corpus value is the mean over the items.

    Recall and precision are each the best over the references (Chen et al. 2015, "Microsoft COCO Captions", equations 8
    to 10). A text of one word has no pair, and scores 0.
    """

    name = "rouge-s"

    def signature(self) -> Mapping[str, str]:
        """Return the signature; values are comparable if it is equal."""
        return {
            "variant": "ROUGE-S, Chen et al. 2015",
            "tokenizer": TOKENIZER,
            "beta": f"{BETA:g}",
            "distance": f"{_DISTANCE}",
            "references": "best",
        }

    def collect(self, corpus: Corpus) -> list[RougeLStatistic]:
        """Return precision and recall of each item."""
        return [_shares(candidate, references) for candidate, *references in corpus.tokens.numbers()]

    def total(self, statistics: Sequence[RougeLStatistic]) -> tuple[Score, ...]:
        """Return the score ``ROUGE_S``."""
        return (Score.mean("ROUGE_S", [statistic.score for statistic in statistics]),)


def skip_bigrams(words: Sequence[str | int]) -> Counter[tuple[str | int, str | int]]:
    """Count the ordered pairs of words that stand at most four words from each other.

    >>> len(skip_bigrams("a b c d".split()))
    6
    """
    return Counter((first, second) for at, first in enumerate(words) for second in words[at + 1 : at + 1 + _DISTANCE])


def _shares(candidate: Sequence[str | int], references: Iterable[Sequence[str | int]]) -> RougeLStatistic:
    own = skip_bigrams(candidate)
    pairs = [(other.total(), (own & other).total()) for other in map(skip_bigrams, references)]
    precision = max(common for _, common in pairs) / own.total() if own else 0.0
    return RougeLStatistic(precision, max(common / total if total else 0.0 for total, common in pairs))


@dataclass(frozen=True, slots=True)
class BleuOfOneOrder(Metric[BleuStatistic]):
    """BLEU from the n-grams of one ``order`` alone, as weights such as (0, 1, 0, 0) give it."""

    # BLEU-n is the geometric mean of the precisions of orders 1 to n, times the brevity penalty. The precision of order
    # n, times the penalty, is therefore BLEU-n to the n over BLEU-(n-1) to the n-1.

    means: ClassVar[bool] = False

    order: int

    @classmethod
    def of_two(cls, _given: Resources) -> BleuOfOneOrder:
        """Return the metric ``bleu-2-only``."""
        return cls(2)

    @classmethod
    def of_three(cls, _given: Resources) -> BleuOfOneOrder:
        """Return the metric ``bleu-3-only``."""
        return cls(3)

    @classmethod
    def of_four(cls, _given: Resources) -> BleuOfOneOrder:
        """Return the metric ``bleu-4-only``."""
        return cls(4)

    @property
    def name(self) -> str:
        """``bleu-2-only`` and its like."""
        return f"bleu-{self.order}-only"

    def signature(self) -> Mapping[str, str]:
        """Return that of BLEU, and the order."""
        return {**Bleu().signature(), "order": f"{self.order} alone"}

    def collect(self, corpus: Corpus) -> list[BleuStatistic]:
        """Return the counts of each item."""
        return Bleu().collect(corpus)

    def total(self, statistics: Sequence[BleuStatistic]) -> tuple[Score, ...]:
        """Return the score ``Bleu_2_only`` or its like."""
        columns = self.columns(statistics)
        ((name, each),) = self.from_sums(columns).items()
        ((_, corpus),) = self.from_sums(columns.sum(axis=0, keepdims=True)).items()
        return (Score(name, float(corpus[0]) if statistics else None, tuple(each.tolist())),)

    def columns(self, statistics: Sequence[BleuStatistic]) -> Matrix:
        """Return the columns that BLEU sums."""
        return Bleu().columns(statistics)

    def from_sums(self, sums: Matrix) -> dict[str, Vector]:
        """Return the corpus score of rows of sums."""
        scores = list(Bleu().from_sums(sums).values())
        upper, lower = scores[self.order - 1] ** self.order, scores[self.order - 2] ** (self.order - 1)
        return {f"Bleu_{self.order}_only": np.divide(upper, lower, out=np.zeros_like(upper), where=lower > 0)}
