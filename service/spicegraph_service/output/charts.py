"""Charts for pages, drawn by matplotlib in the colours of the page; :mod:`pages` makes inline SVG of them.

.. code-block:: python

    figure, axes = new_figure(height=200)
    axes.plot([1, 2, 3], [0.2, 0.3, 0.35], color=SERIES[0])
    svg = to_svg(figure, title="SPICE", description="SPICE by number of references")

Draw with the colours of :class:`Color` and nothing else: the page's style sheet gives them their values, for light
and dark. Needs the extra ``report``.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    AnyArtist = TypeVar("AnyArtist", bound=Artist)


class Color(StrEnum):
    """A colour of the page; usable wherever matplotlib takes a colour, with or without ``alpha``.

    The values are those of the light style, so that a figure saved in another way looks right, too. ``TEXT``,
    ``PAGE`` and ``LINE`` are matplotlib's own defaults for text, background and grid.
    """

    TEXT = "#000000"
    DIM = "#52606d"
    PAGE = "#ffffff"
    LINE = "#b0b0b0"
    SERIES_0 = "#0072b2"
    SERIES_1 = "#c65300"
    SERIES_2 = "#008a64"
    SERIES_3 = "#b5568f"
    SERIES_4 = "#937300"
    SERIES_5 = "#2e8ec2"
    SERIES_6 = "#6b6b6b"
    HUMAN = "#7d8791"
    MATCHED = "#0072b3"
    MISSED = "#8a6100"
    INVENTED = "#b34700"


VARIABLES: Mapping[str, str] = {color.value: f"var(--{color.name.lower().replace('_', '-')})" for color in Color}
"""The CSS variable of each color; ``style.css`` defines them all."""

SERIES: tuple[Color, ...] = tuple(color for color in Color if color.name.startswith("SERIES_"))
"""The colours of systems, in their order: distinct for colour-blind readers (after Okabe and Ito)."""


def series_color(place: int) -> Color:
    """Return the colour of the system at a place; they repeat after seven.

    Example:
        >>> series_color(7) is series_color(0)
        True
    """
    return SERIES[place % len(SERIES)]


POINTS_PER_INCH = 72
TIP = "tip:"
"""What the ids of artists begin with that carry a tip."""

_LONGEST = 22
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")

_STYLE: Mapping[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": Color.LINE.value,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelcolor": Color.TEXT.value,
    "font.size": 11.0,
    "grid.color": Color.LINE.value,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, in the page's font
    "svg.hashsalt": "spicegraph",  # the same figure gives the same bytes
    "xtick.color": Color.LINE.value,
    "xtick.labelcolor": Color.DIM.value,
    "ytick.color": Color.LINE.value,
    "ytick.labelcolor": Color.TEXT.value,
}


@contextmanager
def page_style() -> Iterator[None]:
    """Let matplotlib draw in the pages' style, whatever the user's own settings are.

    Raises:
        DataError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 (an extra, and slow to load)
    except ModuleNotFoundError as error:
        raise DataError(f"charts need an extra ({error.name}): pip install 'spicegraph[report]'") from error
    settings: Any = {**mpl.rcParamsDefault, **_STYLE}
    del settings["backend"]  # only a window would have one
    with mpl.rc_context(settings):
        yield


def require_charts() -> None:
    """Say now, before the work, that charts can't be drawn.

    Raises:
        DataError: matplotlib is not installed.
    """
    with page_style():
        return


def new_figure(*, width: float = 480, height: float = 240) -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes, in the pages' style.

    Args:
        width: in units of the picture; text is 11 of them high. The page scales the picture to its place,
            up to 1.15 times.
        height: in the same units.

    Raises:
        DataError: matplotlib is not installed.
    """
    with page_style():
        from matplotlib.figure import Figure  # noqa: PLC0415 (slow to load)

        figure = Figure((width / POINTS_PER_INCH, height / POINTS_PER_INCH), layout="constrained")
        axes = figure.subplots()
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.set_prop_cycle(color=[color.value for color in SERIES])
    return figure, axes


def with_tip(artist: AnyArtist, text: str) -> AnyArtist:
    """Give a part of a figure a text that shows when the pointer rests on it; return the part."""
    artist.set_gid(TIP + writable(text))
    return artist


def writable(text: str) -> str:
    r"""Return text with those characters replaced that SVG can't hold.

    Example:
        >>> writable("a\x1b")
        'a\ufffd'
    """
    return _NOT_XML.sub("\ufffd", text)


def short(label: str) -> str:
    """Return a label that leaves room for the plot.

    Example:
        >>> short("a" * 30)
        'aaaaaaaaaaaaaaaaaaaaa…'
    """
    text = writable(label)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


UNDEFINED = "–"
_BAR = 14.0
_GAP = 12.0
_BAR_AXIS = 30.0
_BAR_ROOM = 1.12  # for the number behind the longest bar


@dataclass(frozen=True, slots=True)
class Bars:
    """One system's bars.

    Attributes:
        name: the system.
        values: one per label; ``None`` is undefined and drawn as a dash.
        color: its colour.
        intervals: low and high end by label, or nothing.
        notes: what the tip adds to name, label and value, by label, such as ``"200 images"``; or nothing.
    """

    name: str
    values: Sequence[float | None]
    color: Color
    intervals: Sequence[tuple[float | None, float | None]] = ()
    notes: Sequence[str] = ()


def bar_chart(labels: Sequence[str], systems: Sequence[Bars], *, form: str = ".3f", axis: str = "") -> Figure:
    """Return groups of bars on a common axis that begins at 0, the first label at the top.

    Args:
        labels: one per group.
        systems: the bars of each group, in their order.
        form: how numbers are written, as for :func:`format`.
        axis: what the numbers are.

    Raises:
        DataError: matplotlib is not installed.
    """
    group = len(systems) * _BAR + _GAP
    figure, axes = new_figure(height=len(labels) * group + _BAR_AXIS + (_BAR_AXIS / 2 if axis else 0))
    for place, system in enumerate(systems):
        _draw(axes, [row * group + (place + 0.5) * _BAR for row in range(len(labels))], labels, system, form)
    middle = len(systems) * _BAR / 2
    axes.set_yticks([row * group + middle for row in range(len(labels))], labels=list(map(short, labels)))
    axes.set_ylim(len(labels) * group - _GAP / 2, -_GAP / 2)
    most = max((end for system in systems for end in _ends(system)), default=0.0)
    axes.set_xlim(0, (most or 1.0) * _BAR_ROOM)
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
        (bar,) = axes.barh(place, value or 0.0, height=_BAR - 2, color=system.color.value)
        with_tip(bar, f"{system.name}, {labels[row]}: {shown}{note}")
        if low is not None and high is not None:
            for color, width in ((Color.PAGE, 3.4), (Color.TEXT, 1.4)):  # a halo keeps the line apart from the bar
                axes.plot((low, high), (place, place), color=color.value, linewidth=width, solid_capstyle="butt")
        axes.annotate(
            shown,
            (max(value or 0.0, high or 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=10,
            color=Color.DIM.value,
        )


def _ends(system: Bars) -> list[float]:
    """Return where the bars and intervals of a system end."""
    return [value for value in (*system.values, *(high for _, high in system.intervals)) if value is not None]


_DIFFERENCE_ROW = 24.0
_DIFFERENCE_AXIS = 44.0


class Difference(NamedTuple):
    """A difference with its interval; ``None`` is undefined and leaves its row empty."""

    label: str
    value: float | None
    low: float | None
    high: float | None


def difference_chart(rows: Sequence[Difference], *, axis: str, below: Color, above: Color) -> Figure:
    """Return one row per difference, the first at the top: a point with its interval.

    Args:
        rows: what is drawn.
        axis: what is subtracted from what.
        below: the colour of points below 0.
        above: the colour of points above 0.

    Raises:
        DataError: matplotlib is not installed.
    """
    figure, axes = new_figure(height=len(rows) * _DIFFERENCE_ROW + _DIFFERENCE_AXIS)
    axes.axvline(0, color=Color.DIM.value, linewidth=1)
    for place, row in enumerate(rows):
        if row.value is None:
            continue
        color = below if row.value < 0 else above if row.value > 0 else Color.DIM
        if row.low is not None and row.high is not None:
            axes.plot((row.low, row.high), (place, place), color=color.value, linewidth=2)
        (point,) = axes.plot(row.value, place, color=color.value, marker="o", markersize=8, linestyle="none")
        with_tip(point, f"{row.label}: {row.value:+.3f}{_interval(row)}")
    axes.set_yticks(range(len(rows)), labels=[short(row.label) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(axis)
    return figure


def _interval(row: Difference) -> str:
    return "" if row.low is None or row.high is None else f" ({row.low:+.3f} to {row.high:+.3f})"


_MARKERS = "os^DvPX"
_ROOM = 1.12


@dataclass(frozen=True, slots=True)
class Line:
    """One system's values over the labels of a chart; ``None`` leaves a gap.

    ``notes`` is what the tip of a point adds to name, label and value, by label; or nothing.
    """

    name: str
    values: Sequence[float | None]
    color: Color
    notes: Sequence[str] = ()


def line_chart(
    labels: Sequence[str], lines: Sequence[Line], *, x: str, y: str, form: str = ".3f", height: float = 230
) -> Figure:
    """Return lines over equally spaced labels; the axis of values begins at 0.

    Args:
        labels: what the points stand for, from left to right.
        lines: one value per label.
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
        axes.plot(range(len(labels)), gaps, color=line.color.value, linewidth=1.6)
        for spot, value in points:
            note = f" ({line.notes[spot]})" if line.notes else ""
            (point,) = axes.plot(spot, value, color=line.color.value, marker=marker, markersize=6, linestyle="none")
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
        axes.stairs(counts, edges, color=line.color.value, linewidth=1.8, baseline=0.0)
        axes.stairs(counts, edges, color=line.color.value, alpha=0.12, fill=True)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure
