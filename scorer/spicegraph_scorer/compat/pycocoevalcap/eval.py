"""``pycocoevalcap.eval``."""

from spicegraph_scorer.adapters.pycocoevalcap import COCOEvalCap

__all__ = ["COCOEvalCap"]
