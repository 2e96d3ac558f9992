"""What the length of descriptions says by itself, and what a score says with length held constant.

Of two systems, the difference of an image's scores is regressed on the log of the ratio of its captions' words
(ordinary least squares); the intercept is the difference of captions of equal length. Its interval is that of a
normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_service.output.pages import number, signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_service.report.data import Report

LONG: Final = 30
"""Words of a caption, in the mean of a system, from which on length is a subject."""
_NORMAL: Final = 1.96
_LIKE: Final = 1.25
"""Captions are of like length if neither has more than so many times the words of the other."""


@dataclass(frozen=True, slots=True)
class LengthControl:
    """What length says of a pair of systems.

    Attributes:
        words: the mean words of a caption of the better system and of the other.
        longer_wins: the share of images on which the longer caption has the higher score, of those where both differ.
        difference: of the scores, the better system minus the other, of captions of equal length; ``None`` where no
            image has captions of like length, so that nothing says what these would have.
        low: the lower end of its 95 % interval.
        high: the upper end.
    """

    words: tuple[float, float]
    longer_wins: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_only_longer(self) -> bool:
        """Whether the better system has more words, and is not better for sure with length held constant."""
        return self.words[0] > _LIKE * self.words[1] and (self.low is None or self.low <= 0)


def has_descriptions(report: Report) -> bool:
    """Say whether the captions of a system have more than 30 words in the mean."""
    columns = zip(*(image.candidates for image in report.images), strict=True)
    return any(np.mean([len(view.caption.split()) for view in column]) > LONG for column in columns)


def length_control(report: Report, best: int, other: int) -> LengthControl:
    """Compare two systems of a report, by their numbers, the better first, by SPICE with length held constant."""
    pairs = [(image.candidates[best], image.candidates[other]) for image in report.images]
    words = np.array([[max(1, len(view.caption.split())) for view in pair] for pair in pairs], dtype=float)
    scores = np.array([[view.scores[0] or 0.0 for view in pair] for pair in pairs])
    ratios, gaps = np.log(words[:, 0] / words[:, 1]), scores[:, 0] - scores[:, 1]
    both = (ratios != 0) & (gaps != 0)
    wins = float(np.mean(ratios[both] * gaps[both] > 0)) if both.any() else None
    means = float(words[:, 0].mean()), float(words[:, 1].mean())
    size = len(pairs)
    spread = float(np.sum((ratios - ratios.mean()) ** 2))
    if size < 3 or spread == 0 or np.abs(ratios).min() > np.log(_LIKE):
        return LengthControl(means, wins)
    slope = float(np.sum((ratios - ratios.mean()) * (gaps - gaps.mean())) / spread)
    intercept = float(gaps.mean() - slope * ratios.mean())
    residual = float(np.sum((gaps - intercept - slope * ratios) ** 2)) / (size - 2)
    error = _NORMAL * float(np.sqrt(residual * (1 / size + ratios.mean() ** 2 / spread)))
    return LengthControl(means, wins, intercept, intercept - error, intercept + error)


def length_points(control: LengthControl, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a verdict says of the length of two systems, the better first."""
    longer, shorter = sorted(zip(control.words, names, strict=True), reverse=True)
    times = f", {longer[0] / shorter[0]:.1f} times as many" if longer[0] > _LIKE * shorter[0] else ""
    text = f"{longer[1]} has {longer[0]:.0f} words a caption{times}; {shorter[1]} has {shorter[0]:.0f}"
    if control.longer_wins is not None:
        share = f"{100 * control.longer_wins:.0f} %"
        text += f". Length alone: the longer caption has the higher SPICE on {share} of the images"
    yield "Length", text
    conclusion = f": {names[0]} may only be longer" if control.is_only_longer else ""
    if control.difference is None:
        reason = "no image has captions of like length, so that nothing says which is better"
        yield "At equal length", reason + conclusion
    else:
        ends = f"{signed(control.low)} to {signed(control.high)}"
        yield "At equal length", f"the difference is {signed(control.difference)} ({ends}){conclusion}"


def length_of_one(report: Report) -> tuple[str, str]:
    """Return what a verdict on one system says of length: its mean, and how SPICE follows it."""
    views = [image.candidates[0] for image in report.images]
    words = np.array([len(view.caption.split()) for view in views], dtype=float)
    scores = np.array([view.scores[0] or 0.0 for view in views])
    text = f"{words.mean():.0f} words a caption"
    if len(set(words)) > 1 and len(set(scores)) > 1:
        rho = float(np.corrcoef(_ranks(words), _ranks(scores))[0, 1])
        text += f"; rank correlation of words and SPICE {number(rho)}"
    return "Length", text


def _ranks(values: Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float]:
    """Return the rank of each value; equal ones share the mean of theirs."""
    array = np.asarray(values)
    return [float(np.sum(array < value) + (np.sum(array == value) + 1) / 2) for value in array]
