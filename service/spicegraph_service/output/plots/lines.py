"""Lines over an axis of steps, and histograms: one line a system, told apart by colour and by marker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_service.output.plots.figure import new_figure, short, with_tip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from spicegraph_service.output.plots.inks import Ink

__all__ = ["Line", "histogram", "line_chart"]

_MARKERS = "os^DvPX"
_ROOM = 1.12


@dataclass(frozen=True, slots=True)
class Line:
    """One system's values over the labels of a chart; ``None`` leaves a gap.

    ``notes`` is what the tip of a point adds to name, label and value, by label; or nothing.
    """

    name: str
    values: Sequence[float | None]
    ink: Ink
    notes: Sequence[str] = ()


def line_chart(
    labels: Sequence[str], lines: Sequence[Line], *, x: str, y: str, form: str = ".3f", height: float = 230
) -> Figure:
    """Return lines over equally spaced labels; the axis of values begins at 0.

    Args:
        labels: what the points stand for, from left to right.
        lines: one value a label.
        x: what the labels are.
        y: what the values are.
        form: how tips write values, as for :func:`format`.
        height: of the picture.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = new_figure(height=height)
    most = 0.0
    for place, line in enumerate(lines):
        points = [(spot, value) for spot, value in enumerate(line.values) if value is not None]
        marker = _MARKERS[place % len(_MARKERS)]
        gaps = [float("nan") if value is None else value for value in line.values]  # how matplotlib knows a gap
        axes.plot(range(len(labels)), gaps, color=line.ink.value, linewidth=1.6)
        for spot, value in points:
            note = f" ({line.notes[spot]})" if line.notes else ""
            (point,) = axes.plot(spot, value, color=line.ink.value, marker=marker, markersize=6, linestyle="none")
            with_tip(point, f"{line.name}, {labels[spot]}: {value:{form}}{note}")
            most = max(most, value)
    axes.set_xticks(range(len(labels)), labels=list(map(short, labels)))
    axes.set_ylim(0, (most or 1.0) * _ROOM)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure


def histogram(edges: Sequence[float], lines: Sequence[Line], *, x: str, y: str, height: float = 230) -> Figure:
    """Return the outlines of histograms: a line's values stand between the edges, one less than there are.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = new_figure(height=height)
    for line in lines:
        counts = [value or 0.0 for value in line.values]
        axes.stairs(counts, edges, color=line.ink.value, linewidth=1.8, baseline=0.0)
        axes.stairs(counts, edges, color=line.ink.value, alpha=0.12, fill=True)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure
