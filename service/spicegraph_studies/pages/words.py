"""Human agreement on words, for every output."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, Point, headings, ink, scatter_chart
from spicegraph_studies.agreement.coefficients import Bounded
from spicegraph_studies.agreement.words import ALL, expected_point, observed_point
from spicegraph_studies.pages import forest_chart, grid_of
from spicegraph_studies.pages.output import Chart, Section, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spicegraph_service.kit import Cell
    from spicegraph_studies.agreement.words import ClassAgreement, SystemWords, WordAgreement, WordStudy


_STEPS = 100
_DRAWN = 60


def _word_chart(
    title: str, words: Sequence[tuple[str, str, float | None, float | None]], references: Sequence[int], prefix: str
) -> Chart:
    """Draw words with a colour, a name, human recall and precision; and the model's curve for numbers of references."""
    points = [
        Point(recall, precision, f"{word}: recall {recall:.2f}, precision {precision:.2f}", ink=colour)
        for colour, word, recall, precision in words
        if recall is not None and precision is not None
    ]
    steps = [step / _STEPS for step in range(1, _STEPS + 1)]
    curves = {f"{prefix}k = {k}": [(p, expected_point(p, k).precision or 0.0) for p in steps] for k in references}
    model = ", with the model's curve" if curves else ""
    described = f"{counted(len(points), 'point')} by human recall and precision{model}"
    names = ("human recall", "human precision")
    svg = scatter_chart(title, points, axes_names=names, description=described, curves=curves, unit=True, height=320)
    return Chart(svg, title)


def _class_charts(study: WordStudy) -> list[Chart]:
    """Draw the words of each class, and all of them in their classes' colours, with the model's curve."""
    colours = {kind.kind: ink(number) for number, kind in enumerate(study.classes[:-1])}
    return [
        _word_chart(
            f"{kind.kind}: {counted(kind.words, 'word')}",
            [(colours[word.kind], word.word, *word.human) for word in study.words if kind.kind in {word.kind, ALL}],
            [study.people - 1],
            "model, ",
        )
        for kind in study.classes
    ]


def _curve_charts(study: WordStudy) -> list[Chart]:
    """Draw the most frequent words with each number of references, and the model's curves."""
    references = range(1, study.people)
    points = [
        (ink(k - 1), f"{word.word}, k = {k}", *observed_point(word.counts, k))
        for word in study.words[:_DRAWN]
        for k in references
    ]
    title = f"Fewer references k: the {min(_DRAWN, len(study.words))} most frequent words, and the model"
    return [_word_chart(title, points, references, "")]


def _system_charts(study: WordStudy) -> list[Chart]:
    """Draw each system's precision at human recall beside the human precision, by class."""
    return [
        forest_chart(
            f"Precision at human recall: {kind.kind}",
            [
                *((of.system, Bounded(of.at_human_recall[kind.kind], None, None)) for of in study.systems),
                ("people", Bounded(study.systems[0].human_precision[kind.kind], None, None)),
            ],
            axis="precision",
        )
        for kind in study.classes
    ]


_SHOWN = 25
_WORD_VALUES = ("p", "q", "Human recall", "Human precision", "Model precision")
_SYSTEM_VALUES = ("Precision at human recall", "Human precision")
_FREQUENT = 10
"""Images that a word is in, for the table of words: what is rarer has a recall by chance."""
_MODEL = (
    "The model (Chen et al. 2015, section 4.2): an object is in an image with probability q; a person names it with "
    "probability p if it is there, and never otherwise. Human recall is p; human precision with k references is "
    "pk / (pk + (1 - p)^k). p and q are those under which the counts are most likely."
)
_POINT_NOTE = (
    "Recall and precision: one person's captions held against k others', every caption in turn against every choice; "
    "an image where the word is right weighs as much as reference captions that hold it, others 1."
)
_PHR = (
    "Precision at human recall: the system's precision for a word where it has found as much of it as a person would. "
    "Of what the system says of a word with equal sureness, as large a random part is taken as that needs; if it says "
    "a word too rarely, a random part of the other images comes on top."
)


def word_study(study: WordStudy, source: str) -> Study:
    """Return the study of human agreement on words."""
    grids = [_class_grid(study), _curve_grid(study)]
    sections = [
        Section("classes", "By class", (_MODEL,), grids, partial(_class_charts, study)),
        Section("words", "By word", (), (_counts_grid(study), _word_grid(study)), partial(_curve_charts, study)),
    ]
    if study.systems:
        grids = [_system_grid(study), *(_system_words(study, system) for system in study.systems)]
        charts = partial(_system_charts, study)
        sections.append(Section("systems", "Precision at human recall", (_PHR,), grids, charts))
    left_out = f"; left out: {counted(study.left_out, 'image')} with fewer" if study.left_out else ""
    return Study(
        f"Human agreement on words: {PurePath(source).name}",
        (
            f"{source}: {counted(study.images, 'image')} with {study.people} captions each{left_out}.",
            f"The {counted(len(study.words), 'noun, adjective or verb', 'nouns, adjectives and verbs')} used most.",
        ),
        tuple(sections),
        {name: table(study) for name, table in WORD_TABLES.items()},
        {"source": source, **study.to_dict()},
        study.signature,
    )


def _class_grid(study: WordStudy) -> Grid:
    columns: list[tuple[str, str | Callable[[ClassAgreement], Cell]]] = [
        ("Class|text", "kind"),
        ("Words|count", "words"),
        ("p", "p"),
        ("95 % of p|span", "p_interval"),
        ("q", "q"),
        ("95 % of q|span", "q_interval"),
        ("Human recall", lambda row: row.human[-1].recall),
        ("Human precision", lambda row: row.human[-1].precision),
        ("Model precision", lambda row: row.model[-1].precision),
    ]
    notes = (
        "p and q are fitted to all counts of a class as one; recall and precision are means over its words, with "
        f"{counted(study.people - 1, 'reference')}.",
        "Intervals: 95 % percentile bootstrap over images.",
        _POINT_NOTE,
    )
    return grid_of("Word classes", study.classes, columns, notes)


def _curve_grid(study: WordStudy) -> Grid:
    references = range(1, study.people)
    columns = (
        *headings("Class|text", "|text"),
        *(Column(f"k = {k}") for k in references),
    )
    rows = [
        row
        for kind in study.classes
        for row in (
            (kind.kind, "observed", *(point.precision for point in kind.human)),
            (kind.kind, "model", *(point.precision for point in kind.model)),
        )
    ]
    title = "Human precision by number of references k (recall does not change)"
    return Grid(title, columns, rows, is_grouped=True)


def _counts_grid(study: WordStudy) -> Grid:
    columns = (
        Column("Class", "text"),
        *(Column(f"{used} of {study.people}", "percent") for used in range(1, study.people + 1)),
    )
    rows = [
        (row.kind, *(count / sum(row.counts[1:]) if sum(row.counts[1:]) else None for count in row.counts[1:]))
        for row in study.classes
    ]
    note = "Of 100 times that somebody uses a word of an image: how often so many of the people do."
    return Grid("How many people use a word that somebody uses", columns, rows, (note,))


def _word_row(word: WordAgreement, counts: Sequence[int]) -> tuple[Cell, ...]:
    """Return a word's cells: word, class, counts of images, and what ``_WORD_VALUES`` names."""
    human, model = word.human, word.model
    return word.word, word.kind, *counts, word.p, word.q, human.recall, human.precision, model.precision


def _key(title: str) -> str:
    """Return what CSV calls a column."""
    return title.lower().replace(" ", "_")


def _word_grid(study: WordStudy) -> Grid:
    words = sorted(study.words, key=lambda word: (-(word.human.recall or 0.0), word.word))  # most agreed on first
    frequent = [word for word in words if sum(word.counts[1:]) >= _FREQUENT]
    words = frequent or words
    chosen = words if len(words) <= 2 * _SHOWN else [*words[:_SHOWN], *words[-_SHOWN:]]
    columns = (
        *headings("Word|text", "Class|text"),
        *(Column(f"{used}", "count") for used in range(1, study.people + 1)),
        *map(Column, _WORD_VALUES),
    )
    rows = [_word_row(word, word.counts[1:]) for word in chosen]
    notes = ["The columns with numbers: images in which so many people use the word."]
    if frequent and len(frequent) < len(study.words):
        notes.append(f"Words that are used in at least {_FREQUENT} images.")
    if len(chosen) < len(words):
        notes.append(
            f"The {_SHOWN} words with the highest and the {_SHOWN} with the lowest recall; CSV and JSON have all."
        )
    return Grid("Words by human recall", columns, rows, notes)


def _system_grid(study: WordStudy) -> Grid:
    columns = (*headings("System|text", "Class|text"), *map(Column, _SYSTEM_VALUES))
    note = "Means over the words that at least two people share for some image."
    return Grid("Systems against people", columns, _system_rows(study), (note,), is_grouped=True)


def _system_rows(study: WordStudy) -> list[tuple[str, str, float | None, float | None]]:
    return [
        (system.system, kind.kind, system.at_human_recall[kind.kind], system.human_precision[kind.kind])
        for system in study.systems
        for kind in study.classes
    ]


def _system_words(study: WordStudy, system: SystemWords) -> Grid:
    words = [word for word in study.words if system.words[word.word][1] is not None][: 2 * _SHOWN]
    columns: list[tuple[str, str | Callable[[WordAgreement], Cell]]] = [
        ("Word|text", "word"),
        ("Class|text", "kind"),
        ("Recall", lambda word: system.words[word.word][0].recall),
        ("Precision", lambda word: system.words[word.word][0].precision),
        ("Human recall", "human.recall"),
        ("Precision at human recall", lambda word: system.words[word.word][1]),
        ("Human precision", "human.precision"),
    ]
    return grid_of(f"{system.system}: the most frequent words", words, columns)


def _rows(study: WordStudy) -> Grid:
    columns = (
        *headings("word|text", "class|text"),
        *(Column(f"images_{used}_of_{study.people}", "count") for used in range(study.people + 1)),
        *(Column(_key(title)) for title in _WORD_VALUES),
        *(
            Column(f"{system.system} {name}")
            for system in study.systems
            for name in ("recall", "precision", "precision at human recall")
        ),
    )
    rows = [
        (
            *_word_row(word, word.counts),
            *(
                cell
                for system in study.systems
                for point, precision in (system.words[word.word],)
                for cell in (point.recall, point.precision, precision)
            ),
        )
        for word in study.words
    ]
    return Grid("words", columns, rows)


def _classes(study: WordStudy) -> Grid:
    """Return a row for each class and number of references."""
    columns = (
        *headings("class|text", "words|count", "p", "p_interval|span", "q", "q_interval|span", "references|count"),
        *(Column(name) for name in ("human_recall", "human_precision", "model_recall", "model_precision")),
    )
    rows = [
        (row.kind, row.words, row.p, row.p_interval, row.q, row.q_interval, references, *human, *model)
        for row in study.classes
        for references, (human, model) in enumerate(zip(row.human, row.model, strict=True), start=1)
    ]
    return Grid("classes", columns, rows)


def _systems(study: WordStudy) -> Grid:
    columns = (*headings("system|text", "class|text"), *(Column(_key(title)) for title in _SYSTEM_VALUES))
    return Grid("systems", columns, _system_rows(study))


WORD_TABLES: Mapping[str, Callable[[WordStudy], Grid]] = {
    "words": _rows,
    "classes": _classes,
    "systems": _systems,
}
"""The tables that CSV can hold; the first is the default."""
