"""A study as every output shows it: tables and charts for people, one long table and JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from markupsafe import Markup

    from spicegraph_scorer.core.results import Json
    from spicegraph_service.output.studies.grid import Grid

__all__ = ["Chart", "Section", "Study"]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart and what stands under it."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: paragraphs, tables, and charts that are drawn only when a page is made.

    ``is_detail``: its tables are too long for a terminal and a paper; pages alone show them.
    """

    key: str
    title: str
    text: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    charts: Callable[[], Sequence[Chart]] | None = None
    is_detail: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the tables, each once."""
        return tuple(dict.fromkeys(note for grid in self.grids for note in grid.notes))


@dataclass(frozen=True, slots=True)
class Study:
    """All that the outputs of one study are made from.

    ``facts`` are lines that say what was compared and what was left out; ``tables`` are the long ones for programs,
    by name, the main one first; ``values`` are what JSON holds.
    """

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    tables: Mapping[str, Grid]
    values: Mapping[str, Json]
    signature: Mapping[str, Json]
