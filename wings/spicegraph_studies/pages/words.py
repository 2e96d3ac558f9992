"""People's agreement on words as tables, and as points of precision and recall beside the model's curve."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Grid, Line, Point, headings, ink, line_chart, scatter_chart
from spicegraph_studies.pages.output import Chart, Section, Study
from spicegraph_studies.words import CLASSES, model_point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_service.kit import Cell
    from spicegraph_studies.words import WordStudy

WORD_TABLES: Final = ("words", "curve")  # the tables that CSV can hold; the first is the default

_STEPS: Final = 50  # points of the model's curve
_METHOD = (
    "A word's recall is the share of the others' uses of it that one more caption repeats, and its precision weighs an "
    "image by how many references have the word, and by 1 if none has; both are the means over every caption of an "
    "image against every choice of k others. The model: an object is in an image with probability q, people use its "
    "word with probability p if it is there, and never otherwise. Then recall is p, and precision with k references "
    "pk / (pk + (1 - p)^k); p and q are those under which the counts are most likely.",
    "After Chen et al. 2015, “Microsoft COCO Captions: Data Collection and Evaluation Server”, section 4.2.",
)


def word_study(found: WordStudy, show: int) -> Study:
    """Return the study of words, of which so many are shown one by one."""
    has_system = any(word.system is not None for word in found.words)
    figures = ["p|score", "q|score", "Recall|score", "Precision|score", "Model|score"]
    figures += ["System|score"] if has_system else []
    rows: list[tuple[Cell, ...]] = [
        (w.word, w.kind, w.uses, w.p, w.q, w.recall, w.precision[-1], w.model[-1], *([w.system] if has_system else []))
        for w in found.words
    ]
    columns = headings("Word|text", "Class|text", "Captions|count", *figures)
    notes = ["System: its precision where it has found as much of the word as people's recall says."] * has_system
    means: list[Sequence[Cell]] = [
        (kind, count, *(values if has_system else values[:-1]))
        for kind, (count, values) in found.means().items()
        if count
    ]
    curve = Grid(
        "Means over the words, by the number of references k",
        headings("k|count", "Recall|score", "Precision|score", "Model's precision|score"),
        found.curve,
    )
    k = found.people - 1
    return Study(
        "How far people agree on words",
        [
            f"{counted(found.images, 'image')} with {found.people} captions each, {counted(len(found.words), 'word')}.",
            f"p and q fit the counts of each word; recall and precision of one caption against {k} others.",
        ],
        (
            Section("chart", "Precision and recall", charts=partial(_charts, found)),
            Section(
                "classes",
                "Classes",
                (),
                (Grid("Means by class", headings("Class|text", "Words|count", *figures), means),),
            ),
            Section("curve", "References", (), (curve,)),
            Section("words", "Words", (), (Grid("The most frequent words", columns, rows[:show], notes),)),
            Section("method", "Method", _METHOD),
        ),
        {"words": Grid("words", columns, rows), "curve": curve},
        {**found.to_dict(), "signature": {"pipeline": found.pipeline}},  # type: ignore[dict-item]
        {"pipeline": found.pipeline},
    )


def _points(found: WordStudy, kinds: Sequence[str], k: int) -> Iterator[Point]:
    """Yield each word with both values, and the model's curve."""
    values = [(word.word, word.recall, word.precision[-1], kinds.index(word.kind)) for word in found.words]
    values += [("model", *model_point(step / _STEPS, k), len(kinds)) for step in range(1, _STEPS + 1)]
    for name, recall, precision, colour in values:
        if recall is not None and precision is not None:
            yield Point(recall, precision, f"{name}: {recall:.3f}, {precision:.3f}", "", ink(colour))


def _charts(found: WordStudy) -> list[Chart]:
    """Draw each word by its class beside the model's curve, and how both change with the number of references."""
    k = found.people - 1
    kinds = list(CLASSES.values())
    points = list(_points(found, kinds, k))
    legend = [(ink(number), name) for number, name in enumerate([*kinds, "the model"])]
    title = f"Words by people's recall and precision, k = {k}"
    described = f"{counted(len(points) - _STEPS, 'word')}; the tables have the numbers."
    scatter = scatter_chart(title, points, axes_names=("human recall", "human precision"), description=described)
    labels = [f"k = {point[0]}" for point in found.curve]
    lines = [
        Line(name, [point[at] for point in found.curve], ink(at - 1)) for at, name in ((1, "recall"), (2, "precision"))
    ]
    lines.append(Line("the model's precision", [point[3] for point in found.curve], ink(len(kinds))))
    by_k = line_chart(
        "With fewer references", labels, lines, x="references", y="mean over words", description="Means over the words."
    )
    return [
        Chart(scatter, title, legend),
        Chart(by_k, "With fewer references", [(line.ink, line.name) for line in lines]),
    ]
