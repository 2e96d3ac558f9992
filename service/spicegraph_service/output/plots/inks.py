"""The colours of charts: what matplotlib draws with, and the page's CSS variable that takes its place."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SERIES", "VARIABLES", "Ink", "series_ink"]


class Ink(StrEnum):
    """A colour of the page; usable wherever matplotlib takes a colour, with or without ``alpha``.

    The values are those of the light style, so that a figure saved in another way looks right, too. ``TEXT``,
    ``PAGE`` and ``LINE`` are matplotlib's own defaults for text, background and grid.
    """

    TEXT = "#000000"
    DIM = "#56636f"
    PAGE = "#ffffff"
    LINE = "#b0b0b0"
    SERIES_0 = "#0072b2"
    SERIES_1 = "#d55e00"
    SERIES_2 = "#009e73"
    SERIES_3 = "#b5568f"
    SERIES_4 = "#a68300"
    SERIES_5 = "#3a9bd1"
    SERIES_6 = "#6b6b6b"
    HUMAN = "#8f99a3"
    MATCHED = "#0072b3"
    MISSED = "#8a6100"
    INVENTED = "#b34700"


VARIABLES: Mapping[str, str] = {ink.value: f"var(--{ink.name.lower().replace('_', '-')})" for ink in Ink}
"""The CSS variable of each ink; ``report.css`` defines them all."""

SERIES: tuple[Ink, ...] = tuple(ink for ink in Ink if ink.name.startswith("SERIES_"))
"""The colours of systems, in their order: distinct for colour-blind readers (after Okabe and Ito)."""


def series_ink(place: int) -> Ink:
    """Return the colour of the system at a place; they repeat after seven.

    Example:
        >>> series_ink(7) is series_ink(0)
        True
    """
    return SERIES[place % len(SERIES)]
