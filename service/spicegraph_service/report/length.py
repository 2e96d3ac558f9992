"""What a report on descriptions says of their length, and of scores with length held constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spicegraph_scorer.core.length import LIKE, LengthControl, are_descriptions, control_of
from spicegraph_service.output.pages import number, signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_service.report.data import Report


def has_descriptions(report: Report) -> bool:
    """Say whether the captions of a system have more than 30 words in the mean."""
    return are_descriptions([len(view.caption.split()) for view in image.candidates] for image in report.images)


def length_control(report: Report, best: int, other: int) -> LengthControl:
    """Compare two systems of a report, by their numbers, the better first, by SPICE with length held constant."""
    pairs = [(image.candidates[best], image.candidates[other]) for image in report.images]
    return control_of(
        [(len(better.caption.split()), len(rest.caption.split())) for better, rest in pairs],
        [(better.scores[0] or 0.0, rest.scores[0] or 0.0) for better, rest in pairs],
    )


def length_points(control: LengthControl, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a verdict says of the length of two systems, the better first."""
    longer, shorter = sorted(zip(control.words, names, strict=True), reverse=True)
    times = f", {longer[0] / shorter[0]:.1f} times as many" if longer[0] > LIKE * shorter[0] else ""
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
