"""Groups of horizontal bars, one bar a system, with intervals: the form that most charts of the pages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_service.output.plots.figure import new_figure, short, with_tip
from spicegraph_service.output.plots.inks import Ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Bars", "bar_chart"]

UNDEFINED = "–"
_BAR = 14.0
_GAP = 12.0
_AXIS = 30.0
_ROOM = 1.12  # for the number behind the longest bar


@dataclass(frozen=True, slots=True)
class Bars:
    """One system's bars.

    Attributes:
        name: the system.
        values: one a label; ``None`` is undefined and drawn as a dash.
        ink: its colour.
        intervals: low and high end by label, or nothing.
        notes: what the tip adds to name, label and value, by label, such as ``"200 images"``; or nothing.
    """

    name: str
    values: Sequence[float | None]
    ink: Ink
    intervals: Sequence[tuple[float | None, float | None]] = ()
    notes: Sequence[str] = ()


def bar_chart(labels: Sequence[str], systems: Sequence[Bars], *, form: str = ".3f", axis: str = "") -> Figure:
    """Return groups of bars on a common axis that begins at 0, the first label at the top.

    Args:
        labels: one a group.
        systems: the bars of each group, in their order.
        form: how numbers are written, as for :func:`format`.
        axis: what the numbers are.

    Raises:
        DataError: matplotlib is not installed.
    """
    group = len(systems) * _BAR + _GAP
    figure, axes = new_figure(height=len(labels) * group + _AXIS + (_AXIS / 2 if axis else 0))
    for place, system in enumerate(systems):
        _draw(axes, [row * group + (place + 0.5) * _BAR for row in range(len(labels))], labels, system, form)
    middle = len(systems) * _BAR / 2
    axes.set_yticks([row * group + middle for row in range(len(labels))], labels=list(map(short, labels)))
    axes.set_ylim(len(labels) * group - _GAP / 2, -_GAP / 2)
    most = max((end for system in systems for end in _ends(system)), default=0.0)
    axes.set_xlim(0, (most or 1.0) * _ROOM)
    axes.grid(visible=False, axis="y")
    axes.locator_params(axis="x", nbins=6)
    axes.tick_params(length=0)
    if axis:
        axes.set_xlabel(axis)
    return figure


def _draw(axes: Axes, places: Sequence[float], labels: Sequence[str], system: Bars, form: str) -> None:
    for row, (place, value) in enumerate(zip(places, system.values, strict=True)):
        shown = UNDEFINED if value is None else format(value, form)
        low, high = system.intervals[row] if system.intervals else (None, None)
        note = f" ({system.notes[row]})" if system.notes else ""
        (bar,) = axes.barh(place, value or 0.0, height=_BAR - 2, color=system.ink.value)
        with_tip(bar, f"{system.name}, {labels[row]}: {shown}{note}")
        if low is not None and high is not None:
            for ink, width in ((Ink.PAGE, 3.4), (Ink.TEXT, 1.4)):  # a halo keeps the line apart from the bar
                axes.plot((low, high), (place, place), color=ink.value, linewidth=width, solid_capstyle="butt")
        axes.annotate(
            shown,
            (max(value or 0.0, high or 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=10,
            color=Ink.DIM.value,
        )


def _ends(system: Bars) -> list[float]:
    """Return where the bars and intervals of a system end."""
    return [value for value in (*system.values, *(high for _, high in system.intervals)) if value is not None]
