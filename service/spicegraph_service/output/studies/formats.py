"""Studies as text, by format: a table of functions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from spicegraph_service.output.report.page import render_page
from spicegraph_service.output.studies.grid import cell_text, to_csv, to_latex, to_rich
from spicegraph_service.output.tables import rendered
from spicegraph_service.output.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import RenderableType

    from spicegraph_service.output.studies.model import Section, Study

__all__ = ["BY_ENDING", "STUDY_FORMATS", "StudyFormat"]


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
}


def _table(study: Study) -> str:
    return rendered(_contents(study))


def _contents(study: Study) -> Iterator[RenderableType]:
    yield from (Text(printable(fact)) for fact in study.facts)
    for section in _short_sections(study):
        for grid in section.grids:
            yield Text()
            yield Text(printable(grid.title), style="italic")
            yield to_rich(grid, printable)
        yield from (Text(printable(note), style="dim") for note in section.notes)
    yield Text()
    yield from (Text(line, style="dim") for line in _signature_lines(study.signature))


def _short_sections(study: Study) -> Iterator[Section]:
    return (section for section in study.sections if not section.is_detail)


def _signature_lines(signature: Mapping[str, object]) -> Iterator[str]:
    """Yield a line of what all metrics share, and one for each metric, as for ``score``."""
    yield "|".join(f"{key}:{_flat(value)}" for key, value in signature.items() if key != "metrics")
    metrics = signature.get("metrics")
    for name, parts in metrics.items() if isinstance(metrics, dict) else ():
        yield "|".join((name, *(f"{key}:{_flat(value)}" for key, value in parts.items())))


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={_flat(part)}" for key, part in value.items())
    return printable(str(value))


def _json(study: Study) -> str:
    return msgspec.json.format(msgspec.json.encode(study.values), indent=2).decode() + "\n"


def _csv(study: Study) -> str:
    """Return the first of the long tables."""
    return to_csv(next(iter(study.tables.values())))


def _latex(study: Study) -> str:
    facts = "".join(f"% {' '.join(fact.split())}\n" for fact in (study.title, *study.facts))
    grids = [to_latex(grid) for section in _short_sections(study) for grid in section.grids]
    return "\n".join([facts, *grids])


def _html(study: Study) -> str:
    charts = {section.key: section.charts() if section.charts else () for section in study.sections}
    shown = [section for section in study.sections if section.text or section.grids or charts[section.key]]
    values = {
        "study": study,
        "sections": shown,
        "charts": charts,
        "cell_text": cell_text,
        "signature": tuple(_signature_lines(study.signature)),
    }
    return render_page("study.html.j2", values, package="spicegraph_service.output.studies")


STUDY_FORMATS: Mapping[StudyFormat, Callable[[Study], str]] = {
    StudyFormat.TABLE: _table,
    StudyFormat.JSON: _json,
    StudyFormat.CSV: _csv,
    StudyFormat.LATEX: _latex,
    StudyFormat.HTML: _html,
}
