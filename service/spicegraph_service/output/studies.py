"""Studies as every output shows them: tables for a terminal, CSV, LaTeX, JSON, and a page with charts."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spicegraph_service.output.pages import render_page
from spicegraph_service.output.tables import p_style, ranked, rendered
from spicegraph_service.output.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markupsafe import Markup
    from rich.console import RenderableType

    from spicegraph_scorer.core.results import Json


UNDEFINED: Final = "–"
_SMALL = 0.001

Span: TypeAlias = "tuple[float | None, float | None]"
Cell: TypeAlias = "str | int | float | Span | None"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, how its cells are written (a key of ``_WRITTEN``), and whether the highest is best."""

    name: str
    kind: str = "number"
    is_ranked: bool = False

    @property
    def is_text(self) -> bool:
        """Whether its cells begin at the left."""
        return self.kind == "text"

    @property
    def is_span(self) -> bool:
        """Whether its cells are two ends."""
        return self.kind.endswith("span")


def headings(*written: str) -> tuple[Column, ...]:
    """Return columns by their headings, each with its kind behind a bar where that is not ``number``.

    >>> headings("Metric|text", "F")[0]
    Column(name='Metric', kind='text', is_ranked=False)
    """
    return tuple(Column(*text.split("|", 1)) for text in written)  # type: ignore[arg-type]  # two at most


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a title, and notes for those who read it.

    ``is_grouped``: rows that follow each other with the same first cell belong together; people see it once.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    is_grouped: bool = False

    def groups(self) -> Iterator[list[Sequence[Cell]]]:
        """Yield the rows that belong together."""
        if self.is_grouped:
            yield from (list(rows) for _, rows in groupby(self.rows, key=itemgetter(0)))
        else:
            yield from ([row] for row in self.rows)


def _text(cell: Cell) -> str:
    return str(cell)


def _number(cell: Cell, *, form: str = ".3f", times: int = 1) -> str:
    return f"{times * cell:{form}}" if isinstance(cell, int | float) else str(cell)


_score = partial(_number, form=".4f")
_percent = partial(_number, form=".1f", times=100)


def _p(cell: Cell) -> str:
    return f"< {_SMALL:g}" if isinstance(cell, int | float) and cell < _SMALL else _number(cell)


def _mean_count(cell: Cell) -> str:
    return f"{cell:g}" if isinstance(cell, int | float) and float(cell).is_integer() else f"{cell:.1f}"


def _span(cell: Cell, write: Callable[[Cell], str] = _number) -> str:
    if not isinstance(cell, tuple) or cell[0] is None or cell[1] is None:
        return UNDEFINED
    return f"{write(cell[0])} .. {write(cell[1])}"


_WRITTEN: Mapping[str, Callable[[Cell], str]] = {
    "text": _text,
    "count": _text,
    "mean count": _mean_count,
    "number": _number,
    "score": _score,
    "short": partial(_number, form=".2f"),
    "p": _p,
    "percent": _percent,
    "span": _span,
    "score span": partial(_span, write=_score),
    "percent span": partial(_span, write=_percent),
}


def cell_text(column: Column, cell: Cell) -> str:
    """Return a cell as people read it; ``None`` is a dash."""
    return UNDEFINED if cell is None else _WRITTEN[column.kind](cell)


def to_rich(grid: Grid, printable: Callable[[str], str]) -> Table:
    """Return a table for a terminal, without its title; ``printable`` makes texts of files harmless."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in grid.columns:
        table.add_column(
            Text(column.name),
            justify="left" if column.is_text else "right",
            overflow="fold",
            no_wrap=column.is_span,
        )
    marks = [_marks(column, [row[place] for row in grid.rows]) for place, column in enumerate(grid.columns)]
    for group in grid.groups():
        for row in _written(grid, group):
            cells = [printable(" ".join(cell.split())) for cell in row]
            table.add_row(*(Text(cell, marked.get(cell, "")) for cell, marked in zip(cells, marks, strict=True)))
    return table


def _marks(column: Column, cells: Sequence[Cell]) -> Mapping[str, str]:
    """Return the styles of a column's cells by their text: small p, best and worst of values that are ranked."""
    if column.kind == "p":
        return {cell_text(column, cell): p_style(cell) for cell in cells}
    numbers = (cell for cell in cells if isinstance(cell, int | float))
    return ranked(numbers, write=partial(cell_text, column)) if column.is_ranked else {}


def _written(grid: Grid, group: Sequence[Sequence[Cell]]) -> Iterator[list[str]]:
    """Yield the rows of a group as people read them: what they share stands in the first alone."""
    for place, row in enumerate(group):
        cells = [cell_text(*pair) for pair in zip(grid.columns, row, strict=True)]
        yield cells if place == 0 else ["", *cells[1:]]


def to_csv(grid: Grid) -> str:
    """Return CSV with every digit; a range has two columns, and what is undefined stays empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        name
        for column in grid.columns
        for name in ((f"{column.name} low", f"{column.name} high") if column.is_span else (column.name,))
    )
    for row in grid.rows:
        writer.writerow(
            part
            for column, cell in zip(grid.columns, row, strict=True)
            for part in ((cell if isinstance(cell, tuple) else (None, None)) if column.is_span else (cell,))
        )
    return text.getvalue()


_LATEX_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "_": r"\_",
        "%": r"\%",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        ">": r"$>$",
        "|": r"$|$",
        "–": "--",
        "\n": " ",
    }
)


def to_latex(grid: Grid) -> str:
    """Return a ``tabular`` for the package booktabs, with title and notes as comments."""
    layout = "".join("l" if column.is_text else "r" for column in grid.columns)
    head = " & ".join(_escaped(column.name) for column in grid.columns)
    comments = ["% " + " ".join(line.split()) for line in (grid.title, *grid.notes)]
    rows = [" & ".join(map(_escaped, row)) + r" \\" for group in grid.groups() for row in _written(grid, group)]
    lines = [*comments, rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head + r" \\", r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    Example:
        >>> print(_escaped("Bleu_4 > 50 %"))
        Bleu\_4 $>$ 50 \%
    """
    return text.translate(_LATEX_ESCAPES)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart, what stands above it, and the classes of its colours (:func:`charts.ink`) with their names."""

    svg: Markup
    caption: str
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: paragraphs, tables, and charts that are drawn only when a page is made.

    ``is_detail``: its tables are too long for a terminal and a paper; pages alone show them.
    """

    key: str
    title: str
    text: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    charts: Callable[[], Sequence[Chart]] | None = None
    is_detail: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the tables, each once."""
        return tuple(dict.fromkeys(note for grid in self.grids for note in grid.notes))


@dataclass(frozen=True, slots=True)
class Study:
    """All that the outputs of one study are made from.

    ``verdict`` is what a page says first, and how sure it is; ``facts`` are lines on what was compared and what was
    left out; ``tables`` are the long ones for programs, by name, the main one first; ``values`` are what JSON holds.
    """

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    tables: Mapping[str, Grid]
    values: Mapping[str, Json]
    signature: Mapping[str, Json]
    verdict: tuple[str, str] | None = None


class StudyFormat(StrEnum):
    """The output formats of ``agree`` and ``bounds``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"
    HTML = "html"


BY_ENDING: Mapping[str, StudyFormat] = {
    ".json": StudyFormat.JSON,
    ".csv": StudyFormat.CSV,
    ".tex": StudyFormat.LATEX,
    ".html": StudyFormat.HTML,
    ".htm": StudyFormat.HTML,
    ".txt": StudyFormat.TABLE,
}


def _table(study: Study) -> str:
    return rendered(_contents(study))


def _contents(study: Study) -> Iterator[RenderableType]:
    yield from (Text(printable(fact)) for fact in study.facts)
    for section in _short_sections(study):
        for grid in section.grids:
            yield Text()
            yield Text(printable(grid.title), style="italic")
            yield to_rich(grid, printable)
        yield from (Text(printable(note), style="dim") for note in section.notes)
    yield Text()
    yield from (Text(line, style="dim") for line in _signature_lines(study.signature))


def _short_sections(study: Study) -> Iterator[Section]:
    return (section for section in study.sections if not section.is_detail)


def _signature_lines(signature: Mapping[str, object]) -> Iterator[str]:
    """Yield a line of what all metrics share, and one for each metric, as for ``score``."""
    yield "|".join(f"{key}:{_flat(value)}" for key, value in signature.items() if key != "metrics")
    metrics = signature.get("metrics")
    for name, parts in metrics.items() if isinstance(metrics, dict) else ():
        yield "|".join((name, *(f"{key}:{_flat(value)}" for key, value in parts.items())))


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={_flat(part)}" for key, part in value.items())
    return printable(str(value))


def _json(study: Study) -> str:
    return msgspec.json.format(msgspec.json.encode(study.values), indent=2).decode() + "\n"


def _csv(study: Study) -> str:
    """Return the first of the long tables."""
    return to_csv(next(iter(study.tables.values())))


def _latex(study: Study) -> str:
    facts = "".join(f"% {' '.join(fact.split())}\n" for fact in (study.title, *study.facts))
    grids = [to_latex(grid) for section in _short_sections(study) for grid in section.grids]
    return "\n".join([facts, *grids])


_MOST_ROWS = 14
"""Longer tables of a page are folded."""


def _page_text(column: Column, cell: Cell) -> str:
    """Return a cell as reports write it: with a true minus, and a range in words."""
    text = cell_text(column, cell)
    return text if column.is_text else text.replace(" .. ", " to ").replace("-", "−")


def _html(study: Study) -> str:
    charts = {section.key: section.charts() if section.charts else () for section in study.sections}
    shown = [section for section in study.sections if section.text or section.grids or charts[section.key]]
    values = {
        "study": study,
        "sections": shown,
        "charts": charts,
        "cell_text": _page_text,
        "most_rows": _MOST_ROWS,
        "signature": tuple(_signature_lines(study.signature)),
    }
    return render_page("study.html.j2", values)


STUDY_FORMATS: Mapping[StudyFormat, Callable[[Study], str]] = {
    StudyFormat.TABLE: _table,
    StudyFormat.JSON: _json,
    StudyFormat.CSV: _csv,
    StudyFormat.LATEX: _latex,
    StudyFormat.HTML: _html,
}
