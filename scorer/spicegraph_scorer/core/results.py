"""What a scoring run gives: scores with their signature, and the statistics that they were made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.summary import CATEGORIES_KEY, CorpusScore, RunSummary, Summary
from spicegraph_scorer.metrics.graded.metric import GradedMeans, GradedStatistic, graded_means
from spicegraph_scorer.metrics.spice.metric import CategoryMeans, SpiceStatistic, category_means
from spicegraph_scorer.metrics.spice.ready import counts_dict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Score
    from spicegraph_scorer.core.significance import Interval
    from spicegraph_scorer.metrics.graded.explain import GradedExplanation

__all__ = ["Json", "Result", "Run"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


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

    def summary(self) -> RunSummary:
        """Return the corpus scores alone, each with the number of items for which it is defined."""
        scores = [CorpusScore(s.name, s.value, sum(value is not None for value in s.each)) for s in self.scores]
        return RunSummary(tuple(scores), self.categories(), self.graded_categories(), self.intervals)


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
        return self.summary.corpus

    def item_scores(self) -> list[dict[str, Json]]:
        """Return the scores of each item, in the items' order, with the keys of :attr:`corpus`.

        An item's ``SPICE_categories`` are its ``f``, ``pr``, ``re``, ``tp``, ``fp``, ``fn`` by category, its
        ``SPICE-G_categories`` its ``f``, ``pr``, ``re``.
        """
        return list(self.iter_scores())

    def iter_scores(self) -> Iterator[dict[str, Json]]:
        """Yield what :meth:`item_scores` returns, an item at a time: the list is far larger than the result."""
        for parts in zip(*map(_run_rows, self.runs), strict=True):
            yield {name: value for part in parts for name, value in part.items()}

    @property
    def summary(self) -> Summary:
        """The corpus scores alone, and what tells whether they may be compared."""
        return Summary(self.signature, tuple(run.summary() for run in self.runs))

    @property
    def confidence(self) -> dict[str, Json]:
        """The 95 % interval of every score by its name, categories as ``SPICE_Color``; empty if not asked for."""
        return {i.name: {"low": i.low, "high": i.high} for run in self.runs for i in run.intervals}

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON values: ``signature``, ``corpus``, and ``items`` with id and scores.

        With intervals there is ``confidence`` too: by name of the score, ``low`` and ``high``.
        """
        return {**self.summary.to_dict(), "items": self.item_rows()}

    def item_rows(self) -> list[dict[str, Json]]:
        """Return each item's ``image_id`` and ``scores``, and its ``explanation`` by metric if that was asked for."""
        return list(self.iter_rows())

    def iter_rows(self) -> Iterator[dict[str, Json]]:
        """Yield what :meth:`item_rows` returns, an item at a time."""
        explained = [run for run in self.runs if run.explanations]
        for index, (item, scores) in enumerate(zip(self.items, self.iter_scores(), strict=True)):
            why = {run.headline[0].name: run.explanations[index].to_dict() for run in explained}
            yield {"image_id": item.id, "scores": scores, **({"explanation": why} if why else {})}


def _run_rows(run: Run) -> Iterator[dict[str, Json]]:
    """Yield one metric's scores of each item."""
    names = [score.name for score in run.headline]
    key = names[0] + CATEGORIES_KEY
    spice, graded = run.spice, run.graded
    for index, values in enumerate(zip(*(score.each for score in run.headline), strict=True)):
        row: dict[str, Json] = dict(zip(names, values, strict=True))
        if spice:
            counts = spice[index].counts
            row[key] = {name: counts_dict(found, total=name == ALL) for name, found in counts.items()}
        if graded:
            row[key] = {name: graded[index].scores(name) for name in graded[index].weights}
        yield row
