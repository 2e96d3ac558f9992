"""The report's charts: what is drawn of it, and what each says to those who can't see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.wording import counted
from spicegraph_service.output.charts import (
    Bars,
    Color,
    Difference,
    Line,
    bar_chart,
    difference_chart,
    histogram,
    line_chart,
    series_color,
    short,
)
from spicegraph_service.output.svg import to_svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup
    from matplotlib.figure import Figure

    from spicegraph_service.output.report.data import MeanRow, Report, SystemView

_TABLE = "The table below has the numbers."


def report_charts(report: Report) -> dict[str, Markup]:
    """Return the charts of a report by name; ``references`` only where their number differs between images."""
    charts = {
        "category": to_svg(
            _categories(report),
            title="Mean F1 by category",
            description=f"Bars by category and system with 95 % intervals. {_TABLE}",
        ),
        "distribution": to_svg(
            _distribution(report.systems),
            title="Images by SPICE",
            description=f"How many images score in each tenth of the scale. {_summary(report.systems)}",
        ),
        "length": to_svg(
            _means([s.by_length for s in report.systems], report.systems, "words in the caption"),
            title="SPICE by caption length",
            description=_points([s.by_length for s in report.systems], report.systems),
        ),
    }
    if len(report.systems) == 2 and report.tests:
        charts["difference"] = to_svg(
            _differences(report),
            title=f"Differences: {report.systems[1].name} minus {report.systems[0].name}",
            description=f"Points by category with 95 % intervals. {_TABLE}",
        )
    if len(report.systems[0].by_references) > 1:
        charts["references"] = to_svg(
            _means([s.by_references for s in report.systems], report.systems, "references of the image"),
            title="SPICE by number of references",
            description=_points([s.by_references for s in report.systems], report.systems),
        )
    return charts


def _colored(report: Report) -> Iterator[tuple[SystemView, Color]]:
    for place, system in enumerate(report.systems):
        yield system, series_color(place)
    if report.human:
        yield report.human, Color.HUMAN


def _categories(report: Report) -> Figure:
    """Return mean F1 by category, with 95 % intervals: the picture of the SPICE paper's Table 2."""
    bars = [
        Bars(
            system.name,
            [row.f for row in system.categories],
            color,
            [(row.low, row.high) for row in system.categories],
            [counted(row.items, "image") for row in system.categories],
        )
        for system, color in _colored(report)
    ]
    return bar_chart([row.name for row in report.systems[0].categories], bars, axis="mean F1")


def _differences(report: Report) -> Figure:
    """Return by how much the second of two systems is better in each category."""
    tests = {test.name: test for test in report.tests}
    found = [(name, tests["SPICE" if name == ALL else f"SPICE_{name}"]) for name in report.categories]
    rows = [Difference(name, test.difference, test.low, test.high) for name, test in found]
    first, second = (system.name for system in report.systems)
    return difference_chart(
        rows, axis=f"{short(second)} minus {short(first)}", below=series_color(0), above=series_color(1)
    )


def _distribution(systems: Sequence[SystemView]) -> Figure:
    rows = len(systems[0].distribution)
    lines = [Line(s.name, [row.items for row in s.distribution], series_color(i)) for i, s in enumerate(systems)]
    return histogram([place / rows for place in range(rows + 1)], lines, x="SPICE", y="images")


def _means(rows: Sequence[Sequence[MeanRow]], systems: Sequence[SystemView], about: str) -> Figure:
    lines = [
        Line(system.name, [row.mean for row in own], series_color(place), [counted(row.items, "image") for row in own])
        for place, (system, own) in enumerate(zip(systems, rows, strict=True))
    ]
    return line_chart([row.label for row in rows[0]], lines, x=about, y="mean SPICE")


def _summary(systems: Sequence[SystemView]) -> str:
    """Return each system's histogram in words."""
    return " ".join(
        f"{system.name}: " + ", ".join(f"{row.items} in {row.label}" for row in system.distribution if row.items) + "."
        for system in systems
    )


def _points(rows: Sequence[Sequence[MeanRow]], systems: Sequence[SystemView]) -> str:
    """Return the points of each system's line in words."""
    return " ".join(
        f"{system.name}: "
        + ", ".join(
            f"{row.mean:.3f} at {row.label} ({counted(row.items, 'image')})" for row in own if row.mean is not None
        )
        + "."
        for system, own in zip(systems, rows, strict=True)
    )
