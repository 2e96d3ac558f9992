"""A study in, its bounds out: corpus values, distributions, intervals, shares of the bound, and ranks that agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import chain, combinations_with_replacement
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.data import DataFields, MetricData, Resources, merged_data, with_spice_text
from spicegraph_scorer.core.facts import FactCache, FactSource, Progress
from spicegraph_scorer.core.items import Fingerprint, Item
from spicegraph_scorer.core.length import LengthControl, are_descriptions, control_of
from spicegraph_scorer.core.results import Json, signature_of
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.core.tokens import toolkit_text
from spicegraph_scorer.metrics import lower_is_better, make_metrics, needs_of
from spicegraph_studies.agreement.coefficients import Bounded, Matrix, Vector, correlation, ratio, resamples
from spicegraph_studies.agreement.length import word_counts
from spicegraph_studies.bounds.paths import path_of
from spicegraph_studies.bounds.study import BoundsStudy, Cube, Kind, Table, Trial, human

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric
    from spicegraph_service.kit import Spread

Weights: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.uint16]]

_BLOCK = 64  # resamples at a time: bounds memory
Ranks: TypeAlias = "Mapping[str, Mapping[str, Bounded]]"
"""Kendall's tau-b with its p-value (observations taken as independent) for every two scores, by their names."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Number of scores, mean, sample standard deviation, quantiles (linear interpolation); ``None`` where undefined."""

    n: int
    mean: float | None
    sd: float | None
    minimum: float | None
    q1: float | None
    median: float | None
    q3: float | None
    maximum: float | None

    @classmethod
    def of(cls, values: Vector) -> Distribution:
        """Describe scores, of which NaN are left out."""
        values = values[~np.isnan(values)]
        if not len(values):
            return cls(0, None, None, None, None, None, None, None)
        sd = float(values.std(ddof=1)) if len(values) > 1 else None
        return cls(len(values), float(values.mean()), sd, *np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist())


@dataclass(frozen=True, slots=True)
class Bound:
    """One score of a trial: mean of the rounds' corpus scores, 95 % interval over images; ``None``: undefined."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    rounds: tuple[float | None, ...]  # the corpus score of each: what the metric gives for :meth:`BoundsStudy.corpus`
    share: Bounded | None  # in per cent of the human score; ``None`` for the human one itself
    captions: Distribution  # the scores of all held-out captions ("micro"); each counts once
    images: Distribution  # the images' mean scores ("macro")
    within: Distribution  # the standard deviations of the scores within each image

    def to_dict(self) -> dict[str, Json]:
        """Return the fields but the name as JSON values."""
        of_people, values = self.share, asdict(self)
        if of_people is not None:
            values["share"] = {"percent": of_people.value, "low": of_people.low, "high": of_people.high}
        del values["name"]
        return values


def resample_weights(images: int, resampling: Resampling) -> Weights:
    """Return how often each image is drawn in each resample, (draws, images); the same for every trial."""
    return np.concatenate([drawn.astype(np.uint16) for drawn in resamples(resampling, images)])


def corpus_scores(metric: Metric[Any], table: Table[Cube]) -> Callable[[Weights], dict[str, Matrix]]:
    """Return a function from image weights, (resamples, images), to corpus scores, (resamples, rounds)."""
    rounds, columns = len(table.each), table.columns
    if columns is None:
        defined = ~np.isnan(table.each)
        columns = np.concatenate([np.where(defined, table.each, 0.0), defined], axis=2)
    _, images, width = columns.shape
    by_image = np.ascontiguousarray(columns.transpose(1, 0, 2).reshape(images, rounds * width))

    def corpus(weights: Weights) -> dict[str, Matrix]:
        scores = metric.from_sums((weights.astype(np.float64) @ by_image).reshape(len(weights) * rounds, -1))
        return {name: values.reshape(len(weights), rounds) for name, values in scores.items()}

    return corpus


def bounds_of(
    metric: Metric[Any], tables: Sequence[Table[Cube]], study: BoundsStudy, weights: Weights
) -> Iterator[tuple[Bound, ...]]:
    """Yield the numbers of each score of each trial; the first is the human one, of which the others have shares."""
    human: dict[str, tuple[float | None, Vector]] = {}
    for table in tables:
        corpus, bounds = corpus_scores(metric, table), []
        rounds = corpus(np.ones((1, len(study.ids)), np.uint16))
        blocks = [corpus(weights[start : start + _BLOCK]) for start in range(0, len(weights), _BLOCK)]
        scores: dict[str, tuple[float | None, Vector]] = {}
        for place, name in enumerate(table.names):
            value = _defined(_mean(rounds[name])[0])
            draws = np.concatenate([_mean(block[name]) for block in blocks])  # NaN where a resample has no score
            scores[name] = value, draws
            share = Bounded(None) if human else None
            of_people, draws_of_people = human.get(name, (None, draws))
            if value is not None and of_people:
                share = Bounded(100 * value / of_people, *percentile_bounds(100 * ratio(draws, draws_of_people)))
            each = table.each[:, :, place]
            means, counted = image_means(each, study), study.new & ~np.isnan(each)
            squares = np.where(counted, (each - means) ** 2, 0.0).sum(axis=0)
            deviations = np.sqrt(ratio(squares, counted.sum(axis=0) - 1))
            spreads = map(Distribution.of, (each[study.new], means, deviations))
            rounds_of_score = tuple(map(_defined, rounds[name][0]))
            bounds.append(Bound(name, value, *percentile_bounds(draws), rounds_of_score, share, *spreads))
        human = human or scores
        yield tuple(bounds)


def image_means(values: Matrix, study: BoundsStudy) -> Vector:
    """Return each image's mean over its captions, from scores by round and image; NaN where none is defined."""
    counted = study.new & ~np.isnan(values)
    return ratio(np.where(counted, values, 0.0).sum(axis=0), counted.sum(axis=0))


def _mean(values: Matrix) -> Vector:
    """Return the mean of each row over its defined values."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis=1), defined.sum(axis=1))


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def rank_agreement(scores: Mapping[str, Matrix], study: BoundsStudy, lower: Collection[str] = ()) -> dict[str, Ranks]:
    """Return how the human scores agree, over ``captions`` and ``images`` (means), from the best to the worst."""
    signed = {name: -values if name in lower else values for name, values in scores.items()}
    return {
        "captions": _square({name: values[study.new] for name, values in signed.items()}),
        "images": _square({name: image_means(values, study) for name, values in signed.items()}),
    }


def _square(columns: Mapping[str, Vector]) -> Ranks:
    square: dict[str, dict[str, Bounded]] = {name: dict.fromkeys(columns, Bounded(None)) for name in columns}
    for first, second in combinations_with_replacement(columns, 2):
        both = ~np.isnan(columns[first]) & ~np.isnan(columns[second])
        tau_b = correlation("tau_b", columns[second][both], columns[first][both])
        square[first][second] = square[second][first] = tau_b
    return square


@dataclass(frozen=True, slots=True)
class TrialBounds:
    """The scores of one trial, with those of each metric together."""

    name: str
    kind: Kind  # ``human`` is the upper bound
    title: str  # what was scored, in words
    metrics: Mapping[str, tuple[Bound, ...]]

    @property
    def scores(self) -> tuple[Bound, ...]:
        """The scores of all metrics."""
        return tuple(bound for bounds in self.metrics.values() for bound in bounds)


@dataclass(frozen=True, slots=True)
class BoundsResult:
    """Upper bound, systems and lower bounds of every score, and how the metrics' rankings agree.

    ``trials`` holds the human one first, then the systems, then the lower bounds.
    """

    signature: Mapping[str, Json]
    images: int
    captions: int
    rounds: int
    references: tuple[int, int]  # the fewest and the most captions of an image that a held-out one is scored against
    trials: tuple[TrialBounds, ...]
    ranking: Mapping[str, Ranks]  # over ``captions`` and over ``images``, how every two scores of people agree
    # By system and score, the system against people with length held constant; empty where captions are short.
    length: Mapping[str, Mapping[str, LengthControl]] = field(default_factory=dict)

    @property
    def human(self) -> TrialBounds:
        """The upper bound."""
        return self.trials[0]

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """The scores that are better if lower: under 100 per cent of the human one is better than people."""
        lower = lower_is_better(self.human.metrics)
        return tuple(bound.name for bound in self.human.scores if bound.name in lower)

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON values; ``None`` is undefined."""
        length: dict[str, Json] = {
            system: {name: asdict(control) for name, control in controls.items()}
            for system, controls in self.length.items()
        }
        return {
            "signature": self.signature,
            "images": self.images,
            "captions": self.captions,
            "rounds": self.rounds,
            "references": {"min": self.references[0], "max": self.references[1]},
            "lower_is_better": self.lower_is_better,
            "trials": [
                {
                    "name": trial.name,
                    "kind": trial.kind,
                    "title": trial.title,
                    "scores": {bound.name: bound.to_dict() for bound in trial.scores},
                }
                for trial in self.trials
            ],
            "ranking": {
                "names": tuple(self.ranking["captions"]),
                **{over: _ranks_json(ranks) for over, ranks in self.ranking.items()},
            },
            **({"length": length} if length else {}),
        }


def _ranks_json(ranks: Ranks) -> dict[str, Json]:
    return {
        "tau_b": [[pair.value for pair in row.values()] for row in ranks.values()],
        "p": [[pair.p for pair in row.values()] for row in ranks.values()],
    }


def find_bounds(
    study: BoundsStudy,
    trials: Sequence[Trial] = (),
    metrics: Sequence[str] = ("spice",),
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    resampling: Resampling | None = None,
    spread: Spread = map,
    progress: Progress | None = None,
    **fields: Unpack[DataFields],
) -> BoundsResult:
    """Score every caption of every image against the others of its image, and trials in its place.

    Source: Wang and Gaizauskas, LREC 2016, "Cross-validating Image Description Datasets and Evaluation Metrics".

    Args:
        study: the images and their captions.
        trials: systems and substitutes (:func:`~spicegraph_studies.bounds.system`,
            :func:`~spicegraph_studies.bounds.lower_trials`), which replace the held-out captions.
        metrics: names as for :func:`spicegraph_scorer.score`.
        data: likewise; unless given, CIDEr's document frequencies are in each round those of the references in it.
        pipeline: what parses captions for SPICE; every text is parsed once.
        resampling: number of draws and seed of the intervals.
        spread: applies a function to many arguments, in order; ``map`` does it in this process.
        progress: is called during what takes long.
        fields: as for :func:`spicegraph_scorer.score`.

    Raises:
        InputError: two trials have one name, a metric is unknown, or a field is given twice.

    Example:
        >>> from spicegraph_studies.bounds import BoundsStudy
        >>> study = BoundsStudy((1, 2), (("a dog", "a dog"), ("a cat", "the cat")))
        >>> find_bounds(study, metrics=("rouge",)).human.scores[0].value
        0.75
    """
    everyone = (human(study), *trials)
    resampling = resampling or Resampling()
    data = with_spice_text(metrics, merged_data(data, fields))
    texts = _texts(everyone, as_toolkit=data.spice_text == "coco")
    places = any(needs.loose for needs in needs_of(metrics))  # notes on loose words name the places that they are about

    @cache  # the first metric that asks has all texts parsed
    def facts() -> FactSource:
        source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        return FactCache(source, progress, places=places).learn(texts)

    chosen = make_metrics(metrics, Resources(facts, progress, data))
    weights = resample_weights(len(study.ids), resampling)
    by_metric: dict[str, list[tuple[Bound, ...]]] = {}  # of each trial
    ranked: dict[str, Matrix] = {}
    length: dict[str, dict[str, LengthControl]] = {}
    words = _words_of_descriptions(everyone, study)
    for name, metric in chosen.items():
        advance = partial(progress, f"scoring {name}") if progress else lambda _done, _total: None
        tables = path_of(metric)(
            metric, study, [trial.candidates for trial in everyone], spread=spread, advance=advance
        )
        of_people, *_ = scores_of = _headline(tables)
        ranked |= of_people
        for trial, scores in zip(everyone, scores_of, strict=True):
            if trial.name in words:
                length.setdefault(trial.name, {}).update(_controls(study, words[trial.name], scores, of_people))
        by_metric[name] = list(bounds_of(metric, tables, study, weights))
    return BoundsResult(
        _signature(study, chosen, sum(not text.strip() for text in texts), resampling),
        len(study.ids),
        int(study.sizes.sum()),
        study.rounds,
        (int(study.sizes.min()) - 1, int(study.sizes.max()) - 1),
        tuple(_trial_bounds(trial, by_metric, place) for place, trial in enumerate(everyone)),
        rank_agreement(ranked, study, lower_is_better(chosen)),
        length,
    )


def _texts(trials: Sequence[Trial], *, as_toolkit: bool) -> list[str]:
    """Return all texts of trials, whose names must differ; ``as_toolkit``: as COCO's toolkit hands them to SPICE."""
    for name, count in Counter(trial.name for trial in trials).items():
        if count > 1:
            raise InputError(f"two trials are called {name!a}; give the systems names of their own")
    texts = list(chain.from_iterable(chain.from_iterable(trial.candidates) for trial in trials))
    return list(map(toolkit_text, texts)) if as_toolkit else texts


def _trial_bounds(trial: Trial, by_metric: Mapping[str, Sequence[tuple[Bound, ...]]], place: int) -> TrialBounds:
    return TrialBounds(trial.name, trial.kind, trial.title, {name: each[place] for name, each in by_metric.items()})


def _words_of_descriptions(trials: Sequence[Trial], study: BoundsStudy) -> dict[str, Matrix]:
    """Return of each system of descriptions, by image, the words of its captions and of people's."""
    words = {}
    for trial in trials:
        if trial.kind == "system":
            sides = [word_counts(chain.from_iterable(each)) for each in (trial.candidates, study.captions)]
            lengths = np.stack([image_means(side[study.held], study) for side in sides], axis=1)
            if are_descriptions(lengths.mean(axis=0, keepdims=True).tolist()):
                words[trial.name] = lengths
    return words


def _signature(
    study: BoundsStudy, metrics: Mapping[str, Metric[Any]], empty: int, resampling: Resampling
) -> dict[str, Json]:
    items = [Item(name, captions[0], captions) for name, captions in zip(study.ids, study.captions, strict=True)]
    fingerprint = replace(Fingerprint.of(items), empty=empty)
    return {
        **signature_of(fingerprint, {name: metric.signature() for name, metric in metrics.items()}),
        "held out": "caption k of every image in round k",
        "value": "mean of the rounds' corpus scores (micro and macro averages: captions, images)",
        "confidence": resampling.signature(),
    }


def _headline(tables: Sequence[Table[Cube]]) -> list[dict[str, Matrix]]:
    """Return a metric's scores of each trial without those of categories, which have no rank."""
    category = f"{tables[0].names[0]}_"  # of the first score, as ``SPICE_Color``
    headline = [(place, name) for place, name in enumerate(tables[0].names) if not name.startswith(category)]
    return [{name: table.each[:, :, place] for place, name in headline} for table in tables]


def _controls(
    study: BoundsStudy, words: Matrix, scores: Mapping[str, Matrix], of_people: Mapping[str, Matrix]
) -> dict[str, LengthControl]:
    """Compare a system with people, image by image, with length held constant; ``words`` are the means of either."""
    controls = {}
    for name, values in scores.items():
        pairs = np.stack([image_means(side, study) for side in (values, of_people[name])], axis=1)
        known = ~np.isnan(pairs).any(axis=1)
        if known.any():
            controls[name] = control_of(words[known].tolist(), pairs[known].tolist())
    return controls
