"""Charts for pages: drawn by matplotlib, written as inline SVG in the colours of the page.

.. code-block:: python

    figure, axes = new_figure(height=200)
    axes.plot([1, 2, 3], [0.2, 0.3, 0.35], color=SERIES[0])
    svg = to_svg(figure, title="SPICE", description="SPICE by number of references")

Draw with the colours of :class:`Ink` and nothing else: the page's style sheet gives them their values, for light
and dark. Needs the extra ``report``.
"""

from spicegraph_service.output.plots.bars import Bars, bar_chart
from spicegraph_service.output.plots.differences import Difference, difference_chart
from spicegraph_service.output.plots.figure import new_figure, require_charts, short, with_tip
from spicegraph_service.output.plots.inks import SERIES, Ink, series_ink
from spicegraph_service.output.plots.lines import Line, histogram, line_chart
from spicegraph_service.output.plots.svg import to_svg

__all__ = [
    "SERIES",
    "Bars",
    "Difference",
    "Ink",
    "Line",
    "bar_chart",
    "difference_chart",
    "histogram",
    "line_chart",
    "new_figure",
    "require_charts",
    "series_ink",
    "short",
    "to_svg",
    "with_tip",
]
