"""Agreement on systems, for every output."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from spicegraph_scorer.studies.agreement.coefficients import COEFFICIENTS
from spicegraph_scorer.studies.agreement.systems import SYSTEM_COEFFICIENTS
from spicegraph_service.output.agreement.common import (
    best_metric,
    comparison_grid,
    comparison_rows,
    forest_chart,
    named_points_chart,
)
from spicegraph_service.output.studies import Column, Grid, Section, Study, cell_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_scorer.studies.agreement.systems import SystemAgreement, SystemCorrelation
    from spicegraph_service.output.studies import Chart

_P = Column("p", "p")
_NOTE = "In brackets: the two-sided p of no association. Intervals, over resampled systems, are in JSON and CSV."


def system_study(agreement: SystemAgreement, source: str) -> Study:
    """Return the study of a system-level agreement."""
    grids = tuple(_grid(agreement, key) for key in SYSTEM_COEFFICIENTS)
    tests = tuple(
        comparison_grid(rows, f"{COEFFICIENTS['pearson'].label} with {measure}")
        for measure, rows in agreement.comparisons.items()
        if rows
    )
    measure = _measures(agreement)[0]
    return Study(
        f"Agreement with people on systems: {PurePath(source).name}",
        (f"{len(agreement.systems)} systems: {', '.join(agreement.systems)}.",),
        (
            Section("correlation", "Correlation over systems", (), grids, _Charts(agreement).intervals),
            Section("scatter", "Systems", (), (), _Charts(agreement).scatter),
            Section("comparisons", "Is the difference more than chance?", (), tests),
        ),
        {name: table(agreement) for name, table in SYSTEM_TABLES.items()},
        {"source": source, **agreement.to_dict()},
        agreement.signature,
        best_metric(
            f"{COEFFICIENTS['pearson'].label} with {measure}",
            {metric: row[measure].coefficients["pearson"] for metric, row in _table(agreement).items()},
            agreement.comparisons.get(measure, ()),
        ),
    )


def _measures(agreement: SystemAgreement) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.human for row in agreement.correlations))


def _table(agreement: SystemAgreement) -> dict[str, dict[str, SystemCorrelation]]:
    table: dict[str, dict[str, SystemCorrelation]] = {}
    for row in agreement.correlations:
        table.setdefault(row.metric, {})[row.human] = row
    return table


def _grid(agreement: SystemAgreement, key: str) -> Grid:
    measures = _measures(agreement)
    rows = [
        (
            metric,
            *(
                cell
                for measure in measures
                for cell in (row[measure].coefficients[key].value, _bracketed(row[measure].coefficients[key].p))
            ),
        )
        for metric, row in _table(agreement).items()
    ]
    columns = (
        Column("Metric", "text"),
        *(column for measure in measures for column in (Column(measure), Column("p", "p"))),
    )
    return Grid(COEFFICIENTS[key].label, columns, rows, (_NOTE,))


def _bracketed(p: float | None) -> str | None:
    return None if p is None else f"({cell_text(_P, p)})"


def _rows(agreement: SystemAgreement) -> Grid:
    columns = (
        Column("metric", "text"),
        Column("human", "text"),
        Column("systems", "count"),
        Column("coefficient", "text"),
        Column("value"),
        Column("p", "p"),
        Column("interval", "span"),
    )
    rows = [
        (row.metric, row.human, row.systems, key, cell.value, cell.p, (cell.low, cell.high))
        for row in agreement.correlations
        for key, cell in row.coefficients.items()
    ]
    return Grid("systems", columns, rows)


class _Charts:
    """The charts of a page, drawn when it is made."""

    def __init__(self, agreement: SystemAgreement) -> None:
        self._agreement = agreement

    def intervals(self) -> tuple[Chart, ...]:
        table = _table(self._agreement)
        return tuple(
            forest_chart(
                f"{COEFFICIENTS['pearson'].label} with {measure}",
                [
                    (metric, cell.value, (cell.low, cell.high))
                    for metric, row in table.items()
                    for cell in (row[measure].coefficients["pearson"],)
                ],
                axis=COEFFICIENTS["pearson"].label,
            )
            for measure in _measures(self._agreement)
        )

    def scatter(self) -> tuple[Chart, ...]:
        """Draw every metric against the first human measure."""
        measure = _measures(self._agreement)[0]
        return tuple(
            named_points_chart(
                f"{metric} and {measure}",
                [
                    (name, value, rating)
                    for name in self._agreement.systems
                    if (value := self._agreement.scores[name].get(metric)) is not None
                    and (rating := self._agreement.human[name].get(measure)) is not None
                ],
                axes_names=(metric, measure),
            )
            for metric in _table(self._agreement)
        )


def _comparisons(agreement: SystemAgreement) -> Grid:
    rows = [(measure, row) for measure, tests in agreement.comparisons.items() for row in tests]
    return comparison_rows([row for _, row in rows], human=[measure for measure, _ in rows])


SYSTEM_TABLES: Mapping[str, Callable[[SystemAgreement], Grid]] = {
    "correlations": _rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""
