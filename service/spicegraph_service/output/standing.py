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

    from spicegraph_scorer.core.results import Result
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
    """Return what people read for the name of a category, or for that of its score."""
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
    best: dict[str, int | None] = {}
    for name, column in columns.items():
        known = {system: value for system, value in enumerate(column) if value is not None}
        best[name] = max(known, key=known.__getitem__, default=None)
    pairs = {
        (name, system): (min(first, system), max(first, system))
        for name, first in best.items()
        for system in range(len(values))
        if first is not None and system != first
    }
    looked_at = corrected(tests[pair][name] for (name, _), pair in pairs.items())
    ps = {key: test.p_corrected for key, test in zip(pairs, looked_at, strict=True)}
    found = {
        name: Standing(name, count, columns[name], best[name], tuple(ps.get((name, s)) for s in range(len(values))))
        for name, count in zip(categories, items, strict=True)
    }
    return tuple(found[name] for name in (*(n for n in _ORDER if n in found), *(n for n in found if n not in _ORDER)))


def result_standings(results: Sequence[Result], resampling: Resampling) -> tuple[Standing, ...]:
    """Return how results of the same items stand in the categories of their first metric that has any."""
    place = next((n for n, run in enumerate(results[0].runs) if run.headline != run.scores), None)
    if place is None:
        return ()
    runs = [result.runs[place] for result in results]
    means = [run.categories() for run in runs]
    scores = [list(zip(*(score.each for score in run.scores), strict=True)) for run in runs]
    metric = ReadyScores(tuple(means[0]))
    tests = {
        (a, b): {test.name: test for test in compare(metric, scores[a], scores[b], resampling=resampling)}
        for a, b in combinations(range(len(results)), 2)
    }
    values = [[row.f for row in of_system.values()] for of_system in means]
    return standings(tuple(means[0]), values, [row.items for row in means[0].values()], tests)


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
    lines: list[tuple[str, Sequence[Cell], Mapping[int, str]]] = [
        ("Held-out reference", [row.human for row in rows], {}),
        *(
            (name, [*(row.values[n] for row in rows), *(each[n] for each in more.values())], _marks(rows, n))
            for n, name in enumerate(names)
        ),
        ("Random caption", [row.random for row in rows], {}),
        ("Images", [str(row.items) for row in rows], {}),
    ]
    shown = [line for line in lines if any(cell is not None for cell in line[1])]
    cells = [(name, *row, *[None] * (len(columns) - 1 - len(row))) for name, row, _ in shown]
    return Grid(
        "Systems by category", columns, cells, tuple(standing_notes(rows)), styles=[styles for *_, styles in shown]
    )


def _marks(rows: Sequence[Standing], system: int) -> dict[int, str]:
    """Return the styles of a system's values by column, where there are others."""
    return {
        n: BEST if row.best == system else TIED
        for n, row in enumerate(rows, 1)
        if len(row.values) > 1 and system in (row.best, *row.tied)
    }


def standing_notes(rows: Sequence[Standing]) -> Iterator[str]:
    """Yield what the marks of the table mean."""
    tests = sum(len(row.values) - 1 for row in rows if row.best is not None)
    if tests:
        yield (
            "Mean F1 over the images whose references have such tuples. The best is bold; underlined (in Markdown "
            "italic): not surely worse, by the larger p of both paired tests, corrected for "
            f"{tests} of them (Holm), at {SIGNIFICANT:g}."
        )
    if any(row.category == "Cardinality" for row in rows):
        yield "Count is SPICE's category Cardinality: the words one to ten, not digits."
