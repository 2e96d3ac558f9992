"""``pycocoevalcap.cider.cider_scorer``."""

from spicegraph_scorer.adapters.pycocoevalcap import CiderScorer

__all__ = ["CiderScorer"]
