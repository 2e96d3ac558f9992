from spicegraph_scorer.adapters.pycocoevalcap import Spice

__all__ = ["Spice"]
