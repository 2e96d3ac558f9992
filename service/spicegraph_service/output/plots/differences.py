"""Differences with their intervals around a line at 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spicegraph_service.output.plots.figure import new_figure, short, with_tip
from spicegraph_service.output.plots.inks import Ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

__all__ = ["Difference", "difference_chart"]

_ROW = 24.0
_AXIS = 44.0


class Difference(NamedTuple):
    """A difference with its interval; ``None`` is undefined and leaves its row empty."""

    label: str
    value: float | None
    low: float | None
    high: float | None


def difference_chart(rows: Sequence[Difference], *, axis: str, below: Ink, above: Ink) -> Figure:
    """Return a row a difference, the first at the top: a point with its interval.

    Args:
        rows: what is drawn.
        axis: what is subtracted from what.
        below: the colour of points below 0.
        above: the colour of points above 0.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = new_figure(height=len(rows) * _ROW + _AXIS)
    axes.axvline(0, color=Ink.DIM.value, linewidth=1)
    for place, row in enumerate(rows):
        if row.value is None:
            continue
        ink = below if row.value < 0 else above if row.value > 0 else Ink.DIM
        if row.low is not None and row.high is not None:
            axes.plot((row.low, row.high), (place, place), color=ink.value, linewidth=2)
        (point,) = axes.plot(row.value, place, color=ink.value, marker="o", markersize=8, linestyle="none")
        with_tip(point, f"{row.label}: {row.value:+.3f}{_interval(row)}")
    axes.set_yticks(range(len(rows)), labels=[short(row.label) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(axis)
    return figure


def _interval(row: Difference) -> str:
    return "" if row.low is None or row.high is None else f" ({row.low:+.3f} to {row.high:+.3f})"
