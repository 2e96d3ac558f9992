"""The bounds of several corpora side by side, as tables and charts."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Mark, headings, ink, interval_chart
from spicegraph_studies.bounds import HUMAN
from spicegraph_studies.pages.bounds import BOUNDS_TABLES, bounds_study
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_service.kit import Cell
    from spicegraph_studies.bounds import Bound, BoundsResult

_METHOD: Final = (
    "Each corpus is a study of its own: every caption is held out once and scored against the others of its image, and "
    "so is each replacement text. Document frequencies, unless given, are those of each corpus. Of a corpus with "
    "more captions an image BLEU and METEOR are higher: compare corpora with --draw.",
    "After Wang and Gaizauskas, LREC 2016, “Cross-validating Image Description Datasets and Evaluation Metrics”.",
)


def corpora_study(results: Mapping[str, BoundsResult]) -> Study:
    """Return the study of several corpora by their names."""
    singles = {name: bounds_study(result) for name, result in results.items()}
    facts = []
    for name, result in results.items():
        few, most = result.references
        against = f"{few}" if few == most else f"{few} to {most}"
        sizes = f"{counted(result.images, 'image')}, {counted(result.captions, 'caption')}"
        facts.append(f"{name}: {sizes}, each scored against the {against} others of its image.")
    columns = [Column(name, "score") for name in results]
    sections = [
        Section("charts", "Charts", charts=partial(_charts, results)),
        Section("people", "People", (), (_upper(results, columns),)),
        Section("lower", "Lower bounds", (), tuple(_lower(results, columns))),
        Section("ranking", "Agreement of metrics", (), tuple(_rankings(results, columns))),
        Section("method", "Method", _METHOD),
    ]
    tables = {
        table: _stacked(table, {name: study.tables[table] for name, study in singles.items()})
        for table in BOUNDS_TABLES
    }
    corpora: list[Json] = [{"name": name, **result.to_dict()} for name, result in results.items()]
    return Study(
        "How high and how low scores can go, corpus by corpus",
        facts,
        sections,
        tables,
        {"corpora": corpora},
        _signature(results),
    )


def _upper(results: Mapping[str, BoundsResult], columns: Sequence[Column]) -> Grid:
    by_corpus = [_bounds(result, HUMAN) for result in results.values()]
    rows: list[Sequence[Cell]] = [
        (name, *(bounds[name].value for bounds in by_corpus), *(bounds[name].captions.sd for bounds in by_corpus))
        for name in by_corpus[0]
    ]
    spread = [Column(f"sd {column.name}") for column in columns]
    notes = ["Score: the mean of the rounds' corpus scores. sd: over all captions."]
    return Grid("People against people (upper bound)", (*headings("Score|text"), *columns, *spread), rows, notes)


def _lower(results: Mapping[str, BoundsResult], columns: Sequence[Column]) -> Iterator[Grid]:
    trials = dict.fromkeys(trial.name for result in results.values() for trial in result.trials if trial.name != HUMAN)
    by_corpus = [{trial: _bounds(result, trial) for trial in trials} for result in results.values()]
    rows: list[Sequence[Cell]] = []
    for name in _bounds(next(iter(results.values())), HUMAN):
        for trial in trials:
            found = [bounds[trial].get(name) for bounds in by_corpus]
            rows.append((name, trial, *map(_value, found), *map(_share_of_people, found)))
    percents = [Column(f"% {column.name}", "percent") for column in columns]
    if rows:
        heads = (*headings("Score|text", "Of|text"), *columns, *percents)
        yield Grid("Lower bounds; %: of the human score", heads, rows, is_grouped=True)


def _value(bound: Bound | None) -> float | None:
    return bound.value if bound else None


def _share_of_people(bound: Bound | None) -> float | None:
    share = bound.share.value if bound and bound.share else None
    return None if share is None else share / 100


def _rankings(results: Mapping[str, BoundsResult], columns: Sequence[Column]) -> Iterator[Grid]:
    names = list(next(iter(results.values())).ranking["captions"])
    for over in ("captions", "images") if len(names) > 1 else ():
        rows: list[Sequence[Cell]] = [
            (first, second, *(result.ranking[over][first][second].value for result in results.values()))
            for first, second in combinations(names, 2)
        ]
        yield Grid(
            f"Kendall's tau-b of every two scores of people, over {over}",
            (*headings("First|text", "Second|text"), *columns),
            rows,
        )


def _bounds(result: BoundsResult, trial: str) -> dict[str, Bound]:
    return {bound.name: bound for each in result.trials if each.name == trial for bound in each.scores}


def _charts(results: Mapping[str, BoundsResult]) -> list[Chart]:
    """Draw, for each metric, people's scores in every corpus with their intervals."""
    inks = {name: ink(place) for place, name in enumerate(results)}
    charts = []
    for metric, bounds in next(iter(results.values())).human.metrics.items():
        rows = [
            (
                bound.name,
                [
                    Mark(name, each.value, each.low, each.high, inks[name])
                    for name, result in results.items()
                    for each in (result.human.metrics[metric][place],)
                ],
            )
            for place, bound in enumerate(bounds)
        ]
        title = f"{', '.join(bound.name for bound in bounds[:4])} of people in each corpus"
        svg = interval_chart(title, rows, axis="corpus score", description="The tables have the numbers.")
        charts.append(Chart(svg, title, [(colour, name) for name, colour in inks.items()]))
    return charts


def _stacked(title: str, grids: Mapping[str, Grid]) -> Grid:
    """Return one long table of several, with the corpus in a first column."""
    rows: list[Sequence[Cell]] = [(name, *row) for name, grid in grids.items() for row in grid.rows]
    return Grid(title, (Column("corpus", "text"), *next(iter(grids.values())).columns), rows)


def _signature(results: Mapping[str, BoundsResult]) -> dict[str, Any]:
    first = dict(next(iter(results.values())).signature)
    references: list[Any] = [result.signature["references"] for result in results.values()]
    digests = {name: each["digest"] for name, each in zip(results, references, strict=True)}
    metrics: Any = first["metrics"]
    own = {"document frequencies": "each corpus's own"}
    first["metrics"] = {
        name: {**signature, **(own if "document frequencies" in signature else {})}
        for name, signature in metrics.items()
    }
    return {
        "spicegraph": first.pop("spicegraph"),
        "corpora": digests,
        **{k: first[k] for k in first if k not in ("items", "references")},
    }
