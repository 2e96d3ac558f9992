"""Merging: the laws it obeys, and the order in which it decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.spice.graph import (
    Attribute,
    Evidence,
    Relation,
    SceneGraph,
    merge,
    merge_concepts,
    merge_counted,
)
from spicegraph_parser.spice.index import Concept
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from spicegraph_parser.spice.index import Lexicon

_WORDS = st.sampled_from(
    [
        "man",
        "person",
        "woman",
        "sofa",
        "couch",
        "lounge",
        "dog",
        "puppy",
        "street",
        "road",
        "ride",
        "sit",
        "grey",
        "gray",
        "two",
        "on",
        "be",
        "zzz",
    ]
)
_FACTS = st.lists(_WORDS, min_size=1, max_size=3).map(lambda words: Fact(tuple(words), "test", ()))
_CAPTIONS = st.lists(st.lists(_FACTS, max_size=6), max_size=4)

_Captions = list[list[Fact]]


def _fact(*words: str) -> Fact:
    return Fact(words, "test", ())


def _merge(captions: _Captions, *, exact: bool = False) -> SceneGraph:
    return merge(captions, load_lexicon(), exact=exact)


def _strings(graph: SceneGraph) -> list[tuple[str, ...]]:
    return [found.strings for found in graph.tuples()]


@given(_CAPTIONS, st.booleans())
def test_concepts_merge_as_the_graph_does(captions: _Captions, exact: bool) -> None:
    """Without evidence the concepts are the same, in the same order."""
    graph, bare = _merge(captions, exact=exact), merge_concepts(captions, load_lexicon(), exact=exact)
    assert [node.concept for node in graph.objects] == bare.objects
    assert [(a.object, a.concept) for a in graph.attributes] == [
        (of, bare.labels[number]) for of, numbers in bare.attributes.items() for number in numbers
    ]
    assert [(r.subject, r.object, r.concept) for r in graph.relations] == [
        (*ends, bare.labels[number]) for ends, numbers in bare.relations.items() for number in numbers
    ]


@given(_CAPTIONS)
def test_counts_are_those_of_the_evidence(captions: _Captions) -> None:
    """Counted merging has every concept of the graph, and the number of captions in its evidence."""
    graph = merge(captions, load_lexicon(), loose=True)
    counted, objects, labels = merge_counted(captions, load_lexicon())

    def said(evidence: tuple[Evidence, ...]) -> int:
        return len({one.caption for one in evidence})

    assert [(node.concept, said(node.evidence)) for node in graph.objects] == list(
        zip(counted.objects, objects, strict=True)
    )
    for parts, numbers in ((graph.attributes, counted.attributes), (graph.relations, counted.relations)):
        flat = [number for own in numbers.values() for number in own]
        assert [said(part.evidence) for part in parts] == [labels[number] for number in flat]


def test_a_word_that_comes_again_joins_the_first_that_is_like_it_now() -> None:
    """An attribute that has grown since may stand before the one that the word joined."""
    synsets = {"dog": {0}, "a": {1}, "b": {2}, "w": {2, 3}, "x": {1, 3}}
    lexicon = SimpleNamespace(concept=lambda word: Concept.of((word,), frozenset(synsets[word])))
    facts = [_fact("dog", word) for word in ("a", "b", "w", "x", "w")]
    graph = merge([facts], cast("Lexicon", lexicon))
    assert [set(found.concept.strings) for found in graph.attributes] == [{"a", "x", "w"}, {"b", "w"}]
    assert [len(found.evidence) for found in graph.attributes] == [3, 2]


@given(_CAPTIONS)
def test_exact_mode_is_string_equality(captions: _Captions) -> None:
    """Without synonyms the tuples are the distinct facts, and the objects that they name."""
    facts = [fact.words for caption in captions for fact in caption]
    expected: set[tuple[str, ...]] = {(words[0],) for words in facts}
    expected |= {(words[1],) for words in facts if len(words) == 3}
    expected |= {words for words in facts if len(words) == 2}
    expected |= {(words[0], words[2], words[1]) for words in facts if len(words) == 3}
    assert _strings(_merge(captions, exact=True)) == sorted(expected)


@given(_CAPTIONS, st.booleans())
def test_a_fact_said_twice_counts_once(captions: _Captions, exact: bool) -> None:
    """Saying every fact twice in a row changes nothing but the evidence."""
    doubled = [[fact for fact in caption for _ in range(2)] for caption in captions]
    assert _strings(_merge(doubled, exact=exact)) == _strings(_merge(captions, exact=exact))


@given(_CAPTIONS, st.booleans())
def test_captions_merge_as_one(captions: _Captions, exact: bool) -> None:
    """Only the order of the facts matters, not how they are spread over captions."""
    joined = [[fact for caption in captions for fact in caption]]
    assert _strings(_merge(captions, exact=exact)) == _strings(_merge(joined, exact=exact))


@given(_CAPTIONS, st.booleans())
def test_evidence_is_complete(captions: _Captions, exact: bool) -> None:
    """Every fact is evidence of exactly one tuple of its own length, and of its objects."""
    given_facts = sorted(Evidence(i, fact) for i, caption in enumerate(captions) for fact in caption)
    graph = _merge(captions, exact=exact)
    found = sorted(
        evidence
        for scene_tuple in graph.tuples()
        for evidence in scene_tuple.evidence
        if len(evidence.fact.words) == len(scene_tuple.concepts)
    )
    assert found == given_facts
    for node in graph.objects:
        assert all(not node.concept.keys.isdisjoint(evidence.fact.words) for evidence in node.evidence)


@given(_CAPTIONS)
def test_synonyms_only_ever_join(captions: _Captions) -> None:
    """With synonyms there are no more tuples than without, and no string gets lost."""
    merged, exact = _merge(captions), _merge(captions, exact=True)
    assert len(merged.tuples()) <= len(exact.tuples())
    objects = {string for node in merged.objects for string in node.concept.strings}
    assert objects == {node.concept.label for node in exact.objects}


def test_synonyms_become_one_node() -> None:
    """The node carries both strings, printed as SPICE prints them, and both captions as evidence."""
    graph = _merge([[_fact("sofa", "brown")], [_fact("couch", "red"), _fact("man", "couch", "sit on")]])
    assert _strings(graph) == [
        ("man",),
        ("man", "sit on", "sofa/couch"),
        ("sofa/couch",),
        ("sofa/couch", "brown"),
        ("sofa/couch", "red"),
    ]
    sofa = next(node for node in graph.objects if "sofa" in node.concept.strings)
    assert sofa.concept.strings == ("sofa", "couch")
    assert [evidence.caption for evidence in sofa.evidence] == [0, 1, 1]


def test_the_most_similar_node_wins_then_the_first() -> None:
    """Similarity is the share of common synsets; of equals the node that came first takes the word."""
    table = {"a": {1, 2, 3, 4}, "b": {5, 6}, "c": {4, 5}, "d": {7}, "e": {8}, "f": {7, 8}}

    class Table:
        concept = staticmethod(lambda word: Concept.of((word,), frozenset(table[word])))
        exact_concept = concept

    graph = merge([[_fact(word) for word in table]], Table())  # type: ignore[arg-type]
    assert [node.concept.strings for node in graph.objects] == [("a",), ("b", "c"), ("d", "f"), ("e",)]


def test_attributes_and_relations_join_the_first_that_shares() -> None:
    """ "grey" joins "gray"; the copula in front of a relation is dropped."""
    graph = _merge(
        [[_fact("cat", "gray"), _fact("cat", "grey"), _fact("cat", "mat", "be on"), _fact("cat", "mat", "on")]]
    )
    assert [(a.object, a.concept.strings) for a in graph.attributes] == [(0, ("gray", "grey"))]
    assert [(r.subject, r.object, r.concept.label) for r in graph.relations] == [(0, 1, "on")]
    assert isinstance(graph.attributes[0], Attribute)
    assert isinstance(graph.relations[0], Relation)
    assert len(graph.relations[0].evidence) == 2


def test_no_captions_no_graph() -> None:
    """An empty graph has no tuples."""
    assert merge([], load_lexicon()) == SceneGraph((), (), ())
    assert merge([[]], load_lexicon()).tuples() == ()
