"""A report as text, by format, and its charts."""
# The page draws images from compressed JSON, unpacked in the browser when it is looked at: an index of all images
# serves sorting, filtering and searching; details come in chunks: 5,000 images cost one chunk's parsing for the one
# opened.

from __future__ import annotations

import base64
import gzip
from dataclasses import fields
from enum import StrEnum
from itertools import chain, count
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup

from spicegraph_parser.errors import counted
from spicegraph_parser.spice.rules import RULES
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.errors import CHANCES, KINDS, ErrorKind
from spicegraph_service.output.charts import HUMAN_INK, Line, Mark, histogram, ink, interval_chart, line_chart
from spicegraph_service.output.pages import permalink, render_page, static
from spicegraph_service.output.standing import label, standing_grid
from spicegraph_service.report.markdown import markdown_of
from spicegraph_service.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spicegraph_scorer.core.credit import Credit
    from spicegraph_service.report.data import (
        CandidateView,
        GradedView,
        GraphPicture,
        MeanRow,
        Report,
        SideView,
        SystemView,
        TupleView,
    )


def report_charts(report: Report) -> dict[str, Markup]:
    """Return the charts of a report by name; ``references`` only where their number differs between images."""
    tenths = len(report.systems[0].distribution)
    charts = {
        "category": _categories(report),
        "distribution": histogram(
            "Images by SPICE",
            [n / tenths for n in range(tenths + 1)],
            [Line(s.name, [row.items for row in s.distribution], ink(n)) for n, s in enumerate(report.systems)],
            x="SPICE",
            y="images",
            description=" ".join(
                f"{s.name}: " + ", ".join(f"{row.items} in {row.label}" for row in s.distribution if row.items) + "."
                for s in report.systems
            ),
        ),
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
    systems = [(system, ink(number)) for number, system in enumerate(report.systems)]
    systems += [(report.human, HUMAN_INK)] if report.human else []
    rows = [
        (
            label(name),
            [
                Mark(system.name, row.f, row.low, row.high, colour, counted(row.items, "image"))
                for system, colour in systems
                for row in (system.categories[number],)
            ],
        )
        for number, name in enumerate(report.categories)
    ]
    described = "Points by category and system with 95 % intervals. The table of categories has the numbers."
    return interval_chart("Mean F1 by category", rows, axis="mean F1", description=described)


def _differences(report: Report) -> Markup:
    """Return by how much the second of two systems is better in each category, in the colour of the better one."""
    [((first, second), pair_tests)] = report.tests.items()
    tests = {test.name: test for test in pair_tests}
    rows = []
    for name in report.categories:
        test = tests["SPICE" if name == ALL else f"SPICE_{name}"]
        colour = ink(int((test.difference or 0) > 0))
        mark = Mark("difference", test.difference, test.low, test.high, colour)
        rows.append((label(name), [mark]))
    return interval_chart(
        f"Differences: {second} minus {first}", rows, axis=f"{second} minus {first}", signed=True, description=_PAIRS
    )


_PAIRS = "Points by category with 95 % intervals. The table of paired tests has the numbers."


def _means(systems: Sequence[SystemView], part: str, title: str, about: str) -> Markup:
    rows: list[Sequence[MeanRow]] = [getattr(system, part) for system in systems]
    lines = [
        Line(system.name, [row.mean for row in means], ink(number), [counted(row.items, "image") for row in means])
        for number, (system, means) in enumerate(zip(systems, rows, strict=True))
    ]
    described = " ".join(
        f"{line.name}: "
        + ", ".join(
            f"{row.mean:.3f} at {row.label} ({counted(row.items, 'image')})" for row in means if row.mean is not None
        )
        + "."
        for line, means in zip(lines, rows, strict=True)
    )
    labels = [row.label for row in rows[0]]
    return line_chart(title, labels, lines, x=about, y="mean SPICE", description=described)


def _blocks(report: Report) -> list[dict[str, object]]:
    """Return the error tables: every system's error kinds by denominator, most frequent first."""
    blocks: dict[str, list[tuple[ErrorKind, ...]]] = {}
    for errors in zip(*(system.kinds for system in report.systems), strict=True):
        if any(each.count for each in errors):
            blocks.setdefault(errors[0].kind.among, []).append(errors)
    return [
        {
            "title": CHANCES[among].title,
            "side": CHANCES[among].side.value,
            "follows": not kinds[0][0].kind.primary,
            "of": [errors.of for errors in kinds[0]],
            "kinds": sorted(kinds, key=lambda errors: -max(each.rate or 0.0 for each in errors)),
        }
        for among, kinds in blocks.items()
    ]


class ReportFormat(StrEnum):
    """The output formats of ``report``."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"


def to_html(report: Report, *, parts: str | None = None) -> str:
    """Return one self-contained page; ``parts`` is a folder beside it with the images' details (:func:`to_parts`)."""
    values = {
        "report": report,
        "human": report.human,
        "index": _raw(index(report)),
        "chunks": [_raw(part) for part in chunks(report)] if parts is None else (),
        "parts": parts,
        "verdict": verdict(report),
        "standing": standing_grid(report.standings, [system.name for system in report.systems]),
        "label": label,
        "blocks": _blocks(report),
        "groups_shown": 12,
        "examples_shown": 4,
        "charts": report_charts(report),
    }
    return render_page(
        "report.html.j2",
        values,
        script=static("descriptions.js") + static("image.js") + static("report.js"),
        style=static("report.css"),
        images=True,
        parts=parts is not None,
    )


def to_parts(report: Report) -> dict[str, str]:
    """Return the details of the images as scripts by file name: a page from a disk loads no other files."""
    return {f"chunk{n}.js": f'spicegraphPart("chunk{n}", "{part}");\n' for n, part in enumerate(chunks(report))}


def to_json(report: Report) -> str:
    """Return everything in the report as JSON, ``tuples`` and ``pictures`` of every image included."""
    return msgspec.json.encode(report_values(report), enc_hook=methodcaller("to_dict")).decode() + "\n"


def report_values(report: Report) -> dict[str, Any]:
    """Return everything in a report, the verdict too, by the names that its JSON has."""
    values = _fields(report) | {"systems": list(map(_system, report.systems))}
    values["verdict"] = _fields(verdict(report))
    values["standings"] = [_fields(row) | {"tied": row.tied, "is_sure": row.is_sure} for row in report.standings]
    values["human"] = None if report.human is None else _system(report.human)
    values["tests"] = [
        _fields(test) | {"first": first, "second": second}
        for (first, second), tests in report.tests.items()
        for test in tests
    ]
    return values


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _system(view: SystemView) -> dict[str, Any]:
    """Return a system's part as JSON values: the scorer's records with the rates that they derive."""
    said = [
        {name: getattr(row, name) for name in ("category", "invented", "said", "captions")}
        | {"per_instance": row.per_instance, "per_sentence": row.per_sentence}
        for row in view.hallucinations
    ]
    kinds = [
        {
            "key": errors.name,
            **{name: getattr(errors.kind, name) for name in ("title", "side", "primary", "near")},
            "among": CHANCES[errors.kind.among].title,
            "columns": errors.kind.columns,
            **{name: getattr(errors, name) for name in ("count", "of", "rate", "items")},
            "groups": [
                {name: getattr(group, name) for name in ("words", "count", "weight", "rate", "items")}
                for group in errors.groups
            ],
        }
        for errors in view.kinds
    ]
    return _fields(view) | {"hallucinations": said, "kinds": kinds}


REPORT_FORMATS: Mapping[ReportFormat, Callable[[Report], str]] = {
    ReportFormat.HTML: to_html,
    ReportFormat.JSON: to_json,
    ReportFormat.MARKDOWN: markdown_of,
}


CHUNK = 100  # images in a chunk of details

_DIGITS = 4


def index(report: Report) -> str:
    """Return the packed index: names, kinds, and each image's sort and filter keys."""
    return _packed(
        {
            "chunk": CHUNK,
            "rules": [[name, (rule.__doc__ or "").partition("\n")[0]] for name, rule in RULES.items()],
            "systems": [view.name for view in report.systems],
            "categories": report.categories,
            "metrics": report.metrics,
            "lower": [row.name for row in report.systems[0].scores if row.lower_is_better],
            "kinds": [[name, kind.title, kind.side.value, kind.near] for name, kind in KINDS.items()],
            "synsets": {n: "; or ".join(": ".join(s.values()) for s in of) for n, of in report.synsets.items()},
            "groups": [[[g.words for g in kind.groups] for kind in view.kinds] for view in report.systems],
            "senses": _senses(report),
            "workings": list(_workings(report)),
            **_by_image(report),
        }
    )


def _by_image(report: Report) -> dict[str, object]:
    """Return each image's sort and filter keys, with numbers by system."""
    columns = list(zip(*(image.candidates for image in report.images), strict=True))
    return {
        "sources": _sources(report),
        "ids": [permalink(image.id) for image in report.images],
        "captions": [[view.caption for view in views] for views in columns],
        # Of the references there are as many tuples for every system.
        "reference": [[counts.reference for counts in view.counts] for view in columns[0]],
        "counts": [list(map(_counts, views)) for views in columns],
        "values": [_values(views, len(report.metrics)) for views in columns],
        "errors": [_errors(view, len(report.images)) for view in report.systems],
    }


def _sources(report: Report) -> list[str | None] | None:
    """Return where the images are, but for those in the page, which stand with the details; ``None``: no image is."""
    sources = [image.source for image in report.images]
    if not any(sources):
        return None
    return [None if source is None or source.startswith(_IN_PAGE) else source for source in sources]


def _counts(view: CandidateView) -> list[int]:
    """Return how many tuples of each category match, and how many the candidate has."""
    return [number for counts in view.counts for number in counts[:2]]


def _values(views: Sequence[CandidateView], metrics: int) -> list[list[float | None]]:
    """Return the scores of each metric."""
    return [_rounded([view.metrics[metric] for view in views]) for metric in range(metrics)]


def _errors(view: SystemView, images: int) -> list[list[int]]:
    """Return the errors of each image: one after the other, the number of its kind and that of its group."""
    errors: list[list[int]] = [[] for _ in range(images)]
    for kind in view.kinds:
        for number, group in enumerate(kind.groups):
            for item in group.items:
                errors[item] += _KINDS[kind.name], number
    return errors


def _workings(report: Report) -> dict[tuple[str, str], int]:
    """Return the texts that say how a score comes about, with their numbers."""
    views = (candidates[s] for s in range(len(report.systems)) for candidates in (i.candidates for i in report.images))
    texts = dict.fromkeys((working.score, working.text) for view in views for working in view.workings)
    return {text: number for number, text in enumerate(texts)}


_KINDS = {name: number for number, name in enumerate(KINDS)}
_RULES = {name: number for number, name in enumerate(RULES)}
_IN_PAGE = "data:"


def _senses(report: Report) -> list[object]:
    """Return the synsets of the words of errors, the broader one of each (its number, or -1), and each word's."""
    parts = _parts_of_speech(report)
    wordnet = load_wordnet()
    numbers: dict[Synset, int] = {}
    broader: list[int] = []

    def number_of(sense: Synset) -> int:
        if sense not in numbers:
            above = wordnet.broader(sense)
            numbers[sense] = len(broader)
            broader.append(-1)
            if above:
                broader[numbers[sense]] = number_of(above[0])
        return numbers[sense]

    senses: dict[str, int] = {}
    for word in sorted(parts):
        sense = next((s for part in parts[word] if (s := wordnet.common_sense(word, part)) is not None), None)
        if sense is not None:
            senses[word] = number_of(sense)
    return [[wordnet.name(sense) for sense in numbers], broader, senses]


def _parts_of_speech(report: Report) -> dict[str, str]:
    """Return the likely parts of speech of each word of an error."""
    parts: dict[str, str] = {}
    for errors in chain.from_iterable(view.kinds for view in report.systems):
        for group in errors.groups:
            for column, word in zip(errors.kind.columns, group.words, strict=False):
                likely = _OF_COLUMNS.get(column, _PARTS[errors.kind.length])
                parts[word] = min(parts.get(word, likely), likely, key=_ORDER.index)
    return parts


_OF_COLUMNS = {
    **dict.fromkeys(("Object", "Subject", "Of", "Belongs to", "Given to", "Owner", "Has"), "n"),
    **dict.fromkeys(("References have it with", "Candidate has it with"), "n"),
    "How near": "",
}  # The columns of kinds of errors whose words are nouns, or none; those of other columns are as long as their tuples.
_PARTS = {1: "n", 2: "an", 3: "v"}  # By a tuple's length: parts of speech of its words, likeliest first.
_ORDER = ("n", "an", "v", "")  # what counts for a word that stands in several places


def chunks(report: Report) -> list[str]:
    """Return the packed details, ``CHUNK`` images each."""
    workings = _workings(report)
    images = [
        [
            image.references,
            image.source if image.source and image.source.startswith(_IN_PAGE) else None,
            # The references are the same for every system.
            [[t.strings, _mentions(t), t.merged] for t in image.candidates[0].reference],
            [_candidate(candidate, workings) for candidate in image.candidates],
        ]
        for image in report.images
    ]
    return [_packed(images[start : start + CHUNK]) for start in range(0, len(images), CHUNK)]


def _candidate(view: CandidateView, workings: Mapping[tuple[str, str], int]) -> list[object]:
    return [
        [
            [t.strings, _mentions(t), t.partners, t.how if any(t.how) else (), *_why(t), t.merged]
            for t in view.candidate
        ],
        [[t.partners, *_why(t)] for t in view.reference],
        _picture(view.picture),
        view.graded and _graded(view.graded),
        [[workings[w.score, w.text], *_rounded(w.values)] for w in view.workings],
        _credits(view.credits),
        view.description and list(map(_side, view.description.values())),
    ]


def _picture(picture: GraphPicture) -> list[object]:
    """Return both graphs; the names of objects, attributes and relations are those of their tuples."""
    return [
        picture.width,
        picture.height,
        [(b.state, b.tuple, b.x, b.y, b.width, b.height, [a[1:] for a in b.attributes]) for b in picture.boxes],
        [([label[1:] for label in line.labels], line.points) for line in picture.lines],
    ]


def _side(side: SideView) -> list[object]:
    """Return a side of a description by sentence and by object."""
    return [
        [[(s.start, s.end, s.tuples, s.matched) for s in caption] for caption in side.sentences],
        [(each.object, each.attributes, each.relations) for each in side.objects],
    ]


def _credits(credits_of: Mapping[str, Credit]) -> list[object]:
    """Return where the words stand, once for all scores, and each score with its words' credits in thousandths."""
    if not credits_of:
        return []
    first = next(iter(credits_of.values()))
    return [
        [end for word in first.words for end in (word.start, word.end)],
        *([name, _brief(c.score), *(round(1000 * w.credit) for w in c.words)] for name, c in credits_of.items()),
    ]


def _graded(view: GradedView) -> list[object]:
    why: Mapping[str, Any] = view.explanation.to_dict()
    verdicts, meaning = why["verdicts"], why["meaning"]
    return [
        round(view.score, _DIGITS),
        *(
            [
                [t["words"], *_rounded((t["share"], t["support"])), t["partner"], _rounded(t["slots"]), t["denied_by"]]
                for t in why[side]
            ]
            for side in ("candidate", "reference")
        ),
        [
            [c["action"], c["words"], c["by"], round(c["score"], _DIGITS), round(c["gain"], _DIGITS)]
            for c in why["changes"]
        ],
        round(why["order"], _DIGITS),
        [
            [w["word"], w["spans"], w["verdict"], round(w["probability"], _DIGITS), w["partner"], w["instead"]]
            for w in verdicts["words"]
        ],
        round(verdicts["threshold"], _DIGITS),
        # the references' words that count most: a page has room for so many
        meaning
        and [
            round(meaning["value"], _DIGITS),
            *(
                [[word, _brief(share)] for word, share in words]
                for words in (meaning["candidate"], meaning["reference"][:12])
            ),
        ],
    ]


def _mentions(view: TupleView) -> list[object]:
    return [[m.caption, _RULES.get(m.rule, -1), *chain.from_iterable(m.spans)] for m in view.mentions]


def _why(view: TupleView) -> tuple[object, ...]:
    return None if view.kind is None else _KINDS[view.kind], view.counterpart, view.near


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else _brief(value) for value in values]


def _brief(value: float) -> float:
    """Return a number with few digits, enough for the three that pages show to be those of the number itself."""
    shown = f"{value:.3f}"
    return next(short for digits in count(_DIGITS) if f"{(short := round(value, digits)):.3f}" == shown)


def _raw(packed: str) -> Markup:
    """Let a template write packed data as it is: it has no ``<``, and scripts have no entities."""
    return Markup(packed)  # noqa: S704


def _packed(value: object) -> str:
    """Return JSON, gzipped, in base 85 (``<`` is a point): no text of a caption stands in the page's source."""
    return base64.b85encode(gzip.compress(msgspec.json.encode(value), 9, mtime=0)).decode("ascii").replace("<", ".")
