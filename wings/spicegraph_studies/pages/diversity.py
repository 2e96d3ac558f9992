"""Diversity of sets of captions as a table, a chart of quality against diversity, and long tables for programs."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Point, headings, ink, scatter_chart
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_service.kit import Cell
    from spicegraph_studies.diversity import Diversity

DIVERSITY_TABLES: Final = ("figures", "images")  # the tables that CSV can hold; the first is the default

_ABOUT: Final[Mapping[str, str]] = {
    "Div_1": "distinct words over all words of an image's captions",
    "Div_2": "distinct pairs of neighbouring words over all words",
    "mBLEU": "BLEU of each caption against the others of its image: lower is more diverse",
    "Self_CIDEr": "0: all captions of an image say the same; 1: they share nothing",
    "Vocabulary": "distinct words of all captions",
    "Novel": "share of captions that are not among the training captions",
    "Objects": "distinct objects, attributes and relations that an image's captions state together; Tuples_of_one: all "
    "that one caption states, in the mean",
    "Contradicting": "share of pairs of an image's captions that cannot both be right",
    "AllSPICE": "SPICE of what an image's captions say together; _average and _oracle: mean and best of them",
}
_PERCENT: Final = ("Novel", "Contradicting")


class SystemDiversity(NamedTuple):
    """A system's name, its diversity, and if there are references, mean and best of each metric and AllSPICE."""

    name: str
    diversity: Diversity
    quality: Mapping[str, float | None]


def _sizes(system: SystemDiversity) -> str:
    sizes = sorted({one.captions for one in system.diversity.sets})
    each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{system.name}: {counted(len(system.diversity.sets), 'image')} with {each} captions each."


def _grid(systems: Sequence[SystemDiversity], values: Sequence[Mapping[str, float | None]]) -> Grid:
    names = list(dict.fromkeys(chain.from_iterable(values)))
    rows = [(name, *(_cell(name, figures.get(name)) for figures in values)) for name in names]
    columns = (Column("Figure", "text"), *(Column(system.name, "text") for system in systems))
    notes = [f"{key}: {about}." for key, about in _ABOUT.items() if any(name.startswith(key) for name in names)]
    return Grid("Diversity", columns, rows, notes)


def diversity_study(systems: Sequence[SystemDiversity], figures: Sequence[str] = ()) -> Study:
    """Return the study of one system or several over the same images; of ``figures`` alone, if any are named."""
    wanted = tuple(figures) or ("",)
    found = [{n: v for n, v in system.diversity.values().items() if n.startswith(wanted)} for system in systems]
    values = [{**of_system, **system.quality} for of_system, system in zip(found, systems, strict=True)]
    shown = [("Figures", _long(systems, values)), ("Images", _images(systems))]
    return Study(
        "How different the captions of an image are",
        list(map(_sizes, systems)),
        (
            Section("figures", "Figures", (), (_grid(systems, values),)),
            Section("quality", "Quality and diversity", charts=partial(_quality, systems)),
        ),
        dict(zip(DIVERSITY_TABLES, (grid for _, grid in shown), strict=True)),
        {"systems": [_values(*each) for each in zip(systems, found, strict=True)]},
        dict(systems[0].diversity.signature),
    )


def _values(system: SystemDiversity, figures: Mapping[str, float | None]) -> dict[str, Json]:
    values: dict[str, Json] = {"name": system.name, **system.diversity.to_dict(), "corpus": figures}  # type: ignore[dict-item]
    return values | ({"quality": dict(system.quality)} if system.quality else {})


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name == "Vocabulary":
        return f"{value:,.0f}"
    return f"{100 * value:.1f} %" if name.startswith(_PERCENT) else f"{value:.3f}"


def _long(systems: Sequence[SystemDiversity], values: Sequence[Mapping[str, float | None]]) -> Grid:
    rows: list[Sequence[Cell]] = [
        (system.name, name, value)
        for system, figures in zip(systems, values, strict=True)
        for name, value in figures.items()
    ]
    return Grid("figures", headings("system|text", "figure|text", "value"), rows)


def _images(systems: Sequence[SystemDiversity]) -> Grid:
    """Return a row for each image of each system."""
    columns = headings(
        "system|text", "image_id|text", "captions|count", "div_1", "div_2", "self_cider", "objects|count"
    )
    more = headings("attributes|count", "relations|count", "tuples_of_one", "pairs|count", "contradicting|count")
    rows: list[Sequence[Cell]] = []
    for system in systems:
        for one in system.diversity.sets:
            graph = one.graph
            said: tuple[Cell, ...] = (None,) * 6
            if graph is not None:
                said = (graph.objects, graph.attributes, graph.relations, graph.of_one, graph.pairs)
                said = (*said, graph.contradicting.get("any", 0))
            rows.append((system.name, str(one.id), one.captions, *one.div[:2], one.self_cider, *said))
    return Grid("images", (*columns, *more), rows)


def _quality(systems: Sequence[SystemDiversity]) -> list[Chart]:
    """Draw each metric of quality against self-CIDEr, a point for each system."""
    charts = []
    for metric in systems[0].quality:
        points = [
            Point(across, up, f"{name}: {across:.3f}, {up:.3f}", name, ink(number))
            for number, (name, diversity, quality) in enumerate(systems)
            if (across := diversity.self_cider) is not None and (up := quality.get(metric)) is not None
        ]
        if points:
            axes = "self-CIDEr (diversity)", metric
            described = "; ".join(point.tip for point in points)
            title = f"{metric} and self-CIDEr"
            charts.append(Chart(scatter_chart(title, points, axes_names=axes, description=described), title))
    return charts
