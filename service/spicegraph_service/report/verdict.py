"""What a report says first: who is better, by how much and how surely, where, and the three most telling errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from spicegraph_scorer.core.categories import ALL
from spicegraph_service.output.pages import number, signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_service.report.data import CandidateView, PairTest, Report, SystemView, TupleView

SHOWN: Final = 3
"""Telling errors of a report."""

_TELLS: Final[Mapping[str, tuple[float, str]]] = {
    "color_confused": (3.0, "says “{1}”, references “{0}”"),
    "count_off_by_more": (3.0, "says “{1}”, references “{0}”"),
    "size_opposite": (3.0, "says “{1}”, references “{0}”"),
    "relation_swapped": (3.0, "swaps who does what: references say “{0} {1} {2}”"),
    "relation_confused": (2.6, "says “{1}”, references “{0}”, of the same two things"),
    "attribute_misplaced": (2.4, "says “{0}” of the {2}; references say it of the {1}"),
    "count_off_by_one": (2.4, "says “{1}”, references “{0}”"),
    "relation_moved": (1.8, "says “{0}” with “{2}”; references with “{1}”"),
    "object_invented": (2.2, "says “{0}”, no reference does"),
    "color_invented": (1.6, "calls the {1} “{0}”; no reference does"),
    "count_invented": (1.6, "counts “{0}” of {1}; no reference does"),
    "size_invented": (1.4, "calls the {1} “{0}”; no reference does"),
    "attribute_invented": (1.2, "calls the {1} “{0}”; no reference does"),
    "relation_invented": (1.0, "says “{0} {1} {2}”; no reference does"),
}
"""By kind of error: its weight in the choice of examples, and its sentence with the words of the kind's columns."""

Piece = tuple[str, "str | None"]
"""A part of a caption, and the state of its words, if they are in a tuple."""


@dataclass(frozen=True, slots=True)
class Telling:
    """An error that shows what a system gets wrong.

    Attributes:
        item: the image's position.
        image_id: the image.
        source: its address, if it is shown.
        system: the place of the system that is wrong.
        kind: the kind of error.
        sentence: what it gets wrong.
        captions: the place and the marked caption of each system that is shown, the wrong one first.
        scores: SPICE of each of them.
    """

    item: int
    image_id: ItemId
    source: str | None
    system: int
    kind: str
    sentence: str
    captions: tuple[tuple[int, tuple[Piece, ...]], ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict: a headline, how sure it is, points with their names, and the most telling errors."""

    headline: str
    detail: str
    points: tuple[tuple[str, str], ...]
    telling: tuple[Telling, ...]


def verdict(report: Report) -> Verdict:
    """Say what a report shows. Differences count as sure where their 95 % interval excludes 0."""
    order = sorted(range(len(report.systems)), key=lambda place: -(report.systems[place].scores[0].value or 0.0))
    best, *others = order
    if not others:
        return _alone(report)
    other = others[0]
    tests = {test.name: test for test in _tests(report, report.systems[best], report.systems[other])}
    spice = tests["SPICE"]
    one, two = report.systems[best], report.systems[other]
    sure = spice.low is not None and spice.low > 0
    scores = f"SPICE {number(one.scores[0].value)} against {number(two.scores[0].value)}"
    better = "is better than" if len(order) == 2 else f"is the best of {len(order)}, before"
    winner = f"{one.name} {better} {two.name}" if sure else f"No sure winner, {one.name} or {two.name}"
    ends = f"95 % interval {signed(spice.low)} to {signed(spice.high)}, p {number(spice.p_bootstrap)}"
    detail = f"The difference is {signed(spice.difference)} ({ends}): " + (
        "more than chance among these images." if sure else "the interval includes 0, so more images are needed."
    )
    points = (*_categories(report, tests, one.name), *_errors((two, one)), *_metrics(report, tests, one, two))
    return Verdict(f"{winner}: {scores}", detail, points, tuple(_telling(report, other, best)))


def _alone(report: Report) -> Verdict:
    (system,) = report.systems
    spice = system.scores[0]
    rows = [(row.f, row.name) for row in system.categories if row.name != ALL and row.f is not None]
    rows.sort(reverse=True)
    detail = f"95 % interval {number(spice.low)} to {number(spice.high)}, over {report.items} images."
    points = []
    if rows:
        points.append(("Strongest", ", ".join(f"{name} ({number(f)})" for f, name in rows[:2])))
        points.append(("Weakest", ", ".join(f"{name} ({number(f)})" for f, name in rows[:-3:-1])))
    if report.human:
        points.append(("A person", f"{number(report.human.scores[0].value)}, with one reference less to agree with"))
    points += _errors((system,))
    headline = f"{system.name}: SPICE {number(spice.value)}"
    return Verdict(headline, detail, tuple(points), tuple(_telling(report, 0, None)))


def _tests(report: Report, best: SystemView, other: SystemView) -> Iterator[PairTest]:
    """Yield the tests of two systems as differences of the better one from the other."""
    for test in report.tests:
        if (test.first, test.second) == (other.name, best.name):
            yield test
        elif (test.first, test.second) == (best.name, other.name):
            low, high = (None if end is None else -end for end in (test.high, test.low))
            difference = None if test.difference is None else -test.difference
            yield replace(test, first=other.name, second=best.name, difference=difference, low=low, high=high)


def _categories(report: Report, tests: Mapping[str, PairTest], name: str) -> Iterator[tuple[str, str]]:
    found = {category: tests[f"SPICE_{category}"] for category in report.categories if category != ALL}
    known = {c: t for c, t in found.items() if t.difference is not None and t.low is not None and t.high is not None}
    ranked = sorted(known, key=lambda category: -abs(known[category].difference or 0.0))
    stronger = [c for c in ranked if (known[c].low or 0.0) > 0]
    weaker = [c for c in ranked if (known[c].high or 0.0) < 0]
    unsure = [c for c in found if c not in stronger and c not in weaker]
    yield "Stronger in", _listed(known, stronger) or f"no category for sure, for {name}"
    undecided = f"; undecided: {', '.join(unsure)}" if unsure else ""
    yield "Weaker in", (_listed(known, weaker) or "no category for sure") + undecided


def _listed(tests: Mapping[str, PairTest], names: Sequence[str]) -> str:
    return ", ".join(f"{name} ({signed(tests[name].difference)})" for name in names)


def _errors(systems: Sequence[SystemView]) -> Iterator[tuple[str, str]]:
    rows = [next(kind for kind in system.kinds if kind.key == "object_invented") for system in systems]
    shares = [
        f"{system.name} {100 * row.rate:.0f} % of {row.of} objects"
        for system, row in zip(systems, rows, strict=True)
        if row.rate is not None
    ]
    if shares:
        yield "Not in references", "; ".join(shares)


def _metrics(
    report: Report, tests: Mapping[str, PairTest], one: SystemView, two: SystemView
) -> Iterator[tuple[str, str]]:
    lower = {row.name for row in one.scores if row.lower_is_better}
    agree: list[str] = []
    against: list[str] = []
    unsure: list[str] = []
    for name in report.metrics:
        test = tests.get(name)
        if test is None or test.low is None or test.high is None:
            continue
        low, high = (-test.high, -test.low) if name in lower else (test.low, test.high)
        (agree if low > 0 else against if high < 0 else unsure).append(name)
    if agree or against or unsure:
        parts = [(one.name, agree), (two.name, against), ("undecided", unsure)]
        yield "Other metrics", "; ".join(f"{who}: {', '.join(names)}" for who, names in parts if names)


def _telling(report: Report, wrong: int, better: int | None) -> Iterator[Telling]:
    """Yield the errors that tell most, of different kinds if there are such."""
    ranked = sorted(_candidates(report, wrong, better), reverse=True)
    groups = _groups(report.systems[wrong])
    items: set[int] = set()
    kinds: set[str] = set()
    for different in (True, False):
        for _, minus, kind in ranked:
            item = -minus
            if len(items) < SHOWN and item not in items and (not different or kind not in kinds):
                items.add(item)
                kinds.add(kind)
                yield _told(report, item, kind, groups[kind, item], (wrong, better))


def _candidates(report: Report, wrong: int, better: int | None) -> Iterator[tuple[float, int, str]]:
    """Yield the weight of each error that the better system avoids, minus the image's position, and its kind."""
    for item, image in enumerate(report.images):
        mine = image.candidates[wrong]
        rival = None if better is None else image.candidates[better]
        gap = (1.0 if rival is None else rival.scores[0] or 0.0) - (mine.scores[0] or 0.0)
        avoided = {view.kind for view in rival.candidate} if rival else set()
        for view in mine.candidate:
            if gap > 0 and view.kind is not None and view.kind in _TELLS and view.kind not in avoided:
                known = 0
                if view.counterpart is not None:
                    theirs = mine.reference[view.counterpart]
                    if len(theirs.strings) > 1 and _says(mine, theirs):
                        continue
                    known = len({mention.caption for mention in theirs.mentions})
                brief = -len(mine.caption) / _LONG
                yield _TELLS[view.kind][0] + 3 * gap + known / len(image.references) + brief, -item, view.kind


def _says(view: CandidateView, theirs: TupleView) -> bool:
    """Say whether a caption has the word that the references have, too: it calls a bull black and white."""
    return any(name in view.caption.lower() for name in theirs.strings[1].split("/"))


_LONG: Final = 400.0
"""A caption of so many characters loses 1, since an example is to be read at a glance."""


def _groups(system: SystemView) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return the words of a system's errors by kind and image, those of the heaviest group."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for kind in system.kinds:
        for group in kind.groups if kind.key in _TELLS else ():
            for item in group.items:
                found.setdefault((kind.key, item), group.words)
    return found


def _told(report: Report, item: int, kind: str, words: tuple[str, ...], places: tuple[int, int | None]) -> Telling:
    image = report.images[item]
    shown = [place for place in places if place is not None]
    return Telling(
        item,
        image.id,
        image.source,
        shown[0],
        kind,
        _TELLS[kind][1].format(*words),
        tuple((place, tuple(marked(image.candidates[place]))) for place in shown),
        tuple(image.candidates[place].scores[0] for place in shown),
    )


def marked(view: CandidateView) -> Iterator[Piece]:
    """Yield a candidate's caption in pieces, each with the state of its words."""
    states: list[str | None] = [None] * len(view.caption)
    for own in sorted(view.candidate, key=_rank):
        for mention in own.mentions:
            for start, end in mention.spans:
                states[start:end] = [state(own)] * (end - start)
    start = 0
    for place in range(1, len(states) + 1):
        if place == len(states) or states[place] != states[start]:
            yield view.caption[start:place], states[start]
            start = place


def state(view: TupleView) -> str:
    """Return the state of a candidate's tuple."""
    return "matched" if view.partners else "near" if view.near else "invented"


def _rank(view: TupleView) -> int:
    """Order tuples so that a right object stays marked as right where something wrong is said of it."""
    return (3 - len(view.strings)) + (3 if view.partners else 0)
