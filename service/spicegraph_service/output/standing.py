"""Who is best in each category, and how surely: systems by category, as in the table of the SPICE paper."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.metric import ReadyScores
from spicegraph_scorer.core.significance import SIGNIFICANT, Comparison, Resampling, compare, corrected
from spicegraph_service.output.grid import BEST, TIED, Column, Grid
from spicegraph_service.output.pages import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Result, Run
    from spicegraph_service.output.grid import Cell

LABELS: Final[Mapping[str, str]] = {ALL: "SPICE", "Cardinality": "Count"}  # What people read for a category's name.
_ORDER: Final = (ALL, "Object", "Relation", "Attribute", "Color", "Cardinality", "Size")  # that of the paper's table
_PLURALS: Final[Mapping[str, str]] = {
    "Object": "objects",
    "Relation": "relations",
    "Attribute": "attributes",
    "Color": "colors",
    "Cardinality": "counts",
    "Size": "sizes",
}


def label(name: str) -> str:
    """Return the display label of a category or of its score."""
    score, _, category = name.partition("_")
    return f"{score}_{LABELS[category]}" if category in LABELS else LABELS.get(name, name)


@dataclass(frozen=True, slots=True)
class Standing:
    """How systems stand in a category: their mean F1, who is best, and who is not surely worse."""

    category: str
    items: int  # the means rest on
    values: tuple[float | None, ...]  # by system
    best: int | None  # a system's position; ``None``: no system has a value
    ps: tuple[
        float | None, ...
    ]  # by system, that chance alone makes it worse than the best, corrected; None of the best
    human: float | None = None  # of the references held out
    random: float | None = None  # of a caption of another image

    @property
    def tied(self) -> tuple[int, ...]:
        """The systems that are not surely worse than the best."""
        others = enumerate(zip(self.values, self.ps, strict=True))
        return tuple(
            system
            for system, (value, p) in others
            if system != self.best and value is not None and (p is None or p >= SIGNIFICANT)
        )

    @property
    def is_sure(self) -> bool:
        """Whether every other system is surely worse than the best."""
        return self.best is not None and not self.tied and len(self.values) > 1


def standings(
    categories: Sequence[str],
    values: Sequence[Sequence[float | None]],
    items: Sequence[int],
    tests: Mapping[tuple[int, int], Mapping[str, Comparison]],
) -> tuple[Standing, ...]:
    """Return how systems stand: their values and the number of items by category, and the tests of each two by both."""
    columns = dict(zip(categories, zip(*values, strict=True), strict=True))
    best = {name: _best(column) for name, column in columns.items()}
    systems = range(len(values))
    others = [(name, first, system) for name, first in best.items() if first is not None for system in systems]
    worse = [(name, first, system) for name, first, system in others if system != first]
    looked_at = corrected(tests[min(first, system), max(first, system)][name] for name, first, system in worse)
    ps = {(name, system): test.p_corrected for (name, _, system), test in zip(worse, looked_at, strict=True)}
    found = [
        Standing(name, count, columns[name], best[name], tuple(ps.get((name, system)) for system in systems))
        for name, count in zip(categories, items, strict=True)
    ]
    rank = {name: place for place, name in enumerate(_ORDER)}
    return tuple(sorted(found, key=lambda standing: rank.get(standing.category, len(rank))))


def _best(values: Sequence[float | None]) -> int | None:
    """Return the place of the highest value, of equal ones the first."""
    known = {place: value for place, value in enumerate(values) if value is not None}
    return max(known, key=known.__getitem__, default=None)


def result_standings(results: Sequence[Result], resampling: Resampling) -> tuple[Standing, ...]:
    """Return how results of the same items stand in the categories of their first metric that has any."""
    place = next((n for n, run in enumerate(results[0].runs) if run.headline != run.scores), None)
    if place is None:
        return ()
    runs = [result.runs[place] for result in results]
    means = [run.categories() for run in runs]
    values = [[row.f for row in of_system.values()] for of_system in means]
    tests = _category_tests(runs, tuple(means[0]), resampling)
    return standings(tuple(means[0]), values, [row.items for row in means[0].values()], tests)


def _category_tests(
    runs: Sequence[Run], categories: tuple[str, ...], resampling: Resampling
) -> dict[tuple[int, int], dict[str, Comparison]]:
    """Return the tests of each two runs by category."""
    scores = [list(zip(*(score.each for score in run.scores), strict=True)) for run in runs]
    metric = ReadyScores(categories)
    return {
        (a, b): {test.name: test for test in compare(metric, scores[a], scores[b], resampling=resampling)}
        for a, b in combinations(range(len(runs)), 2)
    }


def best_points(rows: Sequence[Standing], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield who is best in each category but the total, how surely, and on how many images."""
    for row in rows:
        if row.category == ALL or row.best is None:
            continue
        best = f"{names[row.best]} ({number(row.values[row.best])})"
        rest = "".join(f" or {names[system]} ({number(row.values[system])})" for system in row.tied)
        sure = "" if row.is_sure else ", not sure"
        yield (
            f"Best at {_PLURALS.get(row.category, row.category)}",
            f"{best}{rest}, on {counted(row.items, 'image')}{sure}",
        )


def standing_grid(
    rows: Sequence[Standing], names: Sequence[str], others: Mapping[str, Sequence[float | None]] | None = None
) -> Grid:
    """Return the table of the SPICE paper: a line a system, a column a category, and ``others``, values by system."""
    more = others or {}
    columns = [Column("System", "text"), *(Column(label(row.category)) for row in rows), *map(Column, more)]
    shown = [line for line in _lines(rows, names, more) if any(cell is not None for cell in line[1])]
    cells = [(name, *row, *[None] * (len(columns) - 1 - len(row))) for name, row, _ in shown]
    styles = [styles for *_, styles in shown]
    return Grid("Systems by category", columns, cells, tuple(standing_notes(rows)), styles=styles)


def _lines(
    rows: Sequence[Standing], names: Sequence[str], more: Mapping[str, Sequence[float | None]]
) -> Iterator[tuple[str, Sequence[Cell], Mapping[int, str]]]:
    """Yield the lines of the table: names, cells, and the styles of these by column."""
    yield "Held-out reference", [row.human for row in rows], {}
    values = list(zip(*(row.values for row in rows), *more.values(), strict=True)) or [()] * len(names)
    for system, name in enumerate(names):
        yield name, values[system], _marks(rows, system)
    yield "Random caption", [row.random for row in rows], {}
    yield "Images", [str(row.items) for row in rows], {}


def _marks(rows: Sequence[Standing], system: int) -> dict[int, str]:
    """Return the styles of a system's values by column, where there are others."""
    return {
        n: BEST if row.best == system else TIED
        for n, row in enumerate(rows, 1)
        if len(row.values) > 1 and system in (row.best, *row.tied)
    }


def standing_notes(rows: Sequence[Standing]) -> Iterator[str]:
    """Yield the notes that explain the table's marks."""
    tests = sum(len(row.values) - 1 for row in rows if row.best is not None)
    if tests:
        yield (
            "Mean F1 over the images whose references have such tuples. The best is bold; underlined (in Markdown "
            "italic): not surely worse, by the larger p of both paired tests, corrected for "
            f"{tests} of them (Holm), at {SIGNIFICANT:g}."
        )
    if any(row.category == "Cardinality" for row in rows):
        yield "Count is SPICE's category Cardinality: the words one to ten, not digits."
