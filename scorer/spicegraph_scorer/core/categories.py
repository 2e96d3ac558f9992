"""Categories of tuples, and scores by category: an item's, and their means and sums over a corpus."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from spicegraph_parser.spice.wordnet import Synset, load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.spice.graph import SceneTuple
    from spicegraph_parser.spice.index import Concept


ALL: Final = "All"  # The name of the total over every tuple.

CategoryDict: TypeAlias = "dict[str, float | int | None]"


@dataclass(frozen=True, slots=True)
class Category:
    """Which tuples belong to a category: those of a length (1 object, 2 attribute, 3 relation), or some."""

    length: int
    words: frozenset[str] | None = None  # only tuples whose whole label is here: merged ones never are, as in SPICE 1.0
    keys: frozenset[str | int] | None = None  # only tuples whose concept has one of these strings or synsets
    roots: tuple[Synset, ...] = ()  # ... or a string that WordNet calls a kind of one of these

    def select(self, tuples: Sequence[SceneTuple], indices: Iterable[int]) -> list[int]:
        """Return which of the given indices, all of tuples of this category's length, belong to it."""
        chosen = list(indices)
        if self.takes_all:
            return chosen
        slot = min(self.length - 1, 1)
        return list(compress(chosen, self.takes([tuples[i].concepts[slot] for i in chosen])))

    @property
    def takes_all(self) -> bool:
        """Whether every tuple of this category's length belongs to it."""
        return self.words is None and self.keys is None

    def takes(self, concepts: Iterable[Concept]) -> list[bool]:
        """Say which tuples of this category's length belong to it, given their objects, attributes or relations."""
        words, keys = self.words, self.keys
        if keys is not None:
            return [
                not keys.isdisjoint(concept.keys)
                or any(load_wordnet().is_kind_of(string, root) for root in self.roots for string in concept.strings)
                for concept in concepts
            ]
        return [words is None or concept.label in words for concept in concepts]


class Counts(NamedTuple):
    """Numbers of tuples: matched candidate tuples, all candidate tuples, all reference tuples."""

    matched: int = 0
    candidate: int = 0
    reference: int = 0

    def __add__(self, other: Counts) -> Counts:  # type: ignore[override]  # sums, not tuples one after the other
        """Return the sum, for micro averages."""
        return Counts(self.matched + other.matched, self.candidate + other.candidate, self.reference + other.reference)

    @property
    def precision(self) -> float:
        """Share of candidate tuples that match, in [0, 1]; 0 without candidate tuples."""
        return self.matched / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Matched *candidate* tuples over reference tuples, as in SPICE: above 1 only by many-to-one matches."""
        return self.matched / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are 0."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def false_positives(self) -> int:
        """Candidate tuples without a partner."""
        return self.candidate - self.matched

    @property
    def false_negatives(self) -> int:
        """Reference tuples less the matched candidate tuples."""
        return self.reference - self.matched


class CategoryScore(NamedTuple):
    """One item's F1, precision and recall in a category, in [0, 1]; ``None`` where they are undefined."""

    f: float | None
    pr: float | None
    re: float | None
    counts: Counts | None = None  # what they come from; None for metrics that weigh tuples and do not count them

    @classmethod
    def of(cls, counts: Counts, category: str) -> CategoryScore:
        """Return the scores of counts; without reference tuples only the total (:data:`ALL`) is defined."""
        if not counts.reference and category != ALL:
            return cls(None, None, None, counts)
        return cls(counts.f1, counts.precision, counts.recall, counts)

    def to_dict(self) -> CategoryDict:
        """Return JSON values in the words of SPICE's: ``f``, ``pr``, ``re``, and counts as ``tp``, ``fp``, ``fn``."""
        values: CategoryDict = {"f": self.f, "pr": self.pr, "re": self.re}
        if self.counts is not None:
            values |= _tallies(self.counts)
        return values


@dataclass(frozen=True, slots=True)
class CategoryMeans:
    """A category over a corpus: means over the items whose references have such tuples (``All``: all), and counts."""

    f: float | None
    pr: float | None
    re: float | None
    items: int
    micro: Counts | None = None  # summed over every item, so that a colour that no reference has costs precision

    def to_dict(self) -> dict[str, float | int | CategoryDict | None]:
        """Return JSON values; a share of nothing is undefined in ``micro``, unlike in SPICE's per-item scores."""
        means: dict[str, float | int | CategoryDict | None]
        means = {"f": self.f, "pr": self.pr, "re": self.re, "items": self.items}
        micro = self.micro
        if micro is None:
            return means
        return {**means, "micro": {**_tallies(micro), **micro_shares(micro)}}


def _tallies(counts: Counts) -> CategoryDict:
    return {"tp": counts.matched, "fp": counts.false_positives, "fn": counts.false_negatives}


def micro_shares(counts: Counts) -> dict[str, float | None]:
    """Return precision, recall and F1 of summed counts: ``pr``, ``re``, ``f``; ``None`` is a share of nothing."""
    return {
        "pr": counts.precision if counts.candidate else None,
        "re": counts.recall if counts.reference else None,
        "f": counts.f1 if counts.candidate or counts.reference else None,
    }


def category_means(items: Iterable[Mapping[str, CategoryScore]]) -> dict[str, CategoryMeans]:
    """Return the means and micro counts of every category, in the order of the items'; independent of their order."""
    shares: dict[str, tuple[array[float], array[float], array[float]]] = {}
    micro: dict[str, Counts] = {}
    for scores in items:
        for name, (f, pr, re, counts) in scores.items():
            if name not in shares:
                shares[name] = (array("d"), array("d"), array("d"))
            if f is not None and pr is not None and re is not None:
                for column, value in zip(shares[name], (f, pr, re), strict=True):
                    column.append(value)
            if counts is not None:
                micro[name] = micro.get(name, Counts()) + counts
    means = {}
    for name, columns in shares.items():
        f, pr, re = map(_mean, columns)
        means[name] = CategoryMeans(f, pr, re, len(columns[0]), micro.get(name))
    return means


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
