"""From systems' captions to a report: every metric once, everything else from its statistics."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import chain, combinations, count, islice, permutations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.categories import ALL, Category, CategoryScore, Counts, category_means
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import CheckedItems, Fingerprint, Item, empty_candidates, in_order_of
from spicegraph_scorer.core.marks import NO_MARKS
from spicegraph_scorer.core.results import Run, collect, empty_graphs_of, run_of, signature_of
from spicegraph_scorer.core.significance import Interval, Resampling, compare, corrected
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.errors import ErrorReport, analyse_errors, hallucinations, wrong_statements
from spicegraph_scorer.errors.rules import COUNTS
from spicegraph_scorer.metrics import check_names, lower_is_better, make_metrics
from spicegraph_scorer.metrics.spice.categories import DIGITS
from spicegraph_scorer.metrics.spice.match import count_match
from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import resources
from spicegraph_service.output.standing import Standing, standings
from spicegraph_service.report.data import (
    CategoryRow,
    DigitCounts,
    GradedView,
    ImageView,
    MeanRow,
    Provenance,
    Report,
    ScoreChange,
    ScoreRow,
    SystemView,
)
from spicegraph_service.report.gates import gate_results, parse_gates
from spicegraph_service.report.images import Pictures, Span, candidate_view, image_sources, synset_views, with_spans
from spicegraph_service.report.sets import facts_together, metrics_of_sets, of_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.metric import Metric, Score
    from spicegraph_scorer.core.significance import Comparison
    from spicegraph_service.engines import System
    from spicegraph_service.report.data import CandidateView

_SPICE = "spice"
_SPICE_G = "spice-g"
_MOST_CHANGED = 25
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a report is made."""

    metrics: tuple[str, ...] = (_SPICE,)  # names from ``METRICS``; ``spice`` always belongs to them
    title: str | None = None  # the systems' names by default
    data: MetricData = field(default_factory=MetricData)
    images: Pictures | None = None  # ``None``: they are not shown
    resampling: Resampling = field(default_factory=Resampling)  # of intervals and tests
    human: bool = True  # score each image's first reference against the others
    provenance: Provenance | None = None  # when, and from what
    gates: tuple[str, ...] = ()  # conditions that the second of two systems must not fulfil; see :mod:`report.gates`


def build_report(
    systems: Sequence[System],
    options: ReportOptions | None = None,
    *,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
) -> Report:
    """Score the systems (different names, the same ids and references) and explain every tuple without a partner."""
    # What parses is a name or a value; ``CaptionPipeline`` and what ``local_facts`` gives know where words stand.
    options = options or ReportOptions()
    corpora = _corpora(systems)
    items = next(iter(corpora.values()))
    gates = parse_gates(options.gates, len(corpora))
    source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    spans: dict[str, tuple[Span, ...]] = {}
    sets = {text: captions for system in systems for text, captions in system.sets.items()}
    reading = with_spans(source, spans)
    given = resources(facts_together(reading, spans, sets) if sets else reading, progress, options.data)
    asked = check_names(options.metrics)
    metrics = make_metrics((_SPICE, *asked), given)
    if sets:
        metrics = metrics_of_sets(metrics[_SPICE], metrics)
    draws = options.resampling
    spice = metrics[_SPICE]
    views: list[SystemView] = []
    runs_of: list[Sequence[Run]] = []
    columns: list[Iterator[CandidateView]] = []
    for name, corpus in corpora.items():
        view, runs, errors = _score(name, corpus, of_items(metrics, corpus, sets), options.resampling)
        graded = _graded(name, runs, metrics, progress)
        views.append(replace(view, wrong=wrong_statements([why.explanation for why in graded if why is not None])))
        runs_of.append(runs)
        columns.append(_candidates(corpus, runs, metrics, errors, graded, spans=spans))
    empty = empty_candidates(chain.from_iterable(corpora.values()))
    marks = sum((corpus.marks for corpus in corpora.values()), NO_MARKS)
    fingerprint = replace(Fingerprint.of(items), empty=empty, marks=marks)
    signature = signature_of(fingerprint, {name: metric.signature() for name, metric in metrics.items()})
    signature["resampling"] = {**draws.signature(), "correction": "holm"}
    images = tuple(_image_views(list(map(metrics[_SPICE].reads, items)), columns, options.images))
    gained, lost = _changes(items, runs_of)
    human = _held_out(items, metrics, draws, sets) if options.human else None
    tests = {
        (a, b): corrected(
            test
            for before, after in zip(runs_of[a], runs_of[b], strict=True)
            for test in compare(metrics[before.name], before.statistics, after.statistics, resampling=draws)
        )
        for a, b in combinations(range(len(corpora)), 2)
    }
    names = tuple(corpora)
    return Report(
        options.title or " and ".join(corpora),
        version("spicegraph"),
        signature,
        len(items),
        tuple(metrics[_SPICE].by_category(runs_of[0][0].statistics[0])),
        ranked(tuple(views), lower_is_better(metrics)),
        human,
        {(names[a], names[b]): of_pair for (a, b), of_pair in tests.items()},
        gained,
        lost,
        images,
        synset_views(images),
        tuple(score.name for score in _other_scores(runs_of[0])),
        options.provenance,
        _first_score(runs_of[0], asked),
        _standings(views, tests, human, _of_random(items, spice, draws) if options.human else ()),
        gate_results(gates, views, [runs[0].statistics for runs in runs_of], tests, draws),
        tuple(
            f"{name}: {note}"
            for (name, corpus), runs in zip(corpora.items(), runs_of, strict=True)
            for note in empty_graphs_of(corpus, runs).notes()
        ),
        of_sets=bool(sets),
    )


def _image_views(
    items: Sequence[Item], columns: Sequence[Iterator[CandidateView]], pictures: Pictures | None
) -> Iterator[ImageView]:
    sources = image_sources(pictures, [item.id for item in items]) if pictures else {}
    for item, *candidates in zip(items, *columns, strict=True):
        yield ImageView(item.id, item.references, sources.get(item.id), tuple(candidates))


def _changes(
    items: Sequence[Item], runs_of: Sequence[Sequence[Run]]
) -> tuple[tuple[ScoreChange, ...], tuple[ScoreChange, ...]]:
    """Return the images on which the second of two systems is better, and those on which it is worse, most first."""
    if len(runs_of) != 2:
        return (), ()
    f1s = [[statistic.counts[ALL].f1 for statistic in runs[0].statistics] for runs in runs_of]
    rows = zip(items, *f1s, strict=True)
    changes = [ScoreChange(number, item.id, first, second) for number, (item, first, second) in enumerate(rows)]
    changes.sort(key=attrgetter("difference"))
    return (
        tuple(change for change in reversed(changes) if change.difference > _EQUAL)[:_MOST_CHANGED],
        tuple(change for change in changes if change.difference < -_EQUAL)[:_MOST_CHANGED],
    )


def _held_out(
    items: Sequence[Item], metrics: Mapping[str, Metric[Any]], draws: Resampling, sets: dict[str, tuple[str, ...]]
) -> SystemView | None:
    """Return how people score: the first reference of each image against its others, where each has others."""
    if any(len(item.references) < 2 for item in items):
        return None
    held_out = tuple(Item(item.id, item.references[0], item.references[1:]) for item in items)
    return _score("Held-out reference", held_out, of_items(metrics, held_out, sets), draws)[0]


def _first_score(runs: Sequence[Run], asked: Sequence[str]) -> str:
    """Return SPICE, which explains every error, unless only others were asked for."""
    return next((run.headline[0].name for run in runs if _SPICE not in asked and run.name in asked), "SPICE")


def _standings(
    views: Sequence[SystemView],
    tests: Mapping[tuple[int, int], Sequence[Comparison]],
    human: SystemView | None,
    chance: Sequence[float | None],
) -> tuple[Standing, ...]:
    """Return how the systems stand by category, between the references held out and a random caption."""
    names = [row.name for row in views[0].categories]
    by_category = {
        pair: {name: test for name in names for test in of_pair if test.name == _score_name(name)}
        for pair, of_pair in tests.items()
    }
    values = [[row.f for row in view.categories] for view in views]
    upper = {row.name: row.f for row in human.categories} if human else {}
    lower = dict(zip(names, chance, strict=False))
    return tuple(
        replace(row, human=upper.get(row.category), random=lower.get(row.category))
        for row in standings(names, values, [row.items for row in views[0].categories], by_category)
    )


def _of_random(items: Sequence[Item], spice: Metric[Any], draws: Resampling) -> tuple[float | None, ...]:
    """Return SPICE by category of captions of other images: the first reference of one for each image, drawn once."""
    if len(items) < 2:
        return ()
    order = draws.generator().permutation(len(items)).tolist()
    other = dict(zip(order, (*order[1:], order[0]), strict=True))
    drawn = tuple(replace(item, candidate=items[other[n]].references[0]) for n, item in enumerate(items))
    # Counts alone, without the evidence that nobody looks at.
    statistics = replace(spice, evidence=False).collect(Corpus(drawn))  # type: ignore[type-var]  # a dataclass
    return tuple(means.f for means in category_means(map(Spice.by_category, statistics)).values())


def _score_name(category: str) -> str:
    return "SPICE" if category == ALL else _CATEGORY + category


def _corpora(systems: Sequence[System]) -> dict[str, CheckedItems]:
    """Return the systems' items by name, all in the order of the first system's."""
    if not systems:
        raise InputError("a report needs at least one system")
    corpora: dict[str, CheckedItems] = {}
    for system in systems:
        if system.name in corpora:
            raise InputError(f"two systems have the name {system.name!a}: name them apart, NAME=FILE")
        items = check_items(system.items)
        for first, known in islice(corpora.items(), 1):
            items = in_order_of(known, items, names=(ascii(first), ascii(system.name)))
        corpora[system.name] = items
    return corpora


def _score(
    name: str, items: tuple[Item, ...], metrics: Mapping[str, Metric[Any]], draws: Resampling
) -> tuple[SystemView, list[Run], ErrorReport]:
    """Return a system's part of a report and what it was made from; SPICE's run is the first."""
    statistics = collect(items, metrics)
    runs = [run_of(key, metric, statistics[key], confidence=draws) for key, metric in metrics.items()]
    errors = analyse_errors(statistics[_SPICE])
    view = system_view(
        name,
        items,
        statistics[_SPICE],
        errors,
        scores=[score for run in runs for score in run.scores],
        bounds=[bound for run in runs for bound in run.intervals],
    )
    return view, runs, errors


def _graded(
    name: str, runs: Sequence[Run], metrics: Mapping[str, Metric[Any]], progress: Progress | None
) -> list[GradedView | None]:
    """Explain the SPICE-G of each caption, if it was asked for."""
    graded: list[GradedView | None] = []
    for statistic in next((run.statistics for run in runs if run.name == _SPICE_G), ()):
        graded.append(GradedView(statistic.weights[ALL].f1, metrics[_SPICE_G].explain(statistic)))
        if progress:
            progress(f"explaining SPICE-G of {name}", len(graded), len(runs[0].statistics))
    return graded or [None] * len(runs[0].statistics)


def _other_scores(runs: Sequence[Run]) -> list[Score]:
    """Return all scores but SPICE's and those by category."""
    return [score for run in runs if run.name != _SPICE for score in run.headline]


def _candidates(
    items: tuple[Item, ...],
    runs: Sequence[Run],
    metrics: Mapping[str, Metric[Any]],
    errors: ErrorReport,
    graded: Sequence[GradedView | None],
    *,
    spans: dict[str, tuple[Span, ...]],
) -> Iterator[CandidateView]:
    """Yield the view of each item's candidate, with how its scores come about and which words earned them."""
    corpus = Corpus(items)
    credits_of: list[dict[str, Credit]] = [{} for _ in items]
    for run in runs:
        metric, score = metrics[run.name], run.scores[0]
        if metric.credits and None not in score.each:
            for credit_of, credit in zip(credits_of, metric.credit(corpus, run.statistics), strict=True):
                credit_of[score.name] = credit
    workings = zip(*(metrics[run.name].workings(corpus, run.statistics) for run in runs), strict=True)
    others = _other_scores(runs)
    values = zip(*(score.each for score in others), strict=True) if others else [()] * len(items)
    rows = zip(items, runs[0].statistics, errors.findings, graded, values, workings, credits_of, strict=True)
    for item, statistic, findings, why, metric_scores, working, credit_of in rows:
        view = candidate_view(metrics[_SPICE].reads(item), statistic, findings, spans)
        made = tuple(chain.from_iterable(working))
        yield replace(view, graded=why, metrics=metric_scores, workings=made, credits=credit_of)


_TENTHS = 10
_LENGTHS = ((1, 6), (7, 8), (9, 10), (11, 12), (13, 15), (16, None))
_CATEGORY = "SPICE_"


def system_view(
    name: str,
    items: Sequence[Item],
    statistics: Sequence[SpiceStatistic],
    errors: ErrorReport,
    *,
    scores: Iterable[Score],
    bounds: Iterable[Interval],
) -> SystemView:
    """Return one system's part, from SPICE's statistics and their errors, all scores and their intervals."""
    ends = {bound.name: bound for bound in bounds}
    rows = {s.name: ScoreRow(s.name, s.value, ends[s.name].low, ends[s.name].high) for s in scores}
    of_categories = {_CATEGORY + category for category in statistics[0].counts}
    each = [statistic.counts[ALL].f1 for statistic in statistics]
    categories = []
    for category, means in category_means(map(Spice.by_category, statistics)).items():
        row = rows[_score_name(category)]
        counts = means.micro or Counts()
        tallies = (counts.matched, counts.false_positives, counts.false_negatives)
        categories.append(CategoryRow(category, means.f, row.low, row.high, means.pr, means.re, means.items, *tallies))
    tenths = [min(int(value * _TENTHS), _TENTHS - 1) for value in each]
    words = [max(1, len(item.candidate.split())) for item in items]
    references = [len(item.references) for item in items]
    return SystemView(
        name,
        tuple(row for key, row in rows.items() if key not in of_categories),
        tuple(categories),
        hallucinations(statistics),
        errors.kinds,
        tuple(_mean_of(f"{n / _TENTHS:.1f}–{(n + 1) / _TENTHS:.1f}", (n,), tenths, each) for n in range(_TENTHS)),
        tuple(
            _mean_of(f"{low}+" if high is None else f"{low}–{high}", range(low, (high or sys.maxsize) + 1), words, each)
            for low, high in _LENGTHS
        ),
        tuple(_mean_of(str(number), (number,), references, each) for number in sorted(set(references))),
        digits=_digits(statistics),
    )


_READ = {"Cardinality": Category(2, COUNTS | {f"{a}/{b}" for a, b in permutations(COUNTS, 2)})}


def _digits(statistics: Sequence[SpiceStatistic]) -> DigitCounts | None:
    """Return what becomes of Cardinality where digits are read as words; ``None`` where nobody writes any."""
    if "Cardinality" not in statistics[0].counts:
        return None
    captions = 0
    counts = []
    for statistic in statistics:
        tuples = (*statistic.match.candidate, *statistic.match.reference)
        known = statistic.counts["Cardinality"]
        if any(len(t.concepts) == 2 and not DIGITS.isdisjoint(t.concepts[1].strings) for t in tuples):
            captions += 1
            known = count_match(statistic.match, categories=_READ)["Cardinality"]
        counts.append({"Cardinality": CategoryScore.of(known, "Cardinality")})
    means = category_means(counts)["Cardinality"]
    return DigitCounts(captions, means.f, means.items) if captions else None


def _mean_of(label: str, wanted: Sequence[int], sizes: Sequence[int], each: Sequence[float]) -> MeanRow:
    """Return the mean of the scores whose size is one of those that are wanted."""
    values = [value for size, value in zip(sizes, each, strict=True) if size in wanted]
    return MeanRow(label, len(values), sum(values) / len(values) if values else None)


def ranked(systems: tuple[SystemView, ...], lower: frozenset[str] = frozenset()) -> tuple[SystemView, ...]:
    """Give every score its rank, the best first or, for ``lower`` scores, the lowest; equal scores share one."""

    def rank(row: ScoreRow, place: int) -> ScoreRow:
        others, sign = [system.scores[place].value for system in systems], -1 if row.name in lower else 1
        better = [v for v in others if v is not None and row.value is not None and sign * v > sign * row.value]
        return replace(row, rank=None if row.value is None else 1 + len(better), lower_is_better=row.name in lower)

    return tuple(replace(system, scores=tuple(map(rank, system.scores, count()))) for system in systems)
