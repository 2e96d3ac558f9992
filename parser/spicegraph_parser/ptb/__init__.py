"""Penn Treebank tokenization exactly as the Java tools do it, without Java.

Two variants: ``coco`` is CoreNLP 3.4.1 as the COCO caption toolkit runs it, ``spice`` is CoreNLP 3.6 as SPICE
1.0 runs it. On COCO captions they differ in one caption of 616,767; on odd text in a few more.
"""

from __future__ import annotations

from spicegraph_parser.ptb.rules import Variant
from spicegraph_parser.ptb.scan import Token, plain_words, split_sentences, tokenize, tokenize_lines, words

__all__ = ["Token", "Variant", "plain_words", "split_sentences", "tokenize", "tokenize_lines", "words"]
