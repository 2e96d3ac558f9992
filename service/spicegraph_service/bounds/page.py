"""Bounds as one page in the style of the reports."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from spicegraph_service.bounds.charts import metric_charts
from spicegraph_service.report.page import render_page

if TYPE_CHECKING:
    from spicegraph_scorer.bounds import BoundsResult

__all__ = ["bounds_page"]


def bounds_page(found: BoundsResult) -> str:
    """Return one self-contained page without a script.

    Raises:
        DataError: matplotlib is not installed.
    """
    few, most = found.references
    values = {
        "found": found,
        "against": f"{few}" if few == most else f"{few} to {most}",
        "charts": list(metric_charts(found)),
        "systems": [trial for trial in found.trials if trial.kind == "system"],
        "lower": [trial for trial in found.trials if trial.kind == "lower"],
        "version": version("spicegraph"),
    }
    return render_page("bounds.html.j2", values, package="spicegraph_service.bounds")
