"""METEOR 1.5 at parity with its Java program, without Java."""

from spicegraph_scorer.metrics.meteor.aligner import WordMatch
from spicegraph_scorer.metrics.meteor.data import MeteorData, Sources, cache_directory, find_sources, load_data
from spicegraph_scorer.metrics.meteor.metric import Alignment, Meteor, MeteorStatistic, coco_texts, score_texts
from spicegraph_scorer.metrics.meteor.text import COCO_TEXT, Module, TextOptions

__all__ = [
    "COCO_TEXT",
    "Alignment",
    "Meteor",
    "MeteorData",
    "MeteorStatistic",
    "Module",
    "Sources",
    "TextOptions",
    "WordMatch",
    "cache_directory",
    "coco_texts",
    "find_sources",
    "load_data",
    "score_texts",
]
