"""The long tables of bounds, for programs."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from spicegraph_scorer.studies.bounds import Distribution
from spicegraph_service.output.studies.grid import Column, Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.studies.bounds import BoundsResult
    from spicegraph_service.output.studies.grid import Cell

__all__ = ["BOUNDS_TABLES"]

_SPREADS = ("captions", "images", "within")
_SCORES = ("value", "low", "high", "percent", "percent_low", "percent_high")


def _scores(found: BoundsResult) -> Grid:
    """Return a row for each score of each trial."""
    columns = (
        *(Column(name, "text") for name in ("trial", "kind", "score")),
        *(Column(name) for name in _SCORES),
        *(Column(f"{spread}_{part.name}") for spread in _SPREADS for part in fields(Distribution)),
    )
    return Grid("scores", columns, list(_score_rows(found)))


def _score_rows(found: BoundsResult) -> Iterator[Sequence[Cell]]:
    for trial in found.trials:
        for bound in trial.scores:
            share = astuple(bound.share) if bound.share else (None, None, None)
            spreads = (cell for spread in _SPREADS for cell in astuple(getattr(bound, spread)))
            yield (trial.name, trial.kind, bound.name, bound.value, bound.low, bound.high, *share, *spreads)


def _rounds(found: BoundsResult) -> Grid:
    """Return a row for each round of each score of each trial."""
    columns = (
        *(Column(name, "text") for name in ("trial", "kind", "score")),
        Column("round", "count"),
        Column("value"),
    )
    rows = [
        (trial.name, trial.kind, bound.name, number, value)
        for trial in found.trials
        for bound in trial.scores
        for number, value in enumerate(bound.rounds)
    ]
    return Grid("rounds", columns, rows)


def _ranking(found: BoundsResult) -> Grid:
    """Return a row for every two scores, over captions and over images."""
    columns = (
        *(Column(name, "text") for name in ("over", "first", "second")),
        Column("tau_b"),
        Column("p", "p"),
    )
    names = found.ranking.names
    rows = [
        (over, names[one], names[other], pair.value, pair.p)
        for over, square in (("captions", found.ranking.captions), ("images", found.ranking.images))
        for one, row in enumerate(square)
        for other, pair in enumerate(row)
        if one < other
    ]
    return Grid("ranking", columns, rows)


BOUNDS_TABLES: Mapping[str, Callable[[BoundsResult], Grid]] = {
    "scores": _scores,
    "rounds": _rounds,
    "ranking": _ranking,
}
"""The tables that CSV can hold; the first is the default."""
