"""Empty figures in the style of the pages; the only place that imports matplotlib's figure."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from spicegraph_parser.errors import DataError
from spicegraph_service.output.plots.inks import SERIES, Ink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    AnyArtist = TypeVar("AnyArtist", bound=Artist)

__all__ = ["TIP", "new_figure", "page_style", "require_charts", "short", "with_tip", "writable"]

POINTS_PER_INCH = 72
TIP = "tip:"
"""What the ids of artists begin with that carry a tip."""

_LONGEST = 22
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")

_STYLE: Mapping[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": Ink.LINE.value,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelcolor": Ink.TEXT.value,
    "font.size": 11.0,
    "grid.color": Ink.LINE.value,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, in the page's font
    "svg.hashsalt": "spicegraph",  # the same figure gives the same bytes
    "xtick.color": Ink.LINE.value,
    "xtick.labelcolor": Ink.DIM.value,
    "ytick.color": Ink.LINE.value,
    "ytick.labelcolor": Ink.TEXT.value,
}


@contextmanager
def page_style() -> Iterator[None]:
    """Let matplotlib draw in the pages' style, whatever the user's own settings are.

    Raises:
        DataError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 (an extra, and slow to load)
    except ModuleNotFoundError as error:
        raise DataError(f"charts need an extra ({error.name}): pip install 'spicegraph[report]'") from error
    settings: Any = {**mpl.rcParamsDefault, **_STYLE}
    del settings["backend"]  # only a window would have one
    with mpl.rc_context(settings):
        yield


def require_charts() -> None:
    """Say now, before the work, that charts can't be drawn.

    Raises:
        DataError: matplotlib is not installed.
    """
    with page_style():
        return


def new_figure(*, width: float = 480, height: float = 240) -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes, in the pages' style.

    Args:
        width: in units of the picture; text is 11 of them high. The page scales the picture to its place,
            up to 1.15 times.
        height: in the same units.

    Raises:
        DataError: matplotlib is not installed.
    """
    with page_style():
        from matplotlib.figure import Figure  # noqa: PLC0415 (slow to load)

        figure = Figure((width / POINTS_PER_INCH, height / POINTS_PER_INCH), layout="constrained")
        axes = figure.subplots()
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.set_prop_cycle(color=[ink.value for ink in SERIES])
    return figure, axes


def with_tip(artist: AnyArtist, text: str) -> AnyArtist:
    """Give a part of a figure a text that shows when the pointer rests on it; return the part."""
    artist.set_gid(TIP + writable(text))
    return artist


def writable(text: str) -> str:
    r"""Return text with those characters replaced that SVG can't hold.

    Example:
        >>> writable("a\x1b")
        'a\ufffd'
    """
    return _NOT_XML.sub("\ufffd", text)


def short(label: str) -> str:
    """Return a label that leaves room for the plot.

    Example:
        >>> short("a" * 30)
        'aaaaaaaaaaaaaaaaaaaaa…'
    """
    text = writable(label)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
