"""The metrics by name, as ``--metrics`` and :func:`spicegraph_scorer.score` know them.

To add a metric: a module with a frozen value that derives from ``Metric`` and says all that others need to know of it;
here, a function that makes it, and a line in ``METRICS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.metric import Metric, Needs
from spicegraph_scorer.metrics.bleu import Bleu, SentenceBleu
from spicegraph_scorer.metrics.capture import Capture
from spicegraph_scorer.metrics.chair import Chair
from spicegraph_scorer.metrics.cider import COCO_CIDER, Cider, Spider
from spicegraph_scorer.metrics.fluency.detector import load_detector
from spicegraph_scorer.metrics.fluency.metric import Fluency, SpiderFl
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.graded.vectors import load_vectors
from spicegraph_scorer.metrics.meteor import Meteor, Meteor2005, load_data
from spicegraph_scorer.metrics.reward import DRAFT_TERMS, Reward, parse_reward
from spicegraph_scorer.metrics.rouge import Rouge155, RougeL
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category
from spicegraph_scorer.metrics.spice.metric import ReferenceCache, Spice

if TYPE_CHECKING:
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.tokens import SpiceText
    from spicegraph_scorer.metrics.chair import Instances
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.ngram import DocumentFrequencies

__all__ = [
    "GROUPS",
    "METRICS",
    "DataFields",
    "Factory",
    "MetricData",
    "MetricEntry",
    "Resources",
    "lower_is_better",
    "make_metrics",
    "make_reward",
    "merged_data",
    "metric_names",
    "needs_of",
    "with_spice_text",
]


@dataclass(frozen=True, slots=True)
class MetricData:
    """The data that users may give to metrics; a metric's ``needs.data`` names the fields that it uses.

    ``frequencies`` are CIDEr's document frequencies; ``None``: those of the corpus that is scored. ``categories`` are
    what SPICE and SPICE-G count beside the total; ``None``: SPICE's own. ``vectors`` are SPICE-G's and CAPTURE's;
    ``None``: the bundled ones. ``spice_text`` is the text that SPICE and SPIDEr parse: ``written``, captions as they
    are, or ``coco``, the COCO toolkit's tokens; ``None``: ``coco`` where the group of that name is asked for, else
    ``written``. SPICE-G always parses captions as written: its formula and verdicts were measured on those.
    ``instances`` are the objects that CHAIR knows in images beside those that references mention.
    """

    frequencies: DocumentFrequencies | None = None
    categories: Mapping[str, Category] | None = None
    vectors: Vectors | None = None
    spice_text: SpiceText | None = None
    instances: Instances | None = None


class DataFields(TypedDict, total=False):
    """The fields of :class:`MetricData` as keywords of the functions that score."""

    frequencies: DocumentFrequencies | None
    categories: Mapping[str, Category] | None
    vectors: Vectors | None
    spice_text: SpiceText | None
    instances: Instances | None


def merged_data(data: MetricData | None, fields: DataFields) -> MetricData:
    """Return ``data`` with the fields that were given as keywords.

    Raises:
        InputError: a field is given both ways.
        TypeError: there is no such field.

    Example:
        >>> merged_data(None, {"categories": {}})
        MetricData(frequencies=None, categories={}, vectors=None, spice_text=None, instances=None)
    """
    alone = MetricData(**fields)
    if data is None:
        return alone
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if getattr(data, name) is not None:
            raise InputError(f"{name} is given twice: as a keyword and in data")
    return replace(data, **given)


@dataclass(frozen=True, slots=True)
class Resources:
    """What metrics are made from; facts come as a function, which is called only by metrics that need them.

    ``evidence``: statistics keep what they come from, such as matches and alignments. ``images``: how many images'
    merged references SPICE keeps from one corpus to the next, for training loops that score the same images again.
    """

    facts: Callable[[], FactSource]
    progress: Progress | None = None
    data: MetricData = field(default_factory=MetricData)
    evidence: bool = True
    images: int = 0


Factory = Callable[[Resources], Metric[Any]]


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """A metric that can be asked for: its class, which says what it needs and gives, and what makes it."""

    kind: type[Metric[Any]]
    make: Factory


def _categories(resources: Resources) -> Mapping[str, Category]:
    given = resources.data.categories
    return CATEGORIES if given is None else given


def _references(resources: Resources) -> ReferenceCache[Any] | None:
    return ReferenceCache(resources.images) if resources.images else None


def _spice(resources: Resources, *, exact: bool = False) -> Spice:
    return Spice(
        resources.facts(),
        exact=exact,
        categories=_categories(resources),
        evidence=resources.evidence,
        text=resources.data.spice_text or "written",
        references=_references(resources),
    )


def _spice_g(resources: Resources) -> Metric[Any]:
    data = resources.data
    return SpiceG(
        resources.facts(),
        _categories(resources),
        data.vectors or load_vectors(),
        evidence=resources.evidence,
        references=_references(resources),
    )


def _meteor(resources: Resources) -> Metric[Any]:
    def building(share: float) -> None:
        if resources.progress:
            resources.progress("building METEOR's index", round(100 * share), 100)

    return Meteor(load_data(progress=building), evidence=resources.evidence)


def _spider(resources: Resources) -> Spider:
    spice = Spice(resources.facts(), evidence=resources.evidence, text=resources.data.spice_text or "written")
    return Spider(spice, Cider("CIDEr-D", frequencies=resources.data.frequencies))


METRICS: Mapping[str, MetricEntry] = {
    "spice": MetricEntry(Spice, _spice),
    "spice-exact": MetricEntry(Spice, lambda given: _spice(given, exact=True)),
    "spice-g": MetricEntry(SpiceG, _spice_g),
    "bleu": MetricEntry(Bleu, lambda _: Bleu()),
    "bleu-sentence": MetricEntry(SentenceBleu, lambda _: SentenceBleu()),
    "meteor": MetricEntry(Meteor, _meteor),
    "meteor-2005": MetricEntry(Meteor2005, lambda _: Meteor2005()),
    "rouge": MetricEntry(RougeL, lambda _: RougeL()),
    "rouge-1.5.5": MetricEntry(Rouge155, lambda _: Rouge155()),
    "cider": MetricEntry(Cider, lambda given: replace(COCO_CIDER, frequencies=given.data.frequencies)),
    "cider-d": MetricEntry(Cider, lambda given: Cider("CIDEr-D", frequencies=given.data.frequencies)),
    "cider-plain": MetricEntry(
        Cider, lambda given: Cider("CIDEr", frequencies=given.data.frequencies, key="CIDEr-plain")
    ),
    "spider": MetricEntry(Spider, _spider),
    "spider-fl": MetricEntry(SpiderFl, lambda given: SpiderFl(_spider(given), Fluency(load_detector()))),
    "fluency": MetricEntry(Fluency, lambda _: Fluency(load_detector())),
    "chair": MetricEntry(Chair, lambda given: Chair(given.data.instances, evidence=given.evidence)),
    "capture": MetricEntry(
        Capture,
        lambda given: Capture(given.facts(), given.data.vectors or load_vectors(), evidence=given.evidence),
    ),
}
"""Every metric: its name, its class and the function that makes it.

``cider`` is what the COCO toolkit prints under that name, which is CIDEr-D; ``cider-plain`` is the paper's
CIDEr.
"""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "coco": ("bleu", "meteor", "rouge", "cider", "spice"),
    "all": tuple(METRICS),
}
"""Names that stand for several metrics; ``coco`` is what the COCO toolkit prints, from the text that it scores."""


def with_spice_text(names: Iterable[str], data: MetricData) -> MetricData:
    """Return the data with the text that SPICE parses: as given, else the toolkit's where the group ``coco`` is named.

    Example:
        >>> with_spice_text(["coco"], MetricData()).spice_text, with_spice_text(["spice"], MetricData()).spice_text
        ('coco', 'written')
    """
    return data if data.spice_text else replace(data, spice_text="coco" if "coco" in names else "written")


def metric_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, with groups spelled out.

    Raises:
        InputError: a name is unknown, or there is none.

    Example:
        >>> metric_names(["spice", "spice"])
        ('spice',)
    """
    spelled: list[str] = []
    for name in names:
        if name not in METRICS and name not in GROUPS:
            raise InputError(f"there is no metric {name!a}; the metrics are {_known()}")
        spelled += GROUPS.get(name, (name,))
    if not spelled:
        raise InputError(f"no metric is asked for; the metrics are {_known()}")
    return tuple(dict.fromkeys(spelled))


def needs_of(names: Iterable[str]) -> tuple[Needs, ...]:
    """Return what each of the metrics reads beside the captions' words.

    Raises:
        InputError: a name is unknown, or there is none.

    Example:
        >>> [needs.facts for needs in needs_of(["rouge", "spice"])]
        [False, True]
    """
    return tuple(METRICS[name].kind.needs for name in metric_names(names))


def lower_is_better(names: Iterable[str]) -> frozenset[str]:
    """Return the scores of the metrics of which the lowest is the best; names that are unknown here have none.

    Example:
        >>> sorted(lower_is_better(["spice", "chair"]))
        ['CHAIRi', 'CHAIRs']
    """
    return frozenset(score for name in names if name in METRICS for score in METRICS[name].kind.lower_is_better)


def _known() -> str:
    return ", ".join((*METRICS, *GROUPS))


def make_metrics(names: Iterable[str], resources: Resources) -> dict[str, Metric[Any]]:
    """Make the metrics of the given names, in their order.

    Raises:
        InputError: a name is unknown.
        DataError: something that a metric needs is not installed.
    """
    asked = tuple(names)
    resources = replace(resources, data=with_spice_text(asked, resources.data))
    return {name: METRICS[name].make(resources) for name in metric_names(asked)}


def make_reward(text: str, resources: Resources) -> Reward:
    """Make the reward that a text such as ``spice-g=1,cider-d=.1,length=-.01`` names.

    Raises:
        InputError: a term is unknown, stands twice, or has no weight.
        DataError: something that a metric needs is not installed.
    """
    terms = parse_reward(text, METRICS)
    names = dict.fromkeys(term.name for term in terms if term.name in METRICS)
    if not any(term.score for term in terms):  # no term is of a category
        resources = replace(resources, data=replace(resources.data, categories={}))
    metrics = make_metrics(names, resources) if names else {}
    for term in terms:
        columns = [score.name for score in metrics[term.name].total(())] if term.score else []
        if term.score and term.score not in columns:
            raise InputError(f"reward: {term.name} has no score {term.score[:50]!a}; it has {', '.join(columns)}")
    compares = any(term.name in DRAFT_TERMS for term in terms)
    return Reward(terms, metrics, _spice(replace(resources, evidence=True)) if compares else None)
