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


def pair_study(found: PairAgreement, judged: Judged[CaptionPair]) -> Study:
    """Return the study of a pairwise agreement."""
    charts = _Charts(found)
    sections = [
        Section("accuracy", "Accuracy", (found.protocol.about,), (_grid(found),), charts.accuracies),
    ]
    if found.curve:
        sections.append(Section("references", "Number of references", (), (_curve_grid(found),), charts.curve))
    if found.comparisons:
        grid = comparison_grid(found.comparisons, "accuracy over all pairs")
        sections.append(Section("comparisons", "Is the difference more than chance?", (), (grid,)))
    return Study(
        f"Agreement with people on pairs: {judged.title}",
        tuple(_facts(found, judged)),
        tuple(sections),
        {name: table(found) for name, table in PAIR_TABLES.items()},
        {"source": judged.source, "format": judged.format, "unconfirmed": judged.unrated, **found.to_dict()},
        found.signature,
    )


def references_say(protocol: PairProtocol) -> str:
    """Say which references are used."""
    if protocol.references is None:
        return "all references"
    if protocol.choice is ReferenceChoice.FIRST:
        return f"the first {counted(protocol.references, 'reference')}"
    return f"{counted(protocol.references, 'reference')} drawn at random, mean of {counted(protocol.draws, 'draw')}"


def _facts(found: PairAgreement, judged: Judged[CaptionPair]) -> Iterator[str]:
    protocol = found.protocol
    yield (
        f"Protocol {protocol.name}: {TIES_SAY[protocol.ties]}; {references_say(protocol)}; {OWN_SAY[protocol.own]}."
        + (f" After {protocol.source}." if protocol.source else "")
    )
    pairs, images = counted(found.pairs, "pair"), counted(found.images, "image")
    yield f"{judged.source} ({judged.format}): {pairs} of {images}."
    left_out = [f"{reason} ({count:,})" for reason, count in found.removed.items()]
    left_out += [f"pairs that annotators did not confirm ({judged.unrated:,})"] if judged.unrated else []
    left_out += [f"pairs where {metric} is undefined ({n:,})" for metric, n in found.undefined.items() if n]
    yield "Removed: " + ("; ".join(left_out) or "nothing") + "."
    if found.fewer_references:
        yield f"{counted(found.fewer_references, 'pair')} with fewer references than that: all of theirs are used."


def _columns(found: PairAgreement) -> tuple[str, ...]:
    mean = (MEAN,) if len(found.categories) > 1 else ()
    return (*found.categories, *mean, ALL)


def _by_metric(accuracies: Sequence[Accuracy]) -> dict[str, dict[str, Accuracy]]:
    table: dict[str, dict[str, Accuracy]] = {}
    for row in accuracies:
        table.setdefault(row.metric, {})[row.category] = row
    return table


def _grid(found: PairAgreement) -> Grid:
    names = _columns(found)
    rows = [
        (
            metric,
            *(row[name].value for name in names),
            (row[ALL].low, row[ALL].high),
            row[ALL].tied / row[ALL].pairs if row[ALL].pairs else None,
        )
        for metric, row in _by_metric(found.accuracies).items()
    ]
    columns = (
        Column("Metric", "text"),
        *(Column(name) for name in names),
        Column("95 % of all", "span"),
        Column("ties", "percent"),
    )
    return Grid("Accuracy: how often the preferred caption scores higher", columns, rows, _NOTES)


def _curve_grid(found: PairAgreement) -> Grid:
    metrics = list(_by_metric(found.accuracies))
    rows = [(metric, *(_by_metric(point.accuracies)[metric][ALL].value for point in found.curve)) for metric in metrics]
    columns = (Column("Metric", "text"), *(Column(str(point.references)) for point in found.curve))
    return Grid("Accuracy over all pairs by number of references", columns, rows, tuple(_curve_notes(found)))


def _curve_notes(found: PairAgreement) -> Iterator[str]:
    for point in found.curve:
        if point.fewer_references:
            some = any(row.pairs for row in point.accuracies)
            what = "that column is without them" if some else "that column is undefined"
            fewer = counted(point.fewer_references, "pair")
            yield f"{fewer} with fewer than {counted(point.references, 'reference')}: {what}."


def _rows(found: PairAgreement) -> Grid:
    points = [(found.protocol.references, found.accuracies)]
    points += [(point.references, point.accuracies) for point in found.curve]
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

    def __init__(self, found: PairAgreement) -> None:
        self._found = found

    def accuracies(self) -> tuple[Chart, ...]:
        table = _by_metric(self._found.accuracies)
        return tuple(
            forest_chart(
                f"{'all pairs' if name == ALL else 'mean of the categories' if name == MEAN else name}",
                [(metric, row[name].value, (row[name].low, row[name].high)) for metric, row in table.items()],
                axis="accuracy",
            )
            for name in _columns(self._found)
        )

    def curve(self) -> tuple[Chart, ...]:
        places = [point.references for point in self._found.curve]
        return tuple(
            lines_chart(
                f"Accuracy by number of references: {'all pairs' if name == ALL else name}",
                places,
                {
                    metric: [
                        (row.value, (row.low, row.high))
                        for point in self._found.curve
                        for row in (_by_metric(point.accuracies)[metric][name],)
                    ]
                    for metric in _by_metric(self._found.accuracies)
                },
                axes_names=("references", "accuracy"),
            )
            for name in (ALL, *self._found.categories)
        )


def _comparisons(found: PairAgreement) -> Grid:
    return comparison_rows(found.comparisons)


PAIR_TABLES: Mapping[str, Callable[[PairAgreement], Grid]] = {
    "accuracy": _rows,
    "comparisons": _comparisons,
}
"""The tables that CSV can hold; the first is the default."""
