"""Graphs in the forms of sng_parser and FACTUAL, and pronouns across sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import CaptionPipeline, InputError, load_pipeline
from spicegraph_parser.export import sng_dict
from spicegraph_parser.export.graph_text import graph_text, is_graph_text, read_graph_text
from spicegraph_parser.spice.discourse import resolve_across


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


LONG: dict[str, tuple[str, set[tuple[str, ...]], set[tuple[str, ...]]]] = {
    "it is the subject before": ("A brown dog lies on a couch. It looks at the camera.", {("dog", "camera", "look at")}, set()),
    "its": ("A dog lies on a couch. Its ears are long.", {("dog", "ear", "have")}, set()),
    "it is no person": ("A dog sleeps. A woman stands behind it.", {("woman", "dog", "stand behind")}, {("woman", "woman", "stand behind")}),
    "she is a person": ("A woman sits beside a dog. She holds a cup.", {("woman", "cup", "hold")}, {("dog", "cup", "hold")}),
    "they are several": ("Two dogs run on a beach. They chase a ball.", {("dog", "ball", "chase")}, {("beach", "ball", "chase")}),
    "a chain": ("A man rides a horse. He wears a hat. He holds a rope.", {("man", "hat", "wear"), ("man", "rope", "hold")}, set()),
    "I is nobody": ("A dog sleeps. I like the couch.", set(), {("dog", "couch", "like")}),
}  # fmt: skip


@pytest.mark.model
@pytest.mark.parametrize(("text", "there", "not_there"), LONG.values(), ids=LONG.keys())
def test_pronouns_across_sentences(text: str, there: set[tuple[str, ...]], not_there: set[tuple[str, ...]]) -> None:
    found = set(next(load_pipeline("en_caption+long").captions([text])).tuples)
    assert there <= found
    assert not found & not_there


@pytest.mark.model
def test_one_sentence_is_left_alone(pipeline: CaptionPipeline) -> None:
    long = load_pipeline("en_caption+long")
    texts = ["A man on his bike.", "It is raining.", ""]
    assert [c.facts for c in long.captions(texts)] == [c.facts for c in pipeline.captions(texts)]
    assert long.signature == f"{pipeline.signature}+long"
    (caption,) = pipeline.parse(["A dog runs. A cat sleeps."])
    assert resolve_across(caption) == caption


@pytest.mark.model
def test_the_pronoun_keeps_its_place(pipeline: CaptionPipeline) -> None:
    text = "A dog lies there. It is brown."
    (caption,) = load_pipeline("en_caption+long").captions([text])
    fact = next(fact for fact in caption.facts if fact.words == ("dog", "brown"))
    words = [word for parse in caption.sentences for word in parse.words]
    assert [words[token].form for slot in fact.tokens for token in slot] == ["It", "brown"]


@pytest.mark.model
def test_long_captions_are_not_cut(pipeline: CaptionPipeline) -> None:
    sentences = [f"A {color} car stands beside house {number}." for number, color in enumerate(["red", "blue"] * 60)]
    (caption,) = load_pipeline("en_caption+long").captions([" ".join(sentences)])
    assert len(caption.sentences) == len(sentences)
    assert sum(words == ("car", "red") for words in caption.tuples) == 60
