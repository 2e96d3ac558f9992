"""Geometry of the charts: pure functions from values to coordinates, drawn by the templates as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_service.report.data import MeanRow, SystemView

__all__ = ["Bar", "BarChart", "category_chart", "count_chart", "mean_chart"]

_LABEL = 92.0
_WIDTH = 620.0
_BAR = 14.0
_GAP = 14.0
_PLOT = _WIDTH - _LABEL - 60.0
_AXIS = 22.0
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of one system: place, value, ends of the interval in pixels; ``text`` is the value in words."""

    system: int
    y: float
    width: float
    low: float | None
    high: float | None
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """Groups of horizontal bars, one bar a system, on a common axis that begins at 0."""

    width: float
    height: float
    left: float
    bar: float
    labels: tuple[tuple[str, float], ...]
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class _Value:
    value: float | None
    low: float | None
    high: float | None
    note: str


def category_chart(systems: Sequence[SystemView]) -> BarChart:
    """Return mean F1 by category, with 95 % intervals: the picture of the SPICE paper's Table 2."""
    labels = [row.name for row in systems[0].categories]
    rows = [
        [_Value(row.f, row.low, row.high, f"{row.items} images") for row in system.categories] for system in systems
    ]
    return _chart(labels, [s.name for s in systems], rows, as_count=False)


def mean_chart(names: Sequence[str], rows: Sequence[Sequence[MeanRow]]) -> BarChart:
    """Return mean scores by label."""
    values = [[_Value(row.mean, None, None, f"{row.items} images") for row in system] for system in rows]
    return _chart([row.label for row in rows[0]], names, values, as_count=False)


def count_chart(names: Sequence[str], rows: Sequence[Sequence[MeanRow]]) -> BarChart:
    """Return numbers of items by label."""
    values = [[_Value(row.items, None, None, "images") for row in system] for system in rows]
    return _chart([row.label for row in rows[0]], names, values, as_count=True)


def _chart(
    labels: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[_Value]], *, as_count: bool
) -> BarChart:
    most = max((v.high or v.value or 0.0 for row in rows for v in row), default=0.0) or 1.0
    ticks = _ticks(most)
    scale = _PLOT / max(ticks[-1], most)
    group = len(rows) * _BAR + _GAP
    bars = tuple(
        _bar(value, system, names[system], label, place * group + system * _BAR, scale, as_count=as_count)
        for system, row in enumerate(rows)
        for place, (label, value) in enumerate(zip(labels, row, strict=True))
    )
    return BarChart(
        _WIDTH,
        len(labels) * group + _AXIS,
        _LABEL,
        _BAR - 2,
        tuple((label, place * group + len(rows) * _BAR / 2) for place, label in enumerate(labels)),
        bars,
        tuple((_number(tick), tick * scale) for tick in ticks),
    )


def _bar(  # noqa: PLR0917 (private: what one bar needs)
    value: _Value, system: int, name: str, label: str, y: float, scale: float, *, as_count: bool
) -> Bar:
    shown = "–" if value.value is None else f"{value.value:.0f}" if as_count else f"{value.value:.3f}"
    return Bar(
        system,
        y,
        (value.value or 0.0) * scale,
        None if value.low is None else value.low * scale,
        None if value.high is None else value.high * scale,
        shown,
        f"{name}, {label}: {shown}" + ("" if as_count else f" ({value.note})"),
    )


def _ticks(most: float) -> list[float]:
    """Return round values from 0 to the first one at or above the largest value."""
    power = 1.0
    while power * _STEPS[-1] * (_MOST_TICKS - 1) < most:
        power *= 10
    step = next(step * power for step in _STEPS if step * power * (_MOST_TICKS - 1) >= most)
    ticks = [0.0]
    while ticks[-1] < most:
        ticks.append(len(ticks) * step)
    return ticks


def _number(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"{value:.2f}".rstrip("0").rstrip(".")
