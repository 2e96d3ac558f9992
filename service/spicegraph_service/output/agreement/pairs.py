"""Agreement on pairs of captions, for every output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.studies.agreement.pairwise import ALL, MEAN
from spicegraph_scorer.studies.agreement.protocols import Own, PairProtocol, ReferenceChoice, Ties
from spicegraph_service.output.agreement.common import comparison_grid, comparison_rows, forest_chart, lines_chart
from spicegraph_service.output.studies import Column, Grid, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.studies.agreement.judgements import CaptionPair, Judged
    from spicegraph_scorer.studies.agreement.pairwise import Accuracy, PairAgreement
    from spicegraph_service.output.studies import Chart

TIES_SAY: Mapping[Ties, str] = {
    Ties.HALF: "a tie counts half",
    Ties.RIGHT: "a tie counts as right",
    Ties.WRONG: "a tie counts as wrong",
}
OWN_SAY: Mapping[Own, str] = {
    Own.KEEP: "references equal to a caption are kept",
    Own.DROP_CAPTION: "pairs with a caption among the references are left out",
    Own.DROP_REFERENCE: "references equal to a caption are removed",
    Own.DROP_FROM_IMAGE: "references that equal any judged caption of the image are removed",
}
_NOTES = (
    "Intervals: 95 % percentile bootstrap over images. Ties: of 100 pairs, how many the metric scores equally.",
    "mean is the mean of the categories; all is over all pairs.",
)


def pair_study(agreement: PairAgreement, judged: Judged[CaptionPair]) -> Study:
    """Return the study of a pairwise agreement."""
    charts = _Charts(agreement)
    sections = [
        Section("accuracy", "Accuracy", (agreement.protocol.about,), (_grid(agreement),), charts.accuracies),
    ]
    if agreement.curve:
        sections.append(Section("references", "Number of references", (), (_curve_grid(agreement),), charts.curve))
    if agreement.comparisons:
        grid = comparison_grid(agreement.comparisons, "accuracy over all pairs")
        sections.append(Section("comparisons", "Is the difference more than chance?", (), (grid,)))
    return Study(
        f"Agreement with people on pairs: {judged.title}",
        tuple(_facts(agreement, judged)),
        tuple(sections),
        {name: table(agreement) for name, table in PAIR_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unconfirmed": judged.unrated, **agreement.to_dict()},
        agreement.signature,
    )


def references_say(protocol: PairProtocol) -> str:
    """Say which references are used."""
    if protocol.references is None:
        return "all references"
    if protocol.choice is ReferenceChoice.FIRST:
        return f"the first {counted(protocol.references, 'reference')}"
    return f"{counted(protocol.references, 'reference')} drawn at random, mean of {counted(protocol.draws, 'draw')}"


def _facts(agreement: PairAgreement, judged: Judged[CaptionPair]) -> Iterator[str]:
    protocol = agreement.protocol
    yield (
        f"Protocol {protocol.name}: {TIES_SAY[protocol.ties]}; {references_say(protocol)}; {OWN_SAY[protocol.own]}."
        + (f" After {protocol.source}." if protocol.source else "")
    )
    pairs, images = counted(agreement.pairs, "pair"), counted(agreement.images, "image")
    yield f"{judged.source} ({judged.format}): {pairs} of {images}."
    left_out = [f"{reason} ({count:,})" for reason, count in agreement.removed.items()]
    left_out += [f"pairs that annotators did not confirm ({judged.unrated:,})"] if judged.unrated else []
    left_out += [f"pairs where {metric} is undefined ({n:,})" for metric, n in agreement.undefined.items() if n]
    yield "Removed: " + ("; ".join(left_out) or "nothing") + "."
    if agreement.fewer_references:
        yield f"{counted(agreement.fewer_references, 'pair')} with fewer references than that: all of theirs are used."


def _columns(agreement: PairAgreement) -> tuple[str, ...]:
    mean = (MEAN,) if len(agreement.categories) > 1 else ()
    return (*agreement.categories, *mean, ALL)


def _by_metric(accuracies: Sequence[Accuracy]) -> dict[str, dict[str, Accuracy]]:
    table: dict[str, dict[str, Accuracy]] = {}
    for row in accuracies:
        table.setdefault(row.metric, {})[row.category] = row
    return table


def _grid(agreement: PairAgreement) -> Grid:
    names = _columns(agreement)
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
        Column("95 % of all", "span"),
        Column("ties", "percent"),
    )
    return Grid("Accuracy: how often the preferred caption scores higher", columns, rows, _NOTES)


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


def _rows(agreement: PairAgreement) -> Grid:
    points = [(agreement.protocol.references, agreement.accuracies)]
    points += [(point.references, point.accuracies) for point in agreement.curve]
    columns = (
        Column("metric", "text"),
        Column("category", "text"),
        Column("references", "count"),
        Column("pairs", "count"),
        *(Column(name, "mean count") for name in ("right", "tied", "wrong")),
        Column("accuracy"),
        Column("interval", "span"),
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


class _Charts:
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
            for name in _columns(self._agreement)
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


def _comparisons(agreement: PairAgreement) -> Grid:
    return comparison_rows(agreement.comparisons)


PAIR_TABLES: Mapping[str, Callable[[PairAgreement], Grid]] = {
    "accuracy": _rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""
