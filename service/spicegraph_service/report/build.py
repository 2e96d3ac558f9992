"""From systems' captions to a report: every metric once, everything else from its statistics."""

from __future__ import annotations

import sys
from dataclasses import astuple, dataclass, field, replace
from importlib.metadata import version
from itertools import chain, combinations, islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.categories import ALL, Counts, category_means
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Fingerprint, Item, empty_candidates, in_order_of
from spicegraph_scorer.core.results import collect, run_of, signature_of
from spicegraph_scorer.core.significance import Resampling, compare
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.errors import CHANCES, KINDS, analyse_errors, hallucinations, wrong_statements
from spicegraph_scorer.metrics import check_names, lower_is_better, make_metrics
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import resources
from spicegraph_service.report.data import (
    CategoryRow,
    GradedView,
    GroupRow,
    HallucinationRow,
    ImageView,
    KindRow,
    Made,
    MeanRow,
    Moved,
    PairTest,
    Report,
    ScoreRow,
    SystemInput,
    SystemView,
)
from spicegraph_service.report.images import Pictures, Span, candidate_view, image_sources, synset_views, with_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.categories import CategoryMeans
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.metric import Metric, Score, Working
    from spicegraph_scorer.core.significance import Interval
    from spicegraph_scorer.errors import ErrorKind, ErrorReport, WrongStatement
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

_SPICE = "spice"
_SPICE_G = "spice-g"
_MOVED = 25
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a report is made.

    Attributes:
        metrics: names from ``METRICS``; ``spice`` always belongs to them.
        title: the report's heading; systems' names by default.
        data: document frequencies, categories and vectors that metrics use instead of their own.
        images: where images are and how they are shown; ``None``: they are not.
        resampling: draws and seed of intervals and tests.
        human: score each image's first reference against the others, where all images have several.
        made: when, and from what; ``None``: it is not said.
    """

    metrics: tuple[str, ...] = (_SPICE,)
    title: str | None = None
    data: MetricData = field(default_factory=MetricData)
    images: Pictures | None = None
    resampling: Resampling = field(default_factory=Resampling)
    human: bool = True
    made: Made | None = None


def build_report(
    systems: Sequence[SystemInput],
    options: ReportOptions | None = None,
    *,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
) -> Report:
    """Score the systems and explain every tuple without a partner.

    Args:
        systems: at least one, with different names, for the same ids and references.
        options: what goes into the report.
        pipeline: what parses captions, by name or as a value; a ``CaptionPipeline`` and what ``local_facts`` gives
            know where words stand.
        progress: is called during what takes long.

    Raises:
        InputError: an item is faulty, names are equal, ids or references differ, or a metric is unknown.
        DataError: a pipeline or the data of a metric is not installed.
    """
    options = options or ReportOptions()
    corpora = _corpora(systems)
    source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    spans: dict[str, tuple[Span, ...]] = {}
    chosen = make_metrics(
        (_SPICE, *check_names(options.metrics)), resources(with_spans(source, spans), progress, options.data)
    )
    found = {name: collect(items, chosen) for name, items in corpora.items()}
    items = next(iter(corpora.values()))
    empty = empty_candidates(item for mine in corpora.values() for item in mine)
    references = replace(Fingerprint.of(items), empty=empty)
    signature = signature_of(references, {name: metric.signature() for name, metric in chosen.items()})
    draws = options.resampling
    signature["resampling"] = draws.signature()
    errors = {name: analyse_errors(statistics[_SPICE]) for name, statistics in found.items()}
    views = {n: _view(n, chosen, found[n], errors[n], corpora[n], draws=draws) for n in corpora}
    graded = _graded(chosen.get(_SPICE_G), found, progress)
    views = {name: replace(view, wrong=_wrong(graded[name])) for name, view in views.items()}
    parsed = {name: list(map(chosen[_SPICE].reads, mine)) for name, mine in corpora.items()}
    sources = image_sources(options.images, [item.id for item in items]) if options.images else {}
    names, more = _others(chosen, found, corpora)
    images = _images(parsed, found, errors, spans, sources, graded=graded, more=more)
    images = _with_credits(images, chosen, found, corpora)
    gained, lost = _moved(items, [statistics[_SPICE] for statistics in found.values()])
    return Report(
        options.title or " and ".join(corpora),
        version("spicegraph"),
        signature,
        len(items),
        tuple(chosen[_SPICE].by_category(next(iter(found.values()))[_SPICE][0])),
        ranked(tuple(views.values()), lower_is_better(chosen)),
        _human(chosen, items, draws) if options.human else None,
        _tests(chosen, found, draws),
        gained,
        lost,
        images,
        synset_views(images),
        names,
        options.made,
    )


Statistics = dict[str, list[Any]]
"""A system's statistics by metric."""

Others = tuple[tuple["float | None", ...], tuple["Working", ...]]
"""An item's scores but for SPICE's, and how its scores come about."""


def _others(
    metrics: Mapping[str, Metric[Any]], found: Mapping[str, Statistics], corpora: Mapping[str, tuple[Item, ...]]
) -> tuple[tuple[str, ...], dict[str, list[Others]]]:
    """Return the names of all scores but SPICE's and those by category, and these scores of every item."""
    names: tuple[str, ...] = ()
    others: dict[str, list[Others]] = {}
    for system, items in corpora.items():
        corpus = Corpus(items)
        scores: list[Score] = []
        workings: list[list[tuple[Working, ...]]] = []
        for key, metric in metrics.items():
            run = run_of(key, metric, found[system][key])
            scores += run.headline if key != _SPICE else ()
            workings.append(metric.workings(corpus, found[system][key]))
        names = tuple(score.name for score in scores)
        values = zip(*(score.each for score in scores), strict=True) if scores else repeat(())
        texts = (tuple(chain.from_iterable(row)) for row in zip(*workings, strict=True))
        others[system] = [(tuple(row), own) for own, row in zip(texts, values, strict=False)]
    return names, others


def _corpora(systems: Sequence[SystemInput]) -> dict[str, tuple[Item, ...]]:
    """Return the systems' items by name, all in the order of the first system's."""
    if not systems:
        raise InputError("a report needs at least one system")
    corpora: dict[str, tuple[Item, ...]] = {}
    for system in systems:
        if system.name in corpora:
            raise InputError(f"two systems have the name {system.name!a}: name them apart, NAME=FILE")
        items: tuple[Item, ...] = check_items(system.items)
        for first, known in islice(corpora.items(), 1):
            items = in_order_of(known, items, names=(ascii(first), ascii(system.name)))
        corpora[system.name] = items
    return corpora


def _view(
    name: str,
    metrics: Mapping[str, Any],
    found: Statistics,
    errors: ErrorReport,
    items: Sequence[Item],
    *,
    draws: Resampling,
) -> SystemView:
    runs = [run_of(key, metric, found[key], confidence=draws) for key, metric in metrics.items()]
    scores = [score for run in runs for score in run.scores]
    bounds = [bound for run in runs for bound in run.intervals]
    return system_view(name, items, found[_SPICE], errors, scores=scores, bounds=bounds)


def _human(metrics: Mapping[str, Any], items: Sequence[Item], draws: Resampling) -> SystemView | None:
    """Score each image's first reference against its others."""
    if any(len(item.references) < 2 for item in items):
        return None
    held_out = tuple(Item(item.id, item.references[0], item.references[1:]) for item in items)
    found = collect(held_out, metrics)
    return _view("Held-out reference", metrics, found, analyse_errors(found[_SPICE]), held_out, draws=draws)


def _tests(metrics: Mapping[str, Any], found: Mapping[str, Statistics], draws: Resampling) -> tuple[PairTest, ...]:
    """Test every pair of systems by every score."""
    return tuple(
        PairTest(test.name, first, second, *astuple(test)[3:])
        for first, second in combinations(found, 2)
        for key, metric in metrics.items()
        for test in compare(metric, found[first][key], found[second][key], resampling=draws)
    )


def _moved(
    items: Sequence[Item], spice: Sequence[Sequence[SpiceStatistic]]
) -> tuple[tuple[Moved, ...], tuple[Moved, ...]]:
    """Return where the second of two systems is better, and where it is worse; the largest moves first."""
    if len(spice) != 2:
        return (), ()
    rows = sorted(
        (
            Moved(index, item.id, spice[0][index].counts[ALL].f1, spice[1][index].counts[ALL].f1)
            for index, item in enumerate(items)
        ),
        key=attrgetter("difference"),
    )
    gained = tuple(row for row in reversed(rows) if row.difference > _EQUAL)
    lost = tuple(row for row in rows if row.difference < -_EQUAL)
    return gained[:_MOVED], lost[:_MOVED]


def _graded(
    metric: Metric[Any] | None, found: Mapping[str, Statistics], progress: Progress | None
) -> dict[str, list[GradedView | None]]:
    """Return each system's explanations of SPICE-G, or nothing for each image where that was not asked for."""
    if metric is None:
        return {name: [None] * len(statistics[_SPICE]) for name, statistics in found.items()}
    views: dict[str, list[GradedView | None]] = {name: [] for name in found}
    for name, statistics in found.items():
        for done, statistic in enumerate(statistics[_SPICE_G], start=1):
            views[name].append(GradedView(statistic.weights[ALL].f1, metric.explain(statistic)))
            if progress:
                progress(f"explaining SPICE-G of {name}", done, len(statistics[_SPICE_G]))
    return views


def _wrong(views: Sequence[GradedView | None]) -> tuple[WrongStatement, ...]:
    return wrong_statements([view.explanation for view in views if view is not None])


def _with_credits(
    images: Sequence[ImageView],
    metrics: Mapping[str, Metric[Any]],
    found: Mapping[str, Statistics],
    corpora: Mapping[str, Sequence[Item]],
) -> tuple[ImageView, ...]:
    """Return the images with the words' credits in every score that is defined and can be divided."""
    columns: list[list[dict[str, Credit]]] = []
    for name, items in corpora.items():
        column: list[dict[str, Credit]] = [{} for _ in items]
        for key, metric in metrics.items():
            statistics = found[name][key]
            score = metric.total(statistics)[0]
            if metric.credits and None not in score.each:
                for credits_of, credit in zip(column, metric.credit(Corpus(tuple(items)), statistics), strict=True):
                    credits_of[score.name] = credit
        columns.append(column)
    return tuple(
        replace(
            image,
            candidates=tuple(
                replace(view, credits=column[place]) for view, column in zip(image.candidates, columns, strict=True)
            ),
        )
        for place, image in enumerate(images)
    )


def _images(
    corpora: Mapping[str, Sequence[Item]],
    found: Mapping[str, Statistics],
    errors: Mapping[str, ErrorReport],
    words: dict[str, tuple[tuple[int, int], ...]],
    sources: Mapping[ItemId, str],
    *,
    graded: Mapping[str, Sequence[GradedView | None]],
    more: Mapping[str, Sequence[Others]],
) -> tuple[ImageView, ...]:
    sides = {name: kind.side.value for name, kind in KINDS.items()}
    items = next(iter(corpora.values()))
    columns = []
    for name, mine in corpora.items():
        spice: list[SpiceStatistic] = found[name][_SPICE]
        rows = zip(mine, spice, errors[name].findings, graded[name], more[name], strict=True)
        columns.append(
            [candidate_view(item, stat, row, words, sides, graded=g, more=m) for item, stat, row, g, m in rows]
        )
    return tuple(
        ImageView(item.id, item.references, sources.get(item.id), tuple(candidates))
        for item, *candidates in zip(items, *columns, strict=True)
    )


_BINS = 10
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
    found = {bound.name: bound for bound in bounds}
    rows = {s.name: ScoreRow(s.name, s.value, found[s.name].low, found[s.name].high) for s in scores}
    categories = {_CATEGORY + category for category in statistics[0].counts}
    each = [statistic.counts[ALL].f1 for statistic in statistics]
    return SystemView(
        name,
        tuple(row for key, row in rows.items() if key not in categories),
        _categories(statistics, rows),
        tuple(
            HallucinationRow(h.category, h.invented, h.said, h.captions, h.per_instance, h.per_sentence)
            for h in hallucinations(statistics)
        ),
        tuple(map(_kind, errors.kinds)),
        _distribution(each),
        _by_length(items, each),
        _by_references(items, each),
    )


def ranked(systems: tuple[SystemView, ...], lower: frozenset[str] = frozenset()) -> tuple[SystemView, ...]:
    """Give every score its rank among the systems; equal scores share a rank, and undefined ones are not ranked.

    Args:
        systems: all of them.
        lower: the scores of which the lowest is the best.
    """
    values = {row.name: [s.scores[i].value for s in systems] for i, row in enumerate(systems[0].scores)}
    return tuple(
        replace(
            system,
            scores=tuple(
                replace(
                    row,
                    rank=_rank(row.value, values[row.name], sign=-1 if row.name in lower else 1),
                    lower_is_better=row.name in lower,
                )
                for row in system.scores
            ),
        )
        for system in systems
    )


def _rank(value: float | None, others: Iterable[float | None], *, sign: int) -> int | None:
    if value is None:
        return None
    return 1 + sum(1 for other in others if other is not None and sign * other > sign * value)


def _categories(statistics: Sequence[SpiceStatistic], rows: Mapping[str, ScoreRow]) -> tuple[CategoryRow, ...]:
    """Return every category, ``All`` first; its interval is that of the score of the same name."""
    return tuple(
        _category(name, means, rows["SPICE" if name == ALL else _CATEGORY + name])
        for name, means in category_means(map(Spice.by_category, statistics)).items()
    )


def _category(name: str, means: CategoryMeans, row: ScoreRow) -> CategoryRow:
    counts = means.micro or Counts()
    tallies = (counts.matched, counts.false_positives, counts.false_negatives)
    return CategoryRow(name, means.f, row.low, row.high, means.pr, means.re, means.items, *tallies)


def _kind(found: ErrorKind) -> KindRow:
    kind = KINDS[found.name]
    of_the_kind = (kind.title, kind.side.value, kind.primary, kind.near, CHANCES[kind.among].title, kind.columns)
    groups = tuple(GroupRow(g.words, g.count, g.weight, g.rate, g.items) for g in found.groups)
    return KindRow(found.name, *of_the_kind, found.count, found.of, found.rate, found.items, groups)


def _distribution(each: Sequence[float]) -> tuple[MeanRow, ...]:
    """Return how many items score in each tenth."""
    bins: list[list[float]] = [[] for _ in range(_BINS)]
    for value in each:
        bins[min(int(value * _BINS), _BINS - 1)].append(value)
    return tuple(
        MeanRow(f"{i / _BINS:.1f}–{(i + 1) / _BINS:.1f}", len(values), _mean(values)) for i, values in enumerate(bins)
    )


def _by_length(items: Sequence[Item], each: Sequence[float]) -> tuple[MeanRow, ...]:
    """Return the mean SPICE by the number of the candidate's words, counted between spaces."""
    lengths = [max(1, len(item.candidate.split())) for item in items]
    return tuple(
        _mean_of(f"{low}+" if high is None else f"{low}–{high}", range(low, (high or sys.maxsize) + 1), lengths, each)
        for low, high in _LENGTHS
    )


def _by_references(items: Sequence[Item], each: Sequence[float]) -> tuple[MeanRow, ...]:
    counts = [len(item.references) for item in items]
    return tuple(_mean_of(str(count), (count,), counts, each) for count in sorted(set(counts)))


def _mean_of(label: str, wanted: Sequence[int], sizes: Sequence[int], each: Sequence[float]) -> MeanRow:
    """Return the mean of the scores whose size is one of those that are wanted."""
    values = [value for size, value in zip(sizes, each, strict=True) if size in wanted]
    return MeanRow(label, len(values), _mean(values))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
