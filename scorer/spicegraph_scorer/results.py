"""What a scoring run gives: scores with their signature, and the statistics that they were made from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_scorer.graded.metric import GradedMeans, GradedStatistic, graded_means
from spicegraph_scorer.spice.counts import ALL, Counts
from spicegraph_scorer.spice.metric import CategoryMeans, SpiceStatistic, category_means
from spicegraph_scorer.spice.ready import counts_dict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.graded.explain import GradedExplanation
    from spicegraph_scorer.items import Item
    from spicegraph_scorer.metric import Score
    from spicegraph_scorer.significance import Interval

__all__ = ["Json", "Result", "Run"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_CATEGORIES = "_categories"


@dataclass(frozen=True, slots=True)
class Run:
    """One metric's part of a result: its name and signature, one statistic an item, and the scores of those.

    ``intervals`` are in the order of the scores, or none if they were not asked for; ``explanations`` (of SPICE-G) in
    that of the statistics, or none.

    The statistics are the evidence: a report, an interval or the jar's output is drawn from them.
    """

    name: str
    signature: Mapping[str, str]
    statistics: tuple[Any, ...]
    scores: tuple[Score, ...]
    intervals: tuple[Interval, ...] = ()
    explanations: tuple[GradedExplanation, ...] = ()

    @property
    def spice(self) -> tuple[SpiceStatistic, ...]:
        """The statistics if this is a SPICE metric, else nothing."""
        return self.statistics if self.statistics and isinstance(self.statistics[0], SpiceStatistic) else ()

    @property
    def graded(self) -> tuple[GradedStatistic, ...]:
        """The statistics if this is SPICE-G, else nothing."""
        return self.statistics if self.statistics and isinstance(self.statistics[0], GradedStatistic) else ()

    @property
    def headline(self) -> tuple[Score, ...]:
        """The scores without the categories of SPICE and SPICE-G, which have a table of their own."""
        return self.scores[:1] if self.spice or self.graded else self.scores

    def categories(self) -> dict[str, CategoryMeans]:
        """Return the means and sums of SPICE's categories, ``All`` first; nothing for other metrics."""
        return category_means(self.spice)

    def graded_categories(self) -> dict[str, GradedMeans]:
        """Return the means of SPICE-G's categories, ``All`` first; nothing for other metrics."""
        return graded_means(self.graded)


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of a corpus and of its items, with what tells whether two numbers may be compared."""

    items: tuple[Item, ...]
    signature: Mapping[str, Json]
    runs: tuple[Run, ...]

    @property
    def corpus(self) -> dict[str, Json]:
        """Every metric's corpus value by its key (``SPICE``, ``CIDEr`` ...); ``None`` is undefined.

        ``SPICE_categories`` holds, for ``All`` and every category: ``f``, ``pr``, ``re``, the means over the
        ``items`` whose references have such tuples, and ``micro``: counts summed over items, and
        their scores, where a colour, count or size that no reference has still counts as wrong.
        ``SPICE-G_categories`` has the means and ``items`` alone: nothing is counted there.
        """
        values: dict[str, Json] = {}
        for run in self.runs:
            values |= {score.name: score.value for score in run.headline}
            if run.spice:
                values[run.headline[0].name + _CATEGORIES] = {
                    name: _means_dict(means) for name, means in run.categories().items()
                }
            if run.graded:
                values[run.headline[0].name + _CATEGORIES] = {
                    name: asdict(means) for name, means in run.graded_categories().items()
                }
        return values

    def item_scores(self) -> list[dict[str, Json]]:
        """Return the scores of each item, in the items' order, with the keys of :attr:`corpus`.

        An item's ``SPICE_categories`` are its ``f``, ``pr``, ``re``, ``tp``, ``fp``, ``fn`` by category, its
        ``SPICE-G_categories`` its ``f``, ``pr``, ``re``.
        """
        rows: list[dict[str, Json]] = [{} for _ in self.items]
        for run in self.runs:
            for score in run.headline:
                for row, value in zip(rows, score.each, strict=True):
                    row[score.name] = value
            for row, statistic in zip(rows, run.spice, strict=bool(run.spice)):
                row[run.headline[0].name + _CATEGORIES] = {
                    name: counts_dict(counts, total=name == ALL) for name, counts in statistic.counts.items()
                }
            for row, graded in zip(rows, run.graded, strict=bool(run.graded)):
                row[run.headline[0].name + _CATEGORIES] = {name: graded.scores(name) for name in graded.weights}
        return rows

    @property
    def confidence(self) -> dict[str, Json]:
        """The 95 % interval of every score by its name, categories as ``SPICE_Color``; empty if not asked for."""
        return {i.name: {"low": i.low, "high": i.high} for run in self.runs for i in run.intervals}

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON values: ``signature``, ``corpus``, and ``items`` with id and scores.

        With intervals there is ``confidence`` too: by name of the score, ``low`` and ``high``.
        """
        return {
            "signature": self.signature,
            "corpus": self.corpus,
            **({"confidence": self.confidence} if self.confidence else {}),
            "items": self.item_rows(),
        }

    def item_rows(self) -> list[dict[str, Json]]:
        """Return each item's ``image_id`` and ``scores``, and its ``explanation`` by metric if that was asked for."""
        rows: list[dict[str, Json]] = [
            {"image_id": item.id, "scores": scores} for item, scores in zip(self.items, self.item_scores(), strict=True)
        ]
        for run in self.runs:
            for row, explanation in zip(rows, run.explanations, strict=bool(run.explanations)):
                row["explanation"] = {run.headline[0].name: explanation.to_dict()}
        return rows


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
