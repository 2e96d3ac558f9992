"""Agreement system by system: correlation of corpus scores with the results of people, as for COCO's M1..M5."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import Fault, input_error, shown
from spicegraph_scorer.studies.agreement.captions import Interval
from spicegraph_scorer.studies.agreement.coefficients import (
    MetricComparison,
    Observations,
    correlation,
    observations,
    resampled,
    resamples,
    williams,
)
from spicegraph_scorer.studies.agreement.pair_counts import permutation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.studies.agreement.coefficients import Matrix, Vector

SYSTEM_COEFFICIENTS = ("pearson", "spearman", "tau_b")
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class SystemCorrelation:
    """One metric against one human measure over the systems.

    The interval is that of resampled systems; with a dozen systems it is wide, and says so.
    """

    metric: str
    human: str
    systems: int
    coefficients: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class SystemAgreement:
    """How well metrics rank and space systems as people do.

    ``comparisons`` hold every two metrics' Pearson coefficients with each human measure.
    """

    systems: tuple[str, ...]
    correlations: tuple[SystemCorrelation, ...]
    comparisons: Mapping[str, tuple[MetricComparison, ...]]
    scores: Mapping[str, Mapping[str, float | None]]
    human: Mapping[str, Mapping[str, float | None]]
    signature: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        found: dict[str, dict[str, Json]] = {}
        for row in self.correlations:
            cells: dict[str, Json] = {name: asdict(interval) for name, interval in row.coefficients.items()}
            found.setdefault(row.metric, {})[row.human] = {"systems": row.systems, "coefficients": cells}
        return {
            "signature": self.signature,
            "systems": self.systems,
            "metrics": dict(found),
            "comparisons": {name: [asdict(row) for row in rows] for name, rows in self.comparisons.items()},
        }


def agree_on_systems(
    human: Mapping[str, Mapping[str, float | None]],
    scores: Mapping[str, Mapping[str, float | None]],
    *,
    resampling: Resampling | None = None,
) -> SystemAgreement:
    """Correlate the scores of systems with what people found.

    Args:
        human: by system, the human measures by name (``M1`` ...).
        scores: by system, the metrics' corpus values by name.
        resampling: draws and seed of intervals and tests.

    A system whose value or measure is ``None`` is left out of that correlation.

    Raises:
        InputError: a system is on one side only, or there are fewer than three.
    """
    resampling = resampling or Resampling()
    _check(human, scores)
    systems = tuple(human)
    metrics = tuple(dict.fromkeys(name for row in scores.values() for name in row))
    measures = tuple(dict.fromkeys(name for row in human.values() for name in row))
    table = _Systems(systems, scores, human)
    correlations = tuple(
        _correlate(metric, measure, *table.columns(systems, metric, measure), resampling)
        for metric in metrics
        for measure in measures
    )
    comparisons = {measure: tuple(_comparisons(table, metrics, measure, resampling)) for measure in measures}
    return SystemAgreement(
        systems,
        correlations,
        comparisons,
        {name: scores[name] for name in systems},
        human,
        {
            "systems": len(systems),
            "resampling": {**resampling.signature(), "unit": "system"},
        },
    )


def _check(human: Mapping[str, object], scores: Mapping[str, object]) -> None:
    faults = [
        Fault(f"system {shown(name)}", "", "has human results, but no scores") for name in human if name not in scores
    ]
    faults += [
        Fault(f"system {shown(name)}", "", "has scores, but no human results") for name in scores if name not in human
    ]
    if faults:
        raise input_error("systems", faults)
    if len(human) < _FEWEST:
        raise InputError(f"a correlation needs at least {_FEWEST} systems, there are {len(human)}")


@dataclass(frozen=True, slots=True)
class _Systems:
    """Scores and human results of the systems."""

    names: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float | None]]
    human: Mapping[str, Mapping[str, float | None]]

    def columns(self, names: Sequence[str], metric: str, measure: str) -> tuple[Vector, Vector]:
        """Return a metric's values and a human measure of those systems that have both."""
        rows = [(self.scores[name].get(metric), self.human[name].get(measure)) for name in names]
        known = [(value, rating) for value, rating in rows if value is not None and rating is not None]
        values, ratings = np.array(known, dtype=np.float64).reshape(-1, 2).T
        return values, ratings

    def knowing(self, metrics: tuple[str, str], measure: str) -> list[str]:
        """Return the systems that have both metrics and the measure."""
        return [
            name
            for name in self.names
            if None not in {self.human[name].get(measure), *(self.scores[name].get(metric) for metric in metrics)}
        ]


def _correlate(metric: str, measure: str, values: Vector, ratings: Vector, resampling: Resampling) -> SystemCorrelation:
    exact = {key: correlation(key, values, ratings) for key in SYSTEM_COEFFICIENTS}
    ends: dict[str, tuple[float | None, float | None]] = dict.fromkeys(SYSTEM_COEFFICIENTS, (None, None))
    if len(values) >= _FEWEST:
        draws = _draws(values, ratings, resampling)
        ends = {key: percentile_bounds(draws[key]) for key in SYSTEM_COEFFICIENTS if exact[key].value is not None}
    cells = {key: Interval(*exact[key], *ends.get(key, (None, None))) for key in SYSTEM_COEFFICIENTS}
    return SystemCorrelation(metric, measure, len(values), cells)


def _draws(values: Vector, ratings: Vector, resampling: Resampling) -> dict[str, Vector]:
    of = observations(values, ratings)
    parts = [_of_enough(of, weights) for weights in resamples(resampling, len(values))]
    return {key: np.concatenate([part[key] for part in parts]) for key in SYSTEM_COEFFICIENTS}


def _of_enough(of: Observations, weights: Matrix) -> dict[str, Vector]:
    """Return the coefficients of resamples; of fewer than three systems they say nothing, and are left out."""
    enough = np.count_nonzero(weights, axis=1) >= _FEWEST
    found = resampled(of, weights, SYSTEM_COEFFICIENTS)
    return {key: np.where(enough, values, np.nan) for key, values in found.items()}


def _comparisons(
    table: _Systems, metrics: Sequence[str], measure: str, resampling: Resampling
) -> Iterator[MetricComparison]:
    """Yield the comparison of every two metrics on the systems that have both."""
    for first, second in combinations(metrics, 2):
        known = table.knowing((first, second), measure)
        one, ratings = table.columns(known, first, measure)
        other, _ = table.columns(known, second, measure)
        pairs = ((one, ratings), (other, ratings), (one, other))
        left, right, between = (correlation("pearson", *pair).value for pair in pairs)
        if left is None or right is None or between is None:
            yield MetricComparison(first, second, "pearson", left, right, *[None] * 5)
            continue
        draws = [_draws(each, ratings, resampling)["pearson"] for each in (one, other)]
        yield MetricComparison(
            first,
            second,
            "pearson",
            left,
            right,
            right - left,
            *percentile_bounds(draws[1] - draws[0]),
            permutation("pearson", one, other, ratings, np.arange(len(known)), resampling=resampling),
            williams(left, right, between, len(known)),
        )
