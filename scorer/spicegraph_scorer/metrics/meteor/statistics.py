"""METEOR's 23 counts, the score that follows from them, and their sum over a corpus."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["NO_COUNTS", "Counts", "add_counts", "counts_line", "parse_counts", "score"]

Counts = tuple[float, ...]
"""METEOR's statistics of one item, in the order in which the program prints them:

candidate length, reference length, their function words (candidate, reference); for each of exact, stem,
synonym and paraphrase the matched words (candidate content, reference content, candidate function,
reference function); chunks, matched candidate words, matched reference words.
"""

SIZE = 23
NO_COUNTS: Counts = (0,) * SIZE

# The parameters of the "ranking" task for English, the program's default.
_ALPHA = 0.85
_BETA = 0.2
_GAMMA = 0.6
_DELTA = 0.75
_MODULE_WEIGHTS = (1.0, 0.6, 0.8, 0.6)

_CHUNKS, _CANDIDATE_MATCHED, _REFERENCE_MATCHED = 20, 21, 22


def _divide(numerator: float, denominator: float) -> float:
    """Divide as IEEE 754 says, where Python raises."""
    if denominator:
        return numerator / denominator
    if not numerator or math.isnan(numerator) or math.isnan(denominator):
        return math.nan
    return math.copysign(math.inf, numerator)


def _power(base: float, exponent: float) -> float:
    return base**exponent if base >= 0 else math.nan


def _share(counts: Sequence[float], side: int) -> float:
    """Return the weighted share of matched words: precision for side 0, the candidate, recall for side 1.

    The order of the additions is the program's: another one changes last digits.
    """
    functions = counts[2 + side]
    length = _DELTA * (counts[side] - functions) + (1.0 - _DELTA) * functions
    matched = 0.0
    for module, weight in enumerate(_MODULE_WEIGHTS):
        matched += counts[4 + 4 * module + side] * weight * _DELTA
    for module, weight in enumerate(_MODULE_WEIGHTS):
        matched += counts[6 + 4 * module + side] * weight * (1.0 - _DELTA)
    return _divide(matched, length)


def _is_perfect(counts: Sequence[float]) -> bool:
    """Whether all words of both sides are matched, in one chunk."""
    return (
        counts[_CHUNKS] == 1
        and sum(counts[4:20:4]) + sum(counts[6:20:4]) == counts[0]
        and sum(counts[5:20:4]) + sum(counts[7:20:4]) == counts[1]
    )


def score(counts: Sequence[float]) -> float:
    """Return the METEOR score, in [0, 1], of one item's counts or of a corpus's sums.

    Source: Denkowski and Lavie 2014, "Meteor Universal", section 2, with the weights for English.

    Example:
        >>> score(parse_counts("2 2 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 2 2 2"))  # "a man", "man a"
        0.4
    """
    precision, recall = _share(counts, 0), _share(counts, 1)
    mean = _divide(1.0, _divide(1.0 - _ALPHA, precision) + _divide(_ALPHA, recall))
    fragmentation = 0.0
    if not _is_perfect(counts):
        matched = (counts[_CANDIDATE_MATCHED] + counts[_REFERENCE_MATCHED]) / 2
        fragmentation = _divide(counts[_CHUNKS], matched)
    value = mean * (1.0 - _GAMMA * _power(fragmentation, _BETA))
    return value if value > 0 else 0.0  # NaN included


def add_counts(items: Iterable[Counts]) -> Counts:
    """Return the sums that the corpus score is computed from.

    A perfect item adds no chunks: the program does so, and the corpus score of perfect items is 1 only thus.
    """
    kept = [(*counts[:_CHUNKS], 0, *counts[_CHUNKS + 1 :]) if _is_perfect(counts) else counts for counts in items]
    return tuple(map(sum, zip(*kept, strict=True))) if kept else NO_COUNTS


def counts_line(counts: Sequence[float]) -> str:
    """Return the counts as the program prints them.

    Example:
        >>> counts_line((0,) * 23)[:11]
        '0.0 0.0 0.0'
    """
    return " ".join(map(str, map(float, counts)))


def parse_counts(line: str) -> Counts:
    """Return the counts of a printed line; what follows the 23 numbers is left aside, as the program does.

    Raises:
        ValueError: the line does not start with 23 numbers.
    """
    fields = line.split()[:SIZE]
    if len(fields) < SIZE:
        msg = f"METEOR has {SIZE} statistics, not {len(fields)}"
        raise ValueError(msg)
    return tuple(map(float, fields))
