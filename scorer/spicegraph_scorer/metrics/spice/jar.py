"""A result in the words of the SPICE 1.0 program: what it writes with ``-out ... -detailed -subset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.categories import ALL, CategoryScore
from spicegraph_scorer.metrics.spice.ready import ScoredTuple, scored_tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json, Result
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

JAR_METRICS: Final = ("spice", "spice-exact")
"""The metrics whose results the program's output can hold."""


def jar_output(result: Result, *, detailed: bool = True, subset: bool = True) -> list[dict[str, Json]]:
    """Return the SPICE part of a result as SPICE 1.0's JSON: one object per item.

    Args:
        result: what was scored.
        detailed: with the tuples (the program's ``-detailed``).
        subset: with the categories' scores beside those of ``All`` (``-subset``).

    ``f``, ``pr`` and ``re`` are ``None`` (``null``) in categories without reference tuples, as the program
    prints its NaN.

    Raises:
        InputError: SPICE was not among the metrics.
    """
    return list(jar_rows(result, detailed=detailed, subset=subset))


def jar_rows(result: Result, *, detailed: bool = True, subset: bool = True) -> Iterator[dict[str, Json]]:
    """Return what :func:`jar_output` lists, an item at a time: the tuples of many items are far larger than they are.

    Raises:
        InputError: SPICE was not among the metrics.
    """
    run = next((run for run in result.runs if run.name in JAR_METRICS), None)
    if run is None:
        raise InputError("the SPICE format holds SPICE results: ask for the metric spice or spice-exact")
    return (
        jar_item(item.id, statistic, detailed=detailed, subset=subset)
        for item, statistic in zip(result.items, run.statistics, strict=True)
    )


def jar_item(
    image_id: ItemId, statistic: SpiceStatistic, *, detailed: bool = True, subset: bool = True
) -> dict[str, Json]:
    """Return one item's scores and tuples, the tuples in the program's order."""
    scores: dict[str, Json] = {
        name: {**CategoryScore.of(counts, name).to_dict(), "numImages": 1}
        for name, counts in statistic.counts.items()
        if subset or name == ALL
    }
    item: dict[str, Json] = {"image_id": image_id, "scores": scores}
    if not detailed:
        return item
    candidate, reference = scored_tuples(statistic.match)
    return {**item, "test_tuples": _tuples(candidate), "ref_tuples": _tuples(reference)}


def _tuples(scored: Iterable[ScoredTuple]) -> list[dict[str, Json]]:
    return [{"tuple": list(strings), "truth_value": truth_value} for strings, truth_value in scored]
