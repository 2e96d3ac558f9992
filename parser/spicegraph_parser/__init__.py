"""Captions to scene graphs: dependency parses, rules, WordNet concepts."""

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.errors import DataError, InputError, LimitError, SpicegraphError
from spicegraph_parser.extract import ParsedCaption, extract
from spicegraph_parser.graph import SceneGraph, SceneTuple, merge
from spicegraph_parser.lexicon import Concept, Lexicon, load_lexicon
from spicegraph_parser.parse import Caption, Edge, Parse, Word, read_conllu, write_conllu
from spicegraph_parser.pipelines import CaptionPipeline, load_pipeline, parse_captions
from spicegraph_parser.rules import RULES, Fact

__all__ = [
    "RULES",
    "Caption",
    "CaptionPipeline",
    "Concept",
    "DataError",
    "Edge",
    "Fact",
    "InputError",
    "Lexicon",
    "LimitError",
    "Parse",
    "ParsedCaption",
    "SceneGraph",
    "SceneTuple",
    "SpicegraphError",
    "Word",
    "extract",
    "load_lexicon",
    "load_pipeline",
    "merge",
    "parse_captions",
    "pipeline_path",
    "read_conllu",
    "write_conllu",
]
