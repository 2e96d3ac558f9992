"""From matches to findings, their counts over a corpus, and hallucination in the manner of CHAIR."""
# CHAIR (Rohrbach et al., EMNLP 2018) checks 80 object classes against ground-truth boxes; here everything that a
# caption says is checked against the references. The figures are upper bounds: the image may have what no reference
# mentions.

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.errors import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.spice.graph import SceneTuple
    from spicegraph_scorer.core.metric import Statement
    from spicegraph_scorer.metrics.spice.match import Match
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

KINDS: Mapping[str, rules.Kind] = {**rules.INVENTED, **rules.MISSED}  # Every kind of error by its key.


def explain(match: Match) -> tuple[rules.Finding, ...]:
    """Explain every tuple of a match without a partner, the candidate's first.

    Each of them gets exactly one finding, so that findings add up to the counts behind the score: those of
    the candidate to its unmatched tuples (``fp``), those of the references to theirs.

    Example:
        >>> from spicegraph_scorer import score_tuples
        >>> result = score_tuples([["car"], ["car", "blue"]], [[["car"], ["car", "red"]]])
        >>> [(finding.kind, finding.words) for finding in explain(result.statistic.match)]
        [('color_confused', ('red', 'blue')), ('color_missed', ('red', 'car'))]
    """
    view = rules.MatchView(match)
    findings = []
    for side, tuples, partners in (
        (rules.ErrorSide.INVENTED, match.candidate, match.candidate_partners),
        (rules.ErrorSide.MISSED, match.reference, match.reference_partners),
    ):
        for index, scene_tuple in enumerate(tuples):
            if partners[index]:
                continue
            for name, kind in KINDS.items():
                if kind.side is side and kind.length == len(scene_tuple.concepts):
                    cause = kind.rule(view, scene_tuple)
                    if cause is not None:
                        words, counterpart, near = cause
                        findings.append(
                            rules.Finding(name, words, index, counterpart, rules.agreement(scene_tuple), near)
                        )
                        break
    return tuple(findings)


def error_words(match: Match) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Return the kinds and words of a match's errors, each once, without those that follow from another."""
    return frozenset((finding.kind, finding.words) for finding in explain(match) if KINDS[finding.kind].primary)


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of a kind with the same words, such as ``("red", "blue")``; the kind's ``columns`` name them."""

    words: tuple[str, ...]
    count: int  # of tuples
    weight: int  # of what is missed, the sum over these of the reference captions that agree
    of: int | None  # how many objects of that name the side has in all; None: not an object
    items: tuple[int, ...]  # positions, in order, without repeats

    @property
    def rate(self) -> float | None:
        """Share of the objects of that name that are missed or invented, in [0, 1]."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """All errors of a kind: ``count`` of the ``of`` tuples that can have it, in ``items`` items."""

    # The tuples that CHANCES names, matched or not: of colours said of a wrong object none can be confused, so that a
    # system with many wrong objects does not look careful with colours.

    name: str
    count: int
    of: int
    items: int
    groups: tuple[ErrorGroup, ...]

    @property
    def kind(self) -> rules.Kind:
        """What the errors are."""
        return KINDS[self.name]

    @property
    def rate(self) -> float | None:
        """Share of the tuples that can have the error, in [0, 1]; ``None`` where there are none."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The findings of every item, and the same by kind, in the order of ``KINDS``."""

    findings: tuple[tuple[rules.Finding, ...], ...]
    kinds: tuple[ErrorKind, ...]

    def kind(self, name: str) -> ErrorKind:
        """Return the errors of a kind."""
        return next(kind for kind in self.kinds if kind.name == name)


def chance_counts(match: Match) -> Counter[str]:
    """Return how many tuples of a match can have errors, by the keys of ``CHANCES``."""
    totals: Counter[str] = Counter()
    view = rules.MatchView(match)
    for side, tuples, partners in (
        (rules.ErrorSide.INVENTED, match.candidate, match.candidate_partners),
        (rules.ErrorSide.MISSED, match.reference, match.reference_partners),
    ):
        for scene_tuple, partner in zip(tuples, partners, strict=True):
            for name, chance in _CHANCES[side, len(scene_tuple.concepts)]:
                totals[name] += chance.holds(view, scene_tuple, matched=bool(partner))
    return totals


def analyse_errors(statistics: Sequence[SpiceStatistic]) -> ErrorReport:
    """Explain and count the errors behind SPICE scores; the groups with most references, then tuples, first."""
    matches = [statistic.match for statistic in statistics]
    findings = tuple(map(explain, matches))
    by_kind: defaultdict[str, defaultdict[tuple[str, ...], list[tuple[int, rules.Finding]]]]
    by_kind = defaultdict(lambda: defaultdict(list))
    for item, row in enumerate(findings):
        for finding in row:
            by_kind[finding.kind][finding.words].append((item, finding))
    totals: Counter[str] = Counter()  # of the tuples that can have errors, by the keys of CHANCES
    for match in matches:
        totals.update(chance_counts(match))
    names = {
        rules.ErrorSide.INVENTED: _objects(match.candidate for match in matches),
        rules.ErrorSide.MISSED: _objects(match.reference for match in matches),
    }
    kinds = []
    for name, kind in KINDS.items():
        groups = [
            _group(words, rows, names[kind.side][words[0]] if kind.length == len(words) == 1 else None)
            for words, rows in by_kind[name].items()
        ]
        groups.sort(key=lambda group: (-group.weight, -group.count, group.words))
        items = set(chain.from_iterable(group.items for group in groups))
        count = sum(group.count for group in groups)
        kinds.append(ErrorKind(name, count, totals[kind.among], len(items), tuple(groups)))
    return ErrorReport(findings, tuple(kinds))


def _objects(sides: Iterable[Sequence[SceneTuple]]) -> Counter[str]:
    """Return how often each object is named."""
    return Counter(rules.word(each, 0) for each in chain.from_iterable(sides) if len(each.concepts) == 1)


def _group(words: tuple[str, ...], rows: Sequence[tuple[int, rules.Finding]], named: int | None) -> ErrorGroup:
    agreeing = sum(finding.agreeing for _, finding in rows)
    return ErrorGroup(words, len(rows), agreeing, named, tuple(dict.fromkeys(item for item, _ in rows)))


_CHANCES = {
    (side, length): [(name, c) for name, c in rules.CHANCES.items() if (c.side, c.length) == (side, length)]
    for side in rules.ErrorSide
    for length in (1, 2, 3)
}


@dataclass(frozen=True, slots=True)
class Hallucination:
    """What candidates say in a category and no reference does."""

    category: str  # of SPICE, such as Object
    invented: int  # candidate tuples without a partner
    said: int  # all candidate tuples
    captions: int  # candidates with at least one invented tuple
    of: int  # all candidates

    @property
    def per_instance(self) -> float | None:
        """CHAIR_i: share of what is said that no reference has, in [0, 1]; ``None`` if nothing is said."""
        return self.invented / self.said if self.said else None

    @property
    def per_sentence(self) -> float | None:
        """CHAIR_s: share of the captions that say at least one such thing, in [0, 1]."""
        return self.captions / self.of if self.of else None


def hallucinations(statistics: Sequence[SpiceStatistic]) -> tuple[Hallucination, ...]:
    """Return the hallucination of every category but the total, from the counts behind the scores."""
    result = []
    for name in statistics[0].counts if statistics else ():
        if name != ALL:
            counts = [statistic.counts[name] for statistic in statistics]
            wrong = [count.candidate - count.matched for count in counts]
            said = sum(count.candidate for count in counts)
            result.append(Hallucination(name, sum(wrong), said, sum(map(bool, wrong)), len(counts)))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class WrongStatement:
    """What captions say of an object and their references, by SPICE-G's verdicts, do not support."""

    words: tuple[str, ...]  # an object; object and attribute; or subject, relation, object
    count: int  # in how many captions it is not supported
    said: int  # in how many captions it stands
    contradicted: int  # in how many the references have something else in its place
    instead: tuple[str, ...]  # what they have there, the most frequent first
    items: tuple[int, ...]  # positions of the captions in which it is not supported

    @property
    def rate(self) -> float:
        """``count`` over ``said``, in (0, 1]."""
        return self.count / self.said


def wrong_statements(statements_of: Iterable[Iterable[Statement]]) -> tuple[WrongStatement, ...]:
    """Return what references do not support, from each caption's statements, the most frequent first."""
    said: Counter[tuple[str, ...]] = Counter()
    wrong: defaultdict[tuple[str, ...], dict[int, str | None]] = defaultdict(dict)
    contradicted: Counter[tuple[str, ...]] = Counter()
    for item, statements in enumerate(statements_of):
        for statement in statements:
            said[statement.words] += 1
            if statement.is_wrong:
                wrong[statement.words][item] = statement.instead
                contradicted[statement.words] += statement.is_contradicted
    found = [
        WrongStatement(
            words,
            len(items),
            said[words],
            contradicted[words],
            tuple(name for name, _ in Counter(filter(None, items.values())).most_common()),
            tuple(items),
        )
        for words, items in wrong.items()
    ]
    return tuple(sorted(found, key=lambda statement: (-statement.count, statement.said, statement.words)))
