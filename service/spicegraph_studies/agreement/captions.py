"""Agreement with people's ratings of captions, and with their results of systems, as for COCO's M1..M5."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.length import LONG
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.readers.checks import Fault, input_error, shown
from spicegraph_studies.agreement.coefficients import (
    COEFFICIENTS,
    KENDALL,
    Bounded,
    MetricComparison,
    PairOrder,
    correlation,
    numbered,
    of_balance,
    pair_order,
    resampled,
    resamples,
    williams,
)
from spicegraph_studies.agreement.judgements import JudgementScoring, MetricScores, caption_scores
from spicegraph_studies.agreement.pair_counts import ImagePairs, image_pairs, permutation
from spicegraph_studies.agreement.protocols import CAPTION_PROTOCOLS, CaptionProtocol, Ratings, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Indices, Vector
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

    @property
    def interval(self) -> Bounded:
        """The coefficient with its interval."""
        return Bounded(self.value, self.low, self.high)


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
    ``length`` is empty where captions have 30 words or fewer in the mean: else the rank correlation of the number of
    words with the ratings (named ``""``), and that of each metric with length held constant (partial Spearman).
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
    length: Mapping[str, float | None] = field(default_factory=dict)

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
            **(
                {"length": {name or "length alone": value for name, value in self.length.items()}}
                if self.length
                else {}
            ),
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
    ordered = {name: pair_order(each, ratings) for name, each in values.items()}
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
        tuple(
            _comparison(
                protocol.coefficient,
                {name: values[name] for name in names},
                ratings,
                groups,
                draws={name: draws[name][protocol.coefficient] for name in names},
                resampling=resampling,
                pairs=pairs,
            )
            for names in combinations(values, 2)
        ),
        _between_people(kept, resampling),
        {"": tuple(means.tolist()), **{name: tuple(each[defined].tolist()) for name, each in table.items()}},
        {**scores.signature, "resampling": resampling.signature()},
        with_length_constant(values, ratings, np.array([len(each.candidate.split()) for each in kept])[captions]),
    )


def with_length_constant(values: Mapping[str, Vector], ratings: Vector, words: Indices) -> dict[str, float | None]:
    """Return the rank correlation of words and ratings (``""``), and each metric's with words held constant.

    Nothing where captions have 30 words or fewer in the mean. With rank correlations r of ratings (a), scores (b) and
    words (c), it is (r_ab - r_ac r_bc) / sqrt((1 - r_ac^2) (1 - r_bc^2)); ``None`` where one of them is undefined.
    """
    if not len(words) or words.mean() <= LONG:
        return {}
    lengths = words.astype(np.float64)
    alone = correlation("spearman", lengths, ratings).value
    held: dict[str, float | None] = {"": alone}
    for name, each in values.items():
        plain, follows = correlation("spearman", each, ratings).value, correlation("spearman", each, lengths).value
        if plain is None or alone is None or follows is None or max(alone**2, follows**2) == 1:
            held[name] = None
        else:
            held[name] = (plain - alone * follows) / float(np.sqrt((1 - alone**2) * (1 - follows**2)))
    return held


def _observed(judgements: Sequence[Judgement], ratings: Ratings) -> tuple[Indices, Vector]:
    """Return for each observation the index of its caption, and its rating."""
    if ratings is Ratings.MEAN:
        means = np.array([float(np.mean(judgement.ratings)) for judgement in judgements])
        return np.arange(len(judgements)), means
    counts = [len(judgement.ratings) for judgement in judgements]
    flat = np.array([rating for judgement in judgements for rating in judgement.ratings], dtype=np.float64)
    return np.repeat(np.arange(len(judgements)), counts), flat


def _draws(
    ordered: Mapping[str, PairOrder], groups: Indices, resampling: Resampling, pairs: Mapping[str, ImagePairs]
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


def _interval(key: str, of: PairOrder, draws: Vector) -> CoefficientInterval:
    exact = correlation(key, of.first, of.second)
    return CoefficientInterval(
        exact.value, exact.p, *(percentile_bounds(draws) if exact.value is not None else (None, None))
    )


def _ties(of: PairOrder) -> TieCounts:
    def tied(*variables: Vector) -> int:
        classes = np.unique(np.stack(variables), axis=1, return_counts=True)[1]
        return int((classes * (classes - 1) // 2).sum())

    size = len(of.first)
    counts = tied(of.first), tied(of.second), tied(of.first, of.second)
    return TieCounts(size * (size - 1) // 2, *counts, len(np.unique(of.first)), len(np.unique(of.second)))


def _comparison(
    key: str,
    values: Mapping[str, Vector],
    ratings: Vector,
    groups: Indices,
    *,
    draws: Mapping[str, Vector],
    resampling: Resampling,
    pairs: Mapping[str, ImagePairs] | None = None,
) -> MetricComparison:
    """Return how two metrics' coefficients differ; ``draws`` are those of resamples, ``pairs`` save time."""
    names = tuple(values)
    first, second = (correlation(key, each, ratings).value for each in values.values())
    if first is None or second is None:
        return MetricComparison(names[0], names[1], key, first, second, *[None] * 5)
    of_first, of_second = values.values()
    return MetricComparison(
        names[0],
        names[1],
        key,
        first,
        second,
        second - first,
        *percentile_bounds(draws[names[1]] - draws[names[0]]),
        permutation(
            key,
            of_first,
            of_second,
            ratings,
            groups,
            resampling=resampling,
            pairs=(pairs[names[0]], pairs[names[1]]) if pairs else None,
        ),
        williams(
            correlation("pearson", of_first, ratings).value,
            correlation("pearson", of_second, ratings).value,
            correlation("pearson", of_first, of_second).value,
            len(ratings),
        ),
    )


def _between_people(judgements: Sequence[Judgement], resampling: Resampling) -> dict[str, CoefficientInterval]:
    """Return every coefficient of one rating against another; no p, because every two ratings stand there twice."""
    pairs = [(each.image, *pair) for each in judgements for pair in permutations(each.ratings, 2)]
    if not pairs:
        return {key: CoefficientInterval(None, None, None, None) for key in COEFFICIENTS}
    images, first, second = zip(*pairs, strict=True)
    of = pair_order(np.array(first, np.float64), np.array(second, np.float64))
    groups = numbered(images)
    draws = _draws({"": of}, groups, resampling, image_pairs({"": of.first}, of.second, groups))[""]
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

    @property
    def table(self) -> dict[str, dict[str, SystemCorrelation]]:
        """The correlations by metric and human measure."""
        table: dict[str, dict[str, SystemCorrelation]] = {}
        for row in self.correlations:
            table.setdefault(row.metric, {})[row.human] = row
        return table

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        return {
            "signature": self.signature,
            "systems": self.systems,
            "metrics": {
                metric: {
                    measure: {
                        "systems": row.systems,
                        "coefficients": {name: asdict(interval) for name, interval in row.coefficients.items()},
                    }
                    for measure, row in by_measure.items()
                }
                for metric, by_measure in self.table.items()
            },
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
    metrics = tuple(dict.fromkeys(name for row in scores.values() for name in row))
    measures = tuple(dict.fromkeys(name for row in human.values() for name in row))
    correlations = []
    for metric, measure in product(metrics, measures):
        values, ratings = _columns((scores, human), (metric, measure))
        correlations.append(_correlate(metric, measure, values, ratings, resampling))
    return SystemAgreement(
        tuple(human),
        tuple(correlations),
        {m: tuple(_system_comparisons(human, scores, metrics, m, resampling)) for m in measures},
        {name: scores[name] for name in human},
        human,
        {"systems": len(human), "resampling": {**resampling.signature(), "unit": "system"}},
    )


def _columns(tables: Sequence[Mapping[str, Mapping[str, float | None]]], names: Sequence[str]) -> tuple[Vector, ...]:
    """Return the named numbers, one from each table, of those systems that have all of them."""
    rows = [[table[system].get(name) for table, name in zip(tables, names, strict=True)] for system in tables[-1]]
    known = [[value for value in row if value is not None] for row in rows if None not in row]
    return tuple(np.array(known, dtype=np.float64).reshape(-1, len(names)).T)


def _correlate(metric: str, measure: str, values: Vector, ratings: Vector, resampling: Resampling) -> SystemCorrelation:
    exact = {key: correlation(key, values, ratings) for key in SYSTEM_COEFFICIENTS}
    ends: dict[str, tuple[float | None, float | None]] = {}
    if len(values) >= _FEWEST:
        draws = _system_draws(values, ratings, resampling)
        ends = {key: percentile_bounds(draws[key]) for key in SYSTEM_COEFFICIENTS if exact[key].value is not None}
    cells = {key: CoefficientInterval(*exact[key], *ends.get(key, (None, None))) for key in SYSTEM_COEFFICIENTS}
    return SystemCorrelation(metric, measure, len(values), cells)


def _system_draws(values: Vector, ratings: Vector, resampling: Resampling) -> dict[str, Vector]:
    """Return the coefficients of resamples; those of fewer than three systems say nothing, and are left out."""
    of = pair_order(values, ratings)
    parts: dict[str, list[Vector]] = {key: [] for key in SYSTEM_COEFFICIENTS}
    for weights in resamples(resampling, len(values)):
        enough = np.count_nonzero(weights, axis=1) >= _FEWEST
        for key, drawn in resampled(of, weights, SYSTEM_COEFFICIENTS).items():
            parts[key].append(np.where(enough, drawn, np.nan))
    return {key: np.concatenate(drawn) for key, drawn in parts.items()}


def _system_comparisons(
    human: Mapping[str, Mapping[str, float | None]],
    scores: Mapping[str, Mapping[str, float | None]],
    metrics: Sequence[str],
    measure: str,
    resampling: Resampling,
) -> Iterator[MetricComparison]:
    """Yield the comparison of every two metrics on the systems that have both."""
    for names in combinations(metrics, 2):
        first, second, ratings = _columns((scores, scores, human), (*names, measure))
        values = dict(zip(names, (first, second), strict=True))
        draws: dict[str, Vector] = {}
        if len(ratings) >= _FEWEST:
            draws = {name: _system_draws(each, ratings, resampling)["pearson"] for name, each in values.items()}
        groups = np.arange(len(ratings))
        yield _comparison("pearson", values, ratings, groups, draws=draws, resampling=resampling)
