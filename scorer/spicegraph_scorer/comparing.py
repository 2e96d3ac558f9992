"""Two systems on the same items: every score of both, and whether the difference may be chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.items import Corpus, Item
from spicegraph_scorer.metrics import Progress, make_metrics
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.scoring import resources, signature_of
from spicegraph_scorer.significance import Comparison, Resampling, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.results import Json
    from spicegraph_scorer.spice.metric import FactSource

__all__ = ["SystemComparison", "compare_systems"]

_SHOWN = 5


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
) -> SystemComparison:
    """Score two systems and test every difference, item by item, in both of the usual ways.

    Args:
        first: one system's items.
        second: the other's, for the same ids with the same references, in any order.
        metrics: names as for :func:`spicegraph_scorer.score`.
        pipeline: what parses captions.
        resampling: number of draws and seed.
        progress: is told of what takes long.

    Raises:
        InputError: an item is faulty, ids or references differ, or a metric is unknown.
        DataError: a pipeline or the data of a metric is not installed.
    """
    resampling = resampling or Resampling()
    one = Corpus(check_items(first))
    other = Corpus(_in_order(one.items, check_items(second)))
    chosen: dict[str, Any] = make_metrics(metrics, resources(pipeline, progress))
    found = {
        name: compare(metric, metric.collect(one), metric.collect(other), resampling=resampling)
        for name, metric in chosen.items()
    }
    signature = signature_of(one.items, {name: metric.signature() for name, metric in chosen.items()})
    signature["resampling"] = {"draws": resampling.draws, "seed": resampling.seed, "interval": 0.95}
    return SystemComparison(signature, found)


def _in_order(first: Sequence[Item], second: Sequence[Item]) -> tuple[Item, ...]:
    """Return the second system's items in the order of the first's.

    Raises:
        InputError: ids or references differ.
    """
    by_id = {item.id: item for item in second}
    known = {item.id for item in first}
    faults = [f"item {item.id!r} is only in the first" for item in first if item.id not in by_id]
    faults += [f"item {item.id!r} is only in the second" for item in second if item.id not in known]
    faults += [
        f"item {item.id!r} has other references in the second"
        for item in first
        if item.id in by_id and by_id[item.id].references != item.references
    ]
    if faults:
        more = f"\n... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InputError("the two systems can't be compared:\n" + "\n".join(faults[:_SHOWN]) + more)
    return tuple(by_id[item.id] for item in first)
