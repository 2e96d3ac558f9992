"""The statistics of all items made into scores with intervals. Runs in a child process."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

from spicegraph_scorer.core.facts import FactTable
from spicegraph_scorer.core.run import run_of
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import METRICS, Resources
from spicegraph_service.challenge.tasks import Finish, Finished, ScoreRow
from spicegraph_service.server.processes import read_frame
from spicegraph_service.server.tasks import unpack_data


def finish(task: Finish) -> Finished:
    """Return the scores of all metrics, with 95 % intervals."""
    statistics = _statistics(task)
    resources = Resources(_no_facts, data=unpack_data(task.data))
    rows: list[ScoreRow] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an undefined score says so by itself
        for name in task.metrics:
            metric = METRICS[name].make(resources)
            run = run_of(name, metric, metric.finish(statistics[name]), confidence=Resampling())
            bounds = {bound.name: bound for bound in run.intervals}
            rows += [ScoreRow(s.name, s.value, bounds[s.name].low, bounds[s.name].high) for s in run.scores]
    return Finished(tuple(rows))


def _statistics(task: Finish) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in task.metrics}
    with Path(task.statistics).open("rb") as stream:
        while (data := read_frame(stream)) is not None:
            for name, values in pickle.loads(data).items():  # noqa: S301 (our own worker's)
                found[name] += values
    return found


def _no_facts() -> FactTable:
    return FactTable("parsed by the workers", {})
