"""The classes of pycocoevalcap with their shapes, without Java (docs/from-java.md says how to change over)."""
# As there, ``compute_score(gts, res)`` takes ``{id: [reference, ...]}`` and ``{id: [candidate]}``, already tokenized,
# but for :class:`Spice`, which takes any text. Unlike there, nothing is printed or written; what the originals check
# with a bare ``assert`` raises an error that names the id (and is an ``AssertionError`` too).

from spicegraph_compat.pycocoevalcap.cider import Cider, CiderD, CiderScorer, PlainCider
from spicegraph_compat.pycocoevalcap.evaluation import COCO, COCOEvalCap, COCOEvalCapSpice, compute_scores
from spicegraph_compat.pycocoevalcap.scorers import Bleu, Meteor, PTBTokenizer, Rouge, Spice

__all__ = [
    "COCO",
    "Bleu",
    "COCOEvalCap",
    "COCOEvalCapSpice",
    "Cider",
    "CiderD",
    "CiderScorer",
    "Meteor",
    "PTBTokenizer",
    "PlainCider",
    "Rouge",
    "Spice",
    "compute_scores",
]
