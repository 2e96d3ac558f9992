"""Agreement on systems, for every output; tables, charts and rows that all studies of agreement share."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from spicegraph_parser.errors import counted
from spicegraph_service.kit import (
    Chart,
    Column,
    Grid,
    Line,
    Mark,
    Point,
    Row,
    Section,
    Study,
    cell_text,
    headings,
    ink,
    interval_chart,
    line_chart,
    scatter_chart,
)
from spicegraph_studies.agreement.captions import SYSTEM_COEFFICIENTS
from spicegraph_studies.agreement.coefficients import COEFFICIENTS, MetricComparison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_studies.agreement.captions import SystemAgreement, SystemCorrelation

_P = Column("p", "p")
_NOTE = "In brackets: the two-sided p of no association. Intervals, over resampled systems, are in JSON and CSV."


class Estimate(Protocol):
    """A value with its 95 % interval."""

    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def low(self) -> float | None: ...  # noqa: D102
    @property
    def high(self) -> float | None: ...  # noqa: D102


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def comparison_grid(comparisons: Sequence[MetricComparison], label: str) -> Grid:
    """Return every two metrics' difference, its interval and its p-values."""
    has_williams = any(row.p_williams is not None for row in comparisons)
    columns = (
        *headings(
            "First|text", "Second|text", "First is", "Second is", "Difference", "95 % interval|span", "p, permutation|p"
        ),
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


def best_metric(
    label: str, values: Mapping[str, Estimate], comparisons: Sequence[MetricComparison]
) -> tuple[str, str] | None:
    """Say which metric agrees best with people, before which, and whether the difference is more than chance."""
    known = {metric: value for metric, value in values.items() if value.value is not None}
    best, *others = sorted(known, key=lambda metric: -(known[metric].value or 0.0)) or [""]
    if not best:
        return None
    chosen_value = known[best]
    ends = (
        ""
        if chosen_value.low is None or chosen_value.high is None
        else f" ({chosen_value.low:.3f} to {chosen_value.high:.3f})"
    )
    first = f"{best} agrees best with people: {label} {chosen_value.value:.3f}{ends}"
    if not others:
        return first, ""
    other = others[0]
    test = next((t for t in comparisons if {t.first_metric, t.second_metric} == {best, other}), None)
    after = f"Next is {other} with {known[other].value:.3f}"
    if test is None or test.low is None or test.high is None or test.difference is None:
        return first, f"{after}."
    low, high = sorted(map(abs, (test.low, test.high)))
    if test.low <= 0 <= test.high:
        return first, f"{after}; the interval of their difference includes 0, so that either may be the better one."
    return first, f"{after}; the difference is {abs(test.difference):.3f} (95 % interval {low:.3f} to {high:.3f})."


def comparison_rows(comparisons: Iterable[MetricComparison], **more: Sequence[str]) -> Grid:
    """Return the long table for programs: the fields of a comparison, after columns that are given by name."""
    names = [part.name for part in fields(MetricComparison)]
    columns = [*(Column(name, "text") for name in more), *(Column(name) for name in names)]
    rows = [(*given, *astuple(row)) for *given, row in zip(*more.values(), comparisons, strict=True)]
    return Grid("comparisons", columns, rows)


_MOST_POINTS = 600

Ends: TypeAlias = "tuple[float | None, float | None]"


def forest_chart(title: str, rows: Sequence[tuple[str, float | None, Ends]], *, axis: str) -> Chart:
    """Draw values with their intervals, one per line, the first at the top."""
    drawn = [Row(name, (Mark(title, value, low, high),)) for name, value, (low, high) in rows]
    described = "; ".join(f"{name} {'undefined' if value is None else f'{value:.3f}'}" for name, value, _ in rows)
    return Chart(interval_chart(title, drawn, axis=axis, description=described), title)


def rating_chart(
    title: str, values: Sequence[float], ratings: Sequence[float], *, axes_names: tuple[str, str]
) -> Chart:
    """Draw values against ratings; of many points, a part that was drawn at random."""
    chosen: Sequence[int] = range(len(values))
    if len(values) > _MOST_POINTS:
        chosen = sorted(np.random.default_rng(0).permutation(len(values))[:_MOST_POINTS].tolist())
    part = f" ({len(chosen)} of {len(values)} captions, drawn at random)" if len(chosen) < len(values) else ""
    points = [Point(float(values[place]), float(ratings[place])) for place in chosen]
    described = f"{axes_names[0]} against {axes_names[1]}{part}"
    return Chart(scatter_chart(title, points, axes_names=axes_names, description=described), f"{title}{part}")


def named_points_chart(title: str, points: Sequence[tuple[str, float, float]], *, axes_names: tuple[str, str]) -> Chart:
    """Draw a point for each name, with the name beside it."""
    described = "; ".join(f"{name} {x:.3f}, {y:.3f}" for name, x, y in points)
    drawn = [Point(x, y, f"{name}: {x:.3f}, {y:.3f}", name) for name, x, y in points]
    return Chart(scatter_chart(title, drawn, axes_names=axes_names, description=described), title)


def lines_chart(
    title: str,
    places: Sequence[int],
    lines: Mapping[str, Sequence[tuple[float | None, Ends]]],
    *,
    axes_names: tuple[str, str],
) -> Chart:
    """Draw a line with its intervals for each name over equally spaced numbers."""
    drawn = [
        Line(name, [value for value, _ in points], ink(place), ends=[ends for _, ends in points])
        for place, (name, points) in enumerate(lines.items())
    ]
    described = "; ".join(
        f"{name}: " + ", ".join("undefined" if value is None else f"{value:.3f}" for value, _ in points)
        for name, points in lines.items()
    )
    x, y = axes_names
    svg = line_chart(title, list(map(str, places)), drawn, x=x, y=y, description=described, height=300)
    return Chart(svg, title, [(line.ink, line.name) for line in drawn])


def word_chart(
    title: str, words: Sequence[tuple[str, str, float, float]], curves: Mapping[str, Sequence[tuple[float, float]]]
) -> Chart:
    """Draw each word's human recall and precision in the colour of its class of inks, and the model's curves."""
    points = [
        Point(recall, precision, f"{word}: recall {recall:.2f}, precision {precision:.2f}", ink=colour)
        for colour, word, recall, precision in words
    ]
    model = ", with the model's curve" if curves else ""
    described = f"{counted(len(words), 'point')} by human recall and precision{model}"
    names = ("human recall", "human precision")
    svg = scatter_chart(title, points, axes_names=names, description=described, curves=curves, unit=True, height=320)
    return Chart(svg, title)


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
    columns = headings(
        "metric|text", "human|text", "systems|count", "coefficient|text", "value", "p|p", "interval|span"
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
