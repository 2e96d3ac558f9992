"""Two systems on the same items: every score of both, and whether the difference may be chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.items import Corpus
from spicegraph_scorer.core.pairing import in_order_of
from spicegraph_scorer.core.significance import Comparison, Resampling, compare
from spicegraph_scorer.metrics import Progress, make_metrics
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import resources, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
    from spicegraph_scorer.metrics.spice.categories import Category

__all__ = ["SystemComparison", "compare_systems"]


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """The comparisons of each metric's scores, with the signature that both systems share."""

    signature: Mapping[str, Json]
    metrics: Mapping[str, tuple[Comparison, ...]]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values: ``signature``, and ``scores``: by name, the fields of a :class:`Comparison`."""
        rows = [asdict(comparison) for found in self.metrics.values() for comparison in found]
        return {"signature": self.signature, "scores": {row.pop("name"): row for row in rows}}


def compare_systems(
    first: Iterable[Item],
    second: Iterable[Item],
    metrics: Sequence[str] = ("spice",),
    *,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    resampling: Resampling | None = None,
    progress: Progress | None = None,
    frequencies: DocumentFrequencies | None = None,
    categories: Mapping[str, Category] | None = None,
    vectors: Vectors | None = None,
) -> SystemComparison:
    """Score two systems and test every difference, item by item, in both of the usual ways.

    Args:
        first: one system's items.
        second: the other's, for the same ids with the same references, in any order.
        metrics: names as for :func:`spicegraph_scorer.score`.
        pipeline: what parses captions.
        resampling: number of draws and seed.
        progress: is told of what takes long.
        frequencies: CIDEr's document frequencies; ``None``: those of the items' own references.
        categories: what SPICE counts beside the total; ``None``: its own categories.
        vectors: SPICE-G's; ``None``: the bundled ones.

    Raises:
        InputError: an item is faulty, ids or references differ, or a metric is unknown.
        DataError: a pipeline or the data of a metric is not installed.
    """
    resampling = resampling or Resampling()
    one = Corpus(check_items(first))
    other = Corpus(in_order_of(one.items, check_items(second)))
    made = resources(pipeline, progress, frequencies, categories, vectors, evidence=False)
    chosen: dict[str, Any] = make_metrics(metrics, made)
    found = {
        name: compare(metric, metric.collect(one), metric.collect(other), resampling=resampling)
        for name, metric in chosen.items()
    }
    signature = signature_of(one.items, {name: metric.signature() for name, metric in chosen.items()})
    signature["resampling"] = {"draws": resampling.draws, "seed": resampling.seed, "interval": 0.95}
    return SystemComparison(signature, found)
