"""What a report says first: who is better, by how much and how surely, where, and three examples of errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.errors import counted
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.length import LIKE, LengthControl, are_descriptions, control_of
from spicegraph_scorer.core.significance import SIGNIFICANT
from spicegraph_service.output.pages import number, signed
from spicegraph_service.output.standing import best_points, label
from spicegraph_service.report.images import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.significance import Comparison
    from spicegraph_service.report.data import CandidateView, Report, ScoreRow, SystemView, TupleView

SHOWN: Final = 3  # examples of errors in a report

_SENTENCES: Final[Mapping[str, tuple[float, str]]] = {
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
}  # By kind of error: its weight in the choice of examples, and its sentence with the words of the kind's columns.

_ROUNDING: Final = 1e-12
_LONG_CAPTION: Final = 400.0  # a caption of so many characters loses 1, since an example is to be read at a glance

MarkedPart = tuple[str, "str | None"]  # a part of a caption, and the state of its words, if they are in a tuple


@dataclass(frozen=True, slots=True)
class TellingError:
    """Example of a system's error, in the image at position ``item``."""

    item: int
    image_id: ItemId
    source: str | None
    system: int
    kind: str
    sentence: str
    captions: tuple[tuple[int, tuple[MarkedPart, ...]], ...]  # by system, the wrong one first
    scores: tuple[float | None, ...]  # SPICE of each of them


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict: a headline, how sure it is, points with their names, and examples of errors."""

    headline: str
    detail: str
    points: tuple[tuple[str, str], ...]
    telling: tuple[TellingError, ...] = ()
    best: str | None = None  # the system that is, and the next one; ``None``: there are no two
    other: str | None = None
    test: Comparison | None = None  # the best minus the next, by the score that the headline names


def is_sure(test: Comparison) -> bool:
    """Say whether a difference is more than chance: by its corrected p, or without one by its interval."""
    if test.p_corrected is not None:
        return test.is_sure
    return test.low is not None and test.high is not None and (test.low > 0 or test.high < 0)


def are_level(test: Comparison) -> bool:
    """Say whether two systems have the same score on every item: resamples never differ."""
    return all(end is not None and abs(end) < _ROUNDING for end in (test.difference, test.low, test.high))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The best system of a report and the next one, with all tests of the best minus the next, by score."""

    best: SystemView
    other: SystemView
    order: tuple[int, int]  # their numbers
    tests: Mapping[str, Comparison]

    @classmethod
    def of(cls, report: Report) -> _Pair:
        """Find the two by their ranks."""
        rows = [_headline_row(report, system) for system in report.systems]
        first, second, *_ = sorted(range(len(rows)), key=lambda number: rows[number].rank or len(rows) + 1)
        best, other = report.systems[first], report.systems[second]
        forward = report.tests.get((other.name, best.name), ())
        backward = report.tests.get((best.name, other.name), ())
        tests = {test.name: test for test in (*forward, *map(reversed_test, backward))}
        return cls(best, other, (first, second), tests)

    @property
    def names(self) -> tuple[str, str]:
        """The names of both."""
        return self.best.name, self.other.name

    @property
    def lower(self) -> set[str]:
        """The scores of which less is better."""
        return {row.name for row in self.best.scores if row.lower_is_better}


def verdict(report: Report) -> Verdict:
    """Return a report's verdict; differences count as significant by their Holm-corrected p-value."""
    if len(report.systems) == 1:
        return _single(report)
    pair = _Pair.of(report)
    test = pair.tests[report.headline]
    headline, detail = pair_headline(
        report.shown(report.headline),
        pair.names,
        (_headline_row(report, pair.best).value, _headline_row(report, pair.other).value),
        test,
        systems=len(report.systems),
        lower=report.headline in pair.lower,
    )
    length: tuple[tuple[str, str], ...] = ()
    is_long = has_descriptions(report)
    if is_long:
        control = length_control(report, *pair.order)
        said = _said_and_covered((pair.best, pair.other))
        length = (*length_points(control, pair.names, _length_score(report)), *said)
        if control.is_only_longer:
            headline = headline.replace(":", f", but has {control.words[0] / control.words[1]:.1f} times the words:", 1)
    points = (*length, *_points(report, pair))
    telling = tuple(_telling(report, pair.order[1], pair.order[0], is_long=is_long))
    if not telling and not are_level(test):
        # A description that is another's beginning has no error that the other avoids.
        telling = tuple(_telling(report, pair.order[0], None, is_long=is_long))
    return Verdict(headline, detail, points, telling, *pair.names, test)


def _points(report: Report, pair: _Pair) -> Iterator[tuple[str, str]]:
    """Yield the points of a verdict on several systems, but for those on length."""
    tests = pair.tests
    if len(report.systems) > 2:
        yield from best_points(report.standings, [system.name for system in report.systems])
    else:
        categories = {name: tests[f"SPICE_{name}"] for name in report.categories if name != ALL}
        yield from category_points(categories, pair.best.name)
    yield from _digit_points(report.systems)
    yield from _invented_objects((pair.other, pair.best))
    scores = [tests[name] for name in ("SPICE", *report.metrics) if name in tests and name != report.headline]
    yield from other_scores(scores, pair.lower, pair.names)
    yield from _draw_points(report.signature, len(tests))


def _draw_points(signature: Mapping[str, Json], tests: int) -> Iterator[tuple[str, str]]:
    """Yield that there are too few draws for any of so many differences to be sure, where that is so."""
    resampling = signature.get("resampling")
    draws = resampling["draws"] if isinstance(resampling, dict) else 0
    if draws and tests / (draws + 1) >= SIGNIFICANT:
        yield "Draws", f"{draws} are too few to tell any of {tests} differences from chance: --draws asks for more"


def _digit_points(systems: Sequence[SystemView]) -> Iterator[tuple[str, str]]:
    """Yield the effect of counts in digits on SPICE's Cardinality, where it changes."""
    for system in systems:
        row = next((row for row in system.categories if row.name == "Cardinality"), None)
        if system.digits is not None and row is not None and number(system.digits.f) != number(row.f):
            text = (
                f"of {system.name}, {counted(system.digits.captions, 'image')} with counts in digits, which SPICE "
                f"matches and does not count: its Count is {number(row.f)}, and {number(system.digits.f)} with “2” "
                "read as “two”, as among the errors below"
            )
            yield "Digits", text


def _headline_row(report: Report, system: SystemView) -> ScoreRow:
    return next(row for row in system.scores if row.name == report.headline)


def pair_headline(
    score: str,
    names: tuple[str, str],
    values: tuple[float | None, float | None],
    test: Comparison,
    *,
    systems: int,
    of: str = "images",
    lower: bool = False,
) -> tuple[str, str]:
    """Return who is the best of ``systems``, and how sure that is by a test of the best minus the next."""
    best, other = names
    if are_level(test):
        return f"{best} and {other} score the same: {score} {number(values[0])}", f"It is the same for all {of}."
    sure = is_sure(test) and _gain(test, lower=lower) > 0
    better = "is better than" if systems == 2 else f"is the best of {systems}, before"
    winner = f"{best} {better} {other}" if sure else f"No sure winner, {best} or {other}"
    ends = f"95 % interval {signed(test.low)} to {signed(test.high)}{_p_values(test)}"
    unsure = "the interval includes 0" if test.p_corrected is None else "it may be chance"
    conclusion = f"more than chance among these {of}." if sure else f"{unsure}, so more {of} are needed."
    headline = f"{winner}: {score} {number(values[0])} against {number(values[1])}"
    return headline, f"The difference is {signed(test.difference)} ({ends}): {conclusion}"


def _p_values(test: Comparison) -> str:
    p = "" if test.p_bootstrap is None else f", p {number(test.p_bootstrap)}"
    return p if test.p_corrected is None else f"{p}, corrected {number(test.p_corrected)}"


def _gain(test: Comparison, *, lower: bool) -> float:
    """Return by how much the first system is better; ``lower``: less of the score is better."""
    return (test.difference or 0.0) * (-1 if lower else 1)


def _single(report: Report) -> Verdict:
    (system,) = report.systems
    score = _headline_row(report, system)
    points = strongest_and_weakest({row.name: row.f for row in system.categories if row.name != ALL})
    is_long = has_descriptions(report)
    if is_long:
        points += [length_of_one(report), *_said_and_covered((system,))]
    if report.human:
        person = number(_headline_row(report, report.human).value)
        points.append(("A person", f"{person}, with one reference less to agree with"))
    points += [*_digit_points((system,)), *_invented_objects((system,))]
    return Verdict(
        f"{system.name}: {report.shown(score.name)} {number(score.value)}",
        f"95 % interval {number(score.low)} to {number(score.high)}, over {report.items} images.",
        tuple(points),
        tuple(_telling(report, 0, None, is_long=is_long)),
    )


def _said_and_covered(systems: Sequence[SystemView]) -> Iterator[tuple[str, str]]:
    """Yield the two sides of SPICE, which descriptions trade against each other."""
    rows = [(system.name, system.categories[0]) for system in systems]
    yield "Right of what is said", "; ".join(f"{name} {number(row.pr)}" for name, row in rows)
    # Two tuples of a caption may match one of the references (couch, sofa), so that SPICE's recall can exceed 1.
    recalls = [(name, row.re if row.re is None else min(row.re, 1.0)) for name, row in rows]
    yield "Said of what is there", "; ".join(f"{name} {number(recall)}" for name, recall in recalls)


def strongest_and_weakest(categories: Mapping[str, float | None]) -> list[tuple[str, str]]:
    """Return the categories with the two highest F1 above 0, and the two lowest others, as points of a verdict."""
    rows = sorted(((f, name) for name, f in categories.items() if f is not None), reverse=True)
    strongest = [row for row in rows[:2] if row[0] > 0]
    points = {"Strongest": strongest, "Weakest": rows[len(strongest) :][:-3:-1]}
    return [
        (title, ", ".join(f"{label(name)} ({number(f)})" for f, name in named))
        for title, named in points.items()
        if named
    ]


def reversed_test(test: Comparison) -> Comparison:
    """Return a test as the difference of its first system from its second."""
    difference, low, high = (None if end is None else -end for end in (test.difference, test.high, test.low))
    return replace(test, first=test.second, second=test.first, difference=difference, low=low, high=high)


def category_points(tests: Mapping[str, Comparison], name: str) -> Iterator[tuple[str, str]]:
    """Yield in which categories a system is stronger, weaker, and neither for sure; ``tests`` are it minus another."""
    sure = {name: test.difference for name, test in tests.items() if test.difference and is_sure(test)}
    largest = sorted(sure, key=lambda name: -abs(sure[name]))
    stronger, weaker = ([name for name in largest if sign * sure[name] > 0] for sign in (1, -1))
    unsure = [label(name) for name in tests if name not in sure]
    yield "Stronger in", _listed(tests, stronger) or f"no category for sure, for {name}"
    undecided = f"; undecided: {', '.join(unsure)}" if unsure else ""
    yield "Weaker in", (_listed(tests, weaker) or "no category for sure") + undecided


def _listed(tests: Mapping[str, Comparison], names: Sequence[str]) -> str:
    return ", ".join(f"{label(name)} ({signed(tests[name].difference)})" for name in names)


def _invented_objects(systems: Sequence[SystemView]) -> Iterator[tuple[str, str]]:
    rows = [next(kind for kind in system.kinds if kind.name == "object_invented") for system in systems]
    shares = [
        f"{system.name} {100 * row.rate:.0f} % of {row.of} objects"
        for system, row in zip(systems, rows, strict=True)
        if row.rate is not None
    ]
    if shares:
        yield "Not in references", "; ".join(shares)


def other_scores(
    tests: Iterable[Comparison], lower: Collection[str], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield which other scores agree that the first system is better, which disagree, and which are undecided."""
    agree: list[str] = []
    against: list[str] = []
    unsure: list[str] = []
    for test in tests:
        if test.low is None or test.high is None:
            continue
        side = agree if _gain(test, lower=test.name in lower) > 0 else against
        (side if is_sure(test) else unsure).append(test.name)
    sides = zip((*names, "undecided"), (agree, against, unsure), strict=True)
    parts = [f"{who}: {', '.join(scores)}" for who, scores in sides if scores]
    if parts:
        yield "Other metrics", "; ".join(parts)


def _telling(report: Report, wrong: int, better: int | None, *, is_long: bool) -> Iterator[TellingError]:
    """Yield examples of errors, of different kinds if there are such; of a description, the sentence with it."""
    weighted = sorted(_weighted_errors(report, wrong, better, is_long=is_long), reverse=True)
    words = _heaviest_words(report.systems[wrong])
    shown = [system for system in (wrong, better) if system is not None]
    for item, kind in _chosen([(-minus, kind) for _, minus, kind in weighted]):
        image = report.images[item]
        views = [image.candidates[system] for system in shown]
        ends = [(0, len(view.caption)) for view in views]
        if is_long:
            ends = [_sentence_of(views[0], kind, words[kind, item]), *map(_sentence_of, views[1:])]
        yield TellingError(
            item,
            image.id,
            image.source,
            wrong,
            kind,
            _SENTENCES[kind][1].format(*words[kind, item]),
            tuple((n, tuple(marked(view, *end))) for n, view, end in zip(shown, views, ends, strict=True)),
            tuple(view.scores[0] for view in views),
        )


def _heaviest_words(system: SystemView) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return, by the kind and the image of an error that can be an example, the words of the heaviest group there."""
    words: dict[tuple[str, int], tuple[str, ...]] = {}
    for errors in system.kinds:
        for group in errors.groups if errors.name in _SENTENCES else ():
            for item in group.items:
                words.setdefault((errors.name, item), group.words)
    return words


def _chosen(errors: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the first errors (image and kind) of different images, those of different kinds before others."""
    items: set[int] = set()
    kinds: set[str] = set()
    for different in (True, False):
        for item, kind in errors:
            if len(items) < SHOWN and item not in items and not (different and kind in kinds):
                items.add(item)
                kinds.add(kind)
                yield item, kind


def _sentence_of(view: CandidateView, kind: str | None = None, words: tuple[str, ...] = ()) -> tuple[int, int]:
    """Return the sentence with an error of a kind, about these words; without a kind, that with most that is right."""
    said = [said for said in view.candidate if (said.kind == kind if kind else bool(said.partners))]
    if kind:
        shared = [len(set("/".join(each.strings).split("/")) & set(words)) for each in said]
        said = [said[shared.index(max(shared))]]
    mentions = chain.from_iterable(each.mentions for each in said)
    starts = [start for mention in mentions for start, _ in mention.spans]
    spans = sentence_spans(view.caption) or ((0, len(view.caption)),)
    return max(spans, key=lambda span: sum(span[0] <= start < span[1] for start in starts))


def _known(view: TupleView, candidate: CandidateView) -> int | None:
    """Return how many captions have the counterpart of an error; ``None``: the candidate has its word as well."""
    if view.counterpart is None:
        return 0
    reference = candidate.reference[view.counterpart]
    # A caption that calls a bull black and white also has the word that the references have.
    words = reference.strings[1].split("/") if len(reference.strings) > 1 else ()
    if any(word in candidate.caption.lower() for word in words):
        return None
    return len({mention.caption for mention in reference.mentions})


def _says_same(caption: str, other: str, places: Sequence[tuple[int, int]]) -> bool:
    """Return whether another caption has a sentence of a caption in which something stands at one of the places."""
    return any(
        caption[first:last] in other
        for first, last in sentence_spans(caption)
        for start, _ in places
        if first <= start < last
    )


def _weighted_errors(
    report: Report, wrong: int, better: int | None, *, is_long: bool
) -> Iterator[tuple[float, int, str]]:
    """Yield the weight of each error that the better system avoids, minus the image's position, and its kind."""
    for item, image in enumerate(report.images):
        candidate = image.candidates[wrong]
        rival = None if better is None else image.candidates[better]
        gap = (1.0 if rival is None else rival.scores[0] or 0.0) - (candidate.scores[0] or 0.0)
        if gap <= 0:
            continue
        brief = -len(candidate.caption) / _LONG_CAPTION
        for view in candidate.candidate:
            if not view.kind or view.kind not in _SENTENCES or _is_shared(view, candidate, rival, is_long=is_long):
                continue
            known = _known(view, candidate)
            if known is not None:
                yield _SENTENCES[view.kind][0] + 3 * gap + known / len(image.references) + brief, -item, view.kind


def _is_shared(view: TupleView, candidate: CandidateView, rival: CandidateView | None, *, is_long: bool) -> bool:
    """Say whether a rival makes an error of the kind, too; in a description, with the same words or sentence."""
    if rival is None:
        return False
    if not is_long:
        return any(other.kind == view.kind for other in rival.candidate)
    if any((other.kind, other.strings) == (view.kind, view.strings) for other in rival.candidate):
        return True
    return bool(view.mentions) and _says_same(candidate.caption, rival.caption, view.mentions[0].spans)


def marked(view: CandidateView, first: int = 0, end: int | None = None) -> Iterator[MarkedPart]:
    """Yield a candidate's caption, or its letters from ``first`` to ``end``, in parts with the state of their words."""
    states: list[str | None] = [None] * len(view.caption)
    # A right object stays marked as right where something wrong is said of it, so that it comes last.
    for said in sorted(view.candidate, key=lambda said: (3 - len(said.strings)) + (3 if said.partners else 0)):
        for mention in said.mentions:
            for start, behind in mention.spans:
                states[start:behind] = [state(said)] * (behind - start)
    start, last = first, len(states) if end is None else end
    for position in range(first + 1, last + 1):
        if position == last or states[position] != states[start]:
            yield view.caption[start:position], states[start]
            start = position


def state(view: TupleView) -> str:
    """Return the state of a candidate's tuple."""
    return "matched" if view.partners else "near" if view.near else "invented"


def has_descriptions(report: Report) -> bool:
    """Say whether the captions of a system have more than 30 words in the mean."""
    return not report.of_sets and are_descriptions(
        [len(view.caption.split()) for view in image.candidates] for image in report.images
    )


def length_control(report: Report, best: int, other: int) -> LengthControl:
    """Compare two systems of a report, by their numbers, the better first, with length held constant."""
    pairs = [(image.candidates[best], image.candidates[other]) for image in report.images]
    return control_of(
        [(len(better.caption.split()), len(rest.caption.split())) for better, rest in pairs],
        [(_value(report, better), _value(report, rest)) for better, rest in pairs],
    )


def _length_score(report: Report) -> str:
    """Return the score that is held against length: the verdict's, or SPICE where of that less is better."""
    return "SPICE" if _headline_row(report, report.systems[0]).lower_is_better else report.headline


def _value(report: Report, view: CandidateView) -> float:
    """Return a caption's score for the length comparison; an undefined score counts as 0."""
    values = {"SPICE": view.scores[0]} | dict(zip(report.metrics, view.metrics, strict=False))
    return values[_length_score(report)] or 0.0


def length_points(control: LengthControl, names: tuple[str, str], score: str) -> Iterator[tuple[str, str]]:
    """Yield the verdict's points on caption length for two systems, the better first."""
    longer, shorter = sorted(zip(control.words, names, strict=True), reverse=True)
    times = f", {longer[0] / shorter[0]:.1f} times as many" if longer[0] > LIKE * shorter[0] else ""
    text = f"{longer[1]} has {longer[0]:.0f} words a caption{times}; {shorter[1]} has {shorter[0]:.0f}"
    if control.longer_wins is not None:
        share = f"{100 * control.longer_wins:.0f} %"
        text += f". Length alone: the longer caption has the higher {score} on {share} of the images"
    yield "Length", text
    conclusion = f": {names[0]} may only be longer" if control.is_only_longer else ""
    if control.difference is None:
        reason = "no image has captions of like length, so that nothing says which is better"
        yield "At equal length", reason + conclusion
    else:
        ends = f"{signed(control.low)} to {signed(control.high)}"
        yield "At equal length", f"the difference is {signed(control.difference)} ({ends}){conclusion}"


def length_of_one(report: Report) -> tuple[str, str]:
    """Return one system's mean caption length and its rank correlation with the score."""
    views = [image.candidates[0] for image in report.images]
    words = np.array([len(view.caption.split()) for view in views], dtype=float)
    scores = np.array([_value(report, view) for view in views])
    text = f"{words.mean():.0f} words a caption"
    if len(set(words)) > 1 and len(set(scores)) > 1:
        ranks = [_ranks(values) for values in (words, scores)]
        rho = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
        text += f"; rank correlation of words and {_length_score(report)} {number(rho)}"
    return "Length", text


def _ranks(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
