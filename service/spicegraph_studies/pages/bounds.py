"""Bounds as tables, charts and long tables for programs."""

from __future__ import annotations

from dataclasses import astuple, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import (
    HUMAN_INK,
    Box,
    Column,
    Grid,
    Mark,
    Row,
    box_chart,
    headings,
    ink,
    interval_chart,
)
from spicegraph_studies.bounds import Distribution
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_service.kit import Cell, Span
    from spicegraph_studies.bounds import Bound, BoundsResult, TrialBounds
    from spicegraph_studies.bounds.results import Pairs


_SPREADS = ("captions", "images", "within")
_SCORES = ("value", "low", "high", "percent", "percent_low", "percent_high")


def _scores(result: BoundsResult) -> Grid:
    """Return a row for each score of each trial."""
    columns = (
        *(Column(name, "text") for name in ("trial", "kind", "score")),
        *(Column(name) for name in _SCORES),
        *(Column(f"{spread}_{part.name}") for spread in _SPREADS for part in fields(Distribution)),
    )
    rows: list[Sequence[Cell]] = []
    for trial in result.trials:
        for bound in trial.scores:
            share = astuple(bound.share) if bound.share else (None, None, None)
            spreads = (cell for spread in _SPREADS for cell in astuple(getattr(bound, spread)))
            rows.append((trial.name, trial.kind, bound.name, bound.value, bound.low, bound.high, *share, *spreads))
    return Grid("scores", columns, rows)


def _rounds(result: BoundsResult) -> Grid:
    """Return a row for each round of each score of each trial."""
    columns = (
        *(Column(name, "text") for name in ("trial", "kind", "score")),
        *headings("round|count", "value"),
    )
    rows = [
        (trial.name, trial.kind, bound.name, number, value)
        for trial in result.trials
        for bound in trial.scores
        for number, value in enumerate(bound.rounds)
    ]
    return Grid("rounds", columns, rows)


def _ranking(result: BoundsResult) -> Grid:
    """Return a row for every two scores, over captions and over images."""
    columns = (
        *(Column(name, "text") for name in ("over", "first", "second")),
        *headings("tau_b", "p|p"),
    )
    names = result.ranking.names
    rows = [
        (over, names[index], names[other], pair.value, pair.p)
        for over, square in (("captions", result.ranking.captions), ("images", result.ranking.images))
        for index, row in enumerate(square)
        for other, pair in enumerate(row)
        if index < other
    ]
    return Grid("ranking", columns, rows)


BOUNDS_TABLES: Mapping[str, Callable[[BoundsResult], Grid]] = {
    "scores": _scores,
    "rounds": _rounds,
    "ranking": _ranking,
}
"""The tables that CSV can hold; the first is the default."""


def metric_charts(result: BoundsResult) -> list[Chart]:
    """Draw, for each metric, all its scores with their intervals, and the first of them as boxes."""
    return [
        chart for metric in result.human.metrics for chart in (_score_chart(result, metric), _box_chart(result, metric))
    ]


def _score_chart(result: BoundsResult, metric: str) -> Chart:
    inks = _inks(result.trials)
    first, *others = (bound.name for bound in result.human.metrics[metric])
    categories = all(name.startswith(f"{first}_") for name in others)
    rows = [
        Row(
            bound.name.removeprefix(f"{first}_") if categories else bound.name,
            [
                Mark(
                    trial.name,
                    metric_bound.value,
                    metric_bound.low,
                    metric_bound.high,
                    colour,
                    _share_note(metric_bound),
                )
                for trial, colour in zip(result.trials, inks, strict=True)
                for metric_bound in (trial.metrics[metric][place],)
            ],
        )
        for place, bound in enumerate(result.human.metrics[metric])
    ]
    svg = interval_chart(f"{metric}: people, systems and lower bounds", rows, axis="corpus score", description=_TABLE)
    title = f"{first} and its categories" if others and categories else ", ".join((first, *others))
    return Chart(svg, title, list(zip(inks, (trial.name for trial in result.trials), strict=True)))


def _box_chart(result: BoundsResult, metric: str) -> Chart:
    title = f"{result.human.metrics[metric][0].name} of single captions"
    boxes = [
        Box(trial.name, [getattr(trial.metrics[metric][0].captions, part) for part in _PARTS], colour)
        for trial, colour in zip(result.trials, _inks(result.trials), strict=True)
    ]
    described = f"Boxes from the first to the third quartile, lines from the least to the most. {_TABLE}"
    return Chart(box_chart(title, boxes, axis=title, description=described), title)


_PARTS = ("minimum", "q1", "median", "q3", "maximum", "mean")
_TABLE = "The tables have the numbers."


def _inks(trials: Sequence[TrialBounds]) -> list[str]:
    return [ink(place - 1) if place else HUMAN_INK for place in range(len(trials))]


def _share_note(bound: Bound) -> str:
    if bound.share is None:
        return "the upper bound"
    return "no human score" if bound.share.percent is None else f"{bound.share.percent:.1f} % of the human score"


_SYSTEMS_TOGETHER: Final = 2
_LOWER_TOGETHER: Final = 4
_RANKS_TOGETHER: Final = 16
"""So many side by side fit a terminal."""

_INTERVALS = (
    "Intervals: 95 % percentile bootstrap over images, the same draws for people and what stands in their place."
)
_SPREAD = "Mean to max: single captions. Of images: means of each image's captions."
_METHOD = (
    "Round k holds out caption k of every image; an image with fewer captions starts again from its first. Each round "
    "is a corpus that a metric scores as any other: BLEU sums its counts, and CIDEr takes its document frequencies "
    "from the references in it unless they were given. A corpus score here is the mean of the rounds'. Each caption "
    "counts once in the spread over captions (micro), and in its image's mean (macro).",
    "After Wang and Gaizauskas, LREC 2016, “Cross-validating Image Description Datasets and Evaluation Metrics”.",
)
_CHARTS = (
    "Points: corpus scores with 95 % intervals, in the order and the colours of the boxes. Boxes: single captions, "
    "from the first to the third quartile, with the median as a gap, the mean as a diamond, and a line from the least "
    "to the most."
)


def bounds_study(result: BoundsResult) -> Study:
    """Return the study of bounds."""
    systems = [trial for trial in result.trials if trial.kind == "system"]
    lower = [trial for trial in result.trials if trial.kind == "lower"]
    return Study(
        "How high and how low scores can go",
        tuple(_facts(result)),
        (
            Section("charts", "Charts", (_CHARTS,), charts=partial(metric_charts, result)),
            Section("people", "People", (), (_people(result.human),)),
            Section("systems", "Systems", (), tuple(_systems(result.human, systems))),
            Section("lower", "Lower bounds", (), tuple(_lower(result.human, lower))),
            Section("spread", "Intervals and spread", (), tuple(_details(result)), is_detail=True),
            Section("ranking", "Agreement of metrics", (), tuple(_rankings(result))),
            Section("method", "Method", _METHOD),
        ),
        {name: table(result) for name, table in BOUNDS_TABLES.items()},
        result.to_dict(),
        result.signature,
        _verdict(result.human.scores[0], [(trial.name, trial.scores[0]) for trial in systems], lower),
    )


def _verdict(human: Bound, systems: Sequence[tuple[str, Bound]], lower: Sequence[TrialBounds]) -> tuple[str, str]:
    """Say how far people and systems get by the first score, and what a caption without the image gets."""
    if human.value is None:
        return f"{human.name} is undefined for people", ""
    sentences = [
        f"{name} {system_bound.value:.3f} ({system_bound.share.percent:.0f} % of people's)"
        for name, system_bound in systems
        if system_bound.value is not None and system_bound.share is not None and system_bound.share.percent is not None
    ]
    headline = f"People reach {human.name} {human.value:.3f}" + "".join(f"; {text}" for text in sentences)
    floors = [(trial.scores[0].value, trial) for trial in lower if trial.scores[0].value is not None]
    floor = ""
    if floors:
        value, trial = max(floors, key=lambda floor: floor[0] or 0.0)
        floor = f"Without the image, {trial.title} ({trial.name}) gets most: {value:.3f}."
    return headline, floor


def _facts(result: BoundsResult) -> Iterator[str]:
    few, most = result.references
    against = f"{few}" if few == most else f"{few} to {most}"
    sizes = (counted(result.images, "image"), counted(result.captions, "caption"), counted(result.rounds, "round"))
    yield ", ".join(sizes) + "."
    yield (
        f"Every caption is held out once and scored against the {against} others of its image: how well people do. "
        "What stands in its place is scored against the same captions."
    )
    if result.lower_is_better:
        yield (
            f"Lower is better: {', '.join(result.lower_is_better)}. Of these, under 100 % of the human score is better "
            "than people; ranks are turned round."
        )


_SPREAD_COLUMNS = "mean", "sd", "min", "q1", "median", "q3", "max"
"""The headings of a distribution's fields, without their number."""


def _people(human: TrialBounds) -> Grid:
    first = headings("Score|text", "Human|score", "95 % interval|score span")
    columns = (*first, *headings(*_SPREAD_COLUMNS, "mean of images", "sd of images"))
    rows = [
        (b.name, b.value, (b.low, b.high), *astuple(b.captions)[1:], b.images.mean, b.images.sd) for b in human.scores
    ]
    return Grid("People against people (upper bound)", columns, rows, (_INTERVALS, _SPREAD))


def _systems(human: TrialBounds, systems: Sequence[TrialBounds]) -> Iterator[Grid]:
    """Yield each system's scores and what part of the human score they are, with intervals."""
    for together in _parts(systems, _SYSTEMS_TOGETHER):
        columns = (
            *headings("Score|text", "Human|score"),
            *(
                column
                for trial in together
                for column in (
                    Column(trial.name, "score"),
                    *headings("95 % interval|score span", "%|percent", "95 % of it|percent span"),
                )
            ),
        )
        rows = [
            (
                bound.name,
                bound.value,
                *(
                    cell
                    for system_bound in others
                    for cell in (system_bound.value, (system_bound.low, system_bound.high), *_share(system_bound))
                ),
            )
            for bound, *others in zip(human.scores, *(trial.scores for trial in together), strict=True)
        ]
        yield Grid("Systems; %: of the human score", columns, rows)


def _lower(human: TrialBounds, lower: Sequence[TrialBounds]) -> Iterator[Grid]:
    for together in _parts(lower, _LOWER_TOGETHER):
        columns = (
            *headings("Score|text", "Human|score"),
            *(column for trial in together for column in (Column(trial.name, "score"), Column("%", "percent"))),
        )
        rows = [
            (
                bound.name,
                bound.value,
                *(cell for lower_bound in others for cell in (lower_bound.value, _share(lower_bound)[0])),
            )
            for bound, *others in zip(human.scores, *(trial.scores for trial in together), strict=True)
        ]
        notes = [f"{trial.name}: {trial.title}." for trial in together]
        yield Grid("Lower bounds; %: of the human score", columns, rows, notes)


def _share(bound: Bound) -> tuple[float | None, Span]:
    """Return the part of the human score that a score is, and its interval."""
    share = bound.share
    if share is None or share.percent is None:
        return None, (None, None)
    return share.percent / 100, (_hundredth(share.low), _hundredth(share.high))


def _hundredth(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _details(result: BoundsResult) -> Iterator[Grid]:
    """Yield every score of every trial: its intervals, then its spread over captions, over images, and within them."""
    first = headings("Score|text", "Of|text")
    intervals = headings(
        "Corpus score|score", "95 % interval|score span", "% of human|percent", "95 % interval|percent span"
    )
    rows: list[Sequence[Cell]] = [
        (bound.name, trial.name, bound.value, (bound.low, bound.high), *_share(bound)) for bound, trial in _all(result)
    ]
    yield Grid("Corpus scores, and in per cent of the human score", (*first, *intervals), rows, is_grouped=True)
    for title, part in (
        ("Over captions (micro): every held-out caption counts once", "captions"),
        ("Over images (macro): means of each image's captions", "images"),
        ("Standard deviations within an image", "within"),
    ):
        columns = (*first, *headings("n|count", *_SPREAD_COLUMNS))
        rows = [(bound.name, trial.name, *astuple(getattr(bound, part))) for bound, trial in _all(result)]
        yield Grid(title, columns, rows, is_grouped=True)


def _all(result: BoundsResult) -> Iterator[tuple[Bound, TrialBounds]]:
    """Yield every score of every trial, score by score."""
    for bounds in zip(*(trial.scores for trial in result.trials), strict=True):
        yield from zip(bounds, result.trials, strict=True)


def _rankings(result: BoundsResult) -> Iterator[Grid]:
    ranking = result.ranking
    if len(ranking.names) > 1:
        yield from _squares(
            "Kendall's tau-b of every two scores of people, over captions", ranking.names, ranking.captions
        )
        yield from _squares("The same over images, by the mean of their captions", ranking.names, ranking.images)


def _squares(title: str, names: Sequence[str], pairs: Pairs) -> Iterator[Grid]:
    """Yield a square, in parts that fit a terminal; columns have the numbers of the rows."""
    for places in _parts(range(len(names)), _RANKS_TOGETHER):
        columns = (Column("", "text"), *(Column(f"{place + 1}", "short") for place in places))
        rows = [
            (f"{number} {name}", *(row[place].value for place in places))
            for number, (name, row) in enumerate(zip(names, pairs, strict=True), start=1)
        ]
        yield Grid(title, columns, rows)


def _parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut into parts of at most ``size``."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
