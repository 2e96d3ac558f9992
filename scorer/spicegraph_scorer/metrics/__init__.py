"""The metrics by name, as ``--metrics`` and :func:`spicegraph_scorer.score` know them."""
# To add a metric: a frozen value that derives from ``Metric`` and says how it is made; a line in ``pyproject.toml``.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.metadata import entry_points
from itertools import pairwise
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from spicegraph_parser.errors import DataError, InputError, expect_texts
from spicegraph_scorer.core.data import MetricData, Resources, with_spice_text

if TYPE_CHECKING:
    from spicegraph_scorer.core.metric import Metric, Needs


def read_data(files: Mapping[str, str]) -> MetricData:
    """Return data for metrics, read from the file of each field by the entry points of ``spicegraph.data``."""
    readers = {point.name: point for point in entry_points(group="spicegraph.data")}
    if missing := [name for name in files if name not in readers]:
        raise DataError(f"{', '.join(missing)}: no installed package reads such data; install spicegraph (again)")
    return MetricData(**{name: readers[name].load()(path) for name, path in files.items()})


Factory: TypeAlias = "Callable[[Resources], Metric[Any]]"


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """A metric that can be asked for: its class, which says what it needs and gives, and what makes it."""

    # The class, or where it is: ``module:Class``, which makes the metric without arguments, or ``module:Class.method``,
    # whose class method makes it from :class:`Resources`. The module is loaded where the metric is used.

    place: type[Metric[Any]] | str
    maker: Factory | None = None

    @property
    def kind(self) -> type[Metric[Any]]:
        """The class."""
        if not isinstance(self.place, str):
            return self.place
        module, _, name = self.place.partition(":")
        try:
            kind: type[Metric[Any]] = resolve_name(f"{module}:{name.partition('.')[0]}")
        except (ImportError, AttributeError) as error:
            raise DataError(f"the metric at {self.place!a} can't be loaded: {error}") from error
        return kind

    def make(self, resources: Resources) -> Metric[Any]:
        """Make the metric."""
        method = self.place.partition(":")[2].partition(".")[2] if isinstance(self.place, str) else ""
        maker: Factory | None = getattr(self.kind, method) if method else self.maker
        return maker(resources) if maker else self.kind()


_SHOWN_FIRST = (
    *("spice", "spice-exact", "spice-g", "bleu", "bleu-sentence", "meteor", "rouge"),
    *("cider", "cider-plain", "cider-r", "spider", "spider-fl", "fluency", "chair", "capture"),
    "detail",
)  # The order of metrics in tables and messages; others follow by name.


def _registered() -> dict[str, MetricEntry]:
    """Return the metrics of the entry points, whose modules are not loaded yet."""
    points = sorted((point.name, point.value) for point in entry_points(group="spicegraph.metrics"))
    if not points:
        raise DataError("no metric is registered: install spicegraph (again); in a checkout, `pip install -e .`")
    for (name, place), (next_name, next_place) in pairwise(points):
        if name == next_name:
            raise DataError(f"the metric {name!a} is registered twice: {place!a}, {next_place!a}")
    ranks = {name: rank for rank, name in enumerate(_SHOWN_FIRST)}
    points.sort(key=lambda point: ranks.get(point[0], len(ranks)))
    return {name: MetricEntry(place) for name, place in points}


METRICS: MutableMapping[str, MetricEntry] = _registered()
"""Every metric by its name: those of the entry-point group ``spicegraph.metrics``, ours and those of other packages.

``cider`` is what the COCO toolkit prints under that name, the variant CIDEr-D; ``cider-plain`` is the first paper's
CIDEr, and ``cider-r`` the one that stands any length.
"""

# Not in ``all``: variants of studies of their time, and metrics made for descriptions.
BY_NAME_ONLY: Final = frozenset(
    (
        *("spice-exact", "bleu-sentence", "bleu-2-only", "bleu-3-only", "bleu-4-only", "rouge-s"),
        *("cider-plain", "cider-r", "detail"),
    )
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "coco": ("bleu", "meteor", "rouge", "cider", "spice"),
    "all": tuple(name for name in METRICS if name not in BY_NAME_ONLY),
}  # Names that stand for several metrics; ``coco`` is what the COCO toolkit prints, from the text that it scores.

ALIASES: Final[Mapping[str, str]] = {"cider-d": "cider"}
"""What papers call a metric, by which it can be asked for; its scores have its own name."""

_PRINTED: Final[Mapping[str, str]] = {
    **{name: name for name in (*METRICS, *GROUPS)},
    **{f"bleu-{order}": "bleu" for order in range(1, 5)},
    "rouge-l": "rouge",
    **ALIASES,
}  # The metrics by what is written for them, in lower case and with hyphens: ``SPICE``, ``ROUGE_L``, ``Bleu_4``.


def check_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics, also of those that are written as scores are; others stay as they are.

    A string holds names with commas between them, as on the command line.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    given = expect_texts(tuple(names) if isinstance(names, Mapping) else names, "metrics")
    return tuple(_PRINTED.get(name.strip().lower().replace("_", "-"), name) for name in given)


def metric_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, with groups spelled out."""
    spelled: list[str] = []
    for name in check_names(names):
        if name not in METRICS and name not in GROUPS:
            close = get_close_matches(name.strip().lower(), [*METRICS, *GROUPS], n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            if len(name.split()) > 1:
                meant = ": separate names with commas"
            raise InputError(f"there is no metric {name!a}{meant}; the metrics are {_known()}")
        spelled += GROUPS.get(name, (name,))
    if not spelled:
        raise InputError(f"no metric is asked for; the metrics are {_known()}")
    return tuple(dict.fromkeys(spelled))


def needs_of(names: str | Iterable[str]) -> tuple[Needs, ...]:
    """Return what each of the metrics reads beside the captions' words."""
    return tuple(METRICS[name].kind.needs for name in metric_names(names))


def lower_is_better(names: Iterable[str]) -> frozenset[str]:
    """Return the scores of these metrics that are better if lower; unknown names have none."""
    return frozenset(score for name in names if name in METRICS for score in METRICS[name].kind.lower_is_better)


def _known() -> str:
    return ", ".join((*METRICS, *GROUPS))


def make_metrics(names: str | Iterable[str], resources: Resources) -> dict[str, Metric[Any]]:
    """Make the metrics of the given names, in their order."""
    asked = check_names(names)
    resources = replace(resources, data=with_spice_text(asked, resources.data))
    check_language(metric_names(asked), resources.data)
    return {name: METRICS[name].make(resources) for name in metric_names(asked)}


def check_language(names: Iterable[str], data: MetricData) -> None:
    """Refuse metrics that cannot score captions in the language of the data, with an InputError."""
    if data.reference_language not in (None, data.language):
        wrong = [name for name in names if "reference_language" not in METRICS[name].kind.needs.data]
        if wrong:
            raise InputError(f"{', '.join(wrong)}: compares words, so that references are in the candidates' language")
    if data.language not in (None, "en") and (wrong := [name for name in names if METRICS[name].kind.english]):
        others = ", ".join(name for name, entry in METRICS.items() if not entry.kind.english)
        raise InputError(f"{', '.join(wrong)}: is made for English, not for {data.language}; {others} are not")
