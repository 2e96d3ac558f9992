"""Agreement with people's results of whole systems, as for COCO's M1 to M5."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import Fault, refuse_faults, shown
from spicegraph_studies.agreement.coefficients import PairOrder, correlation, resampled, resamples
from spicegraph_studies.agreement.length import length_json, with_length_constant
from spicegraph_studies.agreement.pair_counts import compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Bounded, MetricComparison, Vector
    from spicegraph_studies.agreement.reading import SystemTable

SYSTEM_COEFFICIENTS: Final = ("pearson", "spearman", "tau_b")
WORDS: Final = "words"
"""The column of human results that holds the mean number of words of a system's captions; it is no result."""
_FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class SystemAgreement:
    """How well metrics rank and space systems as people do.

    ``correlations`` has, for each metric and human measure, the coefficients over the systems that have both. Their
    intervals are those of resampled systems; with a dozen systems they are wide, and say so. ``comparisons`` hold every
    two metrics' Pearson coefficients with each human measure. ``length`` is empty where the systems' captions have 30
    words or fewer in the mean, or nobody says how many: else, for each measure, what
    :func:`~spicegraph_studies.agreement.length.with_length_constant` returns.
    """

    systems: tuple[str, ...]
    correlations: Mapping[str, Mapping[str, Mapping[str, Bounded]]]
    comparisons: Mapping[str, tuple[MetricComparison, ...]]
    scores: SystemTable
    human: SystemTable
    signature: Mapping[str, Json]
    length: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def known(self, metric: str, measure: str) -> int:
        """Return how many systems have a value of the metric and of the measure."""
        return len(_columns((self.scores, self.human), (metric, measure))[0])

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        return {
            "signature": self.signature,
            "systems": self.systems,
            "metrics": {
                metric: {
                    measure: {
                        "systems": self.known(metric, measure),
                        "coefficients": {name: each.to_dict() for name, each in coefficients.items()},
                    }
                    for measure, coefficients in by_measure.items()
                }
                for metric, by_measure in self.correlations.items()
            },
            "comparisons": {name: [asdict(row) for row in rows] for name, rows in self.comparisons.items()},
            **({"length": {name: length_json(each) for name, each in self.length.items()}} if self.length else {}),
        }


def _bounded(values: Vector, ratings: Vector, resampling: Resampling) -> dict[str, Bounded]:
    """Return every coefficient with its interval, where there are enough systems for one."""
    row = {key: correlation(key, values, ratings) for key in SYSTEM_COEFFICIENTS}
    draws = _draws(values, ratings, resampling) if len(values) >= _FEWEST else {}
    for key, exact in row.items():
        if exact.value is not None:
            row[key] = exact._replace(**dict(zip(("low", "high"), percentile_bounds(draws[key]), strict=True)))
    return row


def agree_on_systems(
    human: SystemTable, scores: SystemTable, *, resampling: Resampling | None = None
) -> SystemAgreement:
    """Correlate systems' scores with the human measures.

    Args:
        human: by system, the human measures by name (``M1`` ...), and if known the mean ``words`` of its captions.
        scores: by system, the metrics' corpus values by name.
        resampling: draws and seed of intervals and tests.

    A system whose value or measure is ``None`` is left out of that correlation.

    Raises:
        InputError: a system is on one side only, or there are fewer than three.
    """
    resampling = resampling or Resampling()
    _check_systems(human, scores)
    metrics = tuple(dict.fromkeys(chain.from_iterable(scores.values())))
    measures = tuple(name for name in dict.fromkeys(chain.from_iterable(human.values())) if name != WORDS)
    correlations: dict[str, dict[str, dict[str, Bounded]]] = {}
    length: dict[str, dict[str, float | None]] = {}
    for metric, measure in product(metrics, measures):
        values, ratings = _columns((scores, human), (metric, measure))
        row = _bounded(values, ratings, resampling)
        correlations.setdefault(metric, {})[measure] = row
        values, ratings, words = _columns((scores, human, human), (metric, measure, WORDS))
        length.setdefault(measure, {}).update(with_length_constant({metric: values}, ratings, words))
    return SystemAgreement(
        tuple(human),
        correlations,
        {measure: _comparisons(human, scores, metrics, measure, resampling) for measure in measures},
        {name: scores[name] for name in human},
        human,
        {"systems": len(human), "resampling": {**resampling.signature(), "unit": "system"}},
        {measure: held for measure, held in length.items() if held},
    )


def _check_systems(human: SystemTable, scores: SystemTable) -> None:
    """Refuse systems that are on one side only, and too few."""
    sides = ((human, scores, "has human results, but no scores"), (scores, human, "has scores, but no human results"))
    faults = [
        Fault(f"system {shown(name)}", "", reason)
        for side, other, reason in sides
        for name in side
        if name not in other
    ]
    refuse_faults("systems", faults)
    if len(human) < _FEWEST:
        raise InputError(f"a correlation needs at least {_FEWEST} systems, there are {len(human)}")


def _columns(tables: Sequence[SystemTable], names: Sequence[str]) -> tuple[Vector, ...]:
    """Return the named numbers, one from each table, of those systems that have all of them."""
    rows = [[table[system].get(name) for table, name in zip(tables, names, strict=True)] for system in tables[-1]]
    known = [[value for value in row if value is not None] for row in rows if None not in row]
    return tuple(np.array(known, dtype=np.float64).reshape(-1, len(names)).T)


def _draws(values: Vector, ratings: Vector, resampling: Resampling) -> dict[str, Vector]:
    """Return the coefficients of resamples; those of fewer than three systems say nothing, and are left out."""
    of = PairOrder(values, ratings)
    parts: dict[str, list[Vector]] = {key: [] for key in SYSTEM_COEFFICIENTS}
    for weights in resamples(resampling, len(values)):
        enough = np.count_nonzero(weights, axis=1) >= _FEWEST
        for key, drawn in resampled(of, weights, SYSTEM_COEFFICIENTS).items():
            parts[key].append(np.where(enough, drawn, np.nan))
    return {key: np.concatenate(drawn) for key, drawn in parts.items()}


def _comparisons(
    human: SystemTable, scores: SystemTable, metrics: Sequence[str], measure: str, resampling: Resampling
) -> tuple[MetricComparison, ...]:
    """Return the comparison of every two metrics on the systems that have both."""
    comparisons = []
    for names in combinations(metrics, 2):
        first, second, ratings = _columns((scores, scores, human), (*names, measure))
        values = dict(zip(names, (first, second), strict=True))
        draws: dict[str, Vector] = {}
        if len(ratings) >= _FEWEST:
            draws = {name: _draws(each, ratings, resampling)["pearson"] for name, each in values.items()}
        comparisons.append(
            compared("pearson", values, ratings, np.arange(len(ratings)), draws=draws, resampling=resampling)
        )
    return tuple(comparisons)
