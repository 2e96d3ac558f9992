"""The classes of pycocoevalcap with their shapes, without Java.

To change over, replace ``from pycocoevalcap.spice.spice import Spice`` by
``from spicegraph_scorer.compat.pycocoevalcap import Spice``, and so on for the others.

As there, ``compute_score(gts, res)`` takes ``{id: [reference, ...]}`` and ``{id: [candidate]}``, already
tokenized (words with spaces between them), but for :class:`Spice`, which takes any text. Unlike there,
nothing is printed and nothing is written beside the package; what the originals check with a bare
``assert`` raises an error that names the id (and is an ``AssertionError`` too); and :class:`COCOEvalCap`
attaches every score to its own image, also where the ids are not sorted.
"""

from spicegraph_scorer.adapters.pycocoevalcap.cider import Cider, CiderD, CiderScorer, PlainCider
from spicegraph_scorer.adapters.pycocoevalcap.evaluation import COCO, COCOEvalCap, COCOEvalCapSpice, compute_scores
from spicegraph_scorer.adapters.pycocoevalcap.scorers import Bleu, Meteor, PTBTokenizer, Rouge, Spice

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
