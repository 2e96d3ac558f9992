from spicegraph_scorer.adapters.pycocoevalcap import CiderScorer

__all__ = ["CiderScorer"]
