"""ROUGE-L as the COCO toolkit computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from spicegraph_scorer.core.metric import Metric, Score, Working
from spicegraph_scorer.core.tokens import TOKENIZER, Corpus, TokenizedItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Words: TypeAlias = "Sequence[str | int]"  # Words, or numbers that stand for them: only which are equal matters.

_EMPTY: Final = ("",)

BETA: Final = 1.2  # How much recall weighs against precision.


class RougeLStatistic(NamedTuple):
    """ROUGE-L of one item, each in [0, 1]."""

    precision: float  # the largest share of the candidate that is a common subsequence with a reference
    recall: float  # the largest share of a reference, of any, that is one with the candidate

    @property
    def score(self) -> float:
        """The F-score with ``BETA``; 0 where there is no word in common."""
        if not self.precision or not self.recall:
            return 0.0
        weight = BETA**2
        return (1 + weight) * self.precision * self.recall / (self.recall + weight * self.precision)


@dataclass(frozen=True, slots=True)
class RougeL(Metric[RougeLStatistic]):
    """ROUGE-L, in [0, 1], exactly as the COCO toolkit gives it; the corpus value is the mean over the items.

    Precision and recall are each the best over the references, possibly of two different ones. As in the toolkit, a
    candidate without a word scores 1 if a reference has none either.
    """

    name = "rouge"

    def signature(self) -> Mapping[str, str]:
        """Return the settings that must match for two values to be comparable."""
        return {"variant": "ROUGE-L, coco", "tokenizer": TOKENIZER, "beta": f"{BETA:g}", "references": "best"}

    def collect(self, corpus: Corpus) -> list[RougeLStatistic]:
        """Return precision and recall of each item, in the order of ``corpus.items``."""
        return [_statistic(candidate, references) for candidate, *references in corpus.tokens.numbers()]

    def total(self, statistics: Sequence[RougeLStatistic]) -> tuple[Score, ...]:
        """Return the score ``ROUGE_L``."""
        return (Score.mean("ROUGE_L", [statistic.score for statistic in statistics]),)

    def working(self, statistic: RougeLStatistic) -> tuple[Working, ...]:
        """Return the shares that the longest common subsequences are of candidate and references."""
        text = "words in common, in the same order: {} of the caption (P), {} of a reference (R); F with beta {}: {}"
        return (Working("ROUGE_L", text, (*statistic, BETA, statistic.score)),)


def rouge_l_statistic(item: TokenizedItem) -> RougeLStatistic:
    """Return the best precision and recall of a candidate over its references."""
    return _statistic(item.candidate, item.references)


def _statistic(candidate: Words, references: Sequence[Words]) -> RougeLStatistic:
    # Splitting an empty text at spaces leaves one empty word, which the toolkit counts.
    candidate_profile, reference_profiles = candidate or _EMPTY, [reference or _EMPTY for reference in references]
    common = [common_length(candidate_profile, reference) for reference in reference_profiles]
    recalls = [length / len(reference) for length, reference in zip(common, reference_profiles, strict=True)]
    return RougeLStatistic(max(common) / len(candidate_profile), max(recalls))


def common_length(first: Words, second: Words) -> int:
    """Return the length of the longest common subsequence of two texts' words."""
    # One whole number holds a row of the table of lengths, a bit for each step up (Hyyrö 2004, "Bit-parallel LCS-length
    # computation revisited").
    positions: dict[str | int, int] = {}
    for position, word in enumerate(first):
        positions[word] = positions.get(word, 0) | 1 << position
    all_ones = (1 << len(first)) - 1
    row = all_ones
    for word in second:
        hits = row & positions.get(word, 0)
        if hits:
            row = ((row + hits) | (row - hits)) & all_ones
    return len(first) - row.bit_count()
