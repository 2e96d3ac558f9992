"""From systems' captions to a report: every metric once, everything else from its statistics."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import chain, combinations, count, islice, permutations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from spicegraph_scorer.core.results import Json
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
    names, items = tuple(corpora), next(iter(corpora.values()))
    gates = parse_gates(options.gates, len(corpora))
    scoring = _Scoring.of(systems, options, pipeline, progress)
    metrics, draws = scoring.metrics, options.resampling
    parts = [scoring.part(name, corpus) for name, corpus in corpora.items()]
    views, runs_of = [part.view for part in parts], [part.runs for part in parts]
    images = tuple(_image_views(list(map(metrics[_SPICE].reads, items)), parts, options.images))
    gained, lost = _changes(items, runs_of)
    human: SystemView | None = None
    chance: Sequence[float | None] = ()
    if options.human:
        human, chance = scoring.held_out(items), _of_random(items, metrics[_SPICE], draws)
    tests = _tests(runs_of, metrics, draws)
    asked = check_names(options.metrics)
    return Report(
        options.title or " and ".join(names),
        version("spicegraph"),
        _signature(corpora, metrics, draws),
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
        _standings(views, tests, human, chance),
        gate_results(gates, views, [runs[0].statistics for runs in runs_of], tests, draws),
        tuple(_warnings(corpora, runs_of)),
        of_sets=bool(scoring.sets),
    )


class _Part(NamedTuple):
    """A system's part of a report, the runs that it was made from (SPICE's is the first), and its captions' views."""

    view: SystemView
    runs: list[Run]
    candidates: Iterator[CandidateView]


@dataclass(frozen=True, slots=True)
class _Scoring:
    """How the systems of a report are scored and explained."""

    metrics: Mapping[str, Metric[Any]]
    draws: Resampling
    sets: dict[str, tuple[str, ...]]  # the captions of each candidate that is a set of them
    spans: dict[str, tuple[Span, ...]]  # of the words of each caption; filled in as captions are parsed
    progress: Progress | None

    @classmethod
    def of(
        cls, systems: Sequence[System], options: ReportOptions, pipeline: str | FactSource, progress: Progress | None
    ) -> _Scoring:
        """Make the metrics that a report needs."""
        sets = {text: captions for system in systems for text, captions in system.sets.items()}
        spans: dict[str, tuple[Span, ...]] = {}
        reading = with_spans(load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline, spans)
        given = resources(facts_together(reading, spans, sets) if sets else reading, progress, options.data)
        metrics = make_metrics((_SPICE, *check_names(options.metrics)), given)
        if sets:
            metrics = metrics_of_sets(metrics[_SPICE], metrics)
        return cls(metrics, options.resampling, sets, spans, progress)

    def part(self, name: str, items: CheckedItems) -> _Part:
        """Score and explain a system."""
        view, runs, errors = self._score(name, items)
        graded = self._graded(name, runs)
        wrong = wrong_statements(why.explanation.statements() for why in graded if why is not None)
        return _Part(replace(view, wrong=wrong), runs, self._candidates(items, runs, errors, graded))

    def held_out(self, items: Sequence[Item]) -> SystemView | None:
        """Return how people score: the first reference of each image against its others, where each has others."""
        if any(len(item.references) < 2 for item in items):
            return None
        held_out = tuple(Item(item.id, item.references[0], item.references[1:]) for item in items)
        return self._score("Held-out reference", held_out)[0]

    def _score(self, name: str, items: tuple[Item, ...]) -> tuple[SystemView, list[Run], ErrorReport]:
        """Return a system's view, its metric runs and its error report."""
        metrics = of_items(self.metrics, items, self.sets)
        statistics = collect(items, metrics)
        runs = [run_of(key, metric, statistics[key], confidence=self.draws) for key, metric in metrics.items()]
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

    def _graded(self, name: str, runs: Sequence[Run]) -> list[GradedView | None]:
        """Explain the SPICE-G of each caption, if it was asked for."""
        graded: list[GradedView | None] = []
        for statistic in next((run.statistics for run in runs if run.name == _SPICE_G), ()):
            graded.append(GradedView(statistic.weights[ALL].f1, self.metrics[_SPICE_G].explain(statistic)))
            if self.progress:
                self.progress(f"explaining SPICE-G of {name}", len(graded), len(runs[0].statistics))
        return graded or [None] * len(runs[0].statistics)

    def _candidates(
        self, items: tuple[Item, ...], runs: Sequence[Run], errors: ErrorReport, graded: Sequence[GradedView | None]
    ) -> Iterator[CandidateView]:
        """Yield the view of each item's candidate, with how its scores come about and which words earned them."""
        corpus = Corpus(items)
        credits_of = self._credits(corpus, runs)
        workings = zip(*(self.metrics[run.name].workings(corpus, run.statistics) for run in runs), strict=True)
        others = _other_scores(runs)
        values = zip(*(score.each for score in others), strict=True) if others else [()] * len(items)
        rows = zip(items, runs[0].statistics, errors.findings, graded, values, workings, credits_of, strict=True)
        for item, statistic, findings, why, metric_scores, working, credit_of in rows:
            view = candidate_view(self.metrics[_SPICE].reads(item), statistic, findings, self.spans)
            made = tuple(chain.from_iterable(working))
            yield replace(view, graded=why, metrics=metric_scores, workings=made, credits=credit_of)

    def _credits(self, corpus: Corpus, runs: Sequence[Run]) -> list[dict[str, Credit]]:
        """Return the credit of each candidate's words, by the name of the score."""
        credits_of: list[dict[str, Credit]] = [{} for _ in corpus.items]
        for run in runs:
            metric, score = self.metrics[run.name], run.scores[0]
            if metric.credits and None not in score.each:
                for credit_of, credit in zip(credits_of, metric.credit(corpus, run.statistics), strict=True):
                    credit_of[score.name] = credit
        return credits_of


def _signature(
    corpora: Mapping[str, CheckedItems], metrics: Mapping[str, Metric[Any]], draws: Resampling
) -> dict[str, Json]:
    """Return the signature of a report: of the first system's items, with all systems' empty captions and marks."""
    empty = empty_candidates(chain.from_iterable(corpora.values()))
    marks = sum((corpus.marks for corpus in corpora.values()), NO_MARKS)
    fingerprint = replace(Fingerprint.of(next(iter(corpora.values()))), empty=empty, marks=marks)
    signature = signature_of(fingerprint, {name: metric.signature() for name, metric in metrics.items()})
    signature["resampling"] = {**draws.signature(), "correction": "holm"}
    return signature


def _tests(
    runs_of: Sequence[Sequence[Run]], metrics: Mapping[str, Metric[Any]], draws: Resampling
) -> dict[tuple[int, int], tuple[Comparison, ...]]:
    """Return the tests of each two systems by all scores, corrected for the number of these."""
    return {
        (a, b): corrected(
            test
            for before, after in zip(runs_of[a], runs_of[b], strict=True)
            for test in compare(metrics[before.name], before.statistics, after.statistics, resampling=draws)
        )
        for a, b in combinations(range(len(runs_of)), 2)
    }


def _warnings(corpora: Mapping[str, CheckedItems], runs_of: Sequence[Sequence[Run]]) -> Iterator[str]:
    """Yield warnings about captions without a graph."""
    for (name, corpus), runs in zip(corpora.items(), runs_of, strict=True):
        for note in empty_graphs_of(corpus, runs).notes():
            yield f"{name}: {note}"


def _image_views(items: Sequence[Item], parts: Sequence[_Part], pictures: Pictures | None) -> Iterator[ImageView]:
    sources = image_sources(pictures, [item.id for item in items]) if pictures else {}
    for item, *candidates in zip(items, *(part.candidates for part in parts), strict=True):
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
    by_category = {pair: _tests_by_category(of_pair, names) for pair, of_pair in tests.items()}
    values = [[row.f for row in view.categories] for view in views]
    upper = {row.name: row.f for row in human.categories} if human else {}
    lower = dict(zip(names, chance, strict=False))
    return tuple(
        replace(row, human=upper.get(row.category), random=lower.get(row.category))
        for row in standings(names, values, [row.items for row in views[0].categories], by_category)
    )


def _tests_by_category(tests: Sequence[Comparison], names: Sequence[str]) -> dict[str, Comparison]:
    by_score = {test.name: test for test in tests}
    return {name: by_score[_score_name(name)] for name in names if _score_name(name) in by_score}


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


def _other_scores(runs: Sequence[Run]) -> list[Score]:
    """Return all scores but SPICE's and those by category."""
    return [score for run in runs if run.name != _SPICE for score in run.headline]


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
    references = [len(item.references) for item in items]
    return SystemView(
        name,
        tuple(row for key, row in rows.items() if key not in of_categories),
        tuple(_category_rows(statistics, rows)),
        hallucinations(statistics),
        errors.kinds,
        tuple(_by_tenths(each)),
        tuple(_by_length(items, each)),
        tuple(_mean_of(str(number), (number,), references, each) for number in sorted(set(references))),
        digits=_digits(statistics),
    )


def _category_rows(statistics: Sequence[SpiceStatistic], rows: Mapping[str, ScoreRow]) -> Iterator[CategoryRow]:
    """Yield the categories: their means, the intervals of their scores, and their tallies."""
    for category, means in category_means(map(Spice.by_category, statistics)).items():
        row = rows[_score_name(category)]
        counts = means.micro or Counts()
        tallies = (counts.matched, counts.false_positives, counts.false_negatives)
        yield CategoryRow(category, means.f, row.low, row.high, means.pr, means.re, means.items, *tallies)


def _by_tenths(each: Sequence[float]) -> Iterator[MeanRow]:
    """Yield how many images have a score from 0.0 to 0.1, and so on."""
    tenths = [min(int(value * _TENTHS), _TENTHS - 1) for value in each]
    for n in range(_TENTHS):
        yield _mean_of(f"{n / _TENTHS:.1f}–{(n + 1) / _TENTHS:.1f}", (n,), tenths, each)


def _by_length(items: Sequence[Item], each: Sequence[float]) -> Iterator[MeanRow]:
    """Yield the mean score by the number of words in the caption."""
    words = [max(1, len(item.candidate.split())) for item in items]
    for low, high in _LENGTHS:
        label = f"{low}+" if high is None else f"{low}–{high}"
        yield _mean_of(label, range(low, (high or sys.maxsize) + 1), words, each)


_READ = {"Cardinality": Category(2, COUNTS | {f"{a}/{b}" for a, b in permutations(COUNTS, 2)})}


def _digits(statistics: Sequence[SpiceStatistic]) -> DigitCounts | None:
    """Return Cardinality with digits read as words; ``None`` if no caption has digits."""
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
