"""Reports of sets of captions: an image's captions are matched as one, and each score's mean and best stand beside."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from spicegraph_parser.spice.loose import without_loose
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import CheckedItems, Item
from spicegraph_scorer.core.tokens import toolkit_text
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.sets import SetMetric
from spicegraph_service.engines import System

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence

    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.readers import Dataset

Spans = tuple[tuple[int, int], ...]
Sets = dict[str, tuple[str, ...]]  # the captions that are shown, and read, as one text


def system_of(name: str, dataset: Dataset) -> System:
    """Return a system whose items have all captions of an image, each in a line."""
    captions: dict[Any, list[Item]] = {}
    for image, item in zip(dataset.images or [item.id for item in dataset.items], dataset.items, strict=True):
        captions.setdefault(image, []).append(item)
    sets = [tuple(item.candidate for item in group) for group in captions.values()]
    items = (
        replace(group[0], id=image, candidate="\n".join(texts))
        for (image, group), texts in zip(captions.items(), sets, strict=True)
    )
    marks = check_items(dataset.items, empty="zero").marks
    return System(name, CheckedItems.with_marks(items, marks), {"\n".join(texts): texts for texts in sets})


def facts_together(source: FactSource, spans: MutableMapping[str, Spans], sets: Sets) -> FunctionSource:
    """Return a source that reads a set's text caption by caption; ``spans`` has where words stand, and gets theirs."""
    known = sets | {toolkit_text(text): tuple(map(toolkit_text, captions)) for text, captions in sets.items()}

    def facts(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        wanted = [(text, known.get(text, (text,))) for text in texts]
        coming = source.facts(chain.from_iterable(captions for _, captions in wanted))
        for text, captions in wanted:
            found = list(islice(coming, len(captions)))
            yield found[0] if captions == (text,) else tuple(_moved(text, captions, found, spans))

    return FunctionSource(source.signature, facts, getattr(source, "language", None))


def _moved(
    text: str, captions: Sequence[str], found: Sequence[Sequence[Fact]], spans: MutableMapping[str, Spans]
) -> Iterator[Fact]:
    """Yield the facts of captions with the places of their words in the text that has them all."""
    words: list[tuple[int, int]] = []
    at = 0
    for caption, of_caption in zip(captions, found, strict=True):
        at = max(text.find(caption, at), at)
        for fact in without_loose(of_caption):
            yield fact._replace(tokens=tuple(tuple(len(words) + t for t in tokens) for tokens in fact.tokens))
        words += [(a + at, b + at) if a >= 0 else (a, b) for a, b in spans.get(caption, ())]
    spans[text] = tuple(words)


def metrics_of_sets(spice: Metric[Any], metrics: Mapping[str, Metric[Any]]) -> dict[str, Metric[Any]]:
    """Return ``spice``, which sees each set as one caption, and the mean and the best of each metric."""
    return {spice.name: spice, **{f"{name} of each": SetMetric(metric, {}) for name, metric in metrics.items()}}


def of_items(metrics: Mapping[str, Metric[Any]], items: Iterable[Item], sets: Sets) -> dict[str, Metric[Any]]:
    """Return the metrics for the sets of these items."""
    found = {item.id: sets.get(item.candidate, (item.candidate,)) for item in items}
    return {
        name: replace(metric, sets=found) if isinstance(metric, SetMetric) else metric
        for name, metric in metrics.items()
    }
