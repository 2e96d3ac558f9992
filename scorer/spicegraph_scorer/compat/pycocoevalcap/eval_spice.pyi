from spicegraph_scorer.adapters.pycocoevalcap import COCOEvalCapSpice

__all__ = ["COCOEvalCapSpice"]
