"""The table of paired tests between metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_service.agreement.grid import Column, Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.agreement.paired import MetricComparison

__all__ = ["comparison_grid"]


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
