"""Agreement on rated captions, pairs of captions, marked words and systems, for every output."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Line, Point, cell_text, headings, ink, line_chart, scatter_chart
from spicegraph_studies import pages
from spicegraph_studies.agreement.coefficients import COEFFICIENTS, Bounded
from spicegraph_studies.agreement.hallucinations import FIGURES, HallucinationAgreement
from spicegraph_studies.agreement.pairwise import ALL, MEAN, Accuracy, PairAgreement, by_metric
from spicegraph_studies.agreement.protocols import Own, PairProtocol, Ratings, ReferenceChoice, Ties
from spicegraph_studies.agreement.systems import SYSTEM_COEFFICIENTS, SystemAgreement
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_service.kit import Cell
    from spicegraph_studies.agreement.captions import CaptionAgreement
    from spicegraph_studies.agreement.judgements import CaptionPair, Judged, Judgement

CAPTION_TABLES: Final = ("agreement", "comparisons")
PAIR_TABLES: Final = ("accuracy", "comparisons")
HALLUCINATION_TABLES: Final = ("hallucinations",)
SYSTEM_TABLES: Final = ("correlations", "comparisons")  # the tables that CSV can hold; the first is the default

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
    Own.DROP_ONE_FROM_IMAGE: "of references that equal a judged caption of the image one is removed for each",
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
_HELD = "With length held constant (partial Spearman)"
_CAPTION_ROWS = (
    *headings("metric|text", "coefficient|text", "value", "p|p", "interval|span"),
    *(Column(name, "count") for name in ("pairs", "tied_metric", "tied_human", "tied_both", "undefined")),
)
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
_PAIR_ROWS = (
    *headings("metric|text", "category|text", "references|count", "pairs|count"),
    *headings("right|mean count", "tied|mean count", "wrong|mean count", "accuracy", "interval|span"),
)
_FIGURE_ROWS = headings("score|text", "figure|text", "value", "interval|span")
_SYSTEM_NOTE = "In brackets: the two-sided p of no association. Intervals, over resampled systems, are in JSON and CSV."
_PEARSON = COEFFICIENTS["pearson"].label
_SYSTEM_ROWS = headings(
    "metric|text", "human|text", "systems|count", "coefficient|text", "value", "p|p", "interval|span"
)


def caption_study(agreement: CaptionAgreement, judged: Judged[Judgement]) -> Study:
    """Return the study of a caption-level agreement."""
    protocol, key = agreement.protocol, agreement.protocol.coefficient
    label, people = COEFFICIENTS[key].label, agreement.between_people
    values = {metric: coefficients[key] for metric, coefficients in agreement.coefficients.items()}
    drawn = [*values.items(), *([(_PEOPLE, people[key])] if people[key].value is not None else [])]
    points = agreement.points
    tests = [pages.comparison_grid(agreement.comparisons, label)] if agreement.comparisons else []

    def intervals() -> list[Chart]:
        return [pages.forest_chart(f"{label} with 95 % intervals", drawn, axis=label)]

    def scatter() -> list[Chart]:
        return [pages.rating_chart(name, points[name], points[""], axes_names=(name, "mean rating")) for name in values]

    return Study(
        f"Agreement with people: {judged.title}",
        _caption_facts(agreement, judged),
        (
            Section("agreement", "Agreement", (protocol.about,), (_caption_grid(agreement, key, label),), intervals),
            Section("comparisons", pages.DIFFERENCE, (), tests),
            Section("scatter", "Metric and ratings", charts=scatter),
        ),
        {
            "agreement": Grid("agreement", _CAPTION_ROWS, list(_caption_rows(agreement))),
            "comparisons": pages.comparison_rows(agreement.comparisons),
        },
        {"source": judged.source, "format": judged.format, "unrated": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        pages.best_metric(label, values, agreement.comparisons, of=(agreement.captions, "captions")),
    )


def _caption_grid(agreement: CaptionAgreement, key: str, label: str) -> Grid:
    rows = [
        (
            metric,
            *(each.value for each in coefficients.values()),
            pages.ends(coefficients[key]),
            coefficients[key].p,
            *(ties[side] / ties["pairs"] if ties["pairs"] else None for side in ("metric", "human", "both")),
        )
        for (metric, coefficients), ties in zip(agreement.coefficients.items(), agreement.ties.values(), strict=True)
    ]
    notes = [_INTERVAL_NOTE, _TIES_NOTE]
    people = agreement.between_people
    if any(each.value is not None for each in people.values()):
        values = [each.value for each in people.values()]
        rows.append((_PEOPLE, *values, pages.ends(people[key]), None, None, None, None))
        notes.append(
            "People: one rating of a caption against another rating of it, over all ordered pairs of them. Both sides "
            "have ties, which tau-c does not correct for: compare this row with the metrics by tau-b."
        )
    columns = (
        Column("Metric", "text"),
        *(Column(coefficient.label, is_ranked=True) for coefficient in COEFFICIENTS.values()),
        *headings(f"95 % of {label}|span", "p|p", "ties: metric|percent", "people|percent", "both|percent"),
    )
    return Grid(f"Agreement with ratings (the protocol's coefficient: {label})", columns, rows, notes)


def _caption_facts(agreement: CaptionAgreement, judged: Judged[Judgement]) -> list[str]:
    protocol = agreement.protocol
    undefined = {f"captions where {metric} is undefined": count for metric, count in agreement.undefined.items()}
    return [
        f"Protocol {protocol.name}: {COEFFICIENTS[protocol.coefficient].label}; {RATINGS_SAY[protocol.ratings]}; "
        f"{CAPTIONS_OWN_SAY[protocol.own]}." + (f" After {protocol.source}." if protocol.source else ""),
        f"{judged.source} ({judged.format}): {counted(agreement.captions, 'caption')} of "
        f"{counted(agreement.images, 'image')}, {counted(agreement.observations, 'observation')}.",
        *pages.length_facts(agreement.length, "Length alone: rank correlation of words and ratings {}.", _HELD),
        pages.removed_fact({**agreement.removed, "captions without a rating": judged.unrated, **undefined}),
    ]


def _caption_rows(agreement: CaptionAgreement) -> Iterator[Sequence[Cell]]:
    """Yield every coefficient of every metric, and of people with each other."""
    for metric, coefficients in agreement.coefficients.items():
        ties = [agreement.ties[metric][name] for name in ("pairs", "metric", "human", "both")]
        for name, each in coefficients.items():
            yield metric, name, each.value, each.p, pages.ends(each), *ties, agreement.undefined[metric]
    for name, each in agreement.between_people.items():
        if each.value is not None:
            yield _PEOPLE, name, each.value, None, pages.ends(each), *[None] * 5


def pair_study(agreement: PairAgreement, judged: Judged[CaptionPair]) -> Study:
    """Return the study of a pairwise agreement."""
    protocol, table = agreement.protocol, by_metric(agreement.accuracies)
    names = (*agreement.categories, *([MEAN] if len(agreement.categories) > 1 else []), ALL)
    titles = {ALL: "all pairs", MEAN: "mean of the categories"}

    def drawn() -> Iterator[Chart]:
        for name in names:
            values = [(metric, row[name].interval) for metric, row in table.items()]
            yield pages.forest_chart(titles.get(name, name), values, axis="accuracy")

    ties = {metric: row[ALL].tied / row[ALL].pairs if row[ALL].pairs else None for metric, row in table.items()}
    shown = [
        (name, *(row[key].value for key in names), pages.ends(row[ALL]), ties[name]) for name, row in table.items()
    ]
    columns = (Column("Metric", "text"), *map(Column, names), *headings("95 % of all|span", "ties|percent"))
    grid = Grid("Accuracy: how often the preferred caption scores higher", columns, shown, _PAIR_NOTES)
    sections = [Section("accuracy", "Accuracy", (protocol.about,), (grid,), lambda: list(drawn()))]
    if agreement.curve:
        charts = partial(_curve_charts, agreement)
        sections.append(Section("references", "Number of references", (), (_curve_grid(agreement),), charts))
    if agreement.comparisons:
        grid = pages.comparison_grid(agreement.comparisons, "accuracy over all pairs")
        sections.append(Section("comparisons", pages.DIFFERENCE, (), (grid,)))
    rows = list(_pair_rows(agreement))
    return Study(
        f"Agreement with people on pairs: {judged.title}",
        _pair_facts(agreement, judged),
        sections,
        {"accuracy": Grid("accuracy", _PAIR_ROWS, rows), "comparisons": pages.comparison_rows(agreement.comparisons)},
        {"source": judged.source, "format": judged.format, "unconfirmed": judged.unrated, **agreement.to_dict()},
        agreement.signature,
        pages.best_metric(
            "accuracy",
            {metric: row[ALL].interval for metric, row in table.items()},
            agreement.comparisons,
            of=(agreement.pairs, "pairs"),
        ),
    )


def references_say(protocol: PairProtocol) -> str:
    """Say which references are used."""
    if protocol.references is None:
        return "all references"
    if protocol.choice is ReferenceChoice.FIRST:
        return f"the first {counted(protocol.references, 'reference')}"
    return f"{counted(protocol.references, 'reference')} drawn at random, mean of {counted(protocol.draws, 'draw')}"


def _curve_grid(agreement: PairAgreement) -> Grid:
    rows = [
        (metric, *(by_metric(accuracies)[metric][ALL].value for accuracies in agreement.curve.values()))
        for metric in by_metric(agreement.accuracies)
    ]
    columns = (Column("Metric", "text"), *(Column(str(count)) for count in agreement.curve))
    notes = []
    for count, accuracies in agreement.curve.items():
        if fewer := agreement.too_few[count]:
            some = any(row.pairs for row in accuracies)
            what = "that column is without them" if some else "that column is undefined"
            notes.append(f"{counted(fewer, 'pair')} with fewer than {counted(count, 'reference')}: {what}.")
    return Grid("Accuracy over all pairs by number of references", columns, rows, notes)


def _pair_facts(agreement: PairAgreement, judged: Judged[CaptionPair]) -> list[str]:
    protocol = agreement.protocol
    pairs, images = counted(agreement.pairs, "pair"), counted(agreement.images, "image")
    undefined = {f"pairs where {metric} is undefined": count for metric, count in agreement.undefined.items()}
    facts = [
        f"Protocol {protocol.name}: {TIES_SAY[protocol.ties]}; {references_say(protocol)}; "
        f"{PAIRS_OWN_SAY[protocol.own]}{COIN_SAYS if protocol.coin else ''}."
        + (f" After {protocol.source}." if protocol.source else ""),
        f"{judged.source} ({judged.format}): {pairs} of {images}.",
        *pages.length_facts(
            agreement.length,
            "Length alone: people prefer the longer caption in {} of the pairs.",
            "Accuracy on pairs of like length",
        ),
        pages.removed_fact({**agreement.removed, "pairs that annotators did not confirm": judged.unrated, **undefined}),
    ]
    if agreement.fewer_references:
        fewer = counted(agreement.fewer_references, "pair")
        facts.append(f"{fewer} with fewer references than that: all of theirs are used.")
    return facts


def _pair_rows(agreement: PairAgreement) -> Iterator[Sequence[Cell]]:
    """Yield every accuracy, also those with other numbers of references."""
    for count, accuracies in ((agreement.protocol.references, agreement.accuracies), *agreement.curve.items()):
        number = "all" if count is None else count
        for row in accuracies:
            points = row.pairs, row.right, row.tied, row.wrong
            yield row.metric, row.category, number, *points, row.value, pages.ends(row)


def _curve_charts(agreement: PairAgreement) -> list[Chart]:
    """Draw a line with its intervals for each metric over the numbers of references: all pairs, and each category."""
    points, labels = list(map(by_metric, agreement.curve.values())), list(map(str, agreement.curve))
    charts = []
    for name in (ALL, *agreement.categories):
        values = {metric: [of[metric][name] for of in points] for metric in by_metric(agreement.accuracies)}
        lines = [
            Line(metric, [row.value for row in rows], ink(place), ends=[pages.ends(row) for row in rows])
            for place, (metric, rows) in enumerate(values.items())
        ]
        described = "; ".join(f"{metric}: {_values_said(rows)}" for metric, rows in values.items())
        title = f"Accuracy by number of references: {'all pairs' if name == ALL else name}"
        svg = line_chart(title, labels, lines, x="references", y="accuracy", description=described, height=300)
        charts.append(Chart(svg, title, [(line.ink, line.name) for line in lines]))
    return charts


def _values_said(rows: Sequence[Accuracy]) -> str:
    return ", ".join("undefined" if row.value is None else f"{row.value:.3f}" for row in rows)


def hallucination_study(agreement: HallucinationAgreement, judged: Judged[Judgement]) -> Study:
    """Return the study of metrics' detection of the words that people marked."""
    share = agreement.faulty / agreement.captions
    measured = {
        name: [(score, value) for score, row in agreement.detections.items() if (value := row[name]) is not None]
        for name in FIGURES
    }
    shown = [
        (score, *(cell for each in row.values() for cell in ((each.value, pages.ends(each)) if each else (None, None))))
        for score, row in agreement.detections.items()
    ]
    columns = headings("Score|text", *(heading for label in FIGURES.values() for heading in (label, "95 %|span")))
    notes = _hallucination_notes(agreement)
    grid = Grid("What metrics find of the words that people marked", columns, shown, notes)

    def charts() -> list[Chart]:
        return [
            pages.forest_chart(FIGURES[name], drawn, axis=FIGURES[name]) for name, drawn in measured.items() if drawn
        ]

    return Study(
        f"Hallucinated words: {judged.title}",
        _hallucination_facts(agreement, judged, share),
        (Section("hallucinations", "Detection and localisation", (agreement.protocol.about,), (grid,), charts),),
        {"hallucinations": Grid("hallucinations", _FIGURE_ROWS, list(_figure_rows(agreement)))},
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


def _figure_rows(agreement: HallucinationAgreement) -> Iterator[Sequence[Cell]]:
    for score, figures in agreement.detections.items():
        for name, value in figures.items():
            if value is not None:
                yield score, name, value.value, pages.ends(value)


def _hallucination_facts(agreement: HallucinationAgreement, judged: Judged[Judgement], share: float) -> list[str]:
    protocol = agreement.protocol
    undefined = "; ".join(f"{name} ({count:,})" for name, count in agreement.undefined.items())
    return [
        f"Protocol {protocol.name}, after {protocol.source}.",
        f"{judged.source}: {counted(agreement.captions, 'caption')} of {counted(agreement.images, 'image')}, "
        f"{agreement.faulty:,} with a marked word: an average precision of {share:.3f} and an AUC of 0.5 are chance.",
        *pages.length_facts(
            agreement.length, "Length alone: rank correlation of words and having a marked one {}.", _HELD
        ),
        f"Undefined, taken for the most suspicious: {undefined}." if undefined else pages.removed_fact({}),
    ]


def _hallucination_notes(agreement: HallucinationAgreement) -> list[str]:
    notes = ["Intervals: 95 % percentile bootstrap over images. Localisation: of metrics that say which word is wrong."]
    if agreement.thresholds:
        limits = ", ".join(f"{limit:.3f} ({rate:.0%})" for rate, limit in agreement.thresholds.items())
        notes.append(
            "Verdicts of SPICE-G: a word is flagged if its probability of being wrong is above a threshold. "
            f"Thresholds, each with the share of unmarked words that it flags: {limits}."
        )
    return notes


def _system_tests(agreement: SystemAgreement) -> Grid:
    measures = [measure for measure, rows in agreement.comparisons.items() for _ in rows]
    return pages.comparison_rows(list(chain.from_iterable(agreement.comparisons.values())), human=measures)


def _correlation_rows(agreement: SystemAgreement) -> Iterator[Sequence[Cell]]:
    for metric, by_measure in agreement.correlations.items():
        for measure, coefficients in by_measure.items():
            known = agreement.known(metric, measure)
            for key, cell in coefficients.items():
                yield metric, measure, known, key, cell.value, cell.p, pages.ends(cell)


def system_study(agreement: SystemAgreement, source: str) -> Study:
    """Return the study of a system-level agreement."""
    measures, table = tuple(agreement.comparisons), agreement.correlations
    of_first = {metric: row[measures[0]]["pearson"] for metric, row in table.items()}
    facts = [f"{len(agreement.systems)} systems: {', '.join(agreement.systems)}."]
    for measure, length in agreement.length.items():
        facts += pages.length_facts(length, f"Length alone: rank correlation of words and {measure} {{}}.", _HELD)

    titles = {measure: f"{_PEARSON} with {measure}" for measure in measures}
    grids = [_system_grid(agreement, measures, key) for key in SYSTEM_COEFFICIENTS]
    paired = [pages.comparison_grid(rows, titles[measure]) for measure, rows in agreement.comparisons.items() if rows]

    def intervals() -> Iterator[Chart]:
        for measure, title in titles.items():
            drawn = [(metric, row[measure]["pearson"]) for metric, row in table.items()]
            yield pages.forest_chart(title, drawn, axis=_PEARSON)

    return Study(
        f"Agreement with people on systems: {PurePath(source).name}",
        facts,
        (
            Section("correlation", "Correlation over systems", (), grids, lambda: list(intervals())),
            Section("scatter", "Systems", (), (), partial(_scatter_charts, agreement, measures[0])),
            Section("comparisons", pages.DIFFERENCE, (), paired),
        ),
        {
            "correlations": Grid("systems", _SYSTEM_ROWS, list(_correlation_rows(agreement))),
            "comparisons": _system_tests(agreement),
        },
        {"source": source, **agreement.to_dict()},
        agreement.signature,
        pages.best_metric(
            titles[measures[0]], of_first, agreement.comparisons[measures[0]], of=(len(agreement.systems), "systems")
        ),
    )


def _system_grid(agreement: SystemAgreement, measures: Sequence[str], key: str) -> Grid:
    p = Column("p", "p")
    rows = [
        (
            metric,
            *(
                cell
                for value in (by_measure[measure][key] for measure in measures)
                for cell in (value.value, None if value.p is None else f"({cell_text(p, value.p)})")
            ),
        )
        for metric, by_measure in agreement.correlations.items()
    ]
    columns = (Column("Metric", "text"), *(column for name in measures for column in (Column(name), p)))
    return Grid(COEFFICIENTS[key].label, columns, rows, (_SYSTEM_NOTE,))


def _scatter_charts(agreement: SystemAgreement, measure: str) -> list[Chart]:
    """Draw every metric against a human measure, with the systems' names."""
    charts = []
    for metric in agreement.correlations:
        points = [
            (name, value, rating)
            for name in agreement.systems
            if (value := agreement.scores[name].get(metric)) is not None
            and (rating := agreement.human[name].get(measure)) is not None
        ]
        title, described = f"{metric} and {measure}", "; ".join(f"{name} {x:.3f}, {y:.3f}" for name, x, y in points)
        drawn = [Point(x, y, f"{name}: {x:.3f}, {y:.3f}", name) for name, x, y in points]
        svg = scatter_chart(title, drawn, axes_names=(metric, measure), description=described)
        charts.append(Chart(svg, title))
    return charts
