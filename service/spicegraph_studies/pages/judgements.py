"""Agreement on rated captions and on pairs of captions, for every output."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Section, Study, headings
from spicegraph_studies.agreement.coefficients import COEFFICIENTS
from spicegraph_studies.agreement.pairwise import ALL, MEAN
from spicegraph_studies.agreement.protocols import Own, PairProtocol, Ratings, ReferenceChoice, Ties
from spicegraph_studies.pages.agreement import (
    best_metric,
    comparison_grid,
    comparison_rows,
    forest_chart,
    lines_chart,
    rating_chart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_service.kit import Chart
    from spicegraph_studies.agreement.captions import CaptionAgreement
    from spicegraph_studies.agreement.hallucinations import Bounded, Detection, HallucinationAgreement, Marked
    from spicegraph_studies.agreement.judgements import CaptionPair, Judged, Judgement
    from spicegraph_studies.agreement.pairwise import Accuracy, PairAgreement
    from spicegraph_studies.pages.agreement import Estimate

_NO_JUDGED_REFERENCE = "references that equal any judged caption of the image are removed"

RATINGS_SAY: Mapping[Ratings, str] = {
    Ratings.EACH: "every single rating is an observation",
    Ratings.MEAN: "a caption with the mean of its ratings is an observation",
}
CAPTIONS_OWN_SAY: Mapping[Own, str] = {
    Own.KEEP: "captions that are a reference of their image are kept, and so is the reference",
    Own.DROP_CAPTION: "captions that are a reference of their image are left out",
    Own.DROP_REFERENCE: "a reference that equals the caption is removed",
    Own.DROP_FROM_IMAGE: _NO_JUDGED_REFERENCE,
}
_PEOPLE = "people: rating against rating"
_TIES_NOTE = (
    "Ties: of 100 pairs of observations, how many the metric, the people, or both score equally. tau-b corrects for "
    "ties, tau-c does not."
)
_INTERVAL_NOTE = (
    "Intervals: 95 % percentile bootstrap over images. p: no association, from scipy, which takes observations as "
    "independent."
)


def caption_study(agreement: CaptionAgreement, judged: Judged[Judgement]) -> Study:
    """Return the study of a caption-level agreement."""
    label = COEFFICIENTS[agreement.protocol.coefficient].label
    return Study(
        f"Agreement with people: {judged.title}",
        tuple(_caption_facts(agreement, judged, label)),
        (
            Section(
                "agreement",
                "Agreement",
                (agreement.protocol.about,),
                (_caption_grid(agreement),),
                _CaptionCharts(agreement).coefficients,
            ),
            Section(
                "comparisons",
                "Is the difference more than chance?",
                (),
                (comparison_grid(agreement.comparisons, label),) if agreement.comparisons else (),
            ),
            Section("scatter", "Metric and ratings", (), (), _CaptionCharts(agreement).scatter),
        ),
        {name: table(agreement) for name, table in CAPTION_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unrated": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        best_metric(label, _chosen(agreement), agreement.comparisons),
    )


def _chosen(agreement: CaptionAgreement) -> dict[str, Estimate]:
    """Return each metric's agreement by the protocol's coefficient."""
    return {row.metric: row.coefficients[agreement.protocol.coefficient] for row in agreement.metrics}


def _caption_facts(agreement: CaptionAgreement, judged: Judged[Judgement], label: str) -> Iterator[str]:
    protocol = agreement.protocol
    yield (
        f"Protocol {protocol.name}: {label}; {RATINGS_SAY[protocol.ratings]}; {CAPTIONS_OWN_SAY[protocol.own]}."
        + (f" After {protocol.source}." if protocol.source else "")
    )
    yield (
        f"{judged.source} ({judged.format}): {counted(agreement.captions, 'caption')} of "
        f"{counted(agreement.images, 'image')}, "
        f"{counted(agreement.observations, 'observation')}."
    )
    undefined = {f"captions where {row.metric} is undefined": row.undefined for row in agreement.metrics}
    yield _removed({**agreement.removed, "captions without a rating": judged.unrated, **undefined})


def _caption_grid(agreement: CaptionAgreement) -> Grid:
    key = agreement.protocol.coefficient
    label = COEFFICIENTS[key].label
    rows = [
        (
            row.metric,
            *(interval.value for interval in row.coefficients.values()),
            (row.coefficients[key].low, row.coefficients[key].high),
            row.coefficients[key].p,
            *(
                count / row.ties.pairs if row.ties.pairs else None
                for count in (row.ties.metric, row.ties.human, row.ties.both)
            ),
        )
        for row in agreement.metrics
    ]
    notes = [_INTERVAL_NOTE, _TIES_NOTE]
    between = agreement.between_people
    if any(interval.value is not None for interval in between.values()):
        interval = (between[key].low, between[key].high)
        values = [each.value for each in between.values()]
        rows.append((_PEOPLE, *values, interval, None, None, None, None))
        notes.append(
            "People: one rating of a caption against another rating of it, over all ordered pairs of them. Both sides "
            "have ties, which tau-c does not correct for: compare this row with the metrics by tau-b."
        )
    columns = (
        Column("Metric", "text"),
        *(Column(coefficient.label, is_ranked=True) for coefficient in COEFFICIENTS.values()),
        Column(f"95 % of {label}", "span"),
        Column("p", "p"),
        *(Column(name, "percent") for name in ("ties: metric", "people", "both")),
    )
    return Grid(f"Agreement with ratings (the protocol's coefficient: {label})", columns, rows, notes)


def _caption_rows(agreement: CaptionAgreement) -> Grid:
    columns = (
        *headings("metric|text", "coefficient|text", "value", "p|p", "interval|span"),
        *(Column(name, "count") for name in ("pairs", "tied_metric", "tied_human", "tied_both", "undefined")),
    )
    rows = [
        (
            row.metric,
            key,
            interval.value,
            interval.p,
            (interval.low, interval.high),
            row.ties.pairs,
            row.ties.metric,
            row.ties.human,
            row.ties.both,
            row.undefined,
        )
        for row in agreement.metrics
        for key, interval in row.coefficients.items()
    ]
    people = [
        (_PEOPLE, key, interval.value, None, (interval.low, interval.high), *[None] * 5)
        for key, interval in agreement.between_people.items()
        if interval.value is not None
    ]
    return Grid("agreement", columns, [*rows, *people])


class _CaptionCharts:
    """The charts of a page, drawn when it is made."""

    def __init__(self, agreement: CaptionAgreement) -> None:
        self._agreement = agreement

    def coefficients(self) -> tuple[Chart, ...]:
        key = self._agreement.protocol.coefficient
        label = COEFFICIENTS[key].label
        rows = [
            (row.metric, row.coefficients[key].value, (row.coefficients[key].low, row.coefficients[key].high))
            for row in self._agreement.metrics
        ]
        people = self._agreement.between_people[key]
        if people.value is not None:
            rows.append((_PEOPLE, people.value, (people.low, people.high)))
        return (forest_chart(f"{label} with 95 % intervals", rows, axis=label),)

    def scatter(self) -> tuple[Chart, ...]:
        points = self._agreement.points
        return tuple(
            rating_chart(row.metric, points[row.metric], points[""], axes_names=(row.metric, "mean rating"))
            for row in self._agreement.metrics
        )


def _comparisons(agreement: CaptionAgreement | PairAgreement) -> Grid:
    return comparison_rows(agreement.comparisons)


def _removed(reasons: Mapping[str, int]) -> str:
    """Return the fact that says what was left out, and how many of each."""
    return "Removed: " + ("; ".join(f"{reason} ({n:,})" for reason, n in reasons.items() if n) or "nothing") + "."


CAPTION_TABLES: Mapping[str, Callable[[CaptionAgreement], Grid]] = {
    "agreement": _caption_rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""


TIES_SAY: Mapping[Ties, str] = {
    Ties.HALF: "a tie counts half",
    Ties.RIGHT: "a tie counts as right",
    Ties.WRONG: "a tie counts as wrong",
}
PAIRS_OWN_SAY: Mapping[Own, str] = {
    Own.KEEP: "references equal to a caption are kept",
    Own.DROP_CAPTION: "pairs with a caption among the references are left out",
    Own.DROP_REFERENCE: "a caption is not a reference of its own",
    Own.DROP_FROM_IMAGE: _NO_JUDGED_REFERENCE,
}
COIN_SAYS = "; pairs on which people are tied count half"
_PAIR_NOTES = (
    "Intervals: 95 % percentile bootstrap over images. Ties: of 100 pairs, how many the metric scores equally.",
    "mean is the mean of the categories; all is over all pairs.",
)


def pair_study(agreement: PairAgreement, judged: Judged[CaptionPair]) -> Study:
    """Return the study of a pairwise agreement."""
    charts = _PairCharts(agreement)
    sections = [
        Section("accuracy", "Accuracy", (agreement.protocol.about,), (_pair_grid(agreement),), charts.accuracies),
    ]
    if agreement.curve:
        sections.append(Section("references", "Number of references", (), (_curve_grid(agreement),), charts.curve))
    if agreement.comparisons:
        grid = comparison_grid(agreement.comparisons, "accuracy over all pairs")
        sections.append(Section("comparisons", "Is the difference more than chance?", (), (grid,)))
    return Study(
        f"Agreement with people on pairs: {judged.title}",
        tuple(_pair_facts(agreement, judged)),
        tuple(sections),
        {name: table(agreement) for name, table in PAIR_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unconfirmed": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        best_metric(
            "accuracy",
            {metric: row[ALL] for metric, row in _by_metric(agreement.accuracies).items()},
            agreement.comparisons,
        ),
    )


def references_say(protocol: PairProtocol) -> str:
    """Say which references are used."""
    if protocol.references is None:
        return "all references"
    if protocol.choice is ReferenceChoice.FIRST:
        return f"the first {counted(protocol.references, 'reference')}"
    return f"{counted(protocol.references, 'reference')} drawn at random, mean of {counted(protocol.draws, 'draw')}"


def _pair_facts(agreement: PairAgreement, judged: Judged[CaptionPair]) -> Iterator[str]:
    protocol = agreement.protocol
    yield (
        f"Protocol {protocol.name}: {TIES_SAY[protocol.ties]}; {references_say(protocol)}; "
        f"{PAIRS_OWN_SAY[protocol.own]}{COIN_SAYS if protocol.coin else ''}."
        + (f" After {protocol.source}." if protocol.source else "")
    )
    pairs, images = counted(agreement.pairs, "pair"), counted(agreement.images, "image")
    yield f"{judged.source} ({judged.format}): {pairs} of {images}."
    undefined = {f"pairs where {metric} is undefined": count for metric, count in agreement.undefined.items()}
    yield _removed({**agreement.removed, "pairs that annotators did not confirm": judged.unrated, **undefined})
    if agreement.fewer_references:
        yield f"{counted(agreement.fewer_references, 'pair')} with fewer references than that: all of theirs are used."


def _pair_columns(agreement: PairAgreement) -> tuple[str, ...]:
    mean = (MEAN,) if len(agreement.categories) > 1 else ()
    return (*agreement.categories, *mean, ALL)


def _by_metric(accuracies: Sequence[Accuracy]) -> dict[str, dict[str, Accuracy]]:
    table: dict[str, dict[str, Accuracy]] = {}
    for row in accuracies:
        table.setdefault(row.metric, {})[row.category] = row
    return table


def _pair_grid(agreement: PairAgreement) -> Grid:
    names = _pair_columns(agreement)
    rows = [
        (
            metric,
            *(row[name].value for name in names),
            (row[ALL].low, row[ALL].high),
            row[ALL].tied / row[ALL].pairs if row[ALL].pairs else None,
        )
        for metric, row in _by_metric(agreement.accuracies).items()
    ]
    columns = (
        Column("Metric", "text"),
        *(Column(name) for name in names),
        *headings("95 % of all|span", "ties|percent"),
    )
    return Grid("Accuracy: how often the preferred caption scores higher", columns, rows, _PAIR_NOTES)


def _curve_grid(agreement: PairAgreement) -> Grid:
    metrics = list(_by_metric(agreement.accuracies))
    rows = [
        (metric, *(_by_metric(point.accuracies)[metric][ALL].value for point in agreement.curve)) for metric in metrics
    ]
    columns = (Column("Metric", "text"), *(Column(str(point.references)) for point in agreement.curve))
    return Grid("Accuracy over all pairs by number of references", columns, rows, tuple(_curve_notes(agreement)))


def _curve_notes(agreement: PairAgreement) -> Iterator[str]:
    for point in agreement.curve:
        if point.fewer_references:
            some = any(row.pairs for row in point.accuracies)
            what = "that column is without them" if some else "that column is undefined"
            fewer = counted(point.fewer_references, "pair")
            yield f"{fewer} with fewer than {counted(point.references, 'reference')}: {what}."


def _pair_rows(agreement: PairAgreement) -> Grid:
    points = [(agreement.protocol.references, agreement.accuracies)]
    points += [(point.references, point.accuracies) for point in agreement.curve]
    columns = (
        *headings("metric|text", "category|text", "references|count", "pairs|count"),
        *(Column(name, "mean count") for name in ("right", "tied", "wrong")),
        *headings("accuracy", "interval|span"),
    )
    rows = [
        (
            row.metric,
            row.category,
            "all" if references is None else references,
            row.pairs,
            row.right,
            row.tied,
            row.wrong,
            row.value,
            (row.low, row.high),
        )
        for references, accuracies in points
        for row in accuracies
    ]
    return Grid("accuracy", columns, rows)


class _PairCharts:
    """The charts of a page, drawn when it is made."""

    def __init__(self, agreement: PairAgreement) -> None:
        self._agreement = agreement

    def accuracies(self) -> tuple[Chart, ...]:
        table = _by_metric(self._agreement.accuracies)
        return tuple(
            forest_chart(
                f"{'all pairs' if name == ALL else 'mean of the categories' if name == MEAN else name}",
                [(metric, row[name].value, (row[name].low, row[name].high)) for metric, row in table.items()],
                axis="accuracy",
            )
            for name in _pair_columns(self._agreement)
        )

    def curve(self) -> tuple[Chart, ...]:
        places = [point.references for point in self._agreement.curve]
        return tuple(
            lines_chart(
                f"Accuracy by number of references: {'all pairs' if name == ALL else name}",
                places,
                {
                    metric: [
                        (row.value, (row.low, row.high))
                        for point in self._agreement.curve
                        for row in (_by_metric(point.accuracies)[metric][name],)
                    ]
                    for metric in _by_metric(self._agreement.accuracies)
                },
                axes_names=("references", "accuracy"),
            )
            for name in (ALL, *self._agreement.categories)
        )


PAIR_TABLES: Mapping[str, Callable[[PairAgreement], Grid]] = {
    "accuracy": _pair_rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""


_FOUND = {"average_precision": "average precision", "auc": "AUC", "localisation": "localisation"}


def hallucination_study(agreement: HallucinationAgreement, judged: Judged[Marked]) -> Study:
    """Return the study of what metrics find of the words that people marked."""
    protocol, share = agreement.protocol, agreement.faulty / agreement.captions
    facts = (
        f"Protocol {protocol.name}, after {protocol.source}.",
        f"{judged.source}: {counted(agreement.captions, 'caption')} of {counted(agreement.images, 'image')}, "
        f"{agreement.faulty:,} with a marked word: an average precision of {share:.3f} and an AUC of 0.5 are chance.",
        _removed({})
        if not agreement.undefined
        else "Undefined, taken for the most suspicious: "
        + "; ".join(f"{name} ({count:,})" for name, count in agreement.undefined.items())
        + ".",
    )

    def charts() -> tuple[Chart, ...]:
        charts_by_name = {
            label: [(row.score, *value) for row in agreement.detections for value in [_value(row, name)] if value]
            for name, label in _FOUND.items()
        }
        return tuple(
            forest_chart(label, [(score, value, (low, high)) for score, value, low, high in rows], axis=label)
            for label, rows in charts_by_name.items()
            if rows
        )

    return Study(
        f"Hallucinated words: {judged.title}",
        facts,
        (
            Section(
                "hallucinations", "Detection and localisation", (protocol.about,), (_found_grid(agreement),), charts
            ),
        ),
        {name: table(agreement) for name, table in HALLUCINATION_TABLES.items()},
        {"source": judged.source, "format": judged.format, **agreement.to_dict()},
        agreement.signature,
        _finds_most(agreement, share),
    )


def _finds_most(agreement: HallucinationAgreement, chance: float) -> tuple[str, str] | None:
    """Say which score finds the captions with a marked word best, and which the word."""

    def best(name: str) -> tuple[float, str, str] | None:
        measured = [(row.score, _value(row, name)) for row in agreement.detections]
        known = [
            (bounded.value, score, bounded)
            for score, bounded in measured
            if bounded is not None and bounded.value is not None
        ]
        if not known:
            return None
        value, score, (_, low, high) = max(known, key=itemgetter(0))
        return value, score, "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"

    if (captions := best("average_precision")) is None:
        return None
    value, score, interval = captions
    words = best("localisation")
    return (
        f"{score} finds captions with a wrong word best: average precision {value:.3f}{interval}",
        f"Chance is {chance:.3f}."
        + (f" {words[1]} finds the word itself best: {words[0]:.3f}{words[2]}." if words else ""),
    )


def _value(row: Detection, name: str) -> Bounded | None:
    bounded: Bounded | None = getattr(row, name)
    return bounded


def _found_grid(agreement: HallucinationAgreement) -> Grid:
    columns = [Column("Score", "text")]
    for label in _FOUND.values():
        columns += [Column(label), Column("95 %", "span")]
    rows = [
        (
            row.score,
            *(
                cell
                for name in _FOUND
                for value in [_value(row, name)]
                for cell in ((None, None) if value is None else (value.value, (value.low, value.high)))
            ),
        )
        for row in agreement.detections
    ]
    notes = ["Intervals: 95 % percentile bootstrap over images. Localisation: of metrics that say which word is wrong."]
    if agreement.thresholds:
        limits = ", ".join(f"{limit:.3f} ({rate:.0%})" for rate, limit in agreement.thresholds.items())
        notes.append(
            "Verdicts of SPICE-G: probability of being wrong above which words are flagged, by the share of the words "
            f"that nobody marked which it flags: {limits}."
        )
    return Grid("What metrics find of the words that people marked", columns, rows, notes)


def _found_rows(agreement: HallucinationAgreement) -> Grid:
    columns = headings("score|text", "figure|text", "value", "interval|span")
    rows = [
        (row.score, name, value.value, (value.low, value.high))
        for row in agreement.detections
        for name in _FOUND
        for value in [_value(row, name)]
        if value is not None
    ]
    return Grid("hallucinations", columns, rows)


HALLUCINATION_TABLES: Mapping[str, Callable[[HallucinationAgreement], Grid]] = {"hallucinations": _found_rows}
"""The table that CSV can hold."""
