from spicegraph_scorer.adapters.pycocoevalcap import PlainCider as Cider

__all__ = ["Cider"]
