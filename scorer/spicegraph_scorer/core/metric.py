"""What a metric is: items become small statistics, statistics become scores."""
# All that scores are made of reuses the statistics, so that no caption is parsed or tokenized twice. A metric says
# everything that others need to know of it: nothing outside a metric asks for its name or type.

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from spicegraph_scorer.core.categories import CategoryScore
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.items import Item

Statistic = TypeVar("Statistic")
Statistic_contra = TypeVar("Statistic_contra", contravariant=True)

Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a metric: its corpus value and its value for every item.

    None means undefined, for instance a colour score where no reference names a colour.
    """

    name: str
    value: float | None
    each: tuple[float | None, ...]

    @classmethod
    def mean(cls, name: str, each: Sequence[float | None]) -> Score:
        """Return a score whose corpus value is the mean of the items that have one, rounded once; else ``None``."""
        defined = [value for value in each if value is not None]
        return cls(name, math.fsum(defined) / len(defined) if defined else None, tuple(each))


class Working(NamedTuple):
    """How one score of an item comes about: a sentence with ``{}`` where its numbers stand, the same for all items."""

    score: str
    text: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """Inputs of a metric beside the captions' words."""

    facts: bool = False  # what the captions say, for which they are parsed
    loose: bool = False  # the facts of loose words as well
    data: frozenset[str] = frozenset()  # fields of MetricData


class Weights(Protocol):
    """Additive corpus counts that the statistics of items depend on."""

    def __add__(self, other: Self, /) -> Self:
        """Return the weights of both parts together."""
        ...


Weigh: TypeAlias = Callable[[Corpus], Any]  # Counts :class:`Weights` over a part of a corpus.


class Explanation(Protocol):
    """Why an item has its score, for people."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON values."""
        ...


class Statement(NamedTuple):
    """Verdict on one of a candidate's tuples."""

    words: tuple[str, ...]  # an object; object and attribute; or subject, relation, object
    is_wrong: bool  # the references do not support it, but do support its objects
    is_contradicted: bool  # the references have something else in its place
    instead: str | None  # what they have there, of a wrong statement


class Judgement(Explanation, Protocol):
    """Explanation with verdicts on a candidate's tuples."""

    def statements(self) -> Iterable[Statement]:
        """Return the verdict on each distinct tuple of the candidate."""
        ...


class Summed(Protocol[Statistic_contra]):
    """How corpus scores are made from sums over the items."""

    def columns(self, statistics: Sequence[Statistic_contra], /) -> Matrix:
        """Return the columns to sum, (items, columns)."""
        ...

    def from_sums(self, sums: Matrix, /) -> Mapping[str, Vector]:
        """Return the corpus scores by name, one for each row of sums."""
        ...


class Metric(ABC, Generic[Statistic]):
    """A metric: a frozen value that holds its options.

    A metric has a name, a signature, ``collect`` and ``total``. The rest has a default, which is right for a metric
    whose statistic depends on the item alone, and whose corpus scores are the means of the items' scores.
    """

    __slots__ = ()

    needs: ClassVar[Needs] = Needs()
    """What it reads beside the captions' words."""
    means: ClassVar[bool] = True
    """Corpus scores are the means over the items where they are defined; else ``columns`` and ``from_sums`` say how."""
    highest: ClassVar[float] = 1.0
    """The highest score of an item; the lowest is 0."""
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    """The names of the scores of which a lower value is the better one; of all others a higher value is."""
    explains: ClassVar[bool] = False
    """:meth:`explain` gives an :class:`Explanation`, which results hold where explanations are asked for."""
    matches: ClassVar[bool] = False
    """:meth:`explain` gives a :class:`spicegraph_scorer.metrics.spice.match.Match`, in which errors are found."""
    english: ClassVar[bool] = False
    """It reads English alone, by what it has learned or by its tables, and is refused for other languages."""
    credits: ClassVar[bool] = False
    """:meth:`credit` divides items' scores among the words of their candidates."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The key of the metric in ``METRICS`` and on the command line, e.g. ``bleu``."""

    @abstractmethod
    def signature(self) -> Mapping[str, str]:
        """Return the settings that must match for two values to be comparable."""

    @abstractmethod
    def collect(self, corpus: Corpus) -> list[Statistic]:
        """Return one statistic per item, in the order of ``corpus.items``."""

    @abstractmethod
    def total(self, statistics: Sequence[Statistic]) -> tuple[Score, ...]:
        """Return the metric's scores; ``each`` follows the order of ``statistics``."""

    def reads(self, item: Item) -> Item:
        """Return an item with its captions as the metric parses them; by default as they are."""
        return item

    def columns(self, statistics: Sequence[Statistic]) -> Matrix:
        """Return the columns to sum for the corpus scores, (items, columns)."""
        each = [score.each for score in self.total(statistics)]
        values = np.array(each, np.float64).T
        return np.hstack([np.nan_to_num(values), ~np.isnan(values)]).astype(np.float64)

    def from_sums(self, sums: Matrix) -> Mapping[str, Vector]:
        """Return the corpus scores by name, one for each row of sums of ``columns``; NaN where undefined."""
        values, defined = np.hsplit(sums, 2)
        means = np.divide(values, defined, out=np.full_like(values, np.nan), where=defined > 0)
        names = [score.name for score in self.total(())]
        return {name: means[:, index] for index, name in enumerate(names)}

    def summed(self) -> Summed[Statistic]:
        """Return what makes the scores of :meth:`total` to the bit from exact sums; by default the metric itself."""
        return self

    def compact(self, statistic: Statistic) -> Statistic:
        """Return an item's statistic with its numbers alone: scores need only these; evidence is far larger."""
        return statistic

    @staticmethod
    def by_category(statistic: Any) -> Mapping[str, CategoryScore]:
        """Return an item's scores by category, ``All`` first, which is the first score; nothing without categories."""
        del statistic
        return {}

    @staticmethod
    def empty_graphs(statistic: Any) -> tuple[bool, bool]:
        """Say whether the graphs of an item's candidate and of its references are empty; no graphs are not empty."""
        del statistic
        return False, False

    def explain(self, statistic: Statistic, *, changes: int = 3) -> Any:
        """Return the evidence of an item's score, if any, and up to so many ``changes`` that would raise it."""
        del statistic, changes

    def make_ready(self) -> None:
        """Build what the first captions would wait for, for programs that serve others; scores stay the same."""
        return

    def working(self, statistic: Statistic) -> tuple[Working, ...]:
        """Return how an item's scores come about, for people; by default nothing."""
        del statistic
        return ()

    def workings(self, corpus: Corpus, statistics: Sequence[Statistic]) -> list[tuple[Working, ...]]:
        """Return :meth:`working` of each item; a metric that needs the corpus for it has this in its place."""
        del corpus
        return list(map(self.working, statistics))

    def credit(self, corpus: Corpus, statistics: Sequence[Statistic]) -> list[Credit]:
        """Return which words earned or cost each item's first score; a ValueError for statistics without evidence."""
        del corpus, statistics
        raise InputError(f"{self.name} does not divide its score among words")

    @property
    def weigh(self) -> Weigh | None:
        """What counts the weights that statistics depend on, over a corpus or a part; equal ones by one function."""
        # None: a statistic depends on its item alone, or the metric has its weights.
        return None

    def weighted(self, weights: Any) -> Self:
        """Return the metric with the weights of a corpus, the sum of what :attr:`weigh` counted over its parts."""
        del weights
        return self

    def defer(self, corpus: Corpus, *, evidence: bool = False) -> list[Any]:
        """Return what is kept of each item of a part of a corpus until :meth:`finish`, which makes it a statistic."""
        # By default a compact statistic; where statistics depend on the whole corpus, the item. Nothing is parsed
        # later: a metric that also reads facts says what it keeps of them, with evidence all that credit needs.
        del evidence
        return (
            [self.compact(statistic) for statistic in self.collect(corpus)]
            if self.weigh is None
            else list(corpus.items)
        )

    def finish(self, kept: Sequence[Any], *, weights: Any = None) -> list[Statistic]:
        """Return the statistics of all items, from what was kept of them, with ``weights`` or those of the items."""
        if self.weigh is None:
            return list(kept)
        return (self if weights is None else self.weighted(weights)).collect(Corpus(tuple(kept)))


@dataclass(frozen=True, slots=True)
class ReadyScores(Metric[tuple[float | None, ...]]):
    """Known scores of items, averaged for corpus values, for intervals and tests."""

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """No metric of ``METRICS``."""
        return "ready"

    def signature(self) -> Mapping[str, str]:
        """Return the names of the scores."""
        return {"scores": " ".join(self.names)}

    def collect(self, corpus: Corpus) -> list[tuple[float | None, ...]]:
        """Refuse: there is nothing to compute."""
        raise NotImplementedError

    def total(self, statistics: Sequence[tuple[float | None, ...]]) -> tuple[Score, ...]:
        """Return the means."""
        return tuple(Score.mean(name, [row[n] for row in statistics]) for n, name in enumerate(self.names))
