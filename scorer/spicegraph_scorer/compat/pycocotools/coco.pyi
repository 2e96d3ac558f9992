from spicegraph_scorer.adapters.pycocoevalcap import COCO

__all__ = ["COCO"]
