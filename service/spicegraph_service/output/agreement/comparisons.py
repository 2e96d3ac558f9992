"""The tables of paired tests between metrics."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from spicegraph_scorer.studies.agreement.paired import MetricComparison
from spicegraph_service.output.studies.grid import Column, Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["comparison_grid", "comparison_rows"]


def comparison_grid(comparisons: Sequence[MetricComparison], label: str) -> Grid:
    """Return every two metrics' difference, its interval and its p-values."""
    has_williams = any(row.p_williams is not None for row in comparisons)
    columns = (
        Column("First", "text"),
        Column("Second", "text"),
        Column("First is"),
        Column("Second is"),
        Column("Difference"),
        Column("95 % interval", "span"),
        Column("p, permutation", "p"),
        *((Column("p, Williams", "p"),) if has_williams else ()),
    )
    rows = [
        (
            row.first_metric,
            row.second_metric,
            row.first,
            row.second,
            row.difference,
            (row.low, row.high),
            row.p_permutation,
            *((row.p_williams,) if has_williams else ()),
        )
        for row in comparisons
    ]
    notes = ["p-values are not corrected for their number."]
    if has_williams:
        notes.append(
            "Permutation: both metrics' values exchanged at random, image by image (system by system). Williams: of "
            "the two Pearson coefficients, taking observations as independent."
        )
    return Grid(f"Paired tests of {label}", columns, rows, notes)


def comparison_rows(comparisons: Iterable[MetricComparison], **more: Sequence[str]) -> Grid:
    """Return the long table for programs: the fields of a comparison, after columns that are given by name."""
    names = [part.name for part in fields(MetricComparison)]
    columns = [*(Column(name, "text") for name in more), *(Column(name) for name in names)]
    rows = [(*given, *astuple(row)) for *given, row in zip(*more.values(), comparisons, strict=True)]
    return Grid("comparisons", columns, rows)
