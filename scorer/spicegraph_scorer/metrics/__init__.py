"""The metrics by name, as ``--metrics`` and :func:`spicegraph_scorer.score` know them.

To add a metric: a module with a frozen value that derives from ``Metric`` and says all that others need to know of it,
and how it is made; here, a line in ``METRICS``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.metric import Metric, Needs
    from spicegraph_scorer.core.tokens import SpiceText
    from spicegraph_scorer.metrics.chair import Instances
    from spicegraph_scorer.metrics.graded.vectors import Vectors
    from spicegraph_scorer.metrics.ngram import DocumentFrequencies
    from spicegraph_scorer.metrics.reward import Reward
    from spicegraph_scorer.metrics.spice.categories import Category

__all__ = [
    "GROUPS",
    "METRICS",
    "DataFields",
    "Factory",
    "MetricData",
    "MetricEntry",
    "Resources",
    "check_names",
    "lower_is_better",
    "make_metrics",
    "make_reward",
    "merged_data",
    "metric_names",
    "needs_of",
    "read_data",
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


READERS: Mapping[str, str] = {
    "frequencies": "ngram:DocumentFrequencies.read",
    "categories": "spice.categories:read_categories",
    "vectors": "graded.vectors:Vectors.read",
    "instances": "chair:read_instances",
}
"""What reads a field of :class:`MetricData` from a file, as ``module:name``."""


def read_data(files: Mapping[str, str]) -> MetricData:
    """Read data for metrics from files, whose fields name them.

    Raises:
        DataError: a file can't be read, or is not a table of vectors, or of document frequencies.
        InputError: categories or instances can't be read, or are faulty.
    """
    return MetricData(**{name: _loaded(READERS[name])(path) for name, path in files.items()})


def _loaded(place: str) -> Any:
    """Return what stands at ``module:name`` within this package; only what is used is loaded."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(f"{__name__}.{module}"))


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


Factory: TypeAlias = "Callable[[Resources], Metric[Any]]"


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """A metric that can be asked for: its class, which says what it needs and gives, and what makes it.

    Those of this package stand by name, the class as ``module:Class`` of ``spicegraph_scorer.metrics`` and what makes
    it as one of its class methods, so that a metric is loaded where it is used. A metric from outside gives its class
    and a function themselves. Without ``maker`` the class itself makes the metric.
    """

    place: type[Metric[Any]] | str
    maker: Factory | str | None = None

    @property
    def kind(self) -> type[Metric[Any]]:
        """The class.

        Raises:
            InputError: its name is not one of this package.
        """
        if not isinstance(self.place, str):
            return self.place
        try:
            found: type[Metric[Any]] = _loaded(self.place)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith(f"{__name__}."):  # it is here, but something that it needs is missing
                raise
            raise InputError(
                f"{self.place!a} is not in {__name__}; a metric from outside gives its class in place of a name"
            ) from error
        return found

    def make(self, resources: Resources) -> Metric[Any]:
        """Make the metric.

        Raises:
            DataError: something that it needs is not installed.
        """
        if self.maker is None:
            return self.kind()
        maker: Factory = getattr(self.kind, self.maker) if isinstance(self.maker, str) else self.maker
        return maker(resources)


METRICS: MutableMapping[str, MetricEntry] = {
    "spice": MetricEntry("spice.metric:Spice", "of"),
    "spice-exact": MetricEntry("spice.metric:Spice", "of_exact"),
    "spice-g": MetricEntry("graded.metric:SpiceG", "of"),
    "bleu": MetricEntry("bleu:Bleu"),
    "bleu-sentence": MetricEntry("bleu:SentenceBleu"),
    "meteor": MetricEntry("meteor.metric:Meteor", "of"),
    "meteor-2005": MetricEntry("meteor.original:Meteor2005"),
    "rouge": MetricEntry("rouge:RougeL"),
    "rouge-1.5.5": MetricEntry("rouge:Rouge155"),
    "cider": MetricEntry("cider:Cider", "of_coco"),
    "cider-d": MetricEntry("cider:Cider", "of"),
    "cider-plain": MetricEntry("cider:Cider", "of_plain"),
    "spider": MetricEntry("cider:Spider", "of"),
    "spider-fl": MetricEntry("fluency.metric:SpiderFl", "of"),
    "fluency": MetricEntry("fluency.metric:Fluency", "of"),
    "chair": MetricEntry("chair:Chair", "of"),
    "capture": MetricEntry("capture:Capture", "of"),
}
"""Every metric: its name, its class and what makes it.

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


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics; whether there are such is not looked at.

    Raises:
        InputError: they are a string, whose letters would be taken for names.

    Example:
        >>> check_names(["spice", "cider"])
        ('spice', 'cider')
    """
    if isinstance(names, str):
        raise InputError(f"metrics: expected a list of names such as [{names!a}], got the string {names!a}")
    return tuple(names)


def metric_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, with groups spelled out.

    Raises:
        InputError: a name is unknown, there is none, or a string stands in place of a list of names.

    Example:
        >>> metric_names(["spice", "spice"])
        ('spice',)
    """
    spelled: list[str] = []
    for name in check_names(names):
        if name not in METRICS and name not in GROUPS:
            raise InputError(f"there is no metric {name!a}{_meant(name)}; the metrics are {_known()}")
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


def _meant(name: str) -> str:
    # Imported here: only who misspells a name needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(name.strip().lower(), [*METRICS, *GROUPS], n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _known() -> str:
    return ", ".join((*METRICS, *GROUPS))


def make_metrics(names: Iterable[str], resources: Resources) -> dict[str, Metric[Any]]:
    """Make the metrics of the given names, in their order.

    Raises:
        InputError: a name is unknown, or a string stands in place of a list of names.
        DataError: something that a metric needs is not installed.
    """
    asked = check_names(names)
    resources = replace(resources, data=with_spice_text(asked, resources.data))
    return {name: METRICS[name].make(resources) for name in metric_names(asked)}


def make_reward(text: str, resources: Resources) -> Reward:
    """Make the reward that a text such as ``spice-g=1,cider-d=.1,length=-.01`` names.

    Raises:
        InputError: a term is unknown, stands twice, or has no weight.
        DataError: something that a metric needs is not installed.
    """
    # Imported here, as all metrics are: where they are asked for.
    from spicegraph_scorer.metrics.reward import DRAFT_TERMS, Reward, parse_reward  # noqa: PLC0415
    from spicegraph_scorer.metrics.spice.metric import Spice  # noqa: PLC0415

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
    return Reward(terms, metrics, Spice.of(replace(resources, evidence=True)) if compares else None)
