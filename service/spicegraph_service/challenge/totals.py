"""The statistics of all items made into scores with intervals. Runs in a child process."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spicegraph_scorer.core.significance import intervals
from spicegraph_scorer.metrics import METRICS, Resources
from spicegraph_service.challenge.tasks import Finish, Finished, ScoreRow
from spicegraph_service.server.parts import finish_parts, needs_whole_corpus
from spicegraph_service.server.processes import read_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.metric import Metric

__all__ = ["finish"]


class _NoFacts:
    """Stands for the pipeline: what needed one has been parsed."""

    @property
    def signature(self) -> str:
        raise NotImplementedError

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        raise NotImplementedError


def finish(task: Finish) -> Finished:
    """Return the scores of all metrics, with 95 % intervals."""
    statistics = _statistics(task)
    rows: list[ScoreRow] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an undefined score says so by itself
        for name in task.metrics:
            metric: Metric[Any] = METRICS[name](Resources(_NoFacts))
            rows += _rows(metric, _collected(metric, statistics[name]))
    return Finished(tuple(rows))


def _statistics(task: Finish) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in task.metrics}
    with Path(task.statistics).open("rb") as stream:
        while (data := read_frame(stream)) is not None:
            for name, values in pickle.loads(data).items():  # noqa: S301 (our own worker's)
                found[name] += values
    return found


def _collected(metric: Metric[Any], values: Sequence[Any]) -> Sequence[Any]:
    """Return all items' statistics; of a metric that looks at the whole corpus, workers have sent parts of them."""
    return finish_parts(metric, values) if needs_whole_corpus(metric) else values


def _rows(metric: Metric[Any], statistics: Sequence[Any]) -> Iterator[ScoreRow]:
    bounds = {interval.name: interval for interval in intervals(metric, statistics)}
    for score in metric.total(statistics):
        bound = bounds.get(score.name)
        yield ScoreRow(score.name, score.value, bound.low if bound else None, bound.high if bound else None)
