"""The part of a report that is about one system: scores, categories, errors, distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL, Counts, category_means
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.studies.errors import KINDS, hallucinations
from spicegraph_service.output.report.data import (
    CategoryRow,
    GroupRow,
    HallucinationRow,
    KindRow,
    MeanRow,
    ScoreRow,
    SystemView,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_scorer.core.categories import CategoryMeans
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Score
    from spicegraph_scorer.core.significance import Interval
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic
    from spicegraph_scorer.studies.errors import ErrorKind, ErrorReport

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


def ranked(systems: tuple[SystemView, ...]) -> tuple[SystemView, ...]:
    """Give every score its rank among the systems; equal scores share a rank, and undefined ones are not ranked."""
    values = {row.name: [s.scores[i].value for s in systems] for i, row in enumerate(systems[0].scores)}
    return tuple(
        replace(
            system,
            scores=tuple(replace(row, rank=_rank(row.value, values[row.name])) for row in system.scores),
        )
        for system in systems
    )


def _rank(value: float | None, others: Iterable[float | None]) -> int | None:
    return None if value is None else 1 + sum(1 for other in others if other is not None and other > value)


def _categories(statistics: Sequence[SpiceStatistic], rows: Mapping[str, ScoreRow]) -> tuple[CategoryRow, ...]:
    """Return every category, ``All`` first; its interval is that of the score of the same name."""
    return tuple(
        _category(name, means, rows["SPICE" if name == ALL else _CATEGORY + name])
        for name, means in category_means(map(Spice.by_category, statistics)).items()
    )


def _category(name: str, means: CategoryMeans, row: ScoreRow) -> CategoryRow:
    counts = means.micro or Counts()
    return CategoryRow(
        name,
        means.f,
        row.low,
        row.high,
        means.pr,
        means.re,
        means.items,
        counts.matched,
        counts.false_positives,
        counts.false_negatives,
    )


def _kind(found: ErrorKind) -> KindRow:
    kind = KINDS[found.name]
    groups = tuple(GroupRow(g.words, g.count, g.weight, g.rate, g.items) for g in found.groups)
    return KindRow(
        found.name,
        kind.title,
        kind.side.value,
        kind.primary,
        kind.columns,
        found.count,
        found.of,
        found.rate,
        found.items,
        groups,
    )


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
    rows = []
    for low, high in _LENGTHS:
        label = f"{low}+" if high is None else f"{low}–{high}"
        rows.append(_mean_of(label, items, each, _is_length(low, high)))
    return tuple(rows)


def _is_length(low: int, high: int | None) -> Callable[[Item], bool]:
    def fits(item: Item) -> bool:
        words = len(item.candidate.split())
        return (low == 1 or low <= words) and (high is None or words <= high)

    return fits


def _by_references(items: Sequence[Item], each: Sequence[float]) -> tuple[MeanRow, ...]:
    counts = sorted({len(item.references) for item in items})
    return tuple(_mean_of(str(count), items, each, _has_references(count)) for count in counts)


def _has_references(count: int) -> Callable[[Item], bool]:
    def fits(item: Item) -> bool:
        return len(item.references) == count

    return fits


def _mean_of(label: str, items: Sequence[Item], each: Sequence[float], fits: Callable[[Item], bool]) -> MeanRow:
    values = [value for item, value in zip(items, each, strict=True) if fits(item)]
    return MeanRow(label, len(values), _mean(values))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
