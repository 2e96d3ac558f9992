"""Studies as every output shows them: tables for a terminal, CSV, LaTeX, JSON, and a page with charts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markupsafe import Markup
    from rich.console import RenderableType

    from spicegraph_scorer.core.results import Json

_MOST_ROWS = 14  # longer tables of a page are folded


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart, its caption, and its colour classes (:func:`charts.ink`) with names."""

    svg: Markup
    caption: str
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page; charts are drawn for pages alone, which alone show the tables where ``is_detail``."""

    key: str
    title: str
    text: Sequence[str] = ()
    grids: Sequence[kit.Grid] = ()
    charts: Callable[[], Sequence[Chart]] | None = None
    is_detail: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the tables, each once."""
        return tuple(dict.fromkeys(note for grid in self.grids for note in grid.notes))


@dataclass(frozen=True, slots=True)
class Study:
    """The source of all outputs: ``tables`` are long ones for programs, ``values`` the JSON."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    tables: Mapping[str, kit.Grid]
    values: Mapping[str, Json]
    signature: Mapping[str, Json]
    verdict: tuple[str, str] | None = None


class StudyFormat(StrEnum):
    """The output formats of ``agree`` and ``bounds``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"
    HTML = "html"


BY_ENDING: Mapping[str, StudyFormat] = {
    ".json": StudyFormat.JSON,
    ".csv": StudyFormat.CSV,
    ".tex": StudyFormat.LATEX,
    ".html": StudyFormat.HTML,
    ".htm": StudyFormat.HTML,
    ".txt": StudyFormat.TABLE,
}


def _contents(study: Study) -> Iterator[RenderableType]:
    yield from (Text(kit.printable(fact)) for fact in study.facts)
    for section in _short_sections(study):
        for grid in section.grids:
            yield Text()
            yield Text(kit.printable(grid.title), style="italic")
            yield kit.to_rich(grid, titled=False)
        yield from (Text(kit.printable(note), style="dim") for note in section.notes)
    yield Text()
    yield from (Text(line, style="dim") for line in kit.signature_lines(study.signature))


def _short_sections(study: Study) -> Iterator[Section]:
    return (section for section in study.sections if not section.is_detail)


def _html(study: Study) -> str:
    charts = {section.key: section.charts() if section.charts else () for section in study.sections}
    shown = [section for section in study.sections if section.text or section.grids or charts[section.key]]
    values = {
        "study": study,
        "sections": shown,
        "charts": charts,
        "cell_text": kit.page_text,
        "most_rows": _MOST_ROWS,
        "signature": tuple(kit.signature_lines(study.signature)),
    }
    return kit.render_page("study.html.j2", values, package="spicegraph_studies.pages")


STUDY_FORMATS: Mapping[StudyFormat, Callable[[Study], str]] = {
    StudyFormat.TABLE: lambda study: kit.rendered(_contents(study)),
    StudyFormat.JSON: lambda study: msgspec.json.format(msgspec.json.encode(study.values), indent=2).decode() + "\n",
    StudyFormat.CSV: lambda study: kit.to_csv(next(iter(study.tables.values()))),  # the first of the long tables
    StudyFormat.LATEX: lambda study: "\n".join(
        [
            "".join(f"% {' '.join(fact.split())}\n" for fact in (study.title, *study.facts)),
            *(kit.to_latex(grid) for section in _short_sections(study) for grid in section.grids),
        ]
    ),
    StudyFormat.HTML: _html,
}
