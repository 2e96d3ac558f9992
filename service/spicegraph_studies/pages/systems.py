"""Agreement on systems, for every output."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from spicegraph_service.kit import Column, Grid, Point, cell_text, headings, scatter_chart
from spicegraph_studies.agreement.coefficients import COEFFICIENTS
from spicegraph_studies.agreement.systems import SYSTEM_COEFFICIENTS
from spicegraph_studies.pages import (
    DIFFERENCE,
    best_metric,
    comparison_grid,
    comparison_rows,
    ends,
    forest_chart,
    length_facts,
)
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_studies.agreement.systems import SystemAgreement

SYSTEM_TABLES: Final = ("correlations", "comparisons")
"""The tables that CSV can hold; the first is the default."""

_NOTE = "In brackets: the two-sided p of no association. Intervals, over resampled systems, are in JSON and CSV."
_PEARSON = COEFFICIENTS["pearson"].label
_ROWS = headings("metric|text", "human|text", "systems|count", "coefficient|text", "value", "p|p", "interval|span")


def system_study(agreement: SystemAgreement, source: str) -> Study:
    """Return the study of a system-level agreement."""
    measures, table = tuple(agreement.comparisons), agreement.correlations
    tests = [(measure, row) for measure, rows in agreement.comparisons.items() for row in rows]
    rows = [
        (metric, measure, agreement.known(metric, measure), key, cell.value, cell.p, ends(cell))
        for metric, by_measure in table.items()
        for measure, coefficients in by_measure.items()
        for key, cell in coefficients.items()
    ]
    of_first = {metric: row[measures[0]]["pearson"] for metric, row in table.items()}
    facts = [f"{len(agreement.systems)} systems: {', '.join(agreement.systems)}."]
    for measure, length in agreement.length.items():
        facts += length_facts(
            length,
            f"Length alone: rank correlation of words and {measure} {{}}.",
            "With length held constant (partial Spearman)",
        )

    def intervals() -> Iterator[Chart]:
        for measure in measures:
            drawn = [(metric, row[measure]["pearson"]) for metric, row in table.items()]
            yield forest_chart(f"{_PEARSON} with {measure}", drawn, axis=_PEARSON)

    return Study(
        f"Agreement with people on systems: {PurePath(source).name}",
        facts,
        (
            Section(
                "correlation",
                "Correlation over systems",
                (),
                [_grid(agreement, measures, key) for key in SYSTEM_COEFFICIENTS],
                lambda: list(intervals()),
            ),
            Section("scatter", "Systems", (), (), partial(_scatter_charts, agreement, measures[0])),
            Section(
                "comparisons",
                DIFFERENCE,
                (),
                [
                    comparison_grid(rows, f"{_PEARSON} with {measure}")
                    for measure, rows in agreement.comparisons.items()
                    if rows
                ],
            ),
        ),
        {
            "correlations": Grid("systems", _ROWS, rows),
            "comparisons": comparison_rows([row for _, row in tests], human=[measure for measure, _ in tests]),
        },
        {"source": source, **agreement.to_dict()},
        agreement.signature,
        best_metric(f"{_PEARSON} with {measures[0]}", of_first, agreement.comparisons[measures[0]]),
    )


def _grid(agreement: SystemAgreement, measures: Sequence[str], key: str) -> Grid:
    p = Column("p", "p")
    rows = [
        (
            metric,
            *(
                cell
                for value in (by_measure[measure][key] for measure in measures)
                for cell in (value.value, None if value.p is None else f"({cell_text(p, value.p)})")
            ),
        )
        for metric, by_measure in agreement.correlations.items()
    ]
    columns = (Column("Metric", "text"), *(column for name in measures for column in (Column(name), p)))
    return Grid(COEFFICIENTS[key].label, columns, rows, (_NOTE,))


def _scatter_charts(agreement: SystemAgreement, measure: str) -> list[Chart]:
    """Draw every metric against a human measure, with the systems' names."""
    charts = []
    for metric in agreement.correlations:
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
