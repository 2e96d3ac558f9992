from spicegraph_scorer.adapters.pycocoevalcap import Bleu

__all__ = ["Bleu"]
