"""Agreement on systems, for every output."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from spicegraph_service.kit import Column, Grid, Point, cell_text, headings, scatter_chart
from spicegraph_studies.agreement.captions import SYSTEM_COEFFICIENTS
from spicegraph_studies.agreement.coefficients import COEFFICIENTS
from spicegraph_studies.pages import DIFFERENCE, best_metric, comparison_grid, comparison_rows, forest_chart
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_studies.agreement.captions import SystemAgreement

_NOTE = "In brackets: the two-sided p of no association. Intervals, over resampled systems, are in JSON and CSV."
_PEARSON = COEFFICIENTS["pearson"].label


def system_study(agreement: SystemAgreement, source: str) -> Study:
    """Return the study of a system-level agreement."""
    tests = tuple(
        comparison_grid(rows, f"{_PEARSON} with {measure}") for measure, rows in agreement.comparisons.items() if rows
    )
    measure, table = _measures(agreement)[0], agreement.table
    return Study(
        f"Agreement with people on systems: {PurePath(source).name}",
        (f"{len(agreement.systems)} systems: {', '.join(agreement.systems)}.",),
        (
            Section(
                "correlation",
                "Correlation over systems",
                (),
                tuple(_grid(agreement, key) for key in SYSTEM_COEFFICIENTS),
                partial(_interval_charts, agreement),
            ),
            Section("scatter", "Systems", (), (), partial(_scatter_charts, agreement)),
            Section("comparisons", DIFFERENCE, (), tests),
        ),
        {name: table(agreement) for name, table in SYSTEM_TABLES.items()},
        {"source": source, **agreement.to_dict()},
        agreement.signature,
        best_metric(
            f"{_PEARSON} with {measure}",
            {metric: row[measure].coefficients["pearson"].interval for metric, row in table.items()},
            agreement.comparisons.get(measure, ()),
        ),
    )


def _measures(agreement: SystemAgreement) -> list[str]:
    return list(dict.fromkeys(row.human for row in agreement.correlations))


def _grid(agreement: SystemAgreement, key: str) -> Grid:
    p = Column("p", "p")
    rows = [
        (
            metric,
            *(
                cell
                for value in (by_measure[measure].coefficients[key] for measure in _measures(agreement))
                for cell in (value.value, None if value.p is None else f"({cell_text(p, value.p)})")
            ),
        )
        for metric, by_measure in agreement.table.items()
    ]
    columns = (Column("Metric", "text"), *(column for name in _measures(agreement) for column in (Column(name), p)))
    return Grid(COEFFICIENTS[key].label, columns, rows, (_NOTE,))


def _interval_charts(agreement: SystemAgreement) -> list[Chart]:
    return [
        forest_chart(
            f"{_PEARSON} with {measure}",
            [(metric, row[measure].coefficients["pearson"].interval) for metric, row in agreement.table.items()],
            axis=_PEARSON,
        )
        for measure in _measures(agreement)
    ]


def _scatter_charts(agreement: SystemAgreement) -> list[Chart]:
    """Draw every metric against the first human measure, with the systems' names."""
    measure, charts = _measures(agreement)[0], []
    for metric in agreement.table:
        points = [
            (name, value, rating)
            for name in agreement.systems
            if (value := agreement.scores[name].get(metric)) is not None
            and (rating := agreement.human[name].get(measure)) is not None
        ]
        title, described = f"{metric} and {measure}", "; ".join(f"{name} {x:.3f}, {y:.3f}" for name, x, y in points)
        drawn = [Point(x, y, f"{name}: {x:.3f}, {y:.3f}", name) for name, x, y in points]
        svg = scatter_chart(title, drawn, axes_names=(metric, measure), description=described)
        charts.append(Chart(svg, title))
    return charts


def _rows(agreement: SystemAgreement) -> Grid:
    columns = headings(
        "metric|text", "human|text", "systems|count", "coefficient|text", "value", "p|p", "interval|span"
    )
    rows = [
        (row.metric, row.human, row.systems, key, cell.value, cell.p, (cell.low, cell.high))
        for row in agreement.correlations
        for key, cell in row.coefficients.items()
    ]
    return Grid("systems", columns, rows)


def _comparisons(agreement: SystemAgreement) -> Grid:
    rows = [(measure, row) for measure, tests in agreement.comparisons.items() for row in tests]
    return comparison_rows([row for _, row in rows], human=[measure for measure, _ in rows])


SYSTEM_TABLES: Mapping[str, Callable[[SystemAgreement], Grid]] = {
    "correlations": _rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""
