"""How the scores of all rounds are collected: by a fast path where a metric has one, else by calling the metric.

A fast path gives what the metric itself gives for each round's corpus; it only computes once what rounds share.
To add one: a function here, a line in ``PATHS``, and the test that compares it with :data:`CALL_THE_METRIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from spicegraph_scorer.metrics.bleu import Bleu, SentenceBleu
from spicegraph_scorer.metrics.cider import Cider
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.meteor import Meteor, Meteor2005
from spicegraph_scorer.metrics.rouge import RougeL
from spicegraph_scorer.metrics.rouge155 import Rouge155
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.metrics.spider import Spider
from spicegraph_scorer.studies.bounds.fast import (
    bleu_statistics,
    cider_rounds,
    item_statistics,
    meteor_2005_rounds,
    meteor_statistics,
    portable_meteor,
    portable_spice,
    rouge_155_statistics,
    rouge_l_statistics,
    spice_statistics,
)
from spicegraph_scorer.studies.bounds.study import Batch, Part, Table, batches, part, table_of_parts, table_of_rounds

if TYPE_CHECKING:
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.studies.bounds.study import Candidates, Study

Argument = TypeVar("Argument")
Result = TypeVar("Result")

Advance: TypeAlias = Callable[[int, int], None]
"""Is called with how much of a metric's work is done, and of how much."""


class Spread(Protocol):
    """What applies a function to many arguments and gives the results in order: ``map``, or that of processes."""

    def __call__(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        """Return the results in the order of the arguments."""
        ...


class Path(Protocol):
    """A way to collect a metric's scores."""

    def tables(
        self, metric: Any, study: Study, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial; the metric is of the class that the path is for."""
        ...


def _as_it_is(metric: Any, _batch: Batch) -> Any:
    return metric


@dataclass(frozen=True, slots=True)
class ByCaption:
    """For metrics whose statistic depends on the item alone: one statistic for every held-out caption.

    ``statistics`` gives, for each trial of a batch, one statistic for every caption, image by image.
    ``portable`` gives the metric as another process can use it for the batch.
    """

    statistics: Callable[[Any, Batch], list[list[Any]]]
    portable: Callable[[Any, Batch], Any] = _as_it_is

    def tables(
        self, metric: Metric[Any], study: Study, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial, computed batch by batch."""
        work = ((self.statistics, self.portable(metric, batch), batch) for batch in batches(study, trials))
        found: list[list[Part]] = [[] for _ in trials]
        done = 0
        for parts in spread(_parts, work):
            for mine, scores in zip(found, parts, strict=True):
                mine.append(scores)
            done += len(parts[0].each)
            advance(done, int(study.sizes.sum()))
        return [table_of_parts(study, mine) for mine in found]


def _parts(work: tuple[Callable[[Any, Batch], list[list[Any]]], Metric[Any], Batch]) -> list[Part]:
    statistics, metric, batch = work
    return [part(metric, found) for found in statistics(metric, batch)]


@dataclass(frozen=True, slots=True)
class ByRound:
    """For metrics whose statistic depends on the whole corpus: round by round."""

    rounds: Callable[[Any, Study, Candidates], Iterator[Sequence[Any]]]

    def tables(
        self, metric: Metric[Any], study: Study, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        """Return the scores of each trial; this process does the work."""
        del spread
        tables = []
        for place, candidates in enumerate(trials):
            tables.append(table_of_rounds(metric, self.rounds(metric, study, candidates)))
            advance(place + 1, len(trials))
        return tables


def _call(metric: Metric[Any], study: Study, candidates: Candidates) -> Iterator[Sequence[Any]]:
    for number in range(study.rounds):
        yield metric.collect(study.corpus(candidates, number))


CALL_THE_METRIC: Final = ByRound(_call)
"""The path for every metric without one of its own; the definition of what the others give."""


@dataclass(frozen=True, slots=True)
class _MeanOfTwo:
    """SPIDEr: the mean of two metrics' scores, each collected on its own path."""

    def tables(
        self, metric: Spider, study: Study, trials: Sequence[Candidates], *, spread: Spread, advance: Advance
    ) -> list[Table]:
        names = tuple(score.name for score in metric.total(()))
        cider, spice = (
            path_of(part).tables(part, study, trials, spread=spread, advance=advance)
            for part in (metric.cider, metric.spice)
        )
        return [
            Table(names, (one.each[:, :, :1] + other.each[:, :, :1]) / 2, None)
            for one, other in zip(cider, spice, strict=True)
        ]


PATHS: Mapping[type[Any], Path] = {
    Bleu: ByCaption(bleu_statistics),
    SentenceBleu: ByCaption(bleu_statistics),
    RougeL: ByCaption(rouge_l_statistics),
    Rouge155: ByCaption(rouge_155_statistics),
    Meteor: ByCaption(meteor_statistics, portable_meteor),
    Meteor2005: ByRound(meteor_2005_rounds),
    Spice: ByCaption(spice_statistics, portable_spice),
    SpiceG: ByCaption(item_statistics, portable_spice),
    Cider: ByRound(cider_rounds),
    Spider: _MeanOfTwo(),
}
"""The fast paths, by the exact class of the metric."""


def path_of(metric: Metric[Any]) -> Path:
    """Return how a metric's scores are collected."""
    return PATHS.get(type(metric), CALL_THE_METRIC)
