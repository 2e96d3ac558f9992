"""Several candidates of an image that are scored together: what they say as one, the best of them, and their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Unpack

from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_parser.spice.loose import without_loose
from spicegraph_scorer.core.data import DataFields, MetricData, merged_data
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import CheckedItems, Item
from spicegraph_scorer.core.metric import Metric, Score, Weigh
from spicegraph_scorer.core.results import Result, collect, result_of
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.spice.metric import Spice, SpiceStatistic
from spicegraph_scorer.readers.checks import check_items, shown
from spicegraph_scorer.scoring import resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_scorer.readers.marks import ControlTokens

ALL_SPICE: Final = "all-spice"
_NAMED_FAULTS: Final = 5


@dataclass(frozen=True)
class SetMetric(Metric[tuple[float | None, ...]]):
    """The mean (``SPICE_average``) and the best (``SPICE_oracle``) of each score over an image's candidates.

    Corpus values are the means over the images, as the public scripts for samples compute them. Document frequencies
    count each image once.
    """

    metric: Metric[Any]
    sets: Mapping[ItemId, Sequence[str]]

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The scores without those of categories."""
        first, *others = (score.name for score in self.metric.total(()))
        return (first,) if all(name.startswith(f"{first}_") for name in others) else (first, *others)

    def signature(self) -> Mapping[str, str]:
        """Return that of the metric, and that it is of sets."""
        return {**self.metric.signature(), "set": "mean and best of an image's candidates"}

    @property
    def weigh(self) -> Weigh | None:
        """The metric's weighting function, in which each image counts once."""
        return self.metric.weigh

    def collect(self, corpus: Corpus) -> list[tuple[float | None, ...]]:
        """Return the mean and the best of each score, score by score, for the set of each item."""
        metric = self.metric if self.weigh is None else self.metric.weighted(self.weigh(corpus))
        spread, sizes = self._spread(corpus)
        return self._rows(metric.collect(spread), sizes)

    def defer(self, corpus: Corpus, *, evidence: bool = False) -> list[Any]:
        """Return each item with its candidates' deferred data; without corpus weights, its scores."""
        if self.weigh is None:
            return self.collect(corpus)
        spread, sizes = self._spread(corpus)
        kept = iter(self.metric.defer(spread, evidence=evidence))
        return [(item, list(islice(kept, size))) for item, size in zip(corpus.items, sizes, strict=True)]

    def finish(self, kept: Sequence[Any], *, weights: Any = None) -> list[tuple[float | None, ...]]:
        """Return each item's mean and best scores, computed from the deferred data."""
        if self.weigh is None:
            return list(kept)
        weights = self.weigh(Corpus(tuple(item for item, _ in kept))) if weights is None else weights
        every = list(chain.from_iterable(each for _, each in kept))
        return self._rows(self.metric.finish(every, weights=weights), [len(each) for _, each in kept])

    def _spread(self, corpus: Corpus) -> tuple[Corpus, list[int]]:
        """Return the items with one candidate each, and how many each set has."""
        sets = [self.sets[item.id] for item in corpus.items]
        items = (
            replace(item, id=place, candidate=text)
            for place, (item, texts) in enumerate(zip(corpus.items, sets, strict=True))
            for text in texts
        )
        return Corpus(tuple(items)), list(map(len, sets))

    def _rows(self, statistics: Sequence[Any], sizes: Sequence[int]) -> list[tuple[float | None, ...]]:
        scores = {score.name: score.each for score in self.metric.total(statistics)}
        rows, start = [], 0
        for size in sizes:
            end = start + size
            rows.append(tuple(chain(*(self._pair(name, scores[name][start:end]) for name in self._names))))
            start = end
        return rows

    def _pair(self, name: str, values: Sequence[float | None]) -> tuple[float | None, float | None]:
        known = [value for value in values if value is not None]
        best = min if name in self.metric.lower_is_better else max
        return (math.fsum(known) / len(known), best(known)) if known else (None, None)

    def total(self, statistics: Sequence[tuple[float | None, ...]]) -> tuple[Score, ...]:
        """Return two scores for each of the metric's."""
        names = [f"{name}_{which}" for name in self._names for which in ("average", "oracle")]
        return tuple(Score.mean(name, [row[place] for row in statistics]) for place, name in enumerate(names))


@dataclass(frozen=True, slots=True)
class AllSpice(Spice):
    """SPICE of the graph that all candidates of an image make together, merged as those of references are."""

    sets: Mapping[ItemId, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``all-spice``."""
        return ALL_SPICE

    def signature(self) -> dict[str, str]:
        """Return that of SPICE, under its own name."""
        return {**Spice.signature(self), "metric": self.name, "set": "the graphs of an image's candidates, merged"}

    def collect(self, corpus: Corpus) -> list[SpiceStatistic]:
        """Return the counts of every set."""
        # A set stands for its candidates under a text that no caption can be: NUL is refused in captions.
        parts = {"\0".join(texts): tuple(texts) for texts in (self.sets[item.id] for item in corpus.items)}
        items = (replace(item, candidate="\0".join(self.sets[item.id])) for item in corpus.items)
        across = self.across and self.across._replace(source=self._read(self.across.source))
        source = FunctionSource(self.source.signature, partial(_facts_together, self.facts, parts))
        return Spice.collect(replace(self, source=source, text="written", across=across), Corpus(tuple(items)))

    def total(self, statistics: Sequence[SpiceStatistic]) -> tuple[Score, ...]:
        """Return ``AllSPICE`` and one score a category."""
        return tuple(replace(score, name=f"All{score.name}") for score in Spice.total(self, statistics))


def _facts_together(
    source: FactSource, parts: Mapping[str, tuple[str, ...]], texts: Iterable[str]
) -> Iterator[tuple[Fact, ...]]:
    """Yield the facts of each text, or of all its parts, without those of loose words; all are parsed in one go."""
    captions = [parts.get(text, (text,)) for text in texts]
    coming = source.facts(chain.from_iterable(captions))
    for each in captions:
        yield tuple(chain.from_iterable(map(without_loose, islice(coming, len(each)))))


def as_sets(metrics: Mapping[str, Metric[Any]], sets: Mapping[ItemId, Sequence[str]]) -> dict[str, Metric[Any]]:
    """Return the metrics of sets: mean and best of each metric and, beside ``spice``, ``all-spice``."""
    made: dict[str, Metric[Any]] = {}
    for name, metric in metrics.items():
        made[name] = SetMetric(metric, sets)
        if type(metric) is Spice and not metric.exact:
            same: dict[str, Any] = {option.name: getattr(metric, option.name) for option in fields(metric)}
            made[ALL_SPICE] = AllSpice(**same, sets=sets)
    return made


def _check_sets(sets: Mapping[ItemId, Sequence[str]], references: Mapping[ItemId, Sequence[str]]) -> None:
    wrong = {"empty sets": [image for image, texts in sets.items() if not texts]}
    wrong["sets without references"] = [image for image in sets if not references.get(image)]
    if faults := [f"{what}: {_listed(images)}" for what, images in wrong.items() if images]:
        raise InputError("; ".join(faults))


def _first_said(group: Sequence[Item]) -> Item:
    """Return the first item that is not empty, or the first."""
    return next((item for item in group if item.candidate.strip()), group[0])


def score_sets(
    sets: Mapping[ItemId, Sequence[str]],
    references: Mapping[ItemId, Sequence[str]],
    metrics: str | Sequence[str] = ("spice",),
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
    confidence: Resampling | None = None,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    **fields: Unpack[DataFields],
) -> Result:
    """Score each image's candidates as a set: samples, beams, or several annotators' captions.

    Args:
        sets: the candidates of each image, at least one.
        references: the references of each image.
        metrics: as for :func:`spicegraph_scorer.score`, as are the other arguments.
        data: likewise.
        pipeline: likewise.
        progress: likewise.
        confidence: likewise.
        empty: likewise.
        control_tokens: likewise.
        fields: likewise.

    Returns:
        A result with an item for each image. Every score has an ``_average`` and an ``_oracle``: the mean and the best
        of the set. With ``spice``, ``AllSPICE`` is the SPICE of the graph that all candidates make together.

    Raises:
        InputError: a set is empty, an image has no references, or as :func:`spicegraph_scorer.score`.

    Example:
        >>> found = score_sets({1: ["a dog", "a dog runs"]}, {1: ["a brown dog runs"]})
        >>> [round(found[name], 3) for name in ("SPICE_average", "SPICE_oracle", "AllSPICE")]
        [0.65, 0.8, 0.8]
    """
    _check_sets(sets, references)
    every = (
        Item(f"{image}#{number}", text, tuple(references[image]))
        for image, texts in sets.items()
        for number, text in enumerate(texts, start=1)
    )
    checked = check_items(every, empty=empty, control_tokens=control_tokens)
    coming = iter(checked)
    groups = {image: list(islice(coming, len(texts))) for image, texts in sets.items()}
    captions = {image: [item.candidate for item in group] for image, group in groups.items()}
    made = resources(pipeline, progress, merged_data(data, fields), evidence=False)
    chosen = as_sets(make_metrics(metrics, made), captions)
    named = (replace(_first_said(group), id=image) for image, group in groups.items())
    items = CheckedItems.with_marks(named, checked.marks)
    return result_of(items, chosen, collect(items, chosen), confidence=confidence, progress=progress)


def _listed(images: Sequence[ItemId]) -> str:
    more = f" and {len(images) - _NAMED_FAULTS} more" if len(images) > _NAMED_FAULTS else ""
    return f"{counted(len(images), 'image')}: {', '.join(map(shown, images[:_NAMED_FAULTS]))}{more}"
