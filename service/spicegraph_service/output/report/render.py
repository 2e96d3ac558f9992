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
from spicegraph_service.output.charts import HUMAN_INK, Line, Mark, Row, histogram, ink, interval_chart, line_chart
from spicegraph_service.output.pages import environment, permalink, render_page, static

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markupsafe import Markup

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


def report_charts(report: Report) -> dict[str, Markup]:
    """Return the charts of a report by name; ``references`` only where their number differs between images."""
    charts = {
        "category": _categories(report),
        "distribution": _distribution(report.systems),
        "length": _means(report.systems, "by_length", "SPICE by caption length", "words in the caption"),
    }
    if len(report.systems) == 2 and report.tests:
        charts["difference"] = _differences(report)
    if len(report.systems[0].by_references) > 1:
        title = "SPICE by number of references"
        charts["references"] = _means(report.systems, "by_references", title, "references of the image")
    return charts


def _categories(report: Report) -> Markup:
    """Return mean F1 by category, with 95 % intervals: the picture of the SPICE paper's Table 2."""
    systems = [(system, ink(place)) for place, system in enumerate(report.systems)]
    systems += [(report.human, HUMAN_INK)] if report.human else []
    rows = [
        Row(
            "SPICE" if name == ALL else name,
            [
                Mark(system.name, row.f, row.low, row.high, colour, counted(row.items, "image"))
                for system, colour in systems
                for row in (system.categories[place],)
            ],
        )
        for place, name in enumerate(report.categories)
    ]
    described = "Points by category and system with 95 % intervals. The table of categories has the numbers."
    return interval_chart("Mean F1 by category", rows, axis="mean F1", description=described)


def _differences(report: Report) -> Markup:
    """Return by how much the second of two systems is better in each category, in the colour of the better one."""
    first, second = (system.name for system in report.systems)
    tests = {test.name: test for test in report.tests}
    found = [(name, tests["SPICE" if name == ALL else f"SPICE_{name}"]) for name in report.categories]
    rows = [
        Row(
            "SPICE" if name == ALL else name,
            [Mark("difference", test.difference, test.low, test.high, ink(int((test.difference or 0) > 0)))],
        )
        for name, test in found
    ]
    return interval_chart(
        f"Differences: {second} minus {first}", rows, axis=f"{second} minus {first}", signed=True, description=_PAIRS
    )


_PAIRS = "Points by category with 95 % intervals. The table of paired tests has the numbers."


def _distribution(systems: Sequence[SystemView]) -> Markup:
    tenths = len(systems[0].distribution)
    lines = [Line(s.name, [row.items for row in s.distribution], ink(place)) for place, s in enumerate(systems)]
    described = " ".join(
        f"{system.name}: " + ", ".join(f"{row.items} in {row.label}" for row in system.distribution if row.items) + "."
        for system in systems
    )
    edges = [place / tenths for place in range(tenths + 1)]
    return histogram("Images by SPICE", edges, lines, x="SPICE", y="images", description=described)


def _means(systems: Sequence[SystemView], part: str, title: str, about: str) -> Markup:
    rows: list[Sequence[MeanRow]] = [getattr(system, part) for system in systems]
    lines = [
        Line(system.name, [row.mean for row in own], ink(place), [counted(row.items, "image") for row in own])
        for place, (system, own) in enumerate(zip(systems, rows, strict=True))
    ]
    described = " ".join(
        f"{line.name}: "
        + ", ".join(
            f"{row.mean:.3f} at {row.label} ({counted(row.items, 'image')})" for row in own if row.mean is not None
        )
        + "."
        for line, own in zip(lines, rows, strict=True)
    )
    labels = [row.label for row in rows[0]]
    return line_chart(title, labels, lines, x=about, y="mean SPICE", description=described)


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
