"""Figures for pages: inline SVG in the page's colours and font, which fill their place at any width."""
# Across, a figure is measured in per cent, and down in pixels: text keeps its size on a phone and on a wide screen. The
# style sheet gives the classes their colours, for light, dark and paper. Every text of a user's goes in as text.

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNDEFINED: Final = "–"
HUMAN_INK: Final = "sh"  # the class of what a person wrote

_SERIES = 7
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_GLYPHS = (
    "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "M0 -5.5L5.5 4.5H-5.5Z",
    "M0 -6L6 0L0 6L-6 0Z",
    "M0 5.5L5.5 -4.5H-5.5Z",
    "M-2 -5.5H2V-2H5.5V2H2V5.5H-2V2H-5.5V-2H-2Z",
    "M-5 -5L0 -2L5 -5L2 0L5 5L0 2L-5 5L-2 0Z",
)


def ink(number: int) -> str:
    """Return the class that has the colour of the system of a number; they repeat after seven."""
    return f"s{number % _SERIES}"


def writable(text: str) -> str:
    """Return text with those characters replaced that SVG can't hold."""
    return _NOT_XML.sub("\ufffd", text)


class Mark(NamedTuple):
    """A value with its interval; ``None`` is undefined, and a value without interval has two ``None``."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    ink: str = "s0"  # the class of its colour
    note: str = ""  # what its tip adds to name, label and value

    @property
    def ends(self) -> tuple[float, ...]:
        """Both ends of the interval, or nothing."""
        return () if self.low is None or self.high is None else (self.low, self.high)

    @property
    def known(self) -> tuple[float, ...]:
        """The value and both ends of its interval, as far as they are defined."""
        return self.ends if self.value is None else (self.value, *self.ends)


@dataclass(frozen=True, slots=True)
class Line:
    """A system's values over the labels of a chart; ``None`` leaves a gap."""

    name: str
    values: Sequence[float | None]
    ink: str = "s0"
    notes: Sequence[str] = ()  # of the tips of its points
    ends: Sequence[tuple[float | None, float | None]] = ()  # the intervals of its values


def ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Return round numbers from ``low`` to ``high``: steps of 1, 2 or 5 times a power of ten."""
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if span / (s * power) < most)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, digits + 1) + 0.0 for n in range(first, math.floor(high / step + 1e-9) + 1)]


class _Plot:
    """A figure while it is drawn: values across and down to per cent and pixels, and a few shapes."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float] | None,
        height: float,
        *,
        left: float = 9.0,
        right: float = 2.0,
        top: float = 8.0,
    ) -> None:
        self.low, self.high = x
        self.y_low, self.y_high = y or (0.0, 1.0)
        self.left, self.width = left, 100 - left - right
        self.top, self.bottom = top, height - 38.0  # room for numbers and the axis's name
        self.height = height
        self.root = ET.Element("svg", {"class": "plot", "role": "img", "height": f"{height:g}"})

    def x(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low or 1.0)
        return f"{self.left + self.width * share:.2f}%"

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * (value - self.y_low) / (self.y_high - self.y_low or 1.0)

    def add(self, tag: str, within: ET.Element | None = None, **attributes: object) -> ET.Element:
        named = {"kind": "class", "anchor": "text-anchor", "effect": "vector-effect"}
        values = {
            named.get(key, key): f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            for key, value in attributes.items()
        }
        return ET.SubElement(self.root if within is None else within, tag, values)

    def text(self, words: str, *, x: str, y: float, kind: str = "", anchor: str = "start") -> None:
        self.add("text", x=x, y=y, kind=kind, anchor=anchor).text = writable(words)

    def line(self, x: tuple[str, str], y: tuple[float, float], kind: str, *, opacity: float = 1.0) -> None:
        self.add("line", x1=x[0], x2=x[1], y1=y[0], y2=y[1], kind=kind, opacity=opacity)

    def label(self, words: str, y: float, width: float) -> None:
        """Write a label from the left edge on, cut after ``width`` per cent; its tip has all of it."""
        area = self.add("svg", x="0", y=y - 12, width=f"{width:g}%", height=18.0)
        self.add("title", area).text = writable(words)
        self.add("text", area, x="0", y=13.0, kind="halo").text = writable(words)

    def glyph(
        self, value: float, y: float, tip: str, *, colour: str, shape: int = 0, kind: str = "ink", size: float = 1
    ) -> None:
        """Draw a point at a value across and a height in pixels."""
        area = self.add("svg", x=self.x(value), y=y, overflow="visible", kind=colour)
        self.add("title", area).text = writable(tip)
        self.add("path", area, d=_GLYPHS[shape % len(_GLYPHS)], kind=kind, transform=f"scale({size:g})")

    def path(self, points: Sequence[tuple[float, float]], *, colour: str, kind: str = "stroke") -> None:
        """Draw a line through points, which are values across and down."""
        height = self.bottom - self.top
        area = self.add(
            "svg",
            x=f"{self.left:g}%",
            y=self.top,
            width=f"{self.width:g}%",
            height=height,
            viewBox=f"0 0 1000 {height:g}",
            preserveAspectRatio="none",
            overflow="visible",
            kind=colour,
        )
        steps = (
            f"{1000 * (x - self.low) / (self.high - self.low or 1.0):.1f} {self.y(y) - self.top:.1f}" for x, y in points
        )
        self.add("path", area, d="M" + "L".join(steps), kind=kind, effect="non-scaling-stroke")

    def across(self, name: str, *, signed: bool = False) -> None:
        """Draw the grid and the numbers of the axis across, and its name."""
        for tick in ticks(self.low, self.high):
            self.line((self.x(tick), self.x(tick)), (self.top, self.bottom), "grid")
            written = f"{tick:{'+' if signed and tick else ''}g}".replace("-", "−")
            self.text(written, x=self.x(tick), y=self.bottom + 15, kind="dim", anchor="middle")
        self.text(name, x=f"{self.left + self.width / 2:g}%", y=self.bottom + 32, kind="dim", anchor="middle")

    def down(self, name: str) -> None:
        """Draw the grid and the numbers of the axis down; its name stands on top of it."""
        for tick in ticks(self.y_low, self.y_high, most=5):
            self.line((self.x(self.low), self.x(self.high)), (self.y(tick), self.y(tick)), "grid")
            self.text(
                f"{tick:g}".replace("-", "−"), x=f"{self.left - 1:g}%", y=self.y(tick) + 4, kind="dim", anchor="end"
            )
        self.text(name, x="0", y=self.top - 8, kind="dim")

    def names(self, labels: Sequence[str], name: str) -> None:
        """Write labels below the axis across, at 0, 1, 2 ..."""
        for number, label in enumerate(labels):
            self.text(label, x=self.x(number), y=self.bottom + 15, kind="dim", anchor="middle")
        self.text(name, x=f"{self.left + self.width / 2:g}%", y=self.bottom + 32, kind="dim", anchor="middle")

    def done(self, title: str, description: str) -> Markup:
        """Return the SVG with an accessible title and description."""
        title, description = writable(title), writable(description)
        drawn = ET.tostring(self.root, encoding="unicode")
        prefix = "c" + hashlib.sha256(f"{title}\0{description}\0{drawn}".encode()).hexdigest()[:10]
        names = {"title": f"{prefix}-title", "desc": f"{prefix}-text"}
        self.root.set("aria-labelledby", " ".join(names.values()))
        for tag, text in (("desc", description), ("title", title)):
            node = ET.Element(tag, {"id": names[tag]})
            node.text = text
            self.root.insert(0, node)
        return Markup(ET.tostring(self.root, encoding="unicode", short_empty_elements=False))  # noqa: S704 (escaped above)


def _span(values: Sequence[float], *, zero: bool = True, room: float = 0.04) -> tuple[float, float]:
    """Return the ends of an axis that holds the values, and 0."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    more = ((high - low) or 1.0) * room
    return low - (more if low < 0 or not zero else 0.0), high + (more if high > 0 or not zero else 0.0)


_MARK, _GROUP, _HEAD = 14.0, 8.0, 16.0
_BESIDE = 20  # characters of a label that stands beside its marks; where one is longer, all stand above theirs


def interval_chart(
    title: str,
    rows: Sequence[tuple[str, Sequence[Mark]]],
    *,
    axis: str,
    description: str = "The table has the numbers.",
    form: str = ".3f",
    signed: bool = False,
) -> Markup:
    """Return a label and its points with intervals for each row, from the top; ``signed``: values are differences."""
    head = _HEAD if max((len(label) for label, _ in rows), default=0) > _BESIDE else 0.0  # room for labels above
    heights = [_MARK * len(marks) + _GROUP + head for _, marks in rows]
    low, high = _span([value for _, marks in rows for mark in marks for value in mark.known])
    plot = _Plot((low, high), None, sum(heights) + 46, left=2 if head else 25, right=13)
    plot.across(axis, signed=signed)
    if low < 0:
        plot.line((plot.x(0), plot.x(0)), (plot.top, plot.bottom), "axis")
    top, form = plot.top, f"{'+' if signed else ''}{form}"
    for (label, marks), height in zip(rows, heights, strict=True):
        _draw_label(plot, label, top, height, above=bool(head))
        for number, mark in enumerate(marks):
            y = top + head + _GROUP / 2 + (number + 0.5) * _MARK
            _draw_mark(plot, mark, y, label=label, form=form, number=number)
        top += height
        plot.line(("0", "100%"), (top, top), "grid")
    return plot.done(title, description)


def _draw_label(plot: _Plot, label: str, top: float, height: float, *, above: bool) -> None:
    if above:
        plot.label(label, top + _HEAD, width=100)
    else:
        plot.label(label, top + height / 2 + 4, width=plot.left - 1)


def _draw_mark(plot: _Plot, mark: Mark, y: float, *, label: str, form: str, number: int) -> None:
    """Draw a value with its interval, and write it at the right."""
    if mark.value is None:
        plot.text(UNDEFINED, x="100%", y=y + 4, anchor="end")
        return
    plot.text(format(mark.value, form).replace("-", "−"), x="100%", y=y + 4, anchor="end")
    interval = ""
    if mark.ends:
        low, high = mark.ends
        plot.line((plot.x(low), plot.x(high)), (y, y), f"stroke {mark.ink}")
        interval = f", {low:{form}} to {high:{form}}"
    note = f" ({mark.note})" if mark.note else ""
    tip = f"{mark.name}, {label}: {mark.value:{form}}{interval}{note}"
    plot.glyph(mark.value, y, tip, colour=mark.ink, shape=3 if mark.ink == HUMAN_INK else number)


def box_chart(title: str, boxes: Sequence[Line], *, axis: str, description: str) -> Markup:
    """Return a box for each name, of least value, first quartile, median, third quartile, most and mean."""
    values = [part for box in boxes for part in box.values if part is not None]
    plot = _Plot(_span(values), None, len(boxes) * 26.0 + 46, left=25, right=4)
    plot.across(axis)
    for number, box in enumerate(boxes):
        y = plot.top + 26.0 * (number + 0.5)
        plot.label(box.name, y + 4, plot.left - 1)
        parts = [part for part in box.values if part is not None]
        if len(parts) < len(box.values):
            continue
        least, first, median, third, most, mean = parts
        plot.line((plot.x(least), plot.x(most)), (y, y), f"stroke {box.ink}")
        share = plot.width * (third - first) / (plot.high - plot.low or 1.0)
        body = plot.add("rect", x=plot.x(first), y=y - 8, width=f"{share:.2f}%", height=16.0, kind=f"ink {box.ink}")
        tip = f"{box.name}: {least:.3f}, {first:.3f}, {median:.3f}, {third:.3f}, {most:.3f}; mean {mean:.3f}"
        plot.add("title", body).text = writable(tip)
        plot.line((plot.x(median), plot.x(median)), (y - 8, y + 8), "gap")
        plot.glyph(mean, y, tip, colour=box.ink, shape=3, kind="hole", size=0.7)
    return plot.done(title, description)


def _runs(points: Iterable[tuple[int, float]]) -> list[list[tuple[float, float]]]:
    """Return the stretches of points at spots that follow each other."""
    of_runs = groupby(enumerate(points), key=lambda numbered: numbered[1][0] - numbered[0])
    return [[point for _, point in run] for _, run in of_runs]


def line_chart(
    title: str,
    labels: Sequence[str],
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    description: str,
    height: float = 250,
    zero: bool = True,
    stepped: bool = False,
) -> Markup:
    """Return lines over equally spaced labels; ``zero``: values begin at 0, ``stepped``: one holds until the next."""
    rows = chain.from_iterable((line.values, *line.ends) for line in lines)
    known = [value for value in chain.from_iterable(rows) if value is not None]
    span = (0.0, (max(known, default=1.0) or 1.0) * 1.06) if zero else _span(known, zero=False, room=0.15)
    plot = _Plot((-0.4, len(labels) - 0.6), span, height, top=22)
    plot.down(y)
    plot.names(labels, x)
    for number, line in enumerate(lines):
        _draw_line(plot, line, labels, shape=number, stepped=stepped)
    return plot.done(title, description)


def _draw_line(plot: _Plot, line: Line, labels: Sequence[str], *, shape: int, stepped: bool) -> None:
    """Draw a line, its points, and the intervals of these."""
    points = [(spot, value) for spot, value in enumerate(line.values) if value is not None]
    for run in _runs(points):
        plot.path(_steps(run) if stepped else run, colour=line.ink)
    for spot, value in points:
        note = _draw_ends(plot, line, spot) + (f" ({line.notes[spot]})" if line.notes else "")
        tip = f"{line.name}, {labels[spot]}: {value:.3f}{note}"
        plot.glyph(spot, plot.y(value), tip, colour=line.ink, shape=shape, size=0.8)


def _steps(run: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of a line on which each value holds until the next."""
    corners = ([(spot, before), (spot, value)] for (_, before), (spot, value) in pairwise(run))
    return [run[0], *chain.from_iterable(corners)]


def _draw_ends(plot: _Plot, line: Line, spot: int) -> str:
    """Draw a value's interval, if it has one; return its tooltip text."""
    low, high = line.ends[spot] if line.ends else (None, None)
    if low is None or high is None:
        return ""
    plot.line((plot.x(spot), plot.x(spot)), (plot.y(low), plot.y(high)), f"stroke {line.ink}", opacity=0.5)
    return f", {low:.3f} to {high:.3f}"


def histogram(title: str, edges: Sequence[float], lines: Sequence[Line], *, x: str, y: str, description: str) -> Markup:
    """Return the outlines of histograms: a line's values stand between the edges, one less than there are."""
    most = max((value or 0.0 for line in lines for value in line.values), default=1.0) or 1.0
    plot = _Plot((edges[0], edges[-1]), (0.0, most * 1.06), 250, top=22)
    plot.down(y)
    plot.across(x)
    for line in lines:
        steps = [(edges[0], 0.0)]
        for number, value in enumerate(line.values):
            steps += [(edges[number], value or 0.0), (edges[number + 1], value or 0.0)]
        steps.append((edges[-1], 0.0))
        plot.path(steps, colour=line.ink, kind="faint")
        plot.path(steps, colour=line.ink)
    return plot.done(title, description)


class Point(NamedTuple):
    """A point of a scatter chart; ``label`` stands beside it, ``tip`` shows where the pointer rests."""

    x: float
    y: float
    tip: str = ""
    label: str = ""
    ink: str = "s0"


def scatter_chart(title: str, points: Sequence[Point], *, axes_names: tuple[str, str], description: str) -> Markup:
    """Return points, with their labels."""
    across, down = (_span(values, zero=False) for values in ([p.x for p in points], [p.y for p in points]))
    plot = _Plot(across, down, 300, top=22, right=6)
    plot.down(axes_names[1])
    plot.across(axes_names[0])
    named = any(point.label for point in points)
    for point in points:
        tip = point.tip or f"{point.x:.3f}, {point.y:.3f}"
        kind, size = ("ink", 0.8) if named else ("soft", 0.6)
        plot.glyph(point.x, plot.y(point.y), tip, colour=point.ink, kind=kind, size=size)
        if point.label:
            plot.text(point.label, x=plot.x(point.x), y=plot.y(point.y) - 8, kind="dim halo", anchor="middle")
    return plot.done(title, description)
