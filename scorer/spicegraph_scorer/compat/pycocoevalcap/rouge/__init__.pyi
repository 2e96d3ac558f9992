from spicegraph_scorer.adapters.pycocoevalcap import Rouge

__all__ = ["Rouge"]
