from spicegraph_scorer.adapters.pycocoevalcap import PTBTokenizer

__all__ = ["PTBTokenizer"]
