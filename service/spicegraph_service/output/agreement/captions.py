"""Agreement on rated captions, for every output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.studies.agreement.coefficients import COEFFICIENTS
from spicegraph_scorer.studies.agreement.protocols import Own, Ratings
from spicegraph_service.output.agreement.common import comparison_grid, comparison_rows, forest_chart, scatter_chart
from spicegraph_service.output.studies import Column, Grid, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spicegraph_scorer.studies.agreement.captions import CaptionAgreement
    from spicegraph_scorer.studies.agreement.judgements import Judged, Judgement
    from spicegraph_service.output.studies import Chart

RATINGS_SAY: Mapping[Ratings, str] = {
    Ratings.EACH: "every single rating is an observation",
    Ratings.MEAN: "a caption with the mean of its ratings is an observation",
}
OWN_SAY: Mapping[Own, str] = {
    Own.KEEP: "captions that are a reference of their image are kept, and so is the reference",
    Own.DROP_CAPTION: "captions that are a reference of their image are left out",
    Own.DROP_REFERENCE: "a reference that equals the caption is removed",
    Own.DROP_FROM_IMAGE: "references that equal any judged caption of the image are removed",
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
        tuple(_facts(agreement, judged, label)),
        (
            Section(
                "agreement",
                "Agreement",
                (agreement.protocol.about,),
                (_grid(agreement),),
                _Charts(agreement).coefficients,
            ),
            Section(
                "comparisons",
                "Is the difference more than chance?",
                (),
                (comparison_grid(agreement.comparisons, label),) if agreement.comparisons else (),
            ),
            Section("scatter", "Metric and ratings", (), (), _Charts(agreement).scatter),
        ),
        {name: table(agreement) for name, table in CAPTION_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unrated": judged.unrated, **agreement.to_dict()},
        agreement.signature,
    )


def _facts(agreement: CaptionAgreement, judged: Judged[Judgement], label: str) -> Iterator[str]:
    protocol = agreement.protocol
    yield (
        f"Protocol {protocol.name}: {label}; {RATINGS_SAY[protocol.ratings]}; {OWN_SAY[protocol.own]}."
        + (f" After {protocol.source}." if protocol.source else "")
    )
    yield (
        f"{judged.source} ({judged.format}): {counted(agreement.captions, 'caption')} of "
        f"{counted(agreement.images, 'image')}, "
        f"{counted(agreement.observations, 'observation')}."
    )
    left_out = [f"{reason} ({count:,})" for reason, count in agreement.removed.items()]
    left_out += [f"captions without a rating ({judged.unrated:,})"] if judged.unrated else []
    left_out += [
        f"captions where {row.metric} is undefined ({row.undefined:,})" for row in agreement.metrics if row.undefined
    ]
    yield "Removed: " + ("; ".join(left_out) or "nothing") + "."


def _grid(agreement: CaptionAgreement) -> Grid:
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
        notes.append("People: one rating of a caption against another rating of it, over all ordered pairs of them.")
    columns = (
        Column("Metric", "text"),
        *(Column(coefficient.label) for coefficient in COEFFICIENTS.values()),
        Column(f"95 % of {label}", "span"),
        Column("p", "p"),
        *(Column(name, "percent") for name in ("ties: metric", "people", "both")),
    )
    return Grid(f"Agreement with ratings (the protocol's coefficient: {label})", columns, rows, notes)


def _rows(agreement: CaptionAgreement) -> Grid:
    columns = (
        Column("metric", "text"),
        Column("coefficient", "text"),
        Column("value"),
        Column("p", "p"),
        Column("interval", "span"),
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


class _Charts:
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
            scatter_chart(row.metric, points[row.metric], points[""], axes_names=(row.metric, "mean rating"))
            for row in self._agreement.metrics
        )


def _comparisons(agreement: CaptionAgreement) -> Grid:
    return comparison_rows(agreement.comparisons)


CAPTION_TABLES: Mapping[str, Callable[[CaptionAgreement], Grid]] = {
    "agreement": _rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""
