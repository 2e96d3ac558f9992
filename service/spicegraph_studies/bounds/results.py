"""A study in, its bounds out: corpus values, distributions, intervals, shares of the bound, and ranks that agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.data import DataFields, MetricData, Resources, merged_data, with_spice_text
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.items import Fingerprint, Item
from spicegraph_scorer.core.results import signature_of
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.core.tokens import toolkit_text
from spicegraph_scorer.metrics import lower_is_better, make_metrics, needs_of
from spicegraph_studies.agreement.coefficients import Correlation, correlation
from spicegraph_studies.bounds.paths import path_of
from spicegraph_studies.bounds.study import human

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.core.results import Json
    from spicegraph_service.kit import Spread
    from spicegraph_studies.bounds.study import BoundsStudy, Cube, Kind, Table, Trial


Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Numbers: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64 | np.int64]]"
AnyShape = TypeVar("AnyShape", bound="np.ndarray[tuple[int, ...], np.dtype[np.float64]]")
Weights: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.uint16]]
Drawn: TypeAlias = "Mapping[str, Vector]"

_BLOCK = 64  # resamples at a time: bounds memory


@dataclass(frozen=True, slots=True)
class Distribution:
    """Some scores: their number, mean, sample standard deviation, and quantiles (linear interpolation).

    All but ``n`` are ``None`` where there is no score; ``sd`` also where there is only one.
    """

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
        """Describe scores, of which NaN are left out.

        Example:
            >>> Distribution.of(np.array([1.0, 2.0, np.nan, 6.0])).median
            2.0
        """
        values = values[~np.isnan(values)]
        if not len(values):
            return cls(0, None, None, None, None, None, None, None)
        sd = float(values.std(ddof=1)) if len(values) > 1 else None
        return cls(len(values), float(values.mean()), sd, *np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist())


@dataclass(frozen=True, slots=True)
class Share:
    """A score in per cent of the human one, with its 95 % interval; ``None`` where it is undefined."""

    percent: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Bound:
    """One score of one trial.

    Attributes:
        name: of the score, e.g. ``SPICE_Color``.
        value: the mean of the rounds' corpus scores.
        low: lower end of its 95 % interval (percentile bootstrap over the images).
        high: upper end.
        rounds: the corpus score of each round: what the metric gives for :meth:`BoundsStudy.corpus`.
        share: in per cent of the human score; ``None`` for the human one itself.
        captions: the scores of all held-out captions ("micro"); each counts once.
        images: the images' mean scores ("macro").
        within: the standard deviations of the scores within each image.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    rounds: tuple[float | None, ...]
    share: Share | None
    captions: Distribution
    images: Distribution
    within: Distribution


def resample_weights(images: int, resampling: Resampling) -> Weights:
    """Return how often each image is drawn in each resample, (draws, images); the same for every trial."""
    generator = resampling.generator()
    chances = np.full(images, 1 / images)
    sizes = [min(_BLOCK, resampling.draws - done) for done in range(0, resampling.draws, _BLOCK)]
    return np.concatenate([generator.multinomial(images, chances, size=size).astype(np.uint16) for size in sizes])


def drawn(metric: Metric[Any], table: Table[Cube], weights: Weights) -> dict[str, Vector]:
    """Return, for each score, the mean of the rounds' corpus scores in each resample; NaN where undefined."""
    corpus = corpus_scores(metric, table)
    blocks = [corpus(weights[start : start + _BLOCK]) for start in range(0, len(weights), _BLOCK)]
    return {name: np.concatenate([_mean(block[name]) for block in blocks]) for name in table.names}


def corpus_scores(metric: Metric[Any], table: Table[Cube]) -> Callable[[Weights], dict[str, Matrix]]:
    """Return what gives each score, (resamples, rounds), for weights of the images, (resamples, images).

    Corpus scores are made from columns that are summed over images, round by round. Of a metric whose corpus score is
    the mean of the items', these are its values and how many are defined.
    """
    rounds, columns = len(table.each), table.columns
    combine: Callable[[Matrix], Mapping[str, Vector]] = metric.from_sums
    if columns is None:
        defined = ~np.isnan(table.each)
        columns = np.concatenate([np.where(defined, table.each, 0.0), defined], axis=2)
        combine = partial(_means, table.names)
    _, images, width = columns.shape
    by_image = np.ascontiguousarray(columns.transpose(1, 0, 2).reshape(images, rounds * width))

    def corpus(weights: Weights) -> dict[str, Matrix]:
        scores = combine((weights.astype(np.float64) @ by_image).reshape(len(weights) * rounds, -1))
        return {name: values.reshape(len(weights), rounds) for name, values in scores.items()}

    return corpus


def bounds_of(
    metric: Metric[Any],
    table: Table[Cube],
    study: BoundsStudy,
    *,
    own: Drawn,
    human: tuple[Sequence[Bound], Drawn] | None,
) -> tuple[Bound, ...]:
    """Return the numbers of each score of a trial."""
    everything = np.ones((1, len(study.ids)), np.uint16)
    rounds = corpus_scores(metric, table)(everything)
    bounds = []
    for place, name in enumerate(table.names):
        value = _defined(_mean(rounds[name])[0])
        share = None
        if human is not None:
            theirs = next(bound.value for bound in human[0] if bound.name == name)
            share = Share(None, None, None)
            if value is not None and theirs:
                share = Share(100 * value / theirs, *percentile_bounds(100 * _ratio(own[name], human[1][name])))
        bounds.append(
            Bound(
                name,
                value,
                *percentile_bounds(own[name]),
                tuple(map(_defined, rounds[name][0])),
                share,
                *_distributions(table.each[:, :, place], study),
            )
        )
    return tuple(bounds)


def image_means(values: Matrix, study: BoundsStudy) -> Vector:
    """Return each image's mean over its captions, from scores by round and image; NaN where none is defined."""
    counted = study.new & ~np.isnan(values)
    return _ratio(np.where(counted, values, 0.0).sum(axis=0), counted.sum(axis=0))


def _distributions(values: Matrix, study: BoundsStudy) -> Iterator[Distribution]:
    """Yield the distributions over captions, over images, and of the standard deviations within images."""
    yield Distribution.of(values[study.new])
    means = image_means(values, study)
    yield Distribution.of(means)
    counted = study.new & ~np.isnan(values)
    squares = np.where(counted, (values - means) ** 2, 0.0).sum(axis=0)
    yield Distribution.of(np.sqrt(_ratio(squares, counted.sum(axis=0) - 1)))


def _means(names: Sequence[str], sums: Matrix) -> dict[str, Vector]:
    """Return the means over the items where a score is defined, from sums and numbers of such items."""
    values, defined = np.hsplit(sums, 2)
    means = _ratio(values, defined)
    return {name: means[:, place] for place, name in enumerate(names)}


def _mean(values: Matrix) -> Vector:
    """Return the mean of each row over its defined values."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(axis=1), defined.sum(axis=1))


def _ratio(above: AnyShape, below: Numbers) -> AnyShape:
    """Return above over below; NaN where below is not above 0."""
    ratio = np.full_like(above, np.nan)
    np.divide(above, below, out=ratio, where=below > 0)
    return ratio


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


Pairs: TypeAlias = "tuple[tuple[Correlation, ...], ...]"


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Kendall's tau-b with its p-value for every two scores: a square, in the order of ``names``.

    ``captions`` ranks the held-out captions, ``images`` the images by the mean of their captions' scores, from the best
    to the worst: of CHAIRi and CHAIRs, the lowest are best. The p-values take captions and images as independent.
    """

    names: tuple[str, ...]
    captions: Pairs
    images: Pairs


def rank_agreement(scores: Mapping[str, Matrix], study: BoundsStudy, lower: Collection[str] = ()) -> RankAgreement:
    """Return how the human scores agree with each other."""
    signs = [-1 if name in lower else 1 for name in scores]
    captions = [sign * values[study.new] for sign, values in zip(signs, scores.values(), strict=True)]
    images = [sign * image_means(values, study) for sign, values in zip(signs, scores.values(), strict=True)]
    return RankAgreement(tuple(scores), _square(captions), _square(images))


def _square(columns: list[Vector]) -> Pairs:
    correlations: dict[tuple[int, int], Correlation] = {}
    for row, first in enumerate(columns):
        for column, second in enumerate(columns[: row + 1]):
            both = ~np.isnan(first) & ~np.isnan(second)
            correlations[row, column] = correlations[column, row] = correlation("tau_b", first[both], second[both])
    places = range(len(columns))
    return tuple(tuple(correlations[row, column] for column in places) for row in places)


@dataclass(frozen=True, slots=True)
class TrialBounds:
    """The scores of one trial, with those of each metric together.

    ``kind`` is ``human`` (the upper bound), ``system`` or ``lower``; ``title`` says in words what was scored.
    """

    name: str
    kind: Kind
    title: str
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
    references: tuple[int, int]
    """The fewest and the most captions of an image that a held-out one is scored against."""
    trials: tuple[TrialBounds, ...]
    ranking: RankAgreement

    @property
    def human(self) -> TrialBounds:
        """The upper bound."""
        return self.trials[0]

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """The scores of which the lowest is the best: under 100 per cent of the human one is better than people."""
        lower = lower_is_better(self.human.metrics)
        return tuple(bound.name for bound in self.human.scores if bound.name in lower)

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON values; ``None`` is undefined.

        ``trials`` is a list in which each score has the fields of a :class:`Bound`; ``ranking`` has, for captions
        and images, squares of ``tau_b`` and ``p`` in the order of its ``names``.
        """
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
                    "scores": {
                        bound.name: {name: value for name, value in asdict(bound).items() if name != "name"}
                        for bound in trial.scores
                    },
                }
                for trial in self.trials
            ],
            "ranking": {
                "names": self.ranking.names,
                "captions": _pairs_dict(self.ranking.captions),
                "images": _pairs_dict(self.ranking.images),
            },
        }


def _pairs_dict(pairs: Pairs) -> dict[str, Json]:
    return {
        "tau_b": [[pair.value for pair in row] for row in pairs],
        "p": [[pair.p for pair in row] for row in pairs],
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
        trials: systems and substitutes, see :func:`~spicegraph_studies.bounds.system` and
            :func:`~spicegraph_studies.bounds.lower_trials`; each stands in for the held-out captions, so that
            it is scored against as many references as people are.
        metrics: names as for :func:`spicegraph_scorer.score`.
        data: as for :func:`spicegraph_scorer.score`; without CIDEr's document frequencies, they are in each round those
            of the references in it.
        pipeline: what parses captions for SPICE; every text is parsed once.
        resampling: number of draws and seed of the intervals.
        spread: applies a function to many arguments, in order; ``map`` does it in this process.
        progress: is called during what takes long.
        fields: as for :func:`spicegraph_scorer.score`.

    Raises:
        InputError: two trials have one name, a metric is unknown, or a field is given twice.
        DataError: a pipeline or the data of a metric is not installed.

    Example:
        >>> from spicegraph_studies.bounds import BoundsStudy
        >>> study = BoundsStudy((1, 2), (("a dog", "a dog"), ("a cat", "the cat")))
        >>> find_bounds(study, metrics=("rouge",)).human.scores[0].value
        0.75
    """
    everyone = (human(study), *trials)
    twice = [name for name, count in Counter(trial.name for trial in everyone).items() if count > 1]
    if twice:
        raise InputError(f"two trials are called {twice[0]!a}; give the systems names of their own")
    resampling = resampling or Resampling()
    texts = [text for trial in everyone for trial_bounds in trial.candidates for text in trial_bounds]
    data = with_spice_text(metrics, merged_data(data, fields))
    if data.spice_text == "coco":
        texts = list(map(toolkit_text, texts))
    places = any(needs.loose for needs in needs_of(metrics))  # notes on loose words name the places that they are about
    facts = _facts_of(pipeline, texts, progress, places=places)
    chosen = make_metrics(metrics, Resources(facts, progress, data))
    weights = resample_weights(len(study.ids), resampling)
    bounds_by_trial: list[dict[str, tuple[Bound, ...]]] = [{} for _ in everyone]
    ranked: dict[str, Matrix] = {}
    for name, metric in chosen.items():
        advance = partial(progress, f"scoring {name}") if progress else lambda _done, _total: None
        tables = path_of(metric).tables(
            metric, study, [trial.candidates for trial in everyone], spread=spread, advance=advance
        )
        ranked |= _headline(tables[0])
        for trial_bounds, bounds in zip(bounds_by_trial, _bounds(metric, tables, study, weights), strict=True):
            trial_bounds[name] = bounds
    return BoundsResult(
        _signature(study, chosen, resampling, empty=sum(not text.strip() for text in texts)),
        len(study.ids),
        int(study.sizes.sum()),
        study.rounds,
        (int(study.sizes.min()) - 1, int(study.sizes.max()) - 1),
        tuple(
            TrialBounds(trial.name, trial.kind, trial.title, trial_bounds)
            for trial, trial_bounds in zip(everyone, bounds_by_trial, strict=True)
        ),
        rank_agreement(ranked, study, lower_is_better(chosen)),
    )


def _facts_of(
    pipeline: str | FactSource, texts: Sequence[str], progress: Progress | None, *, places: bool
) -> Callable[[], FactSource]:
    """Return what gives facts; the first metric that asks has all texts parsed."""

    @cache
    def facts() -> FactSource:
        source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        return FactCache(source, progress, places=places).learn(texts)

    return facts


def _headline(table: Table[Cube]) -> dict[str, Matrix]:
    """Return the scores of a table by name, without the categories of the first of them (``SPICE_Color``)."""
    category = f"{table.names[0]}_"
    return {name: table.each[:, :, place] for place, name in enumerate(table.names) if not name.startswith(category)}


def _bounds(
    metric: Metric[Any], tables: Sequence[Table[Cube]], study: BoundsStudy, weights: Weights
) -> Iterator[tuple[Bound, ...]]:
    """Yield the numbers of each trial; the first is the human one."""
    reference = None
    for table in tables:
        drawn_scores = drawn(metric, table, weights)
        bounds = bounds_of(metric, table, study, own=drawn_scores, human=reference)
        reference = reference or (bounds, drawn_scores)
        yield bounds


def _signature(
    study: BoundsStudy, metrics: dict[str, Metric[Any]], resampling: Resampling, *, empty: int
) -> dict[str, Json]:
    items = [Item(name, texts[0], texts) for name, texts in zip(study.ids, study.captions, strict=True)]
    fingerprint = replace(Fingerprint.of(items), empty=empty)
    signature = signature_of(fingerprint, {name: metric.signature() for name, metric in metrics.items()})
    signature["held out"] = "caption k of every image in round k"
    signature["confidence"] = resampling.signature()
    return signature
