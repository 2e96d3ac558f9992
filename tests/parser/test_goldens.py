"""Layers B and C against what SPICE 1.0 with CoreNLP 3.6.0 printed for 6,677 COCO captions."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TypedDict

import pytest

from spicegraph_parser.spice.collapse import collapse, original
from spicegraph_parser.spice.extraction import extract
from spicegraph_parser.spice.parse import Caption, Edge, Parse, Word

_FOLDER = Path(__file__).parents[1] / "golden" / "spice"
_FILES = ("spice_parses.jsonl.gz", "spice_parses_lower.jsonl.gz")


class _Sentence(TypedDict):
    words: list[str]
    tags: list[str]
    lemmas: list[str]
    offsets: list[list[int]]
    basic: list[tuple[str, int, int]]
    collapsed: list[tuple[str, int, int]]


class _Golden(TypedDict):
    text: str
    sentences: list[_Sentence]
    tuples: list[list[str]]


def _caption(golden: _Golden, layer: str) -> Caption:
    return Caption(golden["text"], tuple(_parse(sentence, layer) for sentence in golden["sentences"]))


def _parse(sentence: _Sentence, layer: str) -> Parse:
    rows = zip(sentence["words"], sentence["tags"], sentence["lemmas"], sentence["offsets"], strict=True)
    words = tuple(Word(form, tag, lemma.lower(), start, end) for form, tag, lemma, (start, end) in rows)
    edges = sentence["basic"] if layer == "basic" else sentence["collapsed"]
    return Parse(words, tuple(Edge(*edge) for edge in edges))


@pytest.fixture(scope="module")
def goldens() -> list[_Golden]:
    found: list[_Golden] = []
    for name in _FILES:
        with gzip.open(_FOLDER / name, "rt", encoding="utf-8") as lines:
            found += map(json.loads, lines)
    assert len(found) == 6677
    return found


def test_collapsed_edges_are_the_references(goldens: list[_Golden]) -> None:
    """Layer B: the edge set of every caption is identical; the goldens do not tell a copy of a word from the word."""
    for golden in goldens:
        for number, sentence in enumerate(golden["sentences"]):
            size = len(sentence["words"])
            arcs = collapse(_parse(sentence, "basic"), sentence=number).arcs
            ours = {Edge(label, original(head, size), original(end, size)) for label, head, end in arcs}
            assert ours == {Edge(*edge) for edge in sentence["collapsed"]}, golden["text"]


@pytest.mark.parametrize("layer", ["collapsed", "basic"])
def test_tuple_sets_are_the_references(goldens: list[_Golden], layer: str) -> None:
    """Layer C: the tuple set of every caption is identical."""
    different = [
        golden["text"]
        for golden in goldens
        if set(extract(_caption(golden, layer)).tuples) != set(map(tuple, golden["tuples"]))
    ]
    assert not different


@pytest.mark.slow
def test_repeats_are_nearly_the_references(goldens: list[_Golden]) -> None:
    """Repeats within a caption don't change a score; they differ in no more than the 12 captions known."""
    different = sum(
        Counter(extract(_caption(golden, "collapsed")).tuples) != Counter(map(tuple, golden["tuples"]))
        for golden in goldens
    )
    assert different <= 12


def test_tokens_of_a_fact_are_its_words(goldens: list[_Golden]) -> None:
    """The token positions of a fact's slots lead to words of the caption, and to the slot's own head word first."""
    for golden in goldens:
        caption = _caption(golden, "basic")
        words = [word for parse in caption.sentences for word in parse.words]
        for fact in extract(caption).facts:
            assert len(fact.tokens) == len(fact.words)
            for slot, tokens in zip(fact.words[:2], fact.tokens[:2], strict=True):
                assert slot == words[tokens[0]].lemma
            for tokens in fact.tokens:
                assert all(0 <= token < len(words) for token in tokens)
