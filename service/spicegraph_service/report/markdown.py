"""A report's tables as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.errors import counted
from spicegraph_service.output.grid import Column, Grid, headings, markdown_cell, to_markdown
from spicegraph_service.output.pages import number, percent, signed
from spicegraph_service.output.standing import label, standing_grid
from spicegraph_service.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_service.report.data import Report, SystemView

_GROUPS = 5


def markdown_of(report: Report) -> str:
    """Return the tables of a report as Markdown, without the images."""
    head = f"# {markdown_cell(report.title)}\n\n{counted(report.items, 'image')}, spicegraph {report.version}\n"
    said = [f"{markdown_cell(warning)}\n" for warning in report.notes]
    parts = (
        "\n\n".join(
            (*([f"## {grid.title}"] if grid.title else ()), "\n".join((to_markdown(grid), *grid.notes)).rstrip())
        )
        + "\n"
        for grid in _grids(report)
    )
    found = verdict(report)
    lines = (f"- **{name}**: {markdown_cell(text)}" for name, text in found.points)
    first = "\n".join((f"**{markdown_cell(found.headline)}.** {markdown_cell(found.detail)}\n", *lines, ""))
    return "\n".join((head, first, *said, *parts))


def _grids(report: Report) -> Iterator[Grid]:
    """Yield the tables; one without a title belongs to the table above."""
    systems = report.systems
    yield standing_grid(report.standings, [system.name for system in systems])
    yield _scores(report)
    if report.tests:
        yield _tests(report)
    names = ("Category|text", "System|text", "F1", "Precision", "Recall", "Images|count", "Hits|count", "Wrong|count")
    yield Grid(
        "SPICE by category",
        headings(*names, "Missing|count"),
        [
            (label(name), system.name, row.f, row.pr, row.re, row.items, row.tp, row.fp, row.fn)
            for place, name in enumerate(report.categories)
            for system in systems
            for row in (system.categories[place],)
        ],
    )
    for system in systems:
        yield from _of_system(system)


def _scores(report: Report) -> Grid:
    systems, human = report.systems, report.human
    columns = [Column("Metric", "text"), *(Column(system.name, "figure") for system in systems)]
    rows: list[tuple[str, ...]] = []
    for place, row in enumerate(systems[0].scores):
        scores = [system.scores[place] for system in systems]
        figures = [f"{number(s.value)} ({number(s.low)} to {number(s.high)})" for s in scores]
        rows.append((report.shown(row.name), *figures))
    if human:
        columns.append(Column("Held-out reference", "figure"))
        rows = [(*row, number(score.value)) for row, score in zip(rows, human.scores, strict=True)]
    return Grid("Scores", columns, rows)


def _tests(report: Report) -> Grid:
    of_test = ("Score|text", "From|text", "To|text", "Difference|figure", "95 % interval|range")
    return Grid(
        "Paired tests",
        headings(*of_test, "p, bootstrap", "p, randomisation", "p, corrected"),
        [
            (
                label(t.name),
                first,
                second,
                signed(t.difference) + "*" * t.is_sure,
                f"{signed(t.low)} to {signed(t.high)}",
                t.p_bootstrap,
                t.p_randomization,
                t.p_corrected,
            )
            for (first, second), tests in report.tests.items()
            for t in tests
        ],
    )


def _of_system(system: SystemView) -> Iterator[Grid]:
    yield Grid(
        f"What {markdown_cell(system.name)} gets wrong",
        headings("Error|text", "Tuples|count", "Rate|figure", "Images|count", "Heaviest|range"),
        [
            (
                errors.kind.title,
                errors.count,
                percent(errors.rate),
                errors.items,
                ", ".join(
                    f"{markdown_cell(' / '.join(group.words))} ({group.count})" for group in errors.groups[:_GROUPS]
                ),
            )
            for errors in system.kinds
            if errors.count
        ],
    )
    yield Grid(
        f"Hallucination of {markdown_cell(system.name)}",
        headings("Category|text", "Per instance|figure", "Per sentence|figure", "In no reference|count", "Said|count"),
        [
            (label(row.category), percent(row.per_instance), percent(row.per_sentence), row.invented, row.said)
            for row in system.hallucinations
        ],
    )
    if system.wrong:
        names = ("Unsupported by SPICE-G’s verdicts|text", "Captions|count", "That say it|count", "Share|figure")
        yield Grid(
            "",
            headings(*names, "References have|text"),
            [
                (", ".join(row.words), row.count, row.said, percent(row.rate), ", ".join(row.instead[:_GROUPS]))
                for row in system.wrong[:_GROUPS]
            ],
        )
