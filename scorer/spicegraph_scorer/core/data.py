"""What metrics are made from: the data that users give them, and what a run provides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypedDict

from spicegraph_parser.errors import InputError, kind_of
from spicegraph_parser.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spicegraph_scorer.core.categories import Category
    from spicegraph_scorer.core.facts import FactSource, Progress
    from spicegraph_scorer.core.ngrams import DocumentFrequencies
    from spicegraph_scorer.core.tokens import SpiceText


class WordVectors(Protocol):
    """Vectors of words, which compare names by meaning: :class:`spicegraph_scorer.Vectors`."""

    @property
    def signature(self) -> str:
        """Name and hash of the table, for the signature of a score."""
        ...


class Instances(NamedTuple):
    """Which objects each image has, by its id as text, and a hash of it all."""

    objects: Mapping[str, frozenset[str]]
    digest: str


def _check_categories(categories: Mapping[str, object]) -> None:
    for key, category in categories.items():
        if not callable(getattr(category, "select", category)):
            raise InputError(f"categories[{key!a}]: is {kind_of(category)}, expected a category of make_categories")


@dataclass(frozen=True, slots=True)
class MetricData:
    """The data that users may give to metrics; a metric's ``needs.data`` names the fields that it uses.

    SPICE-G always parses captions as written: its formula and verdicts were measured on those.
    """

    frequencies: DocumentFrequencies | None = None  # CIDEr's; None: those of the corpus that is scored
    categories: Mapping[str, Category] | None = None  # of SPICE and SPICE-G, beside the total; None: SPICE's own
    vectors: WordVectors | None = None  # SPICE-G's and CAPTURE's; None: the bundled ones
    meaning: WordVectors | None = None  # by which SPICE-G compares captions as wholes; None: the bundled one
    spice_text: SpiceText | None = None  # what SPICE and SPIDEr parse; None: coco with the group coco, else written
    instances: Instances | None = None  # the objects that CHAIR knows in images beside those of references
    language: str | None = None  # of captions, by code; None: what the pipeline reads
    reference_language: str | None = None  # of references, for SPICE across languages; None: that of the candidates
    cider_scale: float | None = None  # the factor of CIDEr, which 1 leaves as in its paper's equations; None: 10

    def __post_init__(self) -> None:
        """Validate the fields; raise InputError for an unusable value."""
        for name, attribute, expected in _ATTRIBUTES:
            value = getattr(self, name)
            if value is not None and not hasattr(value, attribute):
                raise InputError(f"{name}: is {kind_of(value)}, expected {expected}")
        for name in ("language", "reference_language"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, find_language(getattr(self, name)).code)
        if self.cider_scale is not None and not 0 < self.cider_scale < inf:
            raise InputError(f"cider_scale: is {self.cider_scale}, expected a number above 0")
        _check_categories(self.categories or {})


_ATTRIBUTES: Final = (
    ("frequencies", "images", "DocumentFrequencies"),
    ("categories", "items", "categories as make_categories and read_categories give them"),
    ("vectors", "signature", "vectors, such as Vectors.read gives"),
    ("instances", "objects", "instances of images"),
)  # What each field is known by, and what a message calls it.


class DataFields(TypedDict, total=False):
    """The fields of :class:`MetricData` as keywords of the functions that score."""

    frequencies: DocumentFrequencies | None
    categories: Mapping[str, Category] | None
    vectors: WordVectors | None
    meaning: WordVectors | None
    spice_text: SpiceText | None
    instances: Instances | None
    language: str | None
    reference_language: str | None
    cider_scale: float | None


_OTHER_KEYWORDS: Final = (
    *("metrics", "data", "pipeline", "progress", "confidence", "explain", "credit", "evidence", "empty"),
    "control_tokens",
)


def merged_data(data: MetricData | None, fields: DataFields) -> MetricData:
    """Return ``data`` with the fields that were given as keywords.

    Raises:
        TypeError: there is no such keyword, as with any function.
        InputError: a field is given twice, or is none.
    """
    for name in fields:
        if name not in DataFields.__annotations__:
            close = get_close_matches(name, [*DataFields.__annotations__, *_OTHER_KEYWORDS], n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise TypeError(f"unexpected keyword argument {name!r}{meant}")
    alone = MetricData(**fields)
    if data is None:
        return alone
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if getattr(data, name) is not None:
            raise InputError(f"{name} is given twice: as a keyword and in data")
    return replace(data, **given)


def with_spice_text(names: Iterable[str], data: MetricData) -> MetricData:
    """Return the data with the text that SPICE parses: as given, else the toolkit's where ``coco`` is named."""
    return data if data.spice_text else replace(data, spice_text="coco" if "coco" in names else "written")


@dataclass(frozen=True, slots=True)
class Resources:
    """Inputs for building metrics; ``facts`` is called only by metrics that need them."""

    facts: Callable[[], FactSource]
    progress: Progress | None = None
    data: MetricData = field(default_factory=MetricData)
    evidence: bool = True  # statistics keep what they come from, such as matches
    images: int = 0  # how many images' merged references SPICE keeps from one corpus to the next
