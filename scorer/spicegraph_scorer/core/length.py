"""What the length of descriptions says by itself, and what a score says of two systems with length held constant."""
# The difference of an image's scores is regressed on the log of the ratio of its captions' words (ordinary least
# squares); the intercept is the difference of captions of equal length, its interval that of a normal distribution.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_scorer.core.metric import Score

LONG: Final = 30  # Words of a caption, in the mean of a system, from which on length is a subject.
_NORMAL: Final = 1.96
LIKE: Final = 1.25  # Captions are of like length if neither has more than so many times the words of the other.


@dataclass(frozen=True, slots=True)
class LengthControl:
    """Effect of caption length on a pair of systems, with a 95 % interval."""

    words: tuple[float, float]  # mean words of a caption of the better system and of the other
    longer_wins: float | None  # share of images, of those where both differ, on which the longer caption wins
    difference: float | None = None  # better minus other, of captions of equal length; None: none have like length
    low: float | None = None
    high: float | None = None

    @property
    def is_only_longer(self) -> bool:
        """Whether the better system has more words, and is not better for sure with length held constant."""
        return self.words[0] > LIKE * self.words[1] and (self.low is None or self.low <= 0)


def control_of(lengths: Sequence[tuple[int, int]], scores_of: Sequence[tuple[float, float]]) -> LengthControl:
    """Compare two systems with length held constant, by the words of each image's two captions and their scores."""
    words, scores = np.maximum(np.array(lengths, dtype=float), 1), np.array(scores_of)
    ratios, gaps = np.log(words[:, 0] / words[:, 1]), scores[:, 0] - scores[:, 1]
    both = (ratios != 0) & (gaps != 0)
    wins = float(np.mean(ratios[both] * gaps[both] > 0)) if both.any() else None
    means = float(words[:, 0].mean()), float(words[:, 1].mean())
    size = len(lengths)
    spread = float(np.sum((ratios - ratios.mean()) ** 2))
    if size < 3 or spread == 0 or np.abs(ratios).min() > np.log(LIKE):
        return LengthControl(means, wins)
    slope = float(np.sum((ratios - ratios.mean()) * (gaps - gaps.mean())) / spread)
    intercept = float(gaps.mean() - slope * ratios.mean())
    residual = float(np.sum((gaps - intercept - slope * ratios) ** 2)) / (size - 2)
    error = _NORMAL * float(np.sqrt(residual * (1 / size + ratios.mean() ** 2 / spread)))
    return LengthControl(means, wins, intercept, intercept - error, intercept + error)


def are_descriptions(lengths: Iterable[Sequence[int]]) -> bool:
    """Say whether the captions of a system have more than 30 words in the mean; a row has those of each system."""
    return any(np.mean(column) > LONG for column in zip(*lengths, strict=True))


def controls_of(
    lengths: Sequence[tuple[int, int]], first: Iterable[Score], second: Iterable[Score]
) -> dict[str, LengthControl]:
    """Compare two systems by each of their scores, the first minus the second, on the items where both are defined."""
    controls = {}
    for score, other in zip(first, second, strict=True):
        rows = [
            (words, (a, b))
            for words, a, b in zip(lengths, score.each, other.each, strict=True)
            if a is not None and b is not None
        ]
        if rows:
            controls[score.name] = control_of([words for words, _ in rows], [pair for _, pair in rows])
    return controls
