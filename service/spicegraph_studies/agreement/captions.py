"""Agreement with people's ratings of captions, and with their results of systems, as for COCO's M1..M5."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import Fault, input_error, shown
from spicegraph_studies.agreement.coefficients import (
    COEFFICIENTS,
    KENDALL,
    MetricComparison,
    Observations,
    correlation,
    numbered,
    observations,
    of_balance,
    resampled,
    resamples,
    williams,
)
from spicegraph_studies.agreement.judgements import JudgementScoring, MetricScores, caption_scores
from spicegraph_studies.agreement.pair_counts import ImagePairs, image_pairs, permutation
from spicegraph_studies.agreement.protocols import CAPTION_PROTOCOLS, CaptionProtocol, Ratings, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Indices, Matrix, Vector
    from spicegraph_studies.agreement.judgements import Judgement


@dataclass(frozen=True, slots=True)
class CoefficientInterval:
    """A coefficient, the p-value of no association, and its 95 % bootstrap interval over images.

    The p-value takes observations as independent; the interval does not take those of one image so.
    """

    value: float | None
    p: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class TieCounts:
    """Of all pairs of observations: how many the metric, the people, or both score equally.

    ``metric`` and ``human`` include ``both``. ``values`` and ``ratings`` count distinct values.
    """

    pairs: int
    metric: int
    human: int
    both: int
    values: int
    ratings: int


@dataclass(frozen=True, slots=True)
class MetricCorrelation:
    """One metric against the ratings: every coefficient, ties, and where the metric is undefined."""

    metric: str
    coefficients: Mapping[str, CoefficientInterval]
    ties: TieCounts
    undefined: int
    """Captions for which this metric has no value; they are left out for all metrics."""


@dataclass(frozen=True, slots=True)
class CaptionAgreement:
    """How well metrics agree with ratings of captions, under a protocol that says what was compared.

    ``between_people`` holds every coefficient for one rating of a caption against another rating of the same
    caption, over all ordered pairs of different ratings, without a p-value; ``None`` where captions have one rating.
    ``points`` are the observations themselves: for each, the mean rating of its caption and, by metric, the value.
    """

    protocol: CaptionProtocol
    captions: int
    images: int
    observations: int
    removed: Mapping[str, int]
    metrics: tuple[MetricCorrelation, ...]
    comparisons: tuple[MetricComparison, ...]
    between_people: Mapping[str, CoefficientInterval]
    points: Mapping[str, tuple[float, ...]]
    signature: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values; the points are left out."""
        return {
            "signature": self.signature,
            "protocol": {
                "name": self.protocol.name,
                "coefficient": self.protocol.coefficient,
                "ratings": self.protocol.ratings.value,
                "own": self.protocol.own.value,
                "about": self.protocol.about,
                "source": self.protocol.source,
            },
            "captions": self.captions,
            "images": self.images,
            "observations": self.observations,
            "removed": self.removed,
            "metrics": {
                agreement.metric: {
                    "coefficients": {name: asdict(interval) for name, interval in agreement.coefficients.items()},
                    "ties": asdict(agreement.ties),
                    "undefined": agreement.undefined,
                }
                for agreement in self.metrics
            },
            "between_people": {name: asdict(interval) for name, interval in self.between_people.items()},
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
        }


def agree_on_captions(
    judgements: Sequence[Judgement],
    protocol: CaptionProtocol = CAPTION_PROTOCOLS["plain"],
    *,
    scoring: JudgementScoring | None = None,
    resampling: Resampling | None = None,
) -> CaptionAgreement:
    """Score judged captions and correlate every metric with the ratings.

    Args:
        judgements: what people said, for instance from :func:`read_judgements`.
        protocol: what is averaged and removed; an entry of ``CAPTION_PROTOCOLS`` or a changed one.
        scoring: our metrics to compute; scores that the judgements carry are compared as well.
        resampling: draws and seed of intervals and tests.

    Raises:
        InputError: the protocol leaves nothing, or scores or references are missing.
        DataError: a pipeline or the data of a metric is not installed.
    """
    prepared = prepare(judgements, protocol)
    scores = caption_scores(prepared.judgements, scoring or JudgementScoring())
    return correlate(prepared.judgements, scores, protocol, removed=prepared.removed, resampling=resampling)


def correlate(
    judgements: Sequence[Judgement],
    scores: MetricScores,
    protocol: CaptionProtocol,
    *,
    removed: Mapping[str, int] | None = None,
    resampling: Resampling | None = None,
) -> CaptionAgreement:
    """Correlate ready scores with ratings; see :func:`agree_on_captions`.

    Captions for which some metric is undefined are left out for all, so that all are compared on the same.
    """
    resampling = resampling or Resampling()
    table = {name: np.array([np.nan if v is None else v for v in each]) for name, each in scores.each.items()}
    defined = np.all([~np.isnan(values) for values in table.values()], axis=0)
    if not defined.any():
        raise InputError("no caption has a value of every metric")
    kept = [judgement for judgement, known in zip(judgements, defined, strict=True) if known]
    captions, ratings = _observed(kept, protocol.ratings)
    groups = numbered(judgement.image for judgement in kept)[captions]
    values = {name: each[defined][captions] for name, each in table.items()}
    ordered = {name: observations(each, ratings) for name, each in values.items()}
    pairs = image_pairs(values, ratings, groups)
    draws = _draws(ordered, groups, resampling, pairs)
    metrics = tuple(
        MetricCorrelation(
            name,
            {key: _interval(key, of, draws[name][key]) for key in COEFFICIENTS},
            _ties(of),
            int(np.count_nonzero(np.isnan(table[name]))),
        )
        for name, of in ordered.items()
    )
    means = np.array([float(np.mean(judgement.ratings)) for judgement in kept])
    return CaptionAgreement(
        protocol,
        len(kept),
        len({judgement.image for judgement in kept}),
        len(ratings),
        dict(removed or {}),
        metrics,
        tuple(_comparisons(_Observed(values, ratings, groups, pairs), draws, protocol.coefficient, resampling)),
        _between_people(kept, resampling),
        {"": tuple(means.tolist()), **{name: tuple(each[defined].tolist()) for name, each in table.items()}},
        {**scores.signature, "resampling": resampling.signature()},
    )


def _observed(judgements: Sequence[Judgement], ratings: Ratings) -> tuple[Indices, Vector]:
    """Return for each observation the index of its caption, and its rating."""
    if ratings is Ratings.MEAN:
        means = np.array([float(np.mean(judgement.ratings)) for judgement in judgements])
        return np.arange(len(judgements)), means
    counts = [len(judgement.ratings) for judgement in judgements]
    flat = np.array([rating for judgement in judgements for rating in judgement.ratings], dtype=np.float64)
    return np.repeat(np.arange(len(judgements)), counts), flat


def _draws(
    ordered: Mapping[str, Observations], groups: Indices, resampling: Resampling, pairs: Mapping[str, ImagePairs]
) -> dict[str, dict[str, Vector]]:
    """Return every coefficient of every metric for resamples of the images, the same for all metrics."""
    images = int(groups.max()) + 1
    draws: dict[str, dict[str, list[Vector]]] = {name: {key: [] for key in COEFFICIENTS} for name in ordered}
    others = [key for key in COEFFICIENTS if not pairs or key not in KENDALL]
    for drawn in resamples(resampling, images, len(groups)):
        weights = drawn[:, groups]
        for name, of in ordered.items():
            kendall = of_balance(pairs[name].balance_of(drawn)) if pairs else {}
            for key, block in {**kendall, **resampled(of, weights, others)}.items():
                draws[name][key].append(block)
    return {name: {key: np.concatenate(parts) for key, parts in keys.items()} for name, keys in draws.items()}


def _interval(key: str, of: Observations, draws: Vector) -> CoefficientInterval:
    exact = correlation(key, of.values, of.ratings)
    return CoefficientInterval(
        exact.value, exact.p, *(percentile_bounds(draws) if exact.value is not None else (None, None))
    )


def _ties(of: Observations) -> TieCounts:
    counts = of.pairs.counts(np.ones((1, len(of.values))))
    return TieCounts(
        int(counts.total[0]),
        int(counts.tied_first[0]),
        int(counts.tied_second[0]),
        int(counts.tied_both[0]),
        len(np.unique(of.values)),
        len(np.unique(of.ratings)),
    )


class _Observed(NamedTuple):
    """The observations: every metric's values, the ratings, the number of the image, and every metric's pairs."""

    values: Mapping[str, Vector]
    ratings: Vector
    groups: Indices
    pairs: Mapping[str, ImagePairs]


def _comparisons(
    observed: _Observed, draws: Mapping[str, Mapping[str, Vector]], key: str, resampling: Resampling
) -> Iterator[MetricComparison]:
    """Yield the comparison of every two metrics by the protocol's coefficient."""
    for names in combinations(observed.values, 2):
        yield _comparison(
            names,
            key,
            observed._replace(
                values={name: observed.values[name] for name in names},
                pairs={name: observed.pairs[name] for name in names} if observed.pairs else {},
            ),
            lambda name: draws[name][key],
            resampling,
        )


def _comparison(
    names: tuple[str, str],
    key: str,
    observed: _Observed,
    draws_of: Callable[[str], Vector],
    resampling: Resampling,
) -> MetricComparison:
    """Return how two metrics' coefficients differ; ``draws_of`` gives those of resamples."""
    first_values, second_values = (observed.values[name] for name in names)
    ratings = observed.ratings
    first, second = (correlation(key, each, ratings).value for each in (first_values, second_values))
    if first is None or second is None:
        return MetricComparison(*names, key, first, second, *[None] * 5)
    pairs = tuple(observed.pairs.values())
    return MetricComparison(
        *names,
        key,
        first,
        second,
        second - first,
        *percentile_bounds(draws_of(names[1]) - draws_of(names[0])),
        permutation(
            key,
            first_values,
            second_values,
            ratings,
            observed.groups,
            resampling=resampling,
            pairs=(pairs[0], pairs[1]) if pairs else None,
        ),
        _williams(first_values, second_values, ratings),
    )


def _williams(of_first: Vector, of_second: Vector, ratings: Vector) -> float | None:
    first, second, between = (
        correlation("pearson", *pair).value
        for pair in ((of_first, ratings), (of_second, ratings), (of_first, of_second))
    )
    if first is None or second is None or between is None:
        return None
    return williams(first, second, between, len(ratings))


def _between_people(judgements: Sequence[Judgement], resampling: Resampling) -> dict[str, CoefficientInterval]:
    """Return every coefficient of one rating against another; no p, because every two ratings stand there twice."""
    pairs = [(each.image, *pair) for each in judgements for pair in permutations(each.ratings, 2)]
    if not pairs:
        return {key: CoefficientInterval(None, None, None, None) for key in COEFFICIENTS}
    images, first, second = zip(*pairs, strict=True)
    of = observations(np.array(first, np.float64), np.array(second, np.float64))
    groups = numbered(images)
    draws = _draws({"": of}, groups, resampling, image_pairs({"": of.values}, of.ratings, groups))[""]
    return {key: replace(_interval(key, of, draws[key]), p=None) for key in COEFFICIENTS}


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
    coefficients: Mapping[str, CoefficientInterval]


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
        by_metric: dict[str, dict[str, Json]] = {}
        for row in self.correlations:
            cells: dict[str, Json] = {name: asdict(interval) for name, interval in row.coefficients.items()}
            by_metric.setdefault(row.metric, {})[row.human] = {"systems": row.systems, "coefficients": cells}
        return {
            "signature": self.signature,
            "systems": self.systems,
            "metrics": dict(by_metric),
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
    comparisons = {measure: tuple(_system_comparisons(table, metrics, measure, resampling)) for measure in measures}
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
        draws = _system_draws(values, ratings, resampling)
        ends = {key: percentile_bounds(draws[key]) for key in SYSTEM_COEFFICIENTS if exact[key].value is not None}
    cells = {key: CoefficientInterval(*exact[key], *ends.get(key, (None, None))) for key in SYSTEM_COEFFICIENTS}
    return SystemCorrelation(metric, measure, len(values), cells)


def _system_draws(values: Vector, ratings: Vector, resampling: Resampling) -> dict[str, Vector]:
    of = observations(values, ratings)
    parts = [_of_enough(of, weights) for weights in resamples(resampling, len(values))]
    return {key: np.concatenate([part[key] for part in parts]) for key in SYSTEM_COEFFICIENTS}


def _of_enough(of: Observations, weights: Matrix) -> dict[str, Vector]:
    """Return the coefficients of resamples; of fewer than three systems they say nothing, and are left out."""
    enough = np.count_nonzero(weights, axis=1) >= _FEWEST
    resampled_values = resampled(of, weights, SYSTEM_COEFFICIENTS)
    return {key: np.where(enough, values, np.nan) for key, values in resampled_values.items()}


def _system_comparisons(
    table: _Systems, metrics: Sequence[str], measure: str, resampling: Resampling
) -> Iterator[MetricComparison]:
    """Yield the comparison of every two metrics on the systems that have both."""
    for names in combinations(metrics, 2):
        known = table.knowing(names, measure)
        values = {name: table.columns(known, name, measure)[0] for name in names}
        ratings = table.columns(known, names[0], measure)[1]
        observed = _Observed(values, ratings, np.arange(len(known)), {})
        draws = partial(_pearson_draws, observed, resampling)
        yield _comparison(names, "pearson", observed, draws, resampling)


def _pearson_draws(observed: _Observed, resampling: Resampling, name: str) -> Vector:
    return _system_draws(observed.values[name], observed.ratings, resampling)["pearson"]
