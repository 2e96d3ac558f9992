"""The scores of a corpus without those of its items: what tables and corpus results are drawn from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.core.categories import Counts
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.significance import Interval
    from spicegraph_scorer.metrics.graded.metric import GradedMeans
    from spicegraph_scorer.metrics.spice.metric import CategoryMeans

__all__ = ["CATEGORIES_KEY", "CorpusScore", "RunSummary", "Summary"]

CATEGORIES_KEY: Final = "_categories"
"""What follows the name of a score in the key of its categories."""


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A score's corpus value, and the number of items for which it is defined."""

    name: str
    value: float | None
    items: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One metric's scores; ``categories`` are SPICE's, ``graded`` SPICE-G's, ``All`` first, empty for others.

    ``intervals`` are in the order of the scores, or none if they were not asked for.
    """

    scores: tuple[CorpusScore, ...]
    categories: Mapping[str, CategoryMeans] = field(default_factory=dict)
    graded: Mapping[str, GradedMeans] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()

    @property
    def headline(self) -> tuple[CorpusScore, ...]:
        """The scores without the categories of SPICE and SPICE-G, which have a table of their own."""
        return self.scores[:1] if self.categories or self.graded else self.scores


@dataclass(frozen=True, slots=True)
class Summary:
    """The corpus scores of all metrics, with what tells whether two numbers may be compared."""

    signature: Mapping[str, Json]
    runs: tuple[RunSummary, ...]

    @property
    def corpus(self) -> dict[str, Json]:
        """See :attr:`spicegraph_scorer.core.results.Result.corpus`."""
        values: dict[str, Json] = {}
        for run in self.runs:
            values |= {score.name: score.value for score in run.headline}
            key = run.headline[0].name + CATEGORIES_KEY
            if run.categories:
                values[key] = {name: _means_dict(means) for name, means in run.categories.items()}
            if run.graded:
                values[key] = {name: asdict(means) for name, means in run.graded.items()}
        return values

    @property
    def confidence(self) -> dict[str, Json]:
        """The 95 % interval of every score by its name, categories as ``SPICE_Color``; empty if not asked for."""
        return {i.name: {"low": i.low, "high": i.high} for run in self.runs for i in run.intervals}

    def to_dict(self) -> dict[str, Json]:
        """Return ``signature``, ``corpus`` and, with intervals, ``confidence`` as JSON values."""
        confidence = self.confidence
        return {
            "signature": self.signature,
            "corpus": self.corpus,
            **({"confidence": confidence} if confidence else {}),
        }


def _means_dict(means: CategoryMeans) -> dict[str, Json]:
    return {
        "f": means.f,
        "pr": means.pr,
        "re": means.re,
        "items": means.items,
        "micro": _micro_dict(means.micro),
    }


def _micro_dict(counts: Counts) -> dict[str, Json]:
    """Return summed counts; a share of nothing is undefined here, unlike in SPICE's per-item scores."""
    return {
        "tp": counts.matched,
        "fp": counts.candidate - counts.matched,
        "fn": counts.reference - counts.matched,
        "pr": counts.precision if counts.candidate else None,
        "re": counts.recall if counts.reference else None,
        "f": counts.f1 if counts.candidate or counts.reference else None,
    }
