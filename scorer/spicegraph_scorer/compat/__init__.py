"""The import paths of other packages" call shapes; :mod:`spicegraph_scorer.adapters` holds the code."""

from spicegraph_scorer.adapters import metric_path

__all__ = ["metric_path"]
