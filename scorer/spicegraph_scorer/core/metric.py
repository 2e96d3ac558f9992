"""What a metric is: items become small statistics, statistics become scores.

Corpus scores, per-item scores, bootstrap intervals, leave-one-out bounds and streams all reuse the statistics,
so that no caption is parsed or tokenized twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.items import Corpus

__all__ = ["Metric", "Score"]

Statistic = TypeVar("Statistic")


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a metric: its corpus value and its value for every item.

    ``None`` means undefined (for instance a colour score where no reference names a colour).
    """

    name: str
    value: float | None
    each: tuple[float | None, ...]


class Metric(Protocol[Statistic]):
    """A metric: a frozen value that holds its options."""

    @property
    def name(self) -> str:
        """The key of the metric in ``METRICS`` and on the command line, e.g. ``bleu``."""
        ...

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two numbers to be comparable (variant, tokenizer, data, version)."""
        ...

    def collect(self, corpus: Corpus) -> list[Statistic]:
        """Return one statistic per item, in the order of ``corpus.items``."""
        ...

    def total(self, statistics: Sequence[Statistic]) -> tuple[Score, ...]:
        """Return the metric's scores; ``each`` follows the order of ``statistics``."""
        ...
