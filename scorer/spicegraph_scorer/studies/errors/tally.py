"""Findings over a corpus: how often each error, at what rate, and in which items."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_scorer.studies.errors.explain import KINDS, explain
from spicegraph_scorer.studies.errors.findings import Side
from spicegraph_scorer.studies.errors.view import word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.metrics.spice.match import Match
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic
    from spicegraph_scorer.studies.errors.findings import Finding

__all__ = ["ErrorGroup", "ErrorKind", "ErrorReport", "analyse_errors"]


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of a kind with the same words.

    Attributes:
        words: what the group is about, such as ``("red", "blue")``; the kind's ``columns`` name them.
        count: how many tuples.
        weight: for what is missed, the sum over tuples of the reference captions that agree on each.
        of: how many objects of that name the side has in all (objects only, else ``None``).
        items: positions of the items, in order, without repeats.
    """

    words: tuple[str, ...]
    count: int
    weight: int
    of: int | None
    items: tuple[int, ...]

    @property
    def rate(self) -> float | None:
        """Share of the objects of that name that are missed or invented, in [0, 1]."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """All errors of a kind: ``count`` of the ``of`` tuples that could have it, in ``items`` items.

    ``of`` counts every tuple of that length on the kind's side, matched or not.
    """

    name: str
    count: int
    of: int
    items: int
    groups: tuple[ErrorGroup, ...]

    @property
    def rate(self) -> float | None:
        """Share of the tuples of that length, in [0, 1]; ``None`` where there are none."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The findings of every item, and the same by kind, in the order of ``KINDS``."""

    findings: tuple[tuple[Finding, ...], ...]
    kinds: tuple[ErrorKind, ...]

    def kind(self, name: str) -> ErrorKind:
        """Return the errors of a kind."""
        return next(kind for kind in self.kinds if kind.name == name)


def analyse_errors(statistics: Sequence[SpiceStatistic]) -> ErrorReport:
    """Explain and count the errors of a corpus, from the matches that its SPICE scores were made from.

    Groups come with the heaviest first: by the references that agree, then by count.

    Example:
        >>> from spicegraph_scorer import score_tuples
        >>> result = score_tuples([["cat"]], [[["dog"]], [["dog"]]])
        >>> analyse_errors([result.statistic]).kind("object_missed").groups[0]
        ErrorGroup(words=('dog',), count=1, weight=2, of=1, items=(0,))
    """
    matches = [statistic.match for statistic in statistics]
    findings = tuple(map(explain, matches))
    found: defaultdict[str, defaultdict[tuple[str, ...], list[tuple[int, Finding]]]]
    found = defaultdict(lambda: defaultdict(list))
    for item, row in enumerate(findings):
        for finding in row:
            found[finding.kind][finding.words].append((item, finding))
    totals, names = _totals(matches), _object_names(matches)
    return ErrorReport(
        findings,
        tuple(
            _kind(name, found[name], totals[kind.side, kind.length], names[kind.side] if kind.length == 1 else None)
            for name, kind in KINDS.items()
        ),
    )


def _kind(
    name: str,
    found: dict[tuple[str, ...], list[tuple[int, Finding]]],
    total: int,
    names: Counter[str] | None,
) -> ErrorKind:
    groups = [
        ErrorGroup(
            words,
            len(rows),
            sum(finding.agreeing for _, finding in rows),
            names[words[0]] if names is not None and len(words) == 1 else None,
            tuple(dict.fromkeys(item for item, _ in rows)),
        )
        for words, rows in found.items()
    ]
    groups.sort(key=_heaviest)
    items = {item for group in groups for item in group.items}
    return ErrorKind(name, sum(group.count for group in groups), total, len(items), tuple(groups))


def _heaviest(group: ErrorGroup) -> tuple[int, int, tuple[str, ...]]:
    return -group.weight, -group.count, group.words


def _totals(matches: Sequence[Match]) -> Counter[tuple[Side, int]]:
    totals: Counter[tuple[Side, int]] = Counter()
    for match in matches:
        totals.update((Side.INVENTED, len(t.concepts)) for t in match.candidate)
        totals.update((Side.MISSED, len(t.concepts)) for t in match.reference)
    return totals


def _object_names(matches: Sequence[Match]) -> dict[Side, Counter[str]]:
    """Count the objects of each side by name."""
    names: dict[Side, Counter[str]] = {side: Counter() for side in Side}
    for match in matches:
        names[Side.INVENTED].update(word(t, 0) for t in match.candidate if len(t.concepts) == 1)
        names[Side.MISSED].update(word(t, 0) for t in match.reference if len(t.concepts) == 1)
    return names
