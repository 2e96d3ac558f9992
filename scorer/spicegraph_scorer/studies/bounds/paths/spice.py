"""SPICE of every held-out caption: the graph of an image's other captions is made once for all trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from spicegraph_scorer.metrics.spice.counts import count_match
from spicegraph_scorer.metrics.spice.match import match_tuples
from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.graph import SceneTuple
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.metrics.graded.metric import SpiceG
    from spicegraph_scorer.metrics.spice.metric import Spice
    from spicegraph_scorer.studies.bounds.tables import Batch

__all__ = ["portable_spice", "spice_statistics"]

AnySpice = TypeVar("AnySpice", "Spice", "SpiceG")


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The facts of some captions: a source that another process can have."""

    signature: str
    known: Mapping[str, tuple[Fact, ...]]

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        return map(self.known.__getitem__, texts)


def portable_spice(metric: AnySpice, batch: Batch) -> AnySpice:
    """Return the metric with the facts of a batch in the place of what parses."""
    texts = batch.texts()
    return replace(
        metric, source=_Parsed(metric.source.signature, dict(zip(texts, metric.source.facts(texts), strict=True)))
    )


def spice_statistics(metric: Spice, batch: Batch) -> list[list[SpiceStatistic]]:
    """Return the statistics of each trial's candidates, each against its image's other captions."""
    texts = batch.texts()
    facts = dict(zip(texts, metric.source.facts(texts), strict=True))
    found: list[list[SpiceStatistic]] = [[] for _ in batch.trials]
    for captions, *trials in zip(batch.captions, *batch.trials, strict=True):
        tuples = _Tuples(metric, facts)
        for place in range(len(captions)):
            others = captions[:place] + captions[place + 1 :]
            reference = metric.graph([facts[text] for text in others]).tuples()
            for statistics, mine in zip(found, trials, strict=True):
                statistics.append(_statistic(metric, tuples[mine[place]], reference))
    return found


class _Tuples(dict[str, "tuple[SceneTuple, ...]"]):
    """The tuples of single captions' graphs."""

    def __init__(self, metric: Spice, facts: Mapping[str, tuple[Fact, ...]]) -> None:
        super().__init__()
        self._metric = metric
        self._facts = facts

    def __missing__(self, text: str) -> tuple[SceneTuple, ...]:
        self[text] = found = self._metric.graph([self._facts[text]]).tuples()
        return found


def _statistic(metric: Spice, candidate: Sequence[SceneTuple], reference: Sequence[SceneTuple]) -> SpiceStatistic:
    match = match_tuples(candidate, reference)
    return SpiceStatistic(count_match(match, categories=metric.categories), match)
