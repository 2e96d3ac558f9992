"""Graphs in the forms of sng_parser and FACTUAL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import CaptionPipeline, InputError, load_pipeline
from spicegraph_parser.export import sng_dict
from spicegraph_parser.export.graph_text import graph_text, is_graph_text, read_graph_text


@pytest.fixture(scope="module")
def pipeline() -> CaptionPipeline:
    return load_pipeline()


WORDS = st.text("abc xyz", min_size=1, max_size=8).map(lambda text: " ".join(text.split())).filter(bool)
TUPLES = st.lists(st.tuples(WORDS) | st.tuples(WORDS, WORDS) | st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=8)


@given(TUPLES)
def test_graph_text_reads_back(tuples: list[tuple[str, ...]]) -> None:
    found = {fact.words for fact in read_graph_text(graph_text(tuples))}
    objects = {(word,) for words in tuples for word in (words[:2] if len(words) == 3 else words[:1])}
    assert found == {*tuples, *objects}


@given(st.text(max_size=40))
def test_any_text_is_a_graph_or_none(text: str) -> None:
    if is_graph_text(text):
        assert read_graph_text(text)
    else:
        with pytest.raises(InputError, match="is not a graph"):
            read_graph_text(text)


@pytest.mark.parametrize("text", ["", "( )", "( a , , b )", "( a , b , c , d )", "a ( b )", "( a ) b", "( a , b"])
def test_what_is_no_graph(text: str) -> None:
    assert not is_graph_text(text)


def test_words_that_the_form_cannot_hold_lose_their_signs() -> None:
    assert graph_text([("a, (b)", "c")]) == "( a b , is , c )"


@pytest.mark.model
def test_sng_parser_dict(pipeline: CaptionPipeline) -> None:
    graph = sng_dict(next(pipeline.captions(["A man on a tall horse wears a straw hat. The wall is white."])))
    spans = [(entity["span"], entity["head"], entity["span_bounds"]) for entity in graph["entities"]]
    assert spans[:2] == [("A man", "man", (0, 2)), ("a tall horse", "horse", (3, 6))]
    assert ("The wall", "wall", (11, 13)) in spans
    relations = {
        (graph["entities"][r["subject"]]["head"], r["lemma_relation"], graph["entities"][r["object"]]["head"])
        for r in graph["relations"]
    }
    assert ("man", "wear", "hat") in relations
    assert ("man", "on", "horse") in relations
    assert graph["entities"][1]["modifiers"] == [
        {"dep": "det", "span": "a", "lemma_span": "a"},
        {"dep": "amod", "span": "tall", "lemma_span": "tall"},
    ]
    wall = next(entity for entity in graph["entities"] if entity["head"] == "wall")
    assert {"dep": "predicate", "span": "white", "lemma_span": "white"} in wall["modifiers"]
    assert {entity["type"] for entity in graph["entities"]} == {"unknown"}


@pytest.mark.model
def test_sng_parser_dict_of_nothing(pipeline: CaptionPipeline) -> None:
    assert sng_dict(next(pipeline.captions([""]))) == {"entities": [], "relations": []}
