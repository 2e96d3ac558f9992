"""Items in, scores out: the one function that everything else calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from spicegraph_parser.extract import rare_collections
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_parser.rules import FactPool
from spicegraph_scorer.core.fingerprint import Fingerprint
from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.core.results import Json, Result, Run
from spicegraph_scorer.core.significance import Resampling, intervals
from spicegraph_scorer.metrics import WITH_FACTS, Progress, Resources, fact_readers, make_metrics, needs_loose
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.readers.checks import check_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.metrics.graded.explain import GradedExplanation
    from spicegraph_scorer.metrics.graded.metric import GradedStatistic
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
    from spicegraph_scorer.metrics.spice.categories import Category

__all__ = ["SharedFacts", "resources", "result_of", "score", "signature_of"]


def score(
    items: Iterable[Item],
    metrics: Sequence[str] = ("spice",),
    *,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
    confidence: Resampling | None = None,
    frequencies: DocumentFrequencies | None = None,
    categories: Mapping[str, Category] | None = None,
    vectors: Vectors | None = None,
    explain: bool = False,
    evidence: bool = True,
) -> Result:
    """Score candidates against their references.

    Args:
        items: at least one; ids differ.
        metrics: names from :data:`spicegraph_scorer.metrics.METRICS`, or a group such as
            ``coco`` or ``all``.
        pipeline: the spaCy pipeline that SPICE parses with, by name, or whatever else gives facts. It is
            loaded only when a metric needs it, and every caption is parsed once, however many metrics do.
        progress: is called while something takes long: with what it is, how much is done, and of how much.
        confidence: how to resample for 95 % intervals of every corpus score; ``None``: no intervals.
        frequencies: CIDEr's document frequencies; ``None``: those of the items' own references.
        categories: what SPICE counts beside the total, from
            :func:`spicegraph_scorer.metrics.spice.custom.make_categories`; ``None``: its own categories.
        vectors: SPICE-G's; ``None``: the bundled ones.
        explain: explain every item's SPICE-G, see :attr:`spicegraph_scorer.core.results.Run.explanations`; about 10 ms
            an item.
        evidence: keep what each item's score comes from: the tuples and their matches. Reports, explanations and
            SPICE's own output need it; without, SPICE and SPICE-G take less time and memory.

    Raises:
        InputError: an item is faulty (the message lists every fault), or a metric unknown.
        DataError: a pipeline or the data of a metric is not installed.

    Example:
        >>> result = score([Item(1, "a brown dog", ("the brown dog",))])
        >>> result.corpus["SPICE"]
        1.0
    """
    checked = check_items(items)
    with rare_collections():
        kept = evidence or explain
        given = resources(pipeline, progress, frequencies, categories, vectors, metrics=metrics, evidence=kept)
        chosen = make_metrics(metrics, given)
        statistics = _collected(checked, chosen)
        return result_of(checked, chosen, statistics, confidence=confidence, explain=explain, progress=progress)


def _collected(items: tuple[Item, ...], metrics: Mapping[str, Metric[Any]]) -> dict[str, list[Any]]:
    """Return each item's statistic by metric.

    Captions are parsed last: what the other metrics hold meanwhile, tokens and n-grams, is gone by then.
    """
    for metric in metrics.values():
        metric.signature()  # what it needs and can't have, such as a pipeline, is said before the work
    words = Corpus(items)
    found = {name: metric.collect(words) for name, metric in metrics.items() if name not in WITH_FACTS}
    del words
    parsed = Corpus(items)
    return found | {name: metric.collect(parsed) for name, metric in metrics.items() if name in WITH_FACTS}


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
        statistics: by the same names, one statistic of each item.
        confidence: see :func:`score`.
        explain: see :func:`score`.
        progress: is told of what takes long.
    """
    runs = []
    for name, metric in metrics.items():
        own = tuple(statistics[name])
        within = intervals(metric, own, resampling=confidence) if confidence else ()
        why = tuple(_explanations(metric, own, progress)) if explain and isinstance(metric, SpiceG) else ()
        runs.append(Run(name, metric.signature(), own, metric.total(own), within, why))
    signature = signature_of(items, {run.name: run.signature for run in runs})
    if confidence is not None:
        signature["confidence"] = {"draws": confidence.draws, "seed": confidence.seed, "interval": 0.95}
    return Result(tuple(items), signature, tuple(runs))


def _explanations(
    metric: SpiceG, statistics: Sequence[GradedStatistic], progress: Progress | None
) -> Iterator[GradedExplanation]:
    for done, statistic in enumerate(statistics, start=1):
        yield metric.explain(statistic)
        if progress:
            progress("explaining SPICE-G", done, len(statistics))


def resources(
    pipeline: str | FactSource,
    progress: Progress | None = None,
    frequencies: DocumentFrequencies | None = None,
    categories: Mapping[str, Category] | None = None,
    vectors: Vectors | None = None,
    *,
    metrics: Sequence[str] | None = None,
    evidence: bool = True,
) -> Resources:
    """Return what metrics are made from; the pipeline is loaded when the first of them asks for facts.

    Args:
        pipeline: see :func:`score`, as the others that are not named here.
        progress: is told of what takes long.
        frequencies: CIDEr's document frequencies.
        categories: what SPICE counts beside the total.
        vectors: SPICE-G's.
        metrics: those that will be made and collect once; ``None``: any, and facts are kept for all of them.
        evidence: SPICE and SPICE-G keep their matches.
    """

    @cache
    def facts() -> FactSource:
        if isinstance(pipeline, SharedFacts):
            return pipeline
        loose = metrics is None or needs_loose(metrics)
        loaded = replace(load_pipeline(pipeline), loose=loose) if isinstance(pipeline, str) else pipeline
        return SharedFacts(loaded, progress, keep=metrics is None or fact_readers(metrics) > 1)

    return Resources(facts, progress, frequencies, CATEGORIES if categories is None else categories, vectors, evidence)


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


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """Facts for several metrics of one run: no caption is parsed twice.

    Without ``keep`` they are for one metric, and it alone knows how long they are needed.
    """

    source: FactSource
    progress: Progress | None = None
    keep: bool = field(default=True, kw_only=True)
    known: dict[str, tuple[Fact, ...]] = field(default_factory=dict, repr=False)
    pool: FactPool = field(default_factory=FactPool, repr=False)

    @property
    def signature(self) -> str:
        """The signature of what parses."""
        return self.source.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order; those that are new are parsed as they are asked for."""
        wanted = list(texts)
        if not self.keep:
            yield from self._parsed(wanted)
            return
        new = [text for text in dict.fromkeys(wanted) if text not in self.known]
        coming = zip(new, self._parsed(new), strict=True)
        for text in wanted:
            while text not in self.known:
                parsed, facts = next(coming)
                self.known[parsed] = self.pool.share(facts)
            yield self.known[text]

    def _parsed(self, texts: Sequence[str]) -> Iterator[tuple[Fact, ...]]:
        for done, facts in enumerate(self.source.facts(texts), start=1):
            if self.progress:
                self.progress("parsing captions", done, len(texts))
            yield facts
