"""Agreement on rated captions and on pairs of captions, for every output."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Line, cell_text, headings, ink, line_chart
from spicegraph_studies.agreement.coefficients import COEFFICIENTS, Bounded
from spicegraph_studies.agreement.hallucinations import FIGURES
from spicegraph_studies.agreement.pairwise import ALL, MEAN, by_metric
from spicegraph_studies.agreement.protocols import Own, PairProtocol, Ratings, ReferenceChoice, Ties
from spicegraph_studies.pages import (
    DIFFERENCE,
    best_metric,
    comparison_grid,
    comparison_rows,
    ends,
    forest_chart,
    rating_chart,
)
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spicegraph_studies.agreement.captions import CaptionAgreement
    from spicegraph_studies.agreement.hallucinations import HallucinationAgreement, Marked
    from spicegraph_studies.agreement.judgements import CaptionPair, Judged, Judgement
    from spicegraph_studies.agreement.pairwise import PairAgreement

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
_FIGURE = Column("")
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
                partial(_coefficient_charts, agreement),
            ),
            Section(
                "comparisons",
                DIFFERENCE,
                (),
                (comparison_grid(agreement.comparisons, label),) if agreement.comparisons else (),
            ),
            Section("scatter", "Metric and ratings", (), (), partial(_rating_charts, agreement)),
        ),
        {name: table(agreement) for name, table in CAPTION_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unrated": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        best_metric(
            label,
            {row.metric: row.coefficients[agreement.protocol.coefficient].interval for row in agreement.metrics},
            agreement.comparisons,
        ),
    )


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
    if agreement.length:
        alone, *held = [(name, cell_text(_FIGURE, value)) for name, value in agreement.length.items()]
        yield (
            f"Length alone: rank correlation of words and ratings {alone[1]}. "
            f"With length held constant (partial Spearman): {', '.join(f'{name} {value}' for name, value in held)}."
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
            ends(row.coefficients[key]),
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
        values = [each.value for each in between.values()]
        rows.append((_PEOPLE, *values, ends(between[key]), None, None, None, None))
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
            of.value,
            of.p,
            ends(of),
            row.ties.pairs,
            row.ties.metric,
            row.ties.human,
            row.ties.both,
            row.undefined,
        )
        for row in agreement.metrics
        for key, of in row.coefficients.items()
    ]
    people = [
        (_PEOPLE, key, of.value, None, ends(of), *[None] * 5)
        for key, of in agreement.between_people.items()
        if of.value is not None
    ]
    return Grid("agreement", columns, [*rows, *people])


def _coefficient_charts(agreement: CaptionAgreement) -> list[Chart]:
    key = agreement.protocol.coefficient
    label = COEFFICIENTS[key].label
    rows = [(row.metric, row.coefficients[key].interval) for row in agreement.metrics]
    people = agreement.between_people[key].interval
    if people.value is not None:
        rows.append((_PEOPLE, people))
    return [forest_chart(f"{label} with 95 % intervals", rows, axis=label)]


def _rating_charts(agreement: CaptionAgreement) -> list[Chart]:
    points = agreement.points
    return [
        rating_chart(row.metric, points[row.metric], points[""], axes_names=(row.metric, "mean rating"))
        for row in agreement.metrics
    ]


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
    about, charts = (agreement.protocol.about,), partial(_accuracy_charts, agreement)
    sections = [Section("accuracy", "Accuracy", about, (_pair_grid(agreement),), charts)]
    if agreement.curve:
        grids, charts = (_curve_grid(agreement),), partial(_curve_charts, agreement)
        sections.append(Section("references", "Number of references", (), grids, charts))
    if agreement.comparisons:
        grid = comparison_grid(agreement.comparisons, "accuracy over all pairs")
        sections.append(Section("comparisons", DIFFERENCE, (), (grid,)))
    return Study(
        f"Agreement with people on pairs: {judged.title}",
        tuple(_pair_facts(agreement, judged)),
        tuple(sections),
        {name: table(agreement) for name, table in PAIR_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unconfirmed": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        best_metric(
            "accuracy",
            {metric: row[ALL].interval for metric, row in by_metric(agreement.accuracies).items()},
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
    if agreement.length:
        alone, *held = [(name, cell_text(_FIGURE, value)) for name, value in agreement.length.items()]
        yield (
            f"Length alone: people prefer the longer caption in {alone[1]} of the pairs. "
            f"Accuracy on pairs of like length: {', '.join(f'{name} {value}' for name, value in held)}."
        )
    undefined = {f"pairs where {metric} is undefined": count for metric, count in agreement.undefined.items()}
    yield _removed({**agreement.removed, "pairs that annotators did not confirm": judged.unrated, **undefined})
    if agreement.fewer_references:
        yield f"{counted(agreement.fewer_references, 'pair')} with fewer references than that: all of theirs are used."


def _pair_columns(agreement: PairAgreement) -> tuple[str, ...]:
    mean = (MEAN,) if len(agreement.categories) > 1 else ()
    return (*agreement.categories, *mean, ALL)


def _pair_grid(agreement: PairAgreement) -> Grid:
    names = _pair_columns(agreement)
    rows = [
        (
            metric,
            *(row[name].value for name in names),
            ends(row[ALL]),
            row[ALL].tied / row[ALL].pairs if row[ALL].pairs else None,
        )
        for metric, row in by_metric(agreement.accuracies).items()
    ]
    columns = (
        Column("Metric", "text"),
        *(Column(name) for name in names),
        *headings("95 % of all|span", "ties|percent"),
    )
    return Grid("Accuracy: how often the preferred caption scores higher", columns, rows, _PAIR_NOTES)


def _curve_grid(agreement: PairAgreement) -> Grid:
    rows = [
        (metric, *(by_metric(point.accuracies)[metric][ALL].value for point in agreement.curve))
        for metric in by_metric(agreement.accuracies)
    ]
    columns = (Column("Metric", "text"), *(Column(str(point.references)) for point in agreement.curve))
    notes = []
    for point in agreement.curve:
        if point.fewer_references:
            some = any(row.pairs for row in point.accuracies)
            what = "that column is without them" if some else "that column is undefined"
            fewer = counted(point.fewer_references, "pair")
            notes.append(f"{fewer} with fewer than {counted(point.references, 'reference')}: {what}.")
    return Grid("Accuracy over all pairs by number of references", columns, rows, notes)


def _pair_rows(agreement: PairAgreement) -> Grid:
    points = [(agreement.protocol.references, agreement.accuracies)]
    points += [(point.references, point.accuracies) for point in agreement.curve]
    columns = (
        *headings("metric|text", "category|text", "references|count", "pairs|count"),
        *(Column(name, "mean count") for name in ("right", "tied", "wrong")),
        *headings("accuracy", "interval|span"),
    )
    rows = [
        (r.metric, r.category, "all" if count is None else count, r.pairs, r.right, r.tied, r.wrong, r.value, ends(r))
        for count, accuracies in points
        for r in accuracies
    ]
    return Grid("accuracy", columns, rows)


def _accuracy_charts(agreement: PairAgreement) -> list[Chart]:
    table, titles = by_metric(agreement.accuracies), {ALL: "all pairs", MEAN: "mean of the categories"}
    return [
        forest_chart(
            titles.get(name, name), [(metric, row[name].interval) for metric, row in table.items()], axis="accuracy"
        )
        for name in _pair_columns(agreement)
    ]


def _curve_charts(agreement: PairAgreement) -> list[Chart]:
    """Draw a line with its intervals for each metric over the numbers of references: all pairs, and each category."""
    points = [by_metric(point.accuracies) for point in agreement.curve]
    labels, charts = [str(point.references) for point in agreement.curve], []
    for name in (ALL, *agreement.categories):
        values = {metric: [of[metric][name] for of in points] for metric in by_metric(agreement.accuracies)}
        lines = [
            Line(metric, [row.value for row in rows], ink(place), ends=[ends(row) for row in rows])
            for place, (metric, rows) in enumerate(values.items())
        ]
        described = "; ".join(
            f"{metric}: " + ", ".join("undefined" if row.value is None else f"{row.value:.3f}" for row in rows)
            for metric, rows in values.items()
        )
        title = f"Accuracy by number of references: {'all pairs' if name == ALL else name}"
        svg = line_chart(title, labels, lines, x="references", y="accuracy", description=described, height=300)
        charts.append(Chart(svg, title, [(line.ink, line.name) for line in lines]))
    return charts


PAIR_TABLES: Mapping[str, Callable[[PairAgreement], Grid]] = {
    "accuracy": _pair_rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""


def hallucination_study(agreement: HallucinationAgreement, judged: Judged[Marked]) -> Study:
    """Return the study of what metrics find of the words that people marked."""
    protocol, share = agreement.protocol, agreement.faulty / agreement.captions
    undefined = "; ".join(f"{name} ({count:,})" for name, count in agreement.undefined.items())
    facts = (
        f"Protocol {protocol.name}, after {protocol.source}.",
        f"{judged.source}: {counted(agreement.captions, 'caption')} of {counted(agreement.images, 'image')}, "
        f"{agreement.faulty:,} with a marked word: an average precision of {share:.3f} and an AUC of 0.5 are chance.",
        f"Undefined, taken for the most suspicious: {undefined}." if undefined else _removed({}),
    )
    measured = {
        name: [(row.score, value) for row in agreement.detections if (value := row.figures[name]) is not None]
        for name in FIGURES
    }

    def charts() -> list[Chart]:
        return [forest_chart(FIGURES[name], rows, axis=FIGURES[name]) for name, rows in measured.items() if rows]

    grid = _figures_grid(agreement)
    return Study(
        f"Hallucinated words: {judged.title}",
        facts,
        (Section("hallucinations", "Detection and localisation", (protocol.about,), (grid,), charts),),
        {name: table(agreement) for name, table in HALLUCINATION_TABLES.items()},
        {"source": judged.source, "format": judged.format, **agreement.to_dict()},
        agreement.signature,
        _finds_most(measured, share),
    )


def _finds_most(measured: Mapping[str, list[tuple[str, Bounded]]], chance: float) -> tuple[str, str] | None:
    """Say which score finds the captions with a marked word best, and which the word."""
    best = {
        name: max(known, key=lambda row: row[1].value or 0.0)
        for name, rows in measured.items()
        if (known := [row for row in rows if row[1].value is not None])
    }
    if "average_precision" not in best:
        return None
    score, value = best["average_precision"]
    after = f"Chance is {chance:.3f}."
    if "localisation" in best:
        name, words = best["localisation"]
        after += f" {name} finds the word itself best: {words.value:.3f}{words.said}."
    return f"{score} finds captions with a wrong word best: average precision {value.value:.3f}{value.said}", after


def _figures_grid(agreement: HallucinationAgreement) -> Grid:
    columns = headings("Score|text", *(heading for label in FIGURES.values() for heading in (label, "95 %|span")))
    rows = [
        (row.score, *(cell for of in row.figures.values() for cell in ((of.value, ends(of)) if of else (None, None))))
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


def _figure_rows(agreement: HallucinationAgreement) -> Grid:
    columns = headings("score|text", "figure|text", "value", "interval|span")
    rows = [
        (row.score, name, value.value, ends(value))
        for row in agreement.detections
        for name, value in row.figures.items()
        if value is not None
    ]
    return Grid("hallucinations", columns, rows)


HALLUCINATION_TABLES: Mapping[str, Callable[[HallucinationAgreement], Grid]] = {"hallucinations": _figure_rows}
"""The table that CSV can hold."""
