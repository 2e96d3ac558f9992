"""Bounds as text, by format: a table of functions."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from spicegraph_service.agreement.grid import Column, Grid, to_latex
from spicegraph_service.bounds.page import bounds_page
from spicegraph_service.bounds.tables import bounds_tables
from spicegraph_service.cli.tables import rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spicegraph_scorer.bounds import BoundsResult, TrialBounds
    from spicegraph_scorer.results import Json
    from spicegraph_service.agreement.grid import Cell

__all__ = ["BOUNDS_FORMATS", "BoundsFormat"]


class BoundsFormat(StrEnum):
    """The output formats of ``bounds``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"
    HTML = "html"


def _table(found: BoundsResult) -> str:
    return rendered(bounds_tables(found))


def _json(found: BoundsResult) -> str:
    return msgspec.json.format(msgspec.json.encode(found.to_dict()), indent=2).decode() + "\n"


def _csv(found: BoundsResult) -> str:
    """Return one score of one trial a row; what is undefined stays empty."""
    rows = list(_rows(found))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rows(found: BoundsResult) -> Iterator[dict[str, Json]]:
    for trial in found.trials:
        for bound in trial.scores:
            share = bound.share
            row: dict[str, Json] = {
                "trial": trial.name,
                "kind": trial.kind,
                "score": bound.name,
                "value": bound.value,
                "low": bound.low,
                "high": bound.high,
                "percent": share.percent if share else None,
                "percent_low": share.low if share else None,
                "percent_high": share.high if share else None,
            }
            for name in ("captions", "images", "within"):
                row |= {f"{name}_{key}": value for key, value in asdict(getattr(bound, name)).items()}
            yield row


def _latex(found: BoundsResult) -> str:
    """Return scores down, people, systems and lower bounds across; a system also in per cent of the human score."""
    columns = [Column("Score", "text"), *(column for trial in found.trials for column in _columns(trial))]
    rows = [
        [bound.name, *(cell for trial in found.trials for cell in _cells(trial, row))]
        for row, bound in enumerate(found.human.scores)
    ]
    title = f"Human upper bound, systems and lower bounds: {found.images} images, {found.captions} captions"
    return to_latex(Grid(title, columns, rows))


def _columns(trial: TrialBounds) -> Iterator[Column]:
    yield Column(" ".join(trial.name.split()))
    if trial.kind == "system":
        yield Column("% of human", "percent")


def _cells(trial: TrialBounds, row: int) -> Iterator[Cell]:
    bound = trial.scores[row]
    yield bound.value
    if trial.kind == "system":
        percent = bound.share.percent if bound.share else None
        yield None if percent is None else percent / 100


BOUNDS_FORMATS: Mapping[BoundsFormat, Callable[[BoundsResult], str]] = {
    BoundsFormat.TABLE: _table,
    BoundsFormat.JSON: _json,
    BoundsFormat.CSV: _csv,
    BoundsFormat.LATEX: _latex,
    BoundsFormat.HTML: bounds_page,
}
