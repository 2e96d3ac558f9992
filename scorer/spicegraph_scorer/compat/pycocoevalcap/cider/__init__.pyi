from spicegraph_scorer.adapters.pycocoevalcap import Cider

__all__ = ["Cider"]
