"""The scores of every round of a trial, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from spicegraph_scorer.core.significance import Summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.studies.bounds.study import Candidates, Study

__all__ = ["Batch", "Cube", "Part", "Table", "batches", "part", "table_of_parts", "table_of_rounds"]

Cube: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]

_PAIRS: Final = 10_000  # pairs of captions in a batch: bounds memory, and lets processes share the work


@dataclass(frozen=True, slots=True)
class Table:
    """A metric's scores of one trial.

    ``each[round, image, score]`` is NaN where a score is undefined. ``columns[round, image, column]`` is what
    the corpus scores sum, for metrics whose corpus score is not the mean of the items' scores.
    """

    names: tuple[str, ...]
    each: Cube
    columns: Cube | None


class Part(NamedTuple):
    """Scores of some statistics: their names, (statistics, scores), and what is summed, (statistics, columns)."""

    names: tuple[str, ...]
    each: Matrix
    columns: Matrix | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Some images: their captions, and each trial's candidates for them."""

    captions: Candidates
    trials: tuple[Candidates, ...]

    def texts(self) -> list[str]:
        """Return every distinct text."""
        rows = (texts for texts_of in (self.captions, *self.trials) for texts in texts_of)
        return list(dict.fromkeys(text for texts in rows for text in texts))


def batches(study: Study, trials: Sequence[Candidates]) -> Iterator[Batch]:
    """Cut the images into batches of about equal work."""
    edges = np.flatnonzero(np.diff(np.cumsum(study.sizes**2) // _PAIRS)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(study.ids)], strict=True):
        yield Batch(study.captions[start:end], tuple(trial[start:end] for trial in trials))


def part(metric: Metric[Any], statistics: Sequence[Any]) -> Part:
    """Return the scores of some statistics; the statistics themselves are not kept."""
    scores = metric.total(statistics)
    each = np.array([[np.nan if v is None else v for v in score.each] for score in scores], np.float64).T
    columns = metric.columns(statistics) if isinstance(metric, Summed) else None
    return Part(tuple(score.name for score in scores), each, columns)


def table_of_rounds(metric: Metric[Any], rounds: Iterable[Sequence[Any]]) -> Table:
    """Return the table of statistics that come round by round, each in the order of the images."""
    parts = [part(metric, statistics) for statistics in rounds]
    columns = [found.columns for found in parts if found.columns is not None]
    return Table(parts[0].names, np.stack([found.each for found in parts]), np.stack(columns) if columns else None)


def table_of_parts(study: Study, parts: Sequence[Part]) -> Table:
    """Return the table of the scores of every held-out caption, which come batch by batch."""
    each = np.concatenate([found.each for found in parts])[study.held]
    columns = [found.columns for found in parts if found.columns is not None]
    return Table(parts[0].names, each, np.concatenate(columns)[study.held] if columns else None)
