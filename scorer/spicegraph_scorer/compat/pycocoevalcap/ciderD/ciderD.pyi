from spicegraph_scorer.adapters.pycocoevalcap import CiderD

__all__ = ["CiderD"]
