"""A report as text, by format, and its charts.

The page draws images from compressed JSON, unpacked in the browser when it is looked at: an index of all images serves
sorting, filtering and searching; details come in chunks, so that 5,000 images cost one chunk's parsing for the one that
is opened.
"""

from __future__ import annotations

import base64
import gzip
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.studies.errors import KINDS
from spicegraph_service.output.charts import (
    Bars,
    Color,
    Difference,
    Line,
    bar_chart,
    difference_chart,
    histogram,
    line_chart,
    series_color,
    short,
)
from spicegraph_service.output.pages import environment, permalink, render_page, static, to_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markupsafe import Markup
    from matplotlib.figure import Figure

    from spicegraph_scorer.metrics.graded.explain import GradedTuple
    from spicegraph_service.output.report.data import (
        CandidateView,
        GradedView,
        ImageView,
        MeanRow,
        Report,
        SystemView,
        TupleView,
    )

_TABLE = "The table below has the numbers."


def report_charts(report: Report) -> dict[str, Markup]:
    """Return the charts of a report by name; ``references`` only where their number differs between images."""
    charts = {
        "category": to_svg(
            _categories(report),
            title="Mean F1 by category",
            description=f"Bars by category and system with 95 % intervals. {_TABLE}",
        ),
        "distribution": to_svg(
            _distribution(report.systems),
            title="Images by SPICE",
            description=f"How many images score in each tenth of the scale. {_summary(report.systems)}",
        ),
        "length": to_svg(
            _means([s.by_length for s in report.systems], report.systems, "words in the caption"),
            title="SPICE by caption length",
            description=_points([s.by_length for s in report.systems], report.systems),
        ),
    }
    if len(report.systems) == 2 and report.tests:
        charts["difference"] = to_svg(
            _differences(report),
            title=f"Differences: {report.systems[1].name} minus {report.systems[0].name}",
            description=f"Points by category with 95 % intervals. {_TABLE}",
        )
    if len(report.systems[0].by_references) > 1:
        charts["references"] = to_svg(
            _means([s.by_references for s in report.systems], report.systems, "references of the image"),
            title="SPICE by number of references",
            description=_points([s.by_references for s in report.systems], report.systems),
        )
    return charts


def _colored(report: Report) -> Iterator[tuple[SystemView, Color]]:
    for place, system in enumerate(report.systems):
        yield system, series_color(place)
    if report.human:
        yield report.human, Color.HUMAN


def _categories(report: Report) -> Figure:
    """Return mean F1 by category, with 95 % intervals: the picture of the SPICE paper's Table 2."""
    bars = [
        Bars(
            system.name,
            [row.f for row in system.categories],
            color,
            [(row.low, row.high) for row in system.categories],
            [counted(row.items, "image") for row in system.categories],
        )
        for system, color in _colored(report)
    ]
    return bar_chart([row.name for row in report.systems[0].categories], bars, axis="mean F1")


def _differences(report: Report) -> Figure:
    """Return by how much the second of two systems is better in each category."""
    tests = {test.name: test for test in report.tests}
    found = [(name, tests["SPICE" if name == ALL else f"SPICE_{name}"]) for name in report.categories]
    rows = [Difference(name, test.difference, test.low, test.high) for name, test in found]
    first, second = (system.name for system in report.systems)
    return difference_chart(
        rows, axis=f"{short(second)} minus {short(first)}", below=series_color(0), above=series_color(1)
    )


def _distribution(systems: Sequence[SystemView]) -> Figure:
    rows = len(systems[0].distribution)
    lines = [Line(s.name, [row.items for row in s.distribution], series_color(i)) for i, s in enumerate(systems)]
    return histogram([place / rows for place in range(rows + 1)], lines, x="SPICE", y="images")


def _means(rows: Sequence[Sequence[MeanRow]], systems: Sequence[SystemView], about: str) -> Figure:
    lines = [
        Line(system.name, [row.mean for row in own], series_color(place), [counted(row.items, "image") for row in own])
        for place, (system, own) in enumerate(zip(systems, rows, strict=True))
    ]
    return line_chart([row.label for row in rows[0]], lines, x=about, y="mean SPICE")


def _summary(systems: Sequence[SystemView]) -> str:
    """Return each system's histogram in words."""
    return " ".join(
        f"{system.name}: " + ", ".join(f"{row.items} in {row.label}" for row in system.distribution if row.items) + "."
        for system in systems
    )


def _points(rows: Sequence[Sequence[MeanRow]], systems: Sequence[SystemView]) -> str:
    """Return the points of each system's line in words."""
    return " ".join(
        f"{system.name}: "
        + ", ".join(
            f"{row.mean:.3f} at {row.label} ({counted(row.items, 'image')})" for row in own if row.mean is not None
        )
        + "."
        for system, own in zip(systems, rows, strict=True)
    )


_GROUPS_SHOWN = 12
_GROUPS_IN_MARKDOWN = 5
_EXAMPLES_SHOWN = 4


class ReportFormat(StrEnum):
    """The output formats of ``report``."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"


def to_html(report: Report, *, parts: str | None = None) -> str:
    """Return one self-contained page: no network, no font, no script but its own, which the page's policy names.

    Args:
        report: what it shows.
        parts: a folder beside the page that holds the details of the images, as :func:`to_parts` gives them;
            ``None``: they are in the page.

    Raises:
        DataError: matplotlib is not installed.
    """
    values = {
        "report": report,
        "human": report.human,
        "index": index(report),
        "chunks": chunks(report) if parts is None else (),
        "parts": parts,
        "changes": _changes(report),
        "groups_shown": _GROUPS_SHOWN,
        "examples_shown": _EXAMPLES_SHOWN,
        "charts": report_charts(report),
    }
    return render_page(
        "report.html.j2",
        values,
        script=static("report.js"),
        style=static("report.css"),
        images=True,
        parts=parts is not None,
    )


def to_parts(report: Report) -> dict[str, str]:
    """Return the details of the images as scripts by file name, for a page that is split.

    A page that is opened from a disk may load scripts, but may not read other files.
    """
    return {f"chunk{n}.js": f'spicegraphPart("chunk{n}", "{part}");\n' for n, part in enumerate(chunks(report))}


def to_json(report: Report) -> str:
    """Return everything in the report as JSON, ``tuples`` and ``pictures`` of every image included."""
    return msgspec.json.encode(report).decode() + "\n"


def to_markdown(report: Report) -> str:
    """Return the tables of the report as Markdown, without the images."""
    return (
        environment()
        .get_template("report.md.j2")
        .render(report=report, human=report.human, groups_shown=_GROUPS_IN_MARKDOWN)
    )


REPORT_FORMATS: Mapping[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.HTML: to_html,
    ReportFormat.JSON: to_json,
    ReportFormat.MARKDOWN: to_markdown,
}


def _changes(report: Report) -> list[tuple[str, int, int, int]]:
    """Return how often two systems make each primary kind of error, those with the largest change first."""
    if len(report.systems) != 2:
        return []
    first, second = (system.kinds for system in report.systems)
    rows = [
        (one.title, one.count, other.count, other.count - one.count)
        for one, other in zip(first, second, strict=True)
        if one.primary and one.count + other.count
    ]
    return sorted(rows, key=_largest)


def _largest(row: tuple[str, int, int, int]) -> int:
    return -abs(row[-1])


CHUNK = 100
"""Images in a chunk of details."""

_DIGITS = 4


def index(report: Report) -> str:
    """Return the packed index: names, kinds, and for each image what it can be sorted and filtered by."""
    order = {name: place for place, name in enumerate(KINDS)}
    groups: list[list[list[list[int]]]] = [[[] for _ in report.systems] for _ in report.images]
    for system, view in enumerate(report.systems):
        for kind in view.kinds:
            for place, group in enumerate(kind.groups):
                for item in group.items:
                    groups[item][system].append([order[kind.key], place])
    return _packed(
        {
            "chunk": CHUNK,
            "systems": [view.name for view in report.systems],
            "categories": report.categories,
            "kinds": [[name, kind.title, kind.side.value] for name, kind in KINDS.items()],
            "synsets": {n: "; or ".join(f"{s.name}: {s.gloss}" for s in views) for n, views in report.synsets.items()},
            "groups": [[[g.words for g in kind.groups] for kind in view.kinds] for view in report.systems],
            "images": [
                [
                    permalink(image.id),
                    [[c.caption, _rounded(c.scores), groups[i][s]] for s, c in enumerate(image.candidates)],
                ]
                for i, image in enumerate(report.images)
            ],
        }
    )


def chunks(report: Report) -> list[str]:
    """Return the packed details, ``CHUNK`` images each."""
    order = {name: place for place, name in enumerate(KINDS)}
    return [
        _packed([_image(image, order) for image in report.images[start : start + CHUNK]])
        for start in range(0, len(report.images), CHUNK)
    ]


def _image(image: ImageView, order: dict[str, int]) -> list[object]:
    first = image.candidates[0]
    return [
        image.references,
        image.source,
        [[t.strings, _mentions(t)] for t in first.reference],  # the references are the same for every system
        [_candidate(candidate, order) for candidate in image.candidates],
    ]


def _candidate(view: CandidateView, order: dict[str, int]) -> list[object]:
    picture = view.picture
    return [
        [[t.strings, _mentions(t), t.partners, t.how, *_why(t, order)] for t in view.candidate],
        [[t.partners, *_why(t, order)] for t in view.reference],
        [
            picture.width,
            picture.height,
            [(b.name, b.state, b.x, b.y, b.width, b.height, b.attributes) for b in picture.boxes],
            [(line.labels, line.points) for line in picture.lines],
        ],
        view.graded and _graded(view.graded),
    ]


def _graded(view: GradedView) -> list[object]:
    why = view.explanation
    return [
        round(view.score, _DIGITS),
        [_graded_tuple(found) for found in why.candidate],
        [_graded_tuple(found) for found in why.reference],
        [[c.action, c.words, c.by, round(c.score, _DIGITS), round(c.gain, _DIGITS)] for c in why.changes],
        round(why.order, _DIGITS),
        [
            [found.word, found.spans, found.verdict, round(found.probability, _DIGITS), found.partner, found.instead]
            for found in why.verdicts.words
        ],
        round(why.verdicts.threshold, _DIGITS),
    ]


def _graded_tuple(found: GradedTuple) -> list[object]:
    numbers = _rounded((found.share, found.support))
    return [found.words, *numbers, found.partner, _rounded(found.slots), found.denied_by]


def _mentions(view: TupleView) -> list[object]:
    return [[m.caption, m.rule, m.spans] for m in view.mentions]


def _why(view: TupleView, order: dict[str, int]) -> Iterator[object]:
    yield None if view.kind is None else order[view.kind]
    yield view.counterpart
    yield view.near


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, _DIGITS) for value in values]


def _packed(value: object) -> str:
    """Return JSON, gzipped, in base64: no text of a caption stands in the page's source."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), 9, mtime=0)).decode("ascii")
