"""Tables of every kind, and their writers: terminal, CSV, Markdown, LaTeX, and cells for pages."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spicegraph_scorer.core.significance import SIGNIFICANT
from spicegraph_service.output.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import JustifyMethod

UNDEFINED: Final = "–"
BEST, WORST, SIGNIFICANT_P = "bold green", "red", "bold"  # A row's or column's values, and a small p.
TIED = "underline"  # What is not surely worse than the best.
_SMALL = 0.001

Span: TypeAlias = "tuple[float | None, float | None]"
Estimate: TypeAlias = "tuple[float | None, float | None, float | None]"  # A value and its interval, if any.
Cell: TypeAlias = "str | int | float | Span | Estimate | None"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, how its cells are written (a key of ``_WRITTEN``), and whether the highest is best."""

    name: str
    kind: str = "number"
    is_ranked: bool = False
    lower_is_better: bool = False

    @property
    def is_text(self) -> bool:
        """Whether its cells begin at the left."""
        return self.kind in {"text", "code", "range"}

    @property
    def is_span(self) -> bool:
        """Whether its cells are two ends."""
        return self.kind.endswith("span")


def headings(*written: str) -> tuple[Column, ...]:
    """Return columns by their headings, each with its kind behind a bar where that is not ``number``."""
    return tuple(Column(*text.split("|", 1)) for text in written)  # type: ignore[arg-type]  # two at most


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a title, and notes for those who read it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    is_grouped: bool = False  # rows that follow each other with one first cell belong together; people see it once
    styles: Sequence[Mapping[int, str]] = ()  # for each row, styles of cells by column

    def groups(self) -> Iterator[list[Sequence[Cell]]]:
        """Yield the rows that belong together."""
        if self.is_grouped:
            yield from (list(rows) for _, rows in groupby(self.rows, key=itemgetter(0)))
        else:
            yield from ([row] for row in self.rows)

    def written(self) -> Iterator[list[str]]:
        """Yield the rows as text; a group's name is only in its first row."""
        for group in self.groups():
            for number, row in enumerate(group):
                cells = [cell_text(*pair) for pair in zip(self.columns, row, strict=True)]
                yield cells if number == 0 else ["", *cells[1:]]


def _number(cell: Cell, *, form: str = ".3f", times: int = 1) -> str:
    return f"{times * cell:{form}}" if isinstance(cell, int | float) else str(cell)


_score = partial(_number, form=".4f")
_percent = partial(_number, form=".1f", times=100)


def _span(cell: Cell, write: Callable[[Cell], str] = _number) -> str:
    if not isinstance(cell, tuple) or cell[0] is None or cell[1] is None:
        return UNDEFINED
    return f"{write(cell[0])} .. {write(cell[1])}"


def _estimate(cell: Cell) -> str:
    if not isinstance(cell, tuple):
        return _score(cell)
    value, *ends = cell
    interval = "" if None in ends else f"\n{_span((ends[0], ends[-1]), _score)}"
    return f"{UNDEFINED if value is None else _score(value)}{interval}"


_WRITTEN: Mapping[str, Callable[[Cell], str]] = {
    "text": str,
    "code": str,
    "range": str,
    "figure": str,
    "count": str,
    "mean count": lambda cell: (
        f"{cell:g}" if isinstance(cell, int | float) and float(cell).is_integer() else f"{cell:.1f}"
    ),
    "number": _number,
    "score": _score,
    "estimate": _estimate,
    "short": partial(_number, form=".2f"),
    "p": lambda cell: f"< {_SMALL:g}" if isinstance(cell, int | float) and cell < _SMALL else _number(cell),
    "exact p": _score,
    "percent": _percent,
    "span": _span,
    "score span": partial(_span, write=_score),
    "percent span": partial(_span, write=_percent),
}


def cell_text(column: Column, cell: Cell) -> str:
    """Return a cell as people read it; ``None`` is a dash."""
    return UNDEFINED if cell is None else _WRITTEN[column.kind](cell)


def page_text(column: Column, cell: Cell) -> str:
    """Return a cell as pages write it: with a true minus, and a range in words."""
    text = cell_text(column, cell)
    return text if column.is_text else text.replace(" .. ", " to ").replace("-", "−")


def ranked(
    values: Iterable[float | None], *, lower: bool = False, write: Callable[[float], str] = _score
) -> dict[str, str]:
    """Map the printed best and worst values to styles; empty if all print alike."""
    defined = sorted((value for value in values if value is not None), reverse=lower)
    ends = [write(value) for value in (*defined[:1], *defined[-1:])]
    return dict(zip(ends, (WORST, BEST), strict=True)) if len(set(ends)) > 1 else {}


def to_rich(grid: Grid, *, titled: bool = True) -> Table:
    """Return a table for a terminal; texts of files are made harmless. Without its title, columns stand closer."""
    table = Table(title=(grid.title or None) if titled else None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    if not titled:
        table.padding = (0, 1, 0, 0)
    for column in grid.columns:
        is_whole = column.is_span or column.kind == "code"  # never broken
        side: JustifyMethod = "left" if column.is_text else "right"
        table.add_column(Text(printable(column.name)), justify=side, overflow="fold", no_wrap=is_whole)
    marks = [_marks(column, [row[index] for row in grid.rows]) for index, column in enumerate(grid.columns)]
    for row, styles in zip(grid.written(), grid.styles or [{}] * len(grid.rows), strict=True):
        texts = list(map(_harmless, grid.columns, row))
        table.add_row(*(_styled(text, styles.get(n, marks[n].get(text, ""))) for n, text in enumerate(texts)))
    return table


def _harmless(column: Column, text: str) -> str:
    return printable(" ".join(text.split()) if column.is_text else text)


def _styled(text: str, style: str) -> Text:
    value, line, rest = text.partition("\n")  # an interval below a value has no style
    return Text.assemble((value, style), line + rest)


def _marks(column: Column, cells: Iterable[Cell]) -> dict[str, str]:
    """Return the styles of a column's cells by their text."""
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    if column.kind in {"p", "exact p"}:
        return {cell_text(column, p): SIGNIFICANT_P for p in numbers if p < SIGNIFICANT}
    if not column.is_ranked:
        return {}
    return ranked(numbers, lower=column.lower_is_better, write=partial(cell_text, column))


class _Echo:
    """File object whose ``write`` returns its text, so ``writerow`` returns the line."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file, a row at a time; ``None`` stays empty."""
    writer = csv.writer(_Echo(), lineterminator="\n")
    return (str(writer.writerow(row)) for row in rows)


def to_csv(grid: Grid) -> str:
    """Return CSV at full precision; ranges take two columns, undefined values are empty."""
    names = (
        (f"{column.name} low", f"{column.name} high") if column.is_span else (column.name,) for column in grid.columns
    )
    rows = (
        chain.from_iterable(
            (cell if isinstance(cell, tuple) else (None, None)) if column.is_span else (cell,)
            for column, cell in zip(grid.columns, row, strict=True)
        )
        for row in grid.rows
    )
    return "".join(csv_lines(chain([chain.from_iterable(names)], rows)))


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


_LATEX_MARKS: Final[Mapping[str, tuple[str, str]]] = {BEST: (r"\textbf{", "}"), TIED: (r"\underline{", "}")}
_MARKDOWN_MARKS: Final[Mapping[str, str]] = {BEST: "**{}**", TIED: "*{}*"}


def to_latex(grid: Grid) -> str:
    """Return a ``tabular`` for the package booktabs, with title and notes as comments."""
    layout = "".join("l" if column.is_text else "r" for column in grid.columns)
    comments = ["% " + " ".join(line.split()) for line in (grid.title, *grid.notes)]
    head, *rows = [
        " & ".join(
            text.translate(_LATEX_ESCAPES).join(_LATEX_MARKS.get(styles.get(n, ""), ("", "")))
            for n, text in enumerate(row)
        )
        + r" \\"
        for row, styles in zip(
            chain([[column.name for column in grid.columns]], grid.written()),
            [{}, *(grid.styles or [{}] * len(grid.rows))],
            strict=True,
        )
    ]
    lines = [*comments, rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def markdown_cell(text: object) -> str:
    """Return text that stays in its cell of a Markdown table and is not read as markup."""
    flat = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~" else c for c in flat).replace("&", "&amp;")


def to_markdown(grid: Grid) -> str:
    """Return a table of Markdown, without its title; texts are escaped, ranges and figures are written as they are."""
    columns = grid.columns
    lines = [[markdown_cell(column.name) for column in columns]]
    for row, styles in zip(grid.rows, grid.styles or [{}] * len(grid.rows), strict=True):
        cells = enumerate(zip(columns, map(cell_text, columns, row), strict=True))
        lines.append(
            [
                _MARKDOWN_MARKS.get(styles.get(n, ""), "{}").format(
                    markdown_cell(text) if column.kind == "text" else text
                )
                for n, (column, text) in cells
            ]
        )
    head, *rows = ["| " + " | ".join(cells) + " |" for cells in lines]
    rule = "|" + "|".join("---" if column.is_text else "---:" for column in columns) + "|"
    return "\n".join([head, rule, *rows, ""])
