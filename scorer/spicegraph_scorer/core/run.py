"""One run: statistics of metrics, and the scores, intervals, explanations and the signature that are made from them.

The command line, studies, the server, challenges and Ray score by these functions.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from spicegraph_scorer.core.fingerprint import Fingerprint
from spicegraph_scorer.core.results import Json, Result, Run
from spicegraph_scorer.core.significance import intervals
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.facts import Progress
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Explanation, Metric
    from spicegraph_scorer.core.significance import Resampling


def collect(items: tuple[Item, ...], metrics: Mapping[str, Metric[Any]]) -> dict[str, list[Any]]:
    """Return each item's statistic by metric.

    Captions are parsed last: what the other metrics hold meanwhile, tokens and n-grams, is gone by then.

    Raises:
        DataError: a pipeline or the data of a metric is not installed; this is found before the work.
    """
    for metric in metrics.values():
        metric.signature()
    words = Corpus(items)
    found = {name: metric.collect(words) for name, metric in metrics.items() if not metric.needs.facts}
    del words
    parsed = Corpus(items)
    return found | {name: metric.collect(parsed) for name, metric in metrics.items() if metric.needs.facts}


def run_of(
    name: str,
    metric: Metric[Any],
    statistics: Sequence[Any],
    *,
    confidence: Resampling | None = None,
    explain: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Return a metric's scores of the items whose statistics are given.

    Args:
        name: of the metric.
        metric: the metric itself.
        statistics: one per item, complete ones.
        confidence: how to resample for intervals of every corpus score; ``None``: no intervals.
        explain: explain every item's score, if the metric does so.
        progress: is called while something takes long.
    """
    own = tuple(statistics)
    return Run(
        name,
        metric.signature(),
        own,
        metric.total(own),
        intervals(metric, own, resampling=confidence) if confidence else (),
        tuple(_explanations(metric, own, progress)) if explain and metric.explains else (),
        metric.by_category,
    )


def _explanations(metric: Metric[Any], statistics: Sequence[Any], progress: Progress | None) -> Iterator[Explanation]:
    label = f"explaining {metric.total(())[0].name}"
    for done, statistic in enumerate(statistics, start=1):
        yield metric.explain(statistic)
        if progress:
            progress(label, done, len(statistics))


def result_of(
    items: Sequence[Item],
    metrics: Mapping[str, Metric[Any]],
    statistics: Mapping[str, Sequence[Any]],
    *,
    confidence: Resampling | None = None,
    explain: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Return the scores of items whose statistics are there already.

    Args:
        items: all items, in order.
        metrics: the metrics by name.
        statistics: by the same names, one statistic per item.
        confidence: see :func:`run_of`.
        explain: see :func:`run_of`.
        progress: is called while something takes long.
    """
    runs = [
        run_of(name, metric, statistics[name], confidence=confidence, explain=explain, progress=progress)
        for name, metric in metrics.items()
    ]
    signature = signature_of(items, {run.name: run.signature for run in runs})
    if confidence is not None:
        signature["confidence"] = confidence.signature()
    return Result(tuple(items), signature, tuple(runs))


def signature_of(references: Fingerprint | Sequence[Item], metrics: Mapping[str, Mapping[str, str]]) -> dict[str, Json]:
    """Return what two results must share for their numbers to be comparable.

    Args:
        references: the items, or the fingerprint of their references.
        metrics: the signature of each metric by its name.
    """
    found = references if isinstance(references, Fingerprint) else Fingerprint.of(references)
    return {
        "spicegraph": version("spicegraph"),
        "items": found.items,
        "references": {"min": found.fewest, "max": found.most, "digest": found.digest},
        "metrics": {name: dict(signature) for name, signature in metrics.items()},
    }
