"""Bounds as tables, charts and long tables for programs."""

from __future__ import annotations

from dataclasses import astuple, fields
from functools import partial
from itertools import chain, combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import HUMAN_INK, Column, Grid, Line, Mark, box_chart, headings, ink, interval_chart
from spicegraph_studies.bounds import Bound, BoundsResult, Distribution, TrialBounds
from spicegraph_studies.pages import ends
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_service.kit import Cell, Span

BOUNDS_TABLES: Final = ("scores", "rounds", "ranking")  # the tables that CSV can hold; the first is the default

_SPREADS = ("captions", "images", "within")
_OF_SCORE = headings("trial|text", "kind|text", "score|text")
_SCORES = headings("value", "low", "high", "percent", "percent_low", "percent_high")
_RANKING = headings("over|text", "first|text", "second|text", "tau_b", "p|p")
_PARTS = ("minimum", "q1", "median", "q3", "maximum", "mean")
_TABLE = "The tables have the numbers."
_SYSTEMS_TOGETHER: Final = 2
_LOWER_TOGETHER: Final = 4
_RANKS_TOGETHER: Final = 16  # so many side by side fit a terminal

_INTERVALS = (
    "Intervals: 95 % percentile bootstrap over images, the same draws for people and for the replacement texts."
)
_SPREAD = "Mean to max: single captions. Of images: means of each image's captions."
_METHOD = (
    "Round k holds out caption k of every image; an image with fewer captions starts again from its first. Each round "
    "is a corpus that a metric scores as any other: BLEU sums its counts, and CIDEr takes its document frequencies "
    "from the references in it unless they were given. A corpus score here is the mean of the rounds', our own "
    "headline: with unequal numbers of captions it is neither average of Wang and Gaizauskas. Those are the means over "
    "captions (micro), in which each caption counts once, and over images (macro), of each image's mean.",
    "After Wang and Gaizauskas, LREC 2016, “Cross-validating Image Description Datasets and Evaluation Metrics”.",
)
_CHARTS = (
    "Points: corpus scores with 95 % intervals, in the order and the colours of the boxes. Boxes: single captions, "
    "from the first to the third quartile, with the median as a gap, the mean as a diamond, and a line from the least "
    "to the most."
)
_LENGTH_NOTE = (
    "Image by image, by the means of its held-out captions and of what the system says in their places. At equal "
    "length: the difference regressed on the log of the ratio of words; –: on no image are they of like length. A "
    "difference whose interval has 0 here may be one of length alone."
)
_SPREAD_COLUMNS = "mean", "sd", "min", "q1", "median", "q3", "max"
"""The headings of a distribution's fields, without their number."""
_OF_SYSTEM = headings("95 % interval|score span", "%|percent", "95 % of it|percent span")


def _tables(result: BoundsResult) -> Iterator[Grid]:
    """Yield the long tables: the scores of each trial, those of each round, and tau-b of every two scores."""
    bounds = [(trial.name, trial.kind, bound) for trial in result.trials for bound in trial.scores]
    spread_columns = (Column(f"{spread}_{part.name}") for spread in _SPREADS for part in fields(Distribution))
    yield Grid("scores", (*_OF_SCORE, *_SCORES, *spread_columns), [_score_row(*each) for each in bounds])
    rows: list[Sequence[Cell]] = [
        (name, kind, bound.name, number, value)
        for name, kind, bound in bounds
        for number, value in enumerate(bound.rounds)
    ]
    yield Grid("rounds", (*_OF_SCORE, *headings("round|count", "value")), rows)
    rows = [
        (over, first, second, square[first][second].value, square[first][second].p)
        for over, square in result.ranking.items()
        for first, second in combinations(square, 2)
    ]
    yield Grid("ranking", _RANKING, rows)


def _score_row(name: str, kind: str, bound: Bound) -> Sequence[Cell]:
    share = bound.share[:3] if bound.share else (None, None, None)
    spreads = chain.from_iterable(astuple(getattr(bound, spread)) for spread in _SPREADS)
    return name, kind, bound.name, bound.value, bound.low, bound.high, *share, *spreads


def metric_charts(result: BoundsResult) -> list[Chart]:
    """Draw, for each metric, all its scores with their intervals, and the first of them as boxes."""
    inks = [ink(place - 1) if place else HUMAN_INK for place in range(len(result.trials))]
    trials = list(zip(result.trials, inks, strict=True))
    charts: list[Chart] = []
    for metric, human in result.human.metrics.items():
        charts += _intervals_of(metric, human, trials), _boxes_of(metric, human[0].name, trials)
    return charts


def _intervals_of(metric: str, human: Sequence[Bound], trials: Sequence[tuple[TrialBounds, str]]) -> Chart:
    """Draw all scores of a metric; ``trials`` have their colours."""
    first, *others = (bound.name for bound in human)
    categories = all(name.startswith(f"{first}_") for name in others)
    rows = []
    for place, bound in enumerate(human):
        found = [(trial.name, trial.metrics[metric][place], colour) for trial, colour in trials]
        marks = [Mark(name, each.value, each.low, each.high, colour, _share_note(each)) for name, each, colour in found]
        rows.append((bound.name.removeprefix(f"{first}_") if categories else bound.name, marks))
    svg = interval_chart(f"{metric}: people, systems and lower bounds", rows, axis="corpus score", description=_TABLE)
    title = f"{first} and its categories" if others and categories else ", ".join((first, *others))
    return Chart(svg, title, [(colour, trial.name) for trial, colour in trials])


def _boxes_of(metric: str, score: str, trials: Sequence[tuple[TrialBounds, str]]) -> Chart:
    """Draw the first score of a metric."""
    title = f"{score} of single captions"
    boxes = [
        Line(trial.name, [getattr(trial.metrics[metric][0].captions, part) for part in _PARTS], colour)
        for trial, colour in trials
    ]
    described = f"Boxes from the first to the third quartile, lines from the least to the most. {_TABLE}"
    return Chart(box_chart(title, boxes, axis=title, description=described), title)


def _share_note(bound: Bound) -> str:
    if bound.share is None:
        return "the upper bound"
    return "no human score" if bound.share.value is None else f"{bound.share.value:.1f} % of the human score"


def bounds_study(result: BoundsResult) -> Study:
    """Return the study of bounds."""
    systems = [trial for trial in result.trials if trial.kind == "system"]
    lower = [trial for trial in result.trials if trial.kind == "lower"]
    few, most = result.references
    against = f"{few}" if few == most else f"{few} to {most}"
    sizes = (counted(result.images, "image"), counted(result.captions, "caption"), counted(result.rounds, "round"))
    facts = [
        f"{', '.join(sizes)}.",
        f"Every caption is held out once and scored against the {against} others of its image: how well people do. "
        "The replacement text is scored against the same captions.",
    ]
    if result.lower_is_better:
        facts.append(
            f"Lower is better: {', '.join(result.lower_is_better)}. Of these, under 100 % of the human score is better "
            "than people; ranks are turned round."
        )
    columns = headings(
        "Score|text", "Human|score", "95 % interval|score span", *_SPREAD_COLUMNS, "mean of images", "sd of images"
    )
    rows = [
        (b.name, b.value, ends(b), *astuple(b.captions)[1:], b.images.mean, b.images.sd) for b in result.human.scores
    ]
    people = Grid("People against people (upper bound)", columns, rows, (_INTERVALS, _SPREAD))
    return Study(
        "How high and how low scores can go",
        facts,
        (
            Section("charts", "Charts", (_CHARTS,), charts=partial(metric_charts, result)),
            Section("people", "People", (), (people,)),
            Section("systems", "Systems", (), tuple(_beside_people(result.human, systems))),
            Section("length", "Systems at equal length", (), tuple(_length(result))),
            Section("lower", "Lower bounds", (), tuple(_beside_people(result.human, lower, is_lower=True))),
            Section("spread", "Intervals and spread", (), tuple(_details(result)), is_detail=True),
            Section("ranking", "Agreement of metrics", (), tuple(_rankings(result))),
            Section("method", "Method", _METHOD),
        ),
        dict(zip(BOUNDS_TABLES, _tables(result), strict=True)),
        result.to_dict(),
        result.signature,
        _verdict(result.human.scores[0], [(trial.name, trial.scores[0]) for trial in systems], lower),
    )


def _verdict(human: Bound, systems: Sequence[tuple[str, Bound]], lower: Sequence[TrialBounds]) -> tuple[str, str]:
    """Return sentences on people's and systems' first score, and on captions without the image."""
    if human.value is None:
        return f"{human.name} is undefined for people", ""
    sentences = [
        f"{name} {system_bound.value:.3f} ({system_bound.share.value:.0f} % of people's)"
        for name, system_bound in systems
        if system_bound.value is not None and system_bound.share is not None and system_bound.share.value is not None
    ]
    headline = f"People reach {human.name} {human.value:.3f}" + "".join(f"; {text}" for text in sentences)
    return headline, _floor(lower)


def _floor(lower: Sequence[TrialBounds]) -> str:
    floors = [(trial.scores[0].value, trial) for trial in lower if trial.scores[0].value is not None]
    if not floors:
        return ""
    value, trial = max(floors, key=itemgetter(0))
    return f"Without the image, {trial.title} ({trial.name}) gets most: {value:.3f}."


def _beside(bound: Bound, *, is_lower: bool) -> Sequence[Cell]:
    share, interval = _share(bound)
    return (bound.value, share) if is_lower else (bound.value, ends(bound), share, interval)


def _beside_people(human: TrialBounds, trials: Sequence[TrialBounds], *, is_lower: bool = False) -> Iterator[Grid]:
    """Yield tables of trials' scores and shares of the human score; systems' with intervals."""
    title, most, more = (
        ("Lower bounds", _LOWER_TOGETHER, headings("%|percent"))
        if is_lower
        else ("Systems", _SYSTEMS_TOGETHER, _OF_SYSTEM)
    )
    for together in _parts(trials, most):
        columns = [*headings("Score|text", "Human|score")]
        for trial in together:
            columns += Column(trial.name, "score"), *more
        rows = []
        for bound, *others in zip(human.scores, *(trial.scores for trial in together), strict=True):
            cells = chain.from_iterable(_beside(each, is_lower=is_lower) for each in others)
            rows.append((bound.name, bound.value, *cells))
        notes = [f"{trial.name}: {trial.title}." for trial in together] if is_lower else []
        yield Grid(f"{title}; %: of the human score", columns, rows, notes)


def _length(result: BoundsResult) -> Iterator[Grid]:
    """Yield the table of length: how often longer captions win, and differences at equal length."""
    columns = headings(
        "System|text", "Score|text", "the longer has more|percent", "system - people at equal length|score",
        "95 % interval|score span",
    )  # fmt: skip
    rows = [
        (system, name, control.longer_wins, control.difference, ends(control))
        for system, controls in result.length.items()
        for name, control in controls.items()
    ]
    if rows:
        first = {system: next(iter(controls.values())).words for system, controls in result.length.items() if controls}
        words = "; ".join(f"{system} {ours:.0f} words, people {theirs:.0f}" for system, (ours, theirs) in first.items())
        yield Grid(f"Length: {words}", columns, rows, (_LENGTH_NOTE,), is_grouped=True)


def _share(bound: Bound) -> tuple[float | None, Span]:
    """Return the part of the human score that a score is, and its interval."""
    part, *interval = (None if each is None else each / 100 for each in bound.share[:3]) if bound.share else [None] * 3
    return part, (interval[0], interval[1]) if part is not None else (None, None)


def _details(result: BoundsResult) -> Iterator[Grid]:
    """Yield every score of every trial: its intervals, then its spread over captions, over images, and within them."""
    first = headings("Score|text", "Of|text")
    intervals = headings(
        "Corpus score|score", "95 % interval|score span", "% of human|percent", "95 % interval|percent span"
    )
    rows: list[Sequence[Cell]] = [
        (bound.name, trial.name, bound.value, ends(bound), *_share(bound)) for bound, trial in _all(result)
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
    """Yield squares of tau-b, in parts that fit a terminal; columns have the numbers of the rows."""
    squares = (
        ("Kendall's tau-b of every two scores of people, over captions", result.ranking["captions"]),
        ("The same over images, by the mean of their captions", result.ranking["images"]),
    )
    for title, square in squares if len(squares[0][1]) > 1 else ():
        for places in _parts(range(len(square)), _RANKS_TOGETHER):
            columns = (Column("", "text"), *(Column(f"{place + 1}", "short") for place in places))
            rows = [
                (f"{number} {name}", *(list(row.values())[place].value for place in places))
                for number, (name, row) in enumerate(square.items(), start=1)
            ]
            yield Grid(title, columns, rows)


def _parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut into parts of at most ``size``."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
