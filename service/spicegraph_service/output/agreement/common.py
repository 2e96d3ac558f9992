"""Charts and tables that several studies of agreement have."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.studies.agreement.coefficients import MetricComparison
from spicegraph_service.output.charts import SERIES, Color, new_figure, series_color, short, with_tip
from spicegraph_service.output.pages import to_svg
from spicegraph_service.output.studies import Chart, Column, Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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


_ROW = 24.0
_FRAME = 56.0
_MOST_POINTS = 600
_MARKERS = "os^DvPX"


def forest_chart(
    title: str, rows: Sequence[tuple[str, float | None, tuple[float | None, float | None]]], *, axis: str
) -> Chart:
    """Draw values with their intervals, one a line, the first at the top."""
    figure, axes = new_figure(height=_FRAME + _ROW * len(rows))
    for place, (name, value, (low, high)) in enumerate(rows):
        if value is None:
            continue
        if low is not None and high is not None:
            axes.plot((low, high), (place, place), color=Color.DIM.value, linewidth=1.6, solid_capstyle="butt")
        (point,) = axes.plot([value], [place], marker="o", markersize=6, color=SERIES[0].value, linestyle="none")
        with_tip(point, f"{name}: {value:.3f}" + (f", {low:.3f} to {high:.3f}" if low is not None else ""))
    axes.set_yticks(range(len(rows)), labels=[short(name) for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(axis)
    if any(value is not None and value < 0 for _, value, _ in rows):
        axes.axvline(0, color=Color.TEXT.value, linewidth=0.8)
    described = "; ".join(f"{name} {'undefined' if value is None else f'{value:.3f}'}" for name, value, _ in rows)
    return Chart(to_svg(figure, title=title, description=described), title)


def scatter_chart(
    title: str, values: Sequence[float], ratings: Sequence[float], *, axes_names: tuple[str, str]
) -> Chart:
    """Draw values against ratings; of many points, a part that was drawn at random."""
    chosen = np.arange(len(values))
    if len(values) > _MOST_POINTS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(values))[:_MOST_POINTS])
    figure, axes = new_figure(width=360, height=260)
    axes.scatter(
        np.asarray(values)[chosen], np.asarray(ratings)[chosen], s=12, color=SERIES[0].value, alpha=0.35, linewidths=0
    )
    axes.set_xlabel(axes_names[0])
    axes.set_ylabel(axes_names[1])
    part = f" ({len(chosen)} of {len(values)} captions, drawn at random)" if len(chosen) < len(values) else ""
    described = f"{axes_names[0]} against {axes_names[1]}{part}"
    return Chart(to_svg(figure, title=title, description=described), f"{title}{part}")


def named_points_chart(title: str, points: Sequence[tuple[str, float, float]], *, axes_names: tuple[str, str]) -> Chart:
    """Draw a point for each name, with the name beside it."""
    figure, axes = new_figure(width=420, height=300)
    for name, x, y in points:
        (point,) = axes.plot([x], [y], marker="o", markersize=5, color=SERIES[0].value, linestyle="none")
        with_tip(point, f"{name}: {x:.3f}, {y:.3f}")
        axes.annotate(short(name), (x, y), xytext=(5, 3), textcoords="offset points", fontsize=9, color=Color.DIM.value)
    axes.margins(x=0.15, y=0.1)
    axes.set_xlabel(axes_names[0])
    axes.set_ylabel(axes_names[1])
    described = "; ".join(f"{name} {x:.3f}, {y:.3f}" for name, x, y in points)
    return Chart(to_svg(figure, title=title, description=described), title)


def lines_chart(
    title: str,
    places: Sequence[int],
    lines: Mapping[str, Sequence[tuple[float | None, tuple[float | None, float | None]]]],
    *,
    axes_names: tuple[str, str],
) -> Chart:
    """Draw a line with its intervals for each name over equally spaced numbers."""
    figure, axes = new_figure(height=300)
    for number, (name, points) in enumerate(lines.items()):
        color, marker = series_color(number), _MARKERS[number % len(_MARKERS)]
        known = [(x, value, ends) for x, (value, ends) in enumerate(points) if value is not None]
        axes.plot(
            [x for x, _, _ in known],
            [y for _, y, _ in known],
            marker=marker,
            markersize=5,
            color=color.value,
            label=short(name),
        )
        for x, y, (low, high) in known:
            if low is not None and high is not None:
                (line,) = axes.plot((x, x), (low, high), color=color.value, linewidth=1, alpha=0.6)
                with_tip(line, f"{name}, {places[x]}: {y:.3f}, {low:.3f} to {high:.3f}")
    axes.set_xticks(range(len(places)), labels=list(map(str, places)))
    axes.set_xlabel(axes_names[0])
    axes.set_ylabel(axes_names[1])
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=10, labelcolor=Color.TEXT.value, frameon=False)
    described = "; ".join(
        f"{name}: " + ", ".join("undefined" if value is None else f"{value:.3f}" for value, _ in points)
        for name, points in lines.items()
    )
    return Chart(to_svg(figure, title=title, description=described), title)


def word_chart(
    title: str,
    words: Sequence[tuple[Color, str, float, float]],
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> Chart:
    """Draw each word's human recall and precision in its colour, and the model's curves."""
    figure, axes = new_figure(width=420, height=320)
    for color, word, recall, precision in words:
        (point,) = axes.plot([recall], [precision], marker="o", markersize=3.5, color=color.value, alpha=0.6)
        with_tip(point, f"{word}: recall {recall:.2f}, precision {precision:.2f}")
    for name, (recalls, precisions) in curves.items():
        axes.plot(recalls, precisions, color=Color.TEXT.value, linewidth=1.2)
        place = len(recalls) * 3 // 10  # where the curves are farthest apart
        axes.annotate(
            name,
            (recalls[place], precisions[place]),
            xytext=(4, -10),
            textcoords="offset points",
            fontsize=10,
            color=Color.TEXT.value,
            bbox={"facecolor": Color.PAGE.value, "linewidth": 0, "pad": 1, "alpha": 0.8},
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("human recall")
    axes.set_ylabel("human precision")
    model = ", with the model's curve" if curves else ""
    described = f"{counted(len(words), 'point')} by human recall and precision{model}"
    return Chart(to_svg(figure, title=title, description=described), title)
