"""Captions and graphs as JSON, networkx, Graphviz and pictures; hostile text stays text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import Caption, Edge, Fact, Parse, ParsedCaption, Word, extract, load_lexicon, merge
from spicegraph_parser.export import caption_dict, json_ld, to_dot, to_graphml
from spicegraph_parser.export.picture import lay_out, text_width, to_svg

if TYPE_CHECKING:
    from spicegraph_parser import SceneGraph

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    'a"b',
    "a\\N",
    "]]>",
    "&amp;",
    "x\x00y",
    "a\nb",
    "\ud83d\udc36",
    "\u202e",
    "--><!--",
]


def graph_of(*captions: list[tuple[str, ...]]) -> SceneGraph:
    return merge([[Fact(words, "test", ()) for words in facts] for facts in captions], load_lexicon())


@pytest.fixture(scope="module")
def street() -> SceneGraph:
    return graph_of(
        [("man",), ("horse", "brown"), ("man", "horse", "ride"), ("man", "horse", "pet"), ("horse", "street", "on")],
        [("man", "tall"), ("man", "street", "on"), ("bench",)],
    )


def test_caption_json_has_the_rule_and_the_place_of_every_word() -> None:
    words = (Word("red", "JJ", "red", 0, 3), Word("cars", "NNS", "car", 4, 8))
    edges = (Edge("amod", 2, 1), Edge("root", 0, 2))
    assert caption_dict(extract(Caption("red cars", (Parse(words, edges),)))) == {
        "text": "red cars",
        "tuples": [["car", "red"], ["car"]],
        "rules": ["amod", "objects"],
        "spans": [[[(4, 8)], [(0, 3)]], [[(4, 8)]]],
    }


def test_words_that_do_not_stand_in_the_text_have_no_span() -> None:
    words = (Word("red", "JJ", "red"), Word("cars", "NNS", "car", 4, 8))
    caption = extract(Caption("--- cars", (Parse(words, (Edge("amod", 2, 1), Edge("root", 0, 2))),)))
    assert caption_dict(caption)["spans"] == [[[(4, 8)], []], [[(4, 8)]]]


def test_dot(street: SceneGraph) -> None:
    text = to_dot(street, title="a street")
    assert text.startswith("digraph scene {\n")
    assert 'label="a street"' in text
    assert text.count("shape=box") == 4
    assert text.count("arrowhead=none") == 2
    assert len(re.findall(r"o\d+ -> o\d+ \[label=", text)) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_dot_strings_cannot_be_left(text: str) -> None:
    for line in to_dot(graph_of([(text,)]), title=text).splitlines():
        assert not re.sub(r'"(?:[^"\\]|\\.)*"', "", line).count('"'), line


def texts_of(svg: str) -> list[str | None]:
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_picture_shows_every_name_once(street: SceneGraph) -> None:
    svg = to_svg([("a street", street)])
    assert sorted(str(text) for text in texts_of(svg)) == sorted(
        ["a street", "man", "tall", "horse", "brown", "street", "bench", "ride, pet", "on", "on"]
    )
    assert svg.count('class="arrow"') == 3


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_a_picture(text: str) -> None:
    root = ET.fromstring(to_svg([(text, graph_of([(text,), (text, text), (text, "dog", text)]))]))
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "style", "defs", "marker", "path", "rect", "g", "text"}


def test_pictures_of_nothing_and_of_several_graphs(street: SceneGraph) -> None:
    assert ET.fromstring(to_svg([])).tag == f"{SVG}svg"
    one, two = (ET.fromstring(to_svg([("", street)] * n)).get("height") for n in (1, 2))
    assert float(str(two)) > 1.5 * float(str(one))
    assert texts_of(to_svg([("nothing", graph_of([]))])) == ["nothing"]


def test_long_names_are_cut() -> None:
    (_, name) = texts_of(to_svg([("t", graph_of([("x" * 200,)]))]))
    assert name == "x" * 39 + "…"


NAMES = st.sampled_from(["man", "dog", "car", "tree", "house", "street"])
FACTS = st.lists(st.tuples(NAMES) | st.tuples(NAMES, NAMES) | st.tuples(NAMES, NAMES, st.sampled_from(["on", "ride"])))


@given(FACTS)
def test_no_two_cards_overlap_and_every_relation_has_an_arrow(facts: list[tuple[str, ...]]) -> None:
    """Also of graphs with circles and of objects related to themselves."""
    graph = graph_of(facts)
    layout = lay_out(graph)
    cards = [card for card in layout.cards if card.name]
    assert len(cards) == len(graph.objects)
    for place, one in enumerate(cards):
        for other in cards[place + 1 :]:
            beside = one.right <= other.x or other.right <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
    ends = {(arrow.route[0], arrow.route[-1]) for arrow in layout.arrows}
    assert ends == {(relation.subject, relation.object) for relation in graph.relations}


def test_graphml_is_read_back_by_networkx_and_json_ld_has_every_node() -> None:
    facts = [Fact(words, "given", ()) for words in (("man", "horse", "ride"), ("horse", "brown"), ("man",))]
    caption = ParsedCaption("a <man> & \x01", (), tuple(facts))
    graphs = [(caption.text, caption.graph())] * 2
    read = nx.parse_graphml(to_graphml(graphs))
    assert [
        (read.nodes[a]["label"], about["label"], read.nodes[b]["label"]) for a, b, about in read.edges(data=True)
    ] == [("man", "ride", "horse")] * 2
    assert {node["attributes"] for _, node in read.nodes(data=True)} == {"", "brown"}
    assert {(node["caption"], node["text"]) for _, node in read.nodes(data=True)} == {
        (0, "a <man> &  "), (1, "a <man> &  ")
    }  # fmt: skip
    document: Any = json_ld(graphs)
    ids = [node["@id"] for caption in document["@graph"] for node in caption["objects"]]
    assert len(ids) == len(set(ids)) == 4
    ends = [
        end["@id"]
        for caption in document["@graph"]
        for r in caption["relations"]
        for end in (r["subject"], r["object"])
    ]
    assert set(ends) == set(ids)


def test_a_picture_of_sixty_objects_stays_legible() -> None:
    """No two labels of relations lie over each other, and none leaves the picture."""
    facts = [(f"thing {n}", f"thing {(7 * n + 3) % 60}", f"relation {n}") for n in range(60)]
    facts += [(f"thing {n}", f"thing {(n * n + 11) % 60}", "near") for n in range(0, 60, 3)]
    facts += [(f"thing {n}", f"attribute {n}") for n in range(0, 60, 2)]
    root = ET.fromstring(to_svg([("sixty", graph_of(facts))]))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    labels = [
        (float(text.attrib["x"]), float(text.attrib["y"]), text_width(text.text or "") / 2)
        for text in root.iter(f"{SVG}text")
        if text.attrib.get("class") == "relation"
    ]
    assert len([rect for rect in root.iter(f"{SVG}rect") if rect.attrib.get("class") == "object"]) == 60
    assert len(labels) >= 60
    assert all(x >= half and x + half <= width and 0 <= y <= height for x, y, half in labels)
    for place, (x, y, half) in enumerate(labels):
        for u, v, other in labels[:place]:
            assert abs(y - v) >= 14 or abs(x - u) >= half + other, (x, y, u, v)
