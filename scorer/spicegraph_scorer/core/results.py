"""One run: statistics of metrics, and the scores, intervals, explanations and the signature made from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from spicegraph_parser.errors import InputError, counted
from spicegraph_scorer.core.categories import CategoryMeans, CategoryScore, Counts, category_means
from spicegraph_scorer.core.empty_graphs import EmptyGraphs
from spicegraph_scorer.core.items import Fingerprint, Item, ItemId, empty_candidates
from spicegraph_scorer.core.metric import Explanation, Metric, Score
from spicegraph_scorer.core.significance import Interval, Resampling, intervals
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.facts import Progress


Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

CATEGORIES_KEY: Final = "_categories"  # What follows the name of a score in the key of its categories.


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A score's corpus value, and the number of items for which it is defined."""

    name: str
    value: float | None
    items: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One metric's scores, and the means of its categories by name, ``All`` first; empty for metrics without any."""

    scores: tuple[CorpusScore, ...]
    categories: Mapping[str, CategoryMeans] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()  # in the order of the scores, or none if they were not asked for

    @property
    def headline(self) -> tuple[CorpusScore, ...]:
        """The scores without those of the categories, which have a table of their own."""
        return self.scores[:1] if self.categories else self.scores


@dataclass(frozen=True, slots=True)
class Summary:
    """The corpus scores of all metrics, with what says whether two numbers may be compared."""

    signature: Mapping[str, Any]
    runs: tuple[RunSummary, ...]
    empty_graphs: EmptyGraphs = field(default_factory=EmptyGraphs, compare=False)  # sums of parts do not know them

    @property
    def corpus(self) -> dict[str, Any]:
        """See :attr:`Result.corpus`."""
        values: dict[str, Json] = {}
        for run in self.runs:
            values |= {score.name: score.value for score in run.headline}
            if run.categories:
                key = run.headline[0].name + CATEGORIES_KEY
                values[key] = {name: means.to_dict() for name, means in run.categories.items()}
        return values

    @property
    def confidence(self) -> dict[str, Any]:
        """The 95 % interval of every score by its name, categories as ``SPICE_Color``; empty if not asked for."""
        return {i.name: {"low": i.low, "high": i.high} for run in self.runs for i in run.intervals}

    def to_dict(self) -> dict[str, Any]:
        """Return ``signature``, ``corpus`` and, where there are any, ``confidence`` and ``empty_graphs``."""
        confidence = self.confidence
        return {
            "signature": self.signature,
            "corpus": self.corpus,
            **({"confidence": confidence} if confidence else {}),
            **({"empty_graphs": self.empty_graphs.to_dict()} if self.empty_graphs else {}),
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One metric's part of a result: its name and signature, one statistic per item, and the scores of those.

    ``intervals`` are in the order of the scores, ``explanations`` and ``credits`` in that of the statistics; all are
    empty if they were not asked for. A report, an interval or the jar's output is drawn from the statistics.
    """

    name: str
    signature: Mapping[str, str]
    statistics: tuple[Any, ...] = field(repr=False)
    scores: tuple[Score, ...] = field(repr=False)
    intervals: tuple[Interval, ...] = ()
    explanations: tuple[Explanation, ...] = field(default=(), repr=False)
    credits: tuple[Credit, ...] = field(default=(), repr=False)
    by_category: Callable[[Any], Mapping[str, CategoryScore]] = Metric.by_category
    is_empty: Callable[[Any], tuple[bool, bool]] = Metric.empty_graphs  # the candidate's graph, and the references'

    @property
    def headline(self) -> tuple[Score, ...]:
        """The scores without those of the categories, which have a table of their own."""
        return self.scores[:1] if self.statistics and self.by_category(self.statistics[0]) else self.scores

    def categories(self) -> dict[str, CategoryMeans]:
        """Return the means and sums of the metric's categories, ``All`` first; nothing for metrics without any."""
        return category_means(map(self.by_category, self.statistics))

    def summary(self) -> RunSummary:
        """Return the corpus scores alone, each with the number of items for which it is defined."""
        scores = [CorpusScore(s.name, s.value, sum(value is not None for value in s.each)) for s in self.scores]
        return RunSummary(tuple(scores), self.categories(), self.intervals)

    def rows(self) -> Iterator[dict[str, Json]]:
        """Yield the scores of each item."""
        headline = self.headline
        key = headline[0].name + CATEGORIES_KEY
        for statistic, values in zip(
            self.statistics, zip(*(score.each for score in headline), strict=True), strict=True
        ):
            row: dict[str, Json] = {score.name: value for score, value in zip(headline, values, strict=True)}
            if categories := self.by_category(statistic):
                row[key] = {name: score_of_category.to_dict() for name, score_of_category in categories.items()}
            yield row


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One item's scores; ``None`` is undefined.

    ``scores`` has each by its name, categories as ``SPICE_Color``; ``categories`` has, for each score with categories,
    F1, precision, recall and counts of each.
    """

    id: ItemId
    scores: Mapping[str, float | None]
    categories: Mapping[str, Mapping[str, CategoryScore]] = field(repr=False)

    def __getitem__(self, name: str) -> float | None:
        """Return a score by its name."""
        return _named(self.scores, name)


def _named(scores: Mapping[str, float | None], name: str) -> float | None:
    if name not in scores:
        raise InputError(f"there is no score {name!a} here; the scores are {', '.join(scores)}")
    return scores[name]


_SHOWN_SCORES: Final = 8


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The scores of a corpus and of its items, with what says whether two numbers may be compared."""

    items: tuple[Item, ...]
    signature: Mapping[str, Any]
    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        """Return a table of the corpus scores, of at most ten lines: notebooks and prompts print it."""
        scores = [score for run in self.runs for score in run.headline]
        width = max((len(score.name) for score in scores), default=0)
        values = ["undefined" if score.value is None else f"{score.value:.4f}" for score in scores]
        lines = [f"  {score.name:{width}}  {value:>9}" for score, value in zip(scores, values, strict=True)]
        more = [f"  ... and {len(lines) - _SHOWN_SCORES} more"] if len(lines) > _SHOWN_SCORES else []
        return "\n".join([f"Result of {counted(len(self.items), 'item')}", *lines[:_SHOWN_SCORES], *more])

    def __getitem__(self, name: str) -> float | None:
        """Return the corpus value of a score by its name, such as ``SPICE``, ``SPICE_Color`` or ``Bleu_4``.

        Raises:
            InputError: there is no such score.
        """
        return _named(self.scores, name)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def __iter__(self) -> Iterator[ItemScores]:
        """Yield each item's scores."""
        names = [score.name for run in self.runs for score in run.scores]
        each = zip(*(score.each for run in self.runs for score in run.scores), strict=True)
        counted_runs = [run for run in self.runs if run.statistics and run.by_category(run.statistics[0])]
        for index, (item, values) in enumerate(zip(self.items, each, strict=True)):
            categories = {run.headline[0].name: run.by_category(run.statistics[index]) for run in counted_runs}
            yield ItemScores(item.id, dict(zip(names, values, strict=True)), categories)

    @property
    def scores(self) -> dict[str, float | None]:
        """Every corpus score by its name, categories as ``SPICE_Color``; ``None`` is undefined."""
        return {score.name: score.value for run in self.runs for score in run.scores}

    @property
    def categories(self) -> dict[str, dict[str, CategoryMeans]]:
        """Means and sums by category (``All`` first), for each score that has categories: ``["SPICE"]["Color"].pr``."""
        return {run.headline[0].name: means for run in self.runs if (means := run.categories())}

    def to_frame(self) -> pd.DataFrame:
        """Return the items' scores as a table of pandas: a row for each item, by its id, and a column for each score.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415 (not a dependency: whoever has tables has it)

        rows = list(self)
        index = pd.Index([row.id for row in rows], name="image_id")
        return pd.DataFrame([row.scores for row in rows], index=index, columns=list(self.scores), dtype=float)

    @property
    def empty_candidates(self) -> int:
        """How many candidates are empty, which only ``score(..., empty="zero")`` accepts."""
        return empty_candidates(self.items)

    @property
    def empty_graphs(self) -> EmptyGraphs:
        """Items whose candidate, or whose references all, have words but an empty graph, by the first metric."""
        return empty_graphs_of(self.items, self.runs)

    @property
    def corpus(self) -> dict[str, Any]:
        """JSON values: every metric's corpus value by its key (``SPICE``, ``CIDEr`` ...); ``None`` is undefined.

        ``SPICE_categories`` holds, for ``All`` and every category: ``f``, ``pr``, ``re``, the means over the
        ``items`` whose references have such tuples, and ``micro``: counts summed over items, and
        their scores, where a colour, count or size that no reference has still counts as wrong.
        ``SPICE-G_categories`` has the means and ``items`` alone: nothing is counted there.
        """
        return self.summary.corpus

    def item_scores(self) -> list[dict[str, Any]]:
        """Return JSON values: each item's scores by the keys of :attr:`corpus`, with the counts of categories."""
        return list(self.iter_scores())

    def iter_scores(self) -> Iterator[dict[str, Json]]:
        """Yield the rows of :meth:`item_scores` one item at a time."""
        for parts in zip(*(run.rows() for run in self.runs), strict=True):
            yield {name: value for part in parts for name, value in part.items()}

    @property
    def summary(self) -> Summary:
        """The corpus scores alone, and what says whether they may be compared."""
        return Summary(self.signature, tuple(run.summary() for run in self.runs), self.empty_graphs)

    @property
    def confidence(self) -> dict[str, Any]:
        """The 95 % interval of every score by its name, categories as ``SPICE_Color``; empty if not asked for."""
        return {i.name: {"low": i.low, "high": i.high} for run in self.runs for i in run.intervals}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: those of :class:`Summary`, and ``items``: ids and scores."""
        return {**self.summary.to_dict(), "items": self.item_rows()}

    def item_rows(self) -> list[dict[str, Any]]:
        """Return each item's ``image_id`` and ``scores``; ``explanation`` and ``credit`` by metric if asked for."""
        return list(self.iter_rows())

    def iter_rows(self) -> Iterator[dict[str, Json]]:
        """Yield the rows of :meth:`item_rows` one item at a time."""
        explained = [run for run in self.runs if run.explanations]
        credited = [run for run in self.runs if run.credits]
        for index, (item, scores) in enumerate(zip(self.items, self.iter_scores(), strict=True)):
            why = {run.headline[0].name: run.explanations[index].to_dict() for run in explained}
            earned = {run.headline[0].name: run.credits[index].to_dict() for run in credited}
            extra: dict[str, Json] = {"explanation": why} if why else {}
            yield {"image_id": item.id, "scores": scores, **extra, **({"credit": earned} if earned else {})}


def empty_graphs_of(items: Sequence[Item], runs: Iterable[Run]) -> EmptyGraphs:
    """Return the items with words but an empty graph, by the first metric that finds any."""
    return EmptyGraphs.first(items, ((map(run.is_empty, run.statistics), run.signature) for run in runs))


def collect(items: tuple[Item, ...], metrics: Mapping[str, Metric[Any]]) -> dict[str, list[Any]]:
    """Return each item's statistic by metric."""
    # Captions are parsed last: what the other metrics hold meanwhile, tokens and n-grams, is gone by then.
    for metric in metrics.values():
        metric.signature()
    words = Corpus(items)
    statistics = {name: metric.collect(words) for name, metric in metrics.items() if not metric.needs.facts}
    del words
    parsed = Corpus(items)
    return statistics | {name: metric.collect(parsed) for name, metric in metrics.items() if metric.needs.facts}


def run_of(
    name: str,
    metric: Metric[Any],
    statistics: Sequence[Any],
    *,
    confidence: Resampling | None = None,
    explain: bool = False,
    credited: Corpus | None = None,
    progress: Progress | None = None,
) -> Run:
    """Return a metric's scores of the items whose complete statistics are given; ``credited``: these items."""
    kept = tuple(statistics)
    explanations: list[Explanation] = []
    for done, statistic in enumerate(kept if explain and metric.explains else (), start=1):
        explanations.append(metric.explain(statistic))
        if progress:
            progress(f"explaining {metric.total(())[0].name}", done, len(kept))
    return Run(
        name,
        metric.signature(),
        kept,
        metric.total(kept),
        intervals(metric, kept, resampling=confidence) if confidence else (),
        tuple(explanations),
        tuple(metric.credit(credited, kept)) if credited is not None and metric.credits else (),
        metric.by_category,
        metric.empty_graphs,
    )


def result_of(
    items: Sequence[Item],
    metrics: Mapping[str, Metric[Any]],
    statistics: Mapping[str, Sequence[Any]],
    *,
    confidence: Resampling | None = None,
    explain: bool = False,
    credit: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Return the scores of items, in order, from each metric's statistics of them; see :func:`run_of`."""
    corpus = Corpus(tuple(items)) if credit else None
    run = partial(run_of, confidence=confidence, explain=explain, credited=corpus, progress=progress)
    runs = [run(name, metric, statistics[name]) for name, metric in metrics.items()]
    signature = signature_of(items, {run.name: run.signature for run in runs})
    if confidence is not None:
        signature["confidence"] = confidence.signature()
    return Result(tuple(items), signature, tuple(runs))


def signature_of(references: Fingerprint | Sequence[Item], metrics: Mapping[str, Mapping[str, str]]) -> dict[str, Json]:
    """Return what two results must share for their numbers to be comparable, by each metric's signature."""
    fingerprint = references if isinstance(references, Fingerprint) else Fingerprint.of(references)
    return {
        "spicegraph": _installed(),
        "items": fingerprint.items,
        **({"empty": {"candidates": fingerprint.empty, "scored": "zero"}} if fingerprint.empty else {}),
        **({"control_tokens": fingerprint.marks.signature()} if fingerprint.marks else {}),
        "references": {"min": fingerprint.fewest, "max": fingerprint.most, "digest": fingerprint.digest},
        "metrics": {name: dict(signature) for name, signature in metrics.items()},
    }


@cache
def _installed() -> str:
    """Return the package's version, which takes a millisecond to read."""
    from importlib.metadata import version  # noqa: PLC0415 (a sixth of the time that the library takes to import)

    return version("spicegraph")


Row: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]  # A matrix of one row.


@dataclass(frozen=True, slots=True)
class ExactSums:
    """The sums of the columns of a table, each as the few floats that add up to it without rounding."""

    # Sums of parts of a table add up to those of the whole, to the bit.

    columns: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> ExactSums:
        """Sum the columns of at least one row; all rows are of one length, all values finite."""
        return cls(tuple(map(_parts, zip(*rows, strict=True))))

    def __add__(self, other: ExactSums) -> ExactSums:
        """Return the sums of both tables together."""
        pairs = zip(self.columns, other.columns, strict=True)
        return ExactSums(tuple(_parts((*left, *right)) for left, right in pairs))

    def values(self) -> list[float]:
        """Return the sums, each rounded once, as by ``math.fsum``."""
        return [math.fsum(parts) for parts in self.columns]

    def rounded(self) -> Row:
        """Return :meth:`values` as a matrix of one row."""
        return np.array([self.values()], dtype=np.float64)


def _parts(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rounded sum, the rounded rest, the rest of that ...: together the sum itself."""
    parts: list[float] = []
    while rest := math.fsum((*values, *(-part for part in parts))):
        parts.append(rest)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """One metric's sums over some items."""

    sums: ExactSums  # of what its corpus scores are functions of
    defined: tuple[int, ...]  # by score, the items where it is defined
    categories: Mapping[str, ExactSums]

    def __add__(self, other: RunTotals) -> RunTotals:
        """Return the sums over both sets of items."""
        return RunTotals(
            self.sums + other.sums,
            tuple(left + right for left, right in zip(self.defined, other.defined, strict=True)),
            {name: left + other.categories[name] for name, left in self.categories.items()},
        )


def _category_row(score: CategoryScore) -> tuple[float, ...]:
    """Return the scores of a category, whether it is defined, and its counts."""
    return score.f or 0.0, score.pr or 0.0, score.re or 0.0, score.f is not None, *(score.counts or ())


def totals_of(metric: Metric[Any], statistics: Sequence[Any]) -> RunTotals:
    """Return the sums over the statistics of at least one item."""
    rows = [
        {name: _category_row(score) for name, score in metric.by_category(statistic).items()}
        for statistic in statistics
    ]
    return RunTotals(
        ExactSums.of(metric.summed().columns(statistics).tolist()),
        tuple(sum(value is not None for value in score.each) for score in metric.total(statistics)),
        {name: ExactSums.of([row[name] for row in rows]) for name in rows[0]},
    )


def added(parts: Sequence[Mapping[str, RunTotals]]) -> dict[str, RunTotals]:
    """Return the totals of several parts together, by metric; there is at least one part."""
    sums = dict(parts[0])
    for part in parts[1:]:
        sums = {name: total + part[name] for name, total in sums.items()}
    return sums


def summary_of(metric: Metric[Any], totals: RunTotals) -> RunSummary:
    """Return the corpus scores that the sums make."""
    values = metric.summed().from_sums(totals.sums.rounded())
    scores = tuple(
        CorpusScore(name, None if math.isnan(value[0]) else float(value[0]), items)
        for (name, value), items in zip(values.items(), totals.defined, strict=True)
    )
    categories = {}
    for name, sums in totals.categories.items():
        f, pr, re, items, *numbers = sums.values()
        means = [total / items if items else None for total in (f, pr, re)]
        micro = Counts(*map(int, numbers)) if numbers else None
        categories[name] = CategoryMeans(means[0], means[1], means[2], int(items), micro)
    return RunSummary(scores, categories)
