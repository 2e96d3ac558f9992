from spicegraph_scorer.adapters.pycocoevalcap import (
    COCO,
    Bleu,
    Cider,
    CiderD,
    COCOEvalCap,
    COCOEvalCapSpice,
    Meteor,
    PTBTokenizer,
    Rouge,
    Spice,
    compute_scores,
)

__all__ = [
    "COCO",
    "Bleu",
    "COCOEvalCap",
    "COCOEvalCapSpice",
    "Cider",
    "CiderD",
    "Meteor",
    "PTBTokenizer",
    "Rouge",
    "Spice",
    "compute_scores",
]
