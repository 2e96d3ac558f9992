"""The classes of pycocoevalcap; the modules below have the names that they have there."""

from spicegraph_scorer.adapters.pycocoevalcap import COCO, Bleu, Cider, COCOEvalCap, Meteor, PTBTokenizer, Rouge, Spice

__all__ = ["COCO", "Bleu", "COCOEvalCap", "Cider", "Meteor", "PTBTokenizer", "Rouge", "Spice"]
