"""Agreement with people's ratings of captions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from itertools import combinations, compress, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_studies.agreement.coefficients import (
    COEFFICIENTS,
    KENDALL,
    Bounded,
    PairOrder,
    correlation,
    numbered,
    of_balance,
    resampled,
    resamples,
)
from spicegraph_studies.agreement.judgements import Judgement, JudgementScoring, MetricScores, caption_scores
from spicegraph_studies.agreement.length import length_json, with_length_constant, word_counts
from spicegraph_studies.agreement.pair_counts import ImagePairs, compared, image_pairs
from spicegraph_studies.agreement.protocols import CAPTION_PROTOCOLS, CaptionProtocol, Ratings, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Indices, MetricComparison, Vector

_PROTOCOL = ("name", "coefficient", "ratings", "own", "about", "source")  # the fields of a protocol that JSON has


def tie_counts(values: Vector, ratings: Vector) -> dict[str, int]:
    """Of all pairs of observations: how many tie in the metric, in the ratings, in both; and the distinct values."""

    def tied(*variables: Vector) -> int:
        classes = np.unique(np.stack(variables), axis=1, return_counts=True)[1]
        return int((classes * (classes - 1) // 2).sum())

    return {
        "pairs": len(values) * (len(values) - 1) // 2,
        "metric": tied(values),
        "human": tied(ratings),
        "both": tied(values, ratings),
        "values": len(np.unique(values)),
        "ratings": len(np.unique(ratings)),
    }


@dataclass(frozen=True, slots=True)
class CaptionAgreement:
    """The correlation of metrics with ratings of captions, under a protocol.

    ``coefficients``, ``ties`` (see :func:`tie_counts`) and ``undefined`` (captions without a value, which are left out
    for all metrics) are by metric.
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
    coefficients: Mapping[str, Mapping[str, Bounded]]
    ties: Mapping[str, Mapping[str, int]]
    undefined: Mapping[str, int]
    comparisons: tuple[MetricComparison, ...]
    between_people: Mapping[str, Bounded]
    points: Mapping[str, tuple[float, ...]]
    signature: Mapping[str, Json]
    length: Mapping[str, float | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values; the points are left out."""
        return {
            "signature": self.signature,
            "protocol": {name: getattr(self.protocol, name) for name in _PROTOCOL},
            "captions": self.captions,
            "images": self.images,
            "observations": self.observations,
            "removed": self.removed,
            "metrics": {
                metric: {
                    "coefficients": {name: each.to_dict() for name, each in coefficients.items()},
                    "ties": self.ties[metric],
                    "undefined": self.undefined[metric],
                }
                for metric, coefficients in self.coefficients.items()
            },
            "between_people": {name: each.to_dict() for name, each in self.between_people.items()},
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            **({"length": length_json(self.length)} if self.length else {}),
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
    """
    kept, removed = prepare(judgements, protocol)
    # Where every rating is an observation, each is a document of CIDEr's frequencies too, as in the authors' scripts.
    counts = [len(each.ratings) if protocol.ratings is Ratings.EACH else 1 for each in kept]
    rows, first = np.repeat(np.arange(len(kept)), counts), np.cumsum([0, *counts[:-1]])
    of_rows, signature = caption_scores([kept[row] for row in rows], scoring or JudgementScoring())
    scores = {name: [values[row] for row in first] for name, values in of_rows.items()}
    return correlate(kept, scores, protocol, removed=removed, resampling=resampling, signature=signature)


def _observations(judgements: Sequence[Judgement], protocol: CaptionProtocol) -> tuple[Vector, Indices, Vector]:
    """Return the mean rating of each caption; and of each observation, the number of its caption and its rating."""
    means = np.array([float(np.mean(judgement.ratings)) for judgement in judgements])
    if protocol.ratings is not Ratings.EACH:
        return means, np.arange(len(judgements)), means
    captions = np.repeat(np.arange(len(judgements)), [len(judgement.ratings) for judgement in judgements])
    return means, captions, np.array([rating for judgement in judgements for rating in judgement.ratings], np.float64)


def correlate(
    judgements: Sequence[Judgement],
    scores: MetricScores,
    protocol: CaptionProtocol,
    *,
    removed: Mapping[str, int] = MappingProxyType({}),
    resampling: Resampling | None = None,
    signature: Mapping[str, Json] = MappingProxyType({}),
) -> CaptionAgreement:
    """Correlate ready scores with ratings; captions for which a metric is undefined are left out for all."""
    resampling = resampling or Resampling()
    table = {name: np.array(each, np.float64) for name, each in scores.items()}
    defined = np.all([~np.isnan(values) for values in table.values()], axis=0)
    if not defined.any():
        raise InputError("no caption has a value of every metric")
    kept = list(compress(judgements, defined))
    means, captions, ratings = _observations(kept, protocol)
    images = numbered(judgement.image for judgement in kept)
    groups = images[captions]
    values = {name: each[defined][captions] for name, each in table.items()}
    ordered = {name: PairOrder(each, ratings) for name, each in values.items()}
    pairs = image_pairs(values, ratings, groups)
    draws = _draws(ordered, groups, resampling, pairs)
    return CaptionAgreement(
        protocol,
        len(kept),
        int(images.max()) + 1,
        len(ratings),
        dict(removed),
        {name: _intervals(of, draws[name]) for name, of in ordered.items()},
        {name: tie_counts(each, ratings) for name, each in values.items()},
        {name: int(np.isnan(each).sum()) for name, each in table.items()},
        tuple(
            compared(
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
        {**signature, "resampling": resampling.signature()},
        with_length_constant(values, ratings, word_counts(each.candidate for each in kept)[captions]),
    )


def _draws(
    ordered: Mapping[str, PairOrder], groups: Indices, resampling: Resampling, pairs: Mapping[str, ImagePairs]
) -> dict[str, dict[str, Vector]]:
    """Return every coefficient of every metric for resamples of the images, the same for all metrics."""
    images = int(groups.max()) + 1
    draws: defaultdict[tuple[str, str], list[Vector]] = defaultdict(list)
    others = [key for key in COEFFICIENTS if not pairs or key not in KENDALL]
    for drawn in resamples(resampling, images, len(groups)):
        weights = drawn[:, groups]
        for name, of in ordered.items():
            kendall = of_balance(pairs[name].balance_of(drawn)) if pairs else {}
            for key, block in {**kendall, **resampled(of, weights, others)}.items():
                draws[name, key].append(block)
    return {name: {key: np.concatenate(draws[name, key]) for key in COEFFICIENTS} for name in ordered}


def _intervals(of: PairOrder, draws: Mapping[str, Vector]) -> dict[str, Bounded]:
    """Return every coefficient with its interval."""
    bounded = {}
    for key in COEFFICIENTS:
        exact = correlation(key, of.first, of.second)
        low, high = percentile_bounds(draws[key]) if exact.value is not None else (None, None)
        bounded[key] = exact._replace(low=low, high=high)
    return bounded


def _between_people(judgements: Sequence[Judgement], resampling: Resampling) -> dict[str, Bounded]:
    """Return every coefficient of one rating against another; no p, because every two ratings stand there twice."""
    pairs = [(each.image, *pair) for each in judgements for pair in permutations(each.ratings, 2)]
    if not pairs:
        return {key: Bounded(None) for key in COEFFICIENTS}
    images, first, second = zip(*pairs, strict=True)
    of = PairOrder(np.array(first, np.float64), np.array(second, np.float64))
    groups = numbered(images)
    draws = _draws({"": of}, groups, resampling, image_pairs({"": of.first}, of.second, groups))[""]
    return {key: each._replace(p=None) for key, each in _intervals(of, draws).items()}
