"""A study in, its bounds out."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Unpack

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.run import signature_of
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import DataFields, MetricData, Resources, make_metrics, merged_data, needs_of
from spicegraph_scorer.studies.bounds.paths import path_of
from spicegraph_scorer.studies.bounds.results import (
    BoundsResult,
    TrialBounds,
    bounds_of,
    drawn,
    rank_agreement,
    resample_weights,
)
from spicegraph_scorer.studies.bounds.study import human

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.studies.bounds.paths import Spread
    from spicegraph_scorer.studies.bounds.results import Bound, Matrix, Weights
    from spicegraph_scorer.studies.bounds.study import Study, Table, Trial


def find_bounds(
    study: Study,
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
        trials: systems and substitutes, see :func:`~spicegraph_scorer.studies.bounds.system` and
            :func:`~spicegraph_scorer.studies.bounds.lower_trials`; each stands in for the held-out captions, so that
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
        >>> from spicegraph_scorer.studies.bounds import Study
        >>> study = Study((1, 2), (("a dog", "a dog"), ("a cat", "the cat")))
        >>> find_bounds(study, metrics=("rouge",)).human.scores[0].value
        0.75
    """
    everyone = (human(study), *trials)
    twice = [name for name, count in Counter(trial.name for trial in everyone).items() if count > 1]
    if twice:
        raise InputError(f"two trials are called {twice[0]!a}; give the systems names of their own")
    resampling = resampling or Resampling()
    texts = [text for trial in everyone for mine in trial.candidates for text in mine]
    places = any(needs.loose for needs in needs_of(metrics))  # notes on loose words name the places that they are about
    facts = _facts_of(pipeline, texts, progress, places=places)
    chosen = make_metrics(metrics, Resources(facts, progress, merged_data(data, fields)))
    weights = resample_weights(len(study.ids), resampling)
    found: list[dict[str, tuple[Bound, ...]]] = [{} for _ in everyone]
    ranked: dict[str, Matrix] = {}
    for name, metric in chosen.items():
        advance = partial(progress, f"scoring {name}") if progress else _no_progress
        tables = path_of(metric).tables(
            metric, study, [trial.candidates for trial in everyone], spread=spread, advance=advance
        )
        ranked |= _headline(tables[0])
        for mine, bounds in zip(found, _bounds(metric, tables, study, weights), strict=True):
            mine[name] = bounds
    return BoundsResult(
        _signature(study, chosen, resampling),
        len(study.ids),
        int(study.sizes.sum()),
        study.rounds,
        (int(study.sizes.min()) - 1, int(study.sizes.max()) - 1),
        tuple(
            TrialBounds(trial.name, trial.kind, trial.title, mine) for trial, mine in zip(everyone, found, strict=True)
        ),
        rank_agreement(ranked, study),
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


def _no_progress(_done: int, _total: int) -> None:
    """Tell nobody."""


def _headline(table: Table) -> dict[str, Matrix]:
    """Return the scores of a table by name, without the categories of the first of them (``SPICE_Color``)."""
    category = f"{table.names[0]}_"
    return {name: table.each[:, :, place] for place, name in enumerate(table.names) if not name.startswith(category)}


def _bounds(
    metric: Metric[Any], tables: Sequence[Table], study: Study, weights: Weights
) -> Iterator[tuple[Bound, ...]]:
    """Yield the numbers of each trial; the first is the human one."""
    reference = None
    for table in tables:
        own = drawn(metric, table, weights)
        bounds = bounds_of(metric, table, study, own=own, human=reference)
        reference = reference or (bounds, own)
        yield bounds


def _signature(study: Study, metrics: dict[str, Metric[Any]], resampling: Resampling) -> dict[str, Json]:
    items = [Item(name, texts[0], texts) for name, texts in zip(study.ids, study.captions, strict=True)]
    signature = signature_of(items, {name: metric.signature() for name, metric in metrics.items()})
    signature["held out"] = "caption k of every image in round k"
    signature["confidence"] = resampling.signature()
    return signature
