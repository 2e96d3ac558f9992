"""ROUGE of every held-out caption: what two captions share is found once for both of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.rouge import RougeLStatistic, common_length
from spicegraph_scorer.metrics.rouge155 import Overlap, Rouge155Statistic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.tokens import Tokens
    from spicegraph_scorer.metrics.rouge import RougeL
    from spicegraph_scorer.metrics.rouge155 import Profile, Rouge155
    from spicegraph_scorer.studies.bounds.tables import Batch

__all__ = ["rouge_155_statistics", "rouge_l_statistics"]


def rouge_l_statistics(_metric: RougeL, batch: Batch) -> list[list[RougeLStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    # Splitting an empty text at spaces leaves one empty word, which the COCO toolkit counts.
    words = {text: tokens or ("",) for text, tokens in zip(texts, tokenize_texts(texts), strict=True)}
    common = _Common(words)
    return [
        [
            _rouge_l(text, captions[:place] + captions[place + 1 :], words, common)
            for captions, mine in zip(batch.captions, trial, strict=True)
            for place, text in enumerate(mine)
        ]
        for trial in batch.trials
    ]


class _Common(dict[tuple[str, str], int]):
    """Lengths of the longest common subsequences of two texts, in either order."""

    def __init__(self, words: Mapping[str, Tokens]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, pair: tuple[str, str]) -> int:
        first, second = pair
        length = common_length(self._words[first], self._words[second])
        self[pair] = self[second, first] = length
        return length


def _rouge_l(
    candidate: str, references: Sequence[str], words: Mapping[str, Tokens], common: _Common
) -> RougeLStatistic:
    lengths = [common[candidate, reference] for reference in references]
    recalls = [length / len(words[reference]) for length, reference in zip(lengths, references, strict=True)]
    return RougeLStatistic(max(lengths) / len(words[candidate]), max(recalls))


def rouge_155_statistics(metric: Rouge155, batch: Batch) -> list[list[Rouge155Statistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    overlaps = _Overlaps(metric, dict(zip(texts, metric.profiles(texts), strict=True)))
    return [
        [
            metric.statistic([overlaps[text, other] for other in captions[:place] + captions[place + 1 :]])
            for captions, mine in zip(batch.captions, trial, strict=True)
            for place, text in enumerate(mine)
        ]
        for trial in batch.trials
    ]


class _Overlaps(dict[tuple[str, str], tuple[Overlap, ...]]):
    """The overlaps of a candidate and a reference, one of each kind."""

    def __init__(self, metric: Rouge155, profiles: Mapping[str, tuple[Profile, ...]]) -> None:
        super().__init__()
        self._metric = metric
        self._profiles = profiles

    def __missing__(self, pair: tuple[str, str]) -> tuple[Overlap, ...]:
        candidate, reference = (self._profiles[text] for text in pair)
        turned = self.get((pair[1], pair[0]))
        self[pair] = found = self._metric.overlaps(candidate, reference, turned=turned)
        return found
