"""Studies as tables, charts and pages, and what all studies of agreement share."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spicegraph_service.kit import Cell, Column, Grid, Mark, Point, cell_text, headings, interval_chart, scatter_chart
from spicegraph_studies.agreement.coefficients import Bounded, MetricComparison
from spicegraph_studies.pages.output import Chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_MOST_POINTS = 600
DIFFERENCE = "Is the difference more than chance?"  # the title of the section with paired tests


def ends(row: Any) -> tuple[float | None, float | None]:
    """Return the ends of an interval, as a cell of kind ``span``."""
    return row.low, row.high


def comparison_grid(comparisons: Sequence[MetricComparison], label: str) -> Grid:
    """Return every two metrics' difference, its interval and its p-values."""
    columns = ["First|text", "Second|text", "First is", "Second is", "Difference", "95 % interval|span"]
    columns.append("p, permutation|p")
    rows: list[tuple[Cell, ...]] = [
        (r.first_metric, r.second_metric, r.first, r.second, r.difference, ends(r), r.p_permutation)
        for r in comparisons
    ]
    notes = ["p-values are not corrected for their number."]
    if any(row.p_williams is not None for row in comparisons):
        columns.append("p, Williams|p")
        rows = [(*row, test.p_williams) for row, test in zip(rows, comparisons, strict=True)]
        notes.append(
            "Permutation: both metrics' values exchanged at random, image by image (system by system). Williams: of "
            "the two Pearson coefficients, taking observations as independent."
        )
    return Grid(f"Paired tests of {label}", headings(*columns), rows, notes)


def comparison_rows(comparisons: Iterable[MetricComparison], **more: Sequence[str]) -> Grid:
    """Return the long table for programs: the fields of a comparison, after columns that are given by name."""
    names = [part.name for part in fields(MetricComparison)]
    columns = [*(Column(name, "text") for name in more), *(Column(name) for name in names)]
    rows = [(*given, *astuple(row)) for *given, row in zip(*more.values(), comparisons, strict=True)]
    return Grid("comparisons", columns, rows)


_LEVEL = 5e-4  # a difference that three digits do not show
_HANDFUL = 10  # with fewer observations no interval says anything


def best_metric(
    label: str, values: Mapping[str, Bounded], comparisons: Sequence[MetricComparison], *, of: tuple[int, str]
) -> tuple[str, str] | None:
    """Say which metric agrees best with people and before which, or that none is known to; ``of``: how many of what."""
    known = {metric: value.value for metric, value in values.items() if value.value is not None}
    ordered = sorted(known, key=lambda metric: -known[metric])
    if not ordered:
        return None
    best, (size, unit) = ordered[0], of
    if len(ordered) == 1:
        return f"{best} agrees with people: {label} {known[best]:.3f}{values[best].said}", ""
    level = sorted(metric for metric in ordered if known[best] - known[metric] < _LEVEL)
    if len(level) > 1:
        names = f"{', '.join(level[:-1])} and {level[-1]}"
        return f"No winner: {names} are level, {label} {known[best]:.3f}", f"{size:,} {unit} do not tell them apart."
    other = ordered[1]
    is_sure, said = _is_ahead((best, other), comparisons, of)
    named = f"{known[best]:.3f}{values[best].said}"
    first = (
        f"{best} agrees best with people: {label}" if is_sure else f"No sure winner: {best} has the highest {label},"
    )
    return f"{first} {named}", f"Next is {other} with {known[other]:.3f}{said and '; '}{said}."


def _is_ahead(pair: tuple[str, str], comparisons: Sequence[MetricComparison], of: tuple[int, str]) -> tuple[bool, str]:
    """Return whether the first of two metrics is known to be ahead, and why."""
    size, unit = of
    if size < _HANDFUL:
        return False, f"{size:,} {unit} are too few to tell them apart"
    return _judged(next((t for t in comparisons if {t.first_metric, t.second_metric} == set(pair)), None), of)


def _judged(test: MetricComparison | None, of: tuple[int, str]) -> tuple[bool, str]:
    """Return whether a difference is beyond chance, with the reason; without an interval, True."""
    if test is None or test.low is None or test.high is None or not test.difference:
        return True, ""
    low, high = sorted(map(abs, (test.low, test.high)))
    if not test.low <= 0 <= test.high:
        return True, f"the difference is {abs(test.difference):.3f} (95 % interval {low:.3f} to {high:.3f})"
    # An interval shrinks with the root of the number of observations; it is to end before zero.
    size, unit = of
    needed = round(size * ((test.high - test.low) / 2 / test.difference) ** 2, -1)
    return False, f"the interval of their difference includes 0, and some {needed:,.0f} {unit} would be needed"


def forest_chart(title: str, rows: Iterable[tuple[str, Bounded]], *, axis: str) -> Chart:
    """Draw values with their intervals, one per line, the first at the top."""
    values = list(rows)
    drawn = [(name, [Mark(title, each.value, each.low, each.high)]) for name, each in values]
    described = "; ".join(f"{name} {'undefined' if v.value is None else f'{v.value:.3f}'}" for name, v in values)
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


def length_facts(length: Mapping[str, float | None], alone: str, held: str) -> Iterator[str]:
    """Yield the length figures as a sentence: ``alone`` formats the first, ``held`` introduces the rest."""
    if length:
        first, *others = [(name, cell_text(Column(""), value)) for name, value in length.items()]
        yield f"{alone.format(first[1])} {held}: {', '.join(f'{name} {value}' for name, value in others)}."


def removed_fact(reasons: Mapping[str, int]) -> str:
    """Return a sentence on the removed records, counted by reason."""
    return "Removed: " + ("; ".join(f"{reason} ({n:,})" for reason, n in reasons.items() if n) or "nothing") + "."
