"""The names of the library by the module that has them: what type checkers read, and ``__init__.py`` at run time."""

from spicegraph_parser.caption_pipeline import pipeline_path as pipeline_path
from spicegraph_parser.errors import (
    DataError as DataError,
    InputError as InputError,
    LimitError as LimitError,
    SpicegraphError as SpicegraphError,
)
from spicegraph_parser.spice.extraction import ParsedCaption as ParsedCaption, extract as extract
from spicegraph_parser.spice.graph import SceneGraph as SceneGraph, SceneTuple as SceneTuple, merge as merge
from spicegraph_parser.spice.index import Concept as Concept, Lexicon as Lexicon
from spicegraph_parser.spice.lexicon import load_lexicon as load_lexicon
from spicegraph_parser.spice.parse import Caption as Caption, Edge as Edge, Parse as Parse, Word as Word
from spicegraph_parser.fronts.conllu import read_conllu as read_conllu, write_conllu as write_conllu
from spicegraph_parser.pipelines import (
    CaptionPipeline as CaptionPipeline,
    load_pipeline as load_pipeline,
    parse_captions as parse_captions,
)
from spicegraph_parser.spice.rules import RULES as RULES, Fact as Fact
