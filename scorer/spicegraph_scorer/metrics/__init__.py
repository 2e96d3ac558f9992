"""The metrics by name, as ``--metrics`` and :func:`spicegraph_scorer.score` know them.

To add a metric: a frozen value that follows the ``Metric`` protocol, a function here, a line in ``METRICS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.metric import Metric
from spicegraph_scorer.metrics.bleu import Bleu, SentenceBleu
from spicegraph_scorer.metrics.cider import COCO_CIDER, Cider
from spicegraph_scorer.metrics.graded.metric import SpiceG
from spicegraph_scorer.metrics.graded.vectors import Vectors, load_vectors
from spicegraph_scorer.metrics.meteor import Meteor, Meteor2005, load_data
from spicegraph_scorer.metrics.rouge import RougeL
from spicegraph_scorer.metrics.rouge155 import Rouge155
from spicegraph_scorer.metrics.spice.categories import CATEGORIES, Category
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.metrics.spider import Spider

if TYPE_CHECKING:
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies

__all__ = [
    "GROUPS",
    "METRICS",
    "WITH_CATEGORIES",
    "WITH_FACTS",
    "WITH_FREQUENCIES",
    "WITH_VECTORS",
    "Factory",
    "Progress",
    "Resources",
    "fact_readers",
    "make_metrics",
    "metric_names",
    "needs_loose",
]

Progress = Callable[[str, int, int], None]
"""Is told what is going on, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What metrics are made from; what is costly comes as a function, called only when it is needed.

    ``frequencies`` are CIDEr's; ``None``: those of the corpus that is scored. ``categories`` are what SPICE counts
    beside the total. ``vectors`` are SPICE-G's; ``None``: the bundled ones. ``evidence``: SPICE and SPICE-G keep
    their matches, METEOR its alignments.
    """

    facts: Callable[[], FactSource]
    progress: Progress | None = None
    frequencies: DocumentFrequencies | None = None
    categories: Mapping[str, Category] = field(default_factory=lambda: CATEGORIES)
    vectors: Vectors | None = None
    evidence: bool = True


Factory = Callable[[Resources], Metric[Any]]


def _spice(resources: Resources) -> Metric[Any]:
    return Spice(resources.facts(), categories=resources.categories, evidence=resources.evidence)


def _spice_exact(resources: Resources) -> Metric[Any]:
    return Spice(resources.facts(), exact=True, categories=resources.categories, evidence=resources.evidence)


def _spice_g(resources: Resources) -> Metric[Any]:
    vectors = resources.vectors or load_vectors()
    return SpiceG(resources.facts(), resources.categories, vectors, evidence=resources.evidence)


def _bleu(_resources: Resources) -> Metric[Any]:
    return Bleu()


def _bleu_sentence(_resources: Resources) -> Metric[Any]:
    return SentenceBleu()


def _meteor(resources: Resources) -> Metric[Any]:
    def building(share: float) -> None:
        if resources.progress:
            resources.progress("building METEOR's index", round(100 * share), 100)

    return Meteor(load_data(progress=building), evidence=resources.evidence)


def _meteor_2005(_resources: Resources) -> Metric[Any]:
    return Meteor2005()


def _rouge(_resources: Resources) -> Metric[Any]:
    return RougeL()


def _rouge_155(_resources: Resources) -> Metric[Any]:
    return Rouge155()


def _cider(resources: Resources) -> Metric[Any]:
    return replace(COCO_CIDER, frequencies=resources.frequencies)


def _cider_d(resources: Resources) -> Metric[Any]:
    return Cider("CIDEr-D", frequencies=resources.frequencies)


def _cider_plain(resources: Resources) -> Metric[Any]:
    return Cider("CIDEr", frequencies=resources.frequencies, key="CIDEr-plain")


def _spider(resources: Resources) -> Metric[Any]:
    return Spider(
        Spice(resources.facts(), evidence=resources.evidence), Cider("CIDEr-D", frequencies=resources.frequencies)
    )


METRICS: Mapping[str, Factory] = {
    "spice": _spice,
    "spice-exact": _spice_exact,
    "spice-g": _spice_g,
    "bleu": _bleu,
    "bleu-sentence": _bleu_sentence,
    "meteor": _meteor,
    "meteor-2005": _meteor_2005,
    "rouge": _rouge,
    "rouge-1.5.5": _rouge_155,
    "cider": _cider,
    "cider-d": _cider_d,
    "cider-plain": _cider_plain,
    "spider": _spider,
}
"""Every metric: its name and the function that makes it.

``cider`` is what the COCO toolkit prints under that name, which is CIDEr-D; ``cider-plain`` is the paper's
CIDEr.
"""

WITH_FREQUENCIES = frozenset({"cider", "cider-d", "cider-plain", "spider"})
"""The metrics that need document frequencies: an item's statistic depends on the corpus, unless they are given."""

WITH_CATEGORIES = frozenset({"spice", "spice-exact", "spice-g"})
"""The metrics that count by category, the user's own among them."""

WITH_VECTORS = frozenset({"spice-g"})
"""The metrics that compare words by vectors."""

WITH_FACTS = WITH_CATEGORIES | {"spider"}
"""The metrics that read captions' facts: captions are parsed for them."""

_WITH_LOOSE = frozenset({"spice-g"})

GROUPS: Mapping[str, tuple[str, ...]] = {
    "coco": ("bleu", "meteor", "rouge", "cider", "spice"),
    "all": tuple(METRICS),
}
"""Names that stand for several metrics; ``coco`` is what the COCO toolkit prints."""


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


def fact_readers(names: Iterable[str]) -> int:
    """Return how many of the metrics read captions' facts.

    Raises:
        InputError: a name is unknown, or there is none.

    Example:
        >>> fact_readers(["coco"]), fact_readers(["coco", "spider"])
        (1, 2)
    """
    return len(WITH_FACTS.intersection(metric_names(names)))


def needs_loose(names: Iterable[str]) -> bool:
    """Say whether one of the metrics needs the facts of loose words.

    Raises:
        InputError: a name is unknown, or there is none.

    Example:
        >>> needs_loose(["coco"]), needs_loose(["all"])
        (False, True)
    """
    return not _WITH_LOOSE.isdisjoint(metric_names(names))


def _known() -> str:
    return ", ".join((*METRICS, *GROUPS))


def make_metrics(names: Iterable[str], resources: Resources) -> dict[str, Metric[Any]]:
    """Make the metrics of the given names, in their order.

    Raises:
        InputError: a name is unknown.
        DataError: something that a metric needs is not installed.
    """
    return {name: METRICS[name](resources) for name in metric_names(names)}
