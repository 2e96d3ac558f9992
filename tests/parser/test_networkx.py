"""Scene graphs as networkx graphs: all of a graph goes there and back, and what is no scene graph is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import Caption, Edge, Fact, Parse, SceneGraph, Word, extract, load_lexicon, merge
from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = st.sampled_from(
    ["man", "person", "sofa", "couch", "street", "road", "gray", "grey", "gray/grey", "two", "be on", "on", "zzz", "犬"]
)
FACTS = st.lists(WORDS, min_size=1, max_size=3).flatmap(
    lambda words: st.lists(
        st.lists(st.integers(0, 9), max_size=2).map(tuple), min_size=len(words), max_size=len(words)
    ).map(lambda tokens: Fact(tuple(words), "test", tuple(tokens)))
)
CAPTIONS = st.lists(st.lists(FACTS, max_size=6), max_size=3)


def graph_of(*captions: list[tuple[str, ...]]) -> SceneGraph:
    return merge([[Fact(words, "test", ()) for words in facts] for facts in captions], load_lexicon())


def test_objects_are_nodes_and_relations_edges() -> None:
    scene = graph_of(
        [("man",), ("horse", "brown"), ("man", "horse", "ride"), ("man", "horse", "pet"), ("horse", "street", "on")],
        [("man", "tall"), ("man", "street", "on"), ("bench",)],
    )
    graph = scene.to_networkx()
    assert [data["label"] for _, data in graph.nodes(data=True)] == ["man", "horse", "street", "bench"]
    assert list(graph.nodes[1]["attributes"]) == ["brown"]
    assert sorted(data["label"] for data in graph.get_edge_data(0, 1).values()) == ["pet", "ride"]
    assert graph.number_of_edges() == 4
    assert [sorted(part) for part in nx.weakly_connected_components(graph)] == [[0, 1, 2], [3]]


def test_nodes_carry_the_names_of_wordnet_with_the_common_sense_first() -> None:
    graph = graph_of([("man",), ("dog", "brown"), ("man", "dog", "walk"), ("zzz",)]).to_networkx()
    assert [graph.nodes[node]["synsets"][:1] for node in graph] == [["man.n.01"], ["dog.n.01"], []]
    numbers = {load_wordnet().find(name).number for name in graph.nodes[0]["synsets"]}
    assert numbers == load_lexicon().synsets("man")


def test_words_of_another_language_have_the_names_of_their_synsets() -> None:
    scene = graph_of([("dog",)])
    dog = scene.objects[0]
    foreign = SceneGraph((dog._replace(concept=dog.concept.of(["chien"], dog.concept.synsets)),), (), ())
    assert set(foreign.to_networkx().nodes[0]["synsets"]) >= set(scene.to_networkx().nodes[0]["synsets"])


def test_a_parsed_captions_graph_says_by_which_rule_and_where_in_the_text() -> None:
    text = "red cars"
    words = (Word("red", "JJ", "red", 0, 3), Word("cars", "NNS", "car", 4, 8))
    caption = extract(Caption(text, (Parse(words, (Edge("amod", 2, 1), Edge("root", 0, 2))),)))
    node = caption.graph().to_networkx().nodes[0]
    assert [text[start:end] for start, end in node["spans"]] == ["cars"]
    assert node["rules"] == ["amod", "objects"]
    assert [text[start:end] for start, end in node["attributes"]["red"]["spans"]] == ["red"]
    assert node["attributes"]["red"]["evidence"] == [
        {"caption": 0, "tuple": ["car", "red"], "rule": "amod", "tokens": [[1], [0]]}
    ]
    assert "spans" not in graph_of([("car", "red")]).to_networkx().nodes[0]


@given(CAPTIONS, st.booleans())
def test_a_graph_comes_back_whole(captions: list[list[Fact]], exact: bool) -> None:
    """Concepts, their synsets and all evidence, also through JSON and with other names of nodes."""
    scene = merge(captions, load_lexicon(), exact=exact)
    graph = scene.to_networkx()
    assert SceneGraph.from_networkx(graph).tuples() == scene.tuples()
    named = nx.relabel_nodes(graph, {node: f"n{node}" for node in graph})
    written = json.loads(json.dumps(nx.node_link_data(named)))
    assert SceneGraph.from_networkx(nx.node_link_graph(written)).tuples() == scene.tuples()


def test_a_graph_of_your_own_needs_labels_alone() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("rider", label="man")
    graph.add_node("mount", label="horse", attributes=["brown"])
    graph.add_edge("rider", "mount", label="ride")
    found = SceneGraph.from_networkx(graph)
    assert [row.strings for row in found.tuples()] == [
        ("horse",),
        ("horse", "brown"),
        ("man",),
        ("man", "ride", "horse"),
    ]
    assert found.objects[0].concept == load_lexicon().concept("man")


def _undirected() -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_node(1, label="dog")
    return graph


def _with(**data: object) -> Callable[[], nx.Graph[Any]]:
    def make() -> nx.Graph[Any]:
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_node("a", **data)
        return graph

    return make


def _bare_edge() -> nx.Graph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
    nx.set_node_attributes(graph, "dog", "label")
    return graph


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_undirected, "is not directed"),
        (_with(), "node 'a': Object missing required field `label`"),
        (_with(label=3), "node 'a': Expected `str`, got `int` - at `$.label`"),
        (_with(label=" "), "node 'a': label: is empty"),
        (_with(label="dog", attributes=["brown", ""]), "node 'a', attribute '': label: is empty"),
        (_with(label="dog", attributes="brown"), "node 'a': Expected `object | array`, got `str` - at `$.attributes`"),
        (_with(label="dog", synsets=["dog.n.99"]), "node 'a': WordNet 3.0 has no synset 'dog.n.99'"),
        (_with(label="dog", attributes={"red": {"evidence": [{}]}}), "attribute 'red': Object missing required field"),
        (_bare_edge, "edge 'a' -> 'b': Object missing required field `label`"),
    ],
)
def test_what_is_no_scene_graph_is_named(make: Callable[[], nx.Graph[Any]], message: str) -> None:
    with pytest.raises(InputError) as error:
        SceneGraph.from_networkx(make())
    assert str(error.value).startswith("networkx graph: ")
    assert message in str(error.value)


def test_every_fault_is_in_one_message() -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(7))
    with pytest.raises(InputError) as error:
        SceneGraph.from_networkx(graph)
    lines = str(error.value).splitlines()
    assert [line.partition(":")[2].split(":")[0].strip() for line in lines[:5]] == [
        f"node {number}" for number in range(5)
    ]
    assert lines[5:] == ["... and 2 more"]
