"""What ``spicegraph bounds`` shows: tables, CSV, LaTeX, JSON, and a page."""

from spicegraph_service.bounds.formats import BOUNDS_FORMATS, BoundsFormat
from spicegraph_service.bounds.processes import spread_over

__all__ = ["BOUNDS_FORMATS", "BoundsFormat", "spread_over"]
