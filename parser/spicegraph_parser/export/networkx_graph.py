"""Scene graphs as networkx graphs, and back: a node for every object, an edge for every relation.

All data are lists, mappings, strings and integers: they go through JSON (``networkx.node_link_data``) unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.graph import Attribute, Evidence, Relation, SceneGraph, SceneObject
from spicegraph_parser.spice.lexicon import Concept, load_lexicon
from spicegraph_parser.spice.rules import Fact
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx

Data: TypeAlias = dict[str, Any]
_MOST_SHOWN = 5


def to_networkx(graph: SceneGraph) -> nx.MultiDiGraph[int]:
    """See :meth:`spicegraph_parser.spice.graph.SceneGraph.to_networkx`."""
    import networkx as nx  # noqa: PLC0415 (0.2 s of import that only this needs)

    result: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for index, node in enumerate(graph.objects):
        result.add_node(index, label=node.concept.label, attributes={}, **_data(graph, node))
    for attribute in graph.attributes:
        own: dict[str, Data] = result.nodes[attribute.object]["attributes"]
        label = attribute.concept.label
        own[f"{label} ({len(own)})" if label in own else label] = _data(graph, attribute)
    for relation in graph.relations:
        label = relation.concept.label
        result.add_edge(relation.subject, relation.object, label=label, **_data(graph, relation))
    return result


def _data(graph: SceneGraph, part: SceneObject | Attribute | Relation) -> Data:
    concept, evidence = part.concept, part.evidence
    data: Data = {
        "strings": list(concept.strings),
        "synsets": _synset_names(concept),
        "rules": list(dict.fromkeys(seen.fact.rule for seen in evidence)),
        "evidence": [
            {
                "caption": caption,
                "tuple": list(fact.words),
                "rule": fact.rule,
                "tokens": [list(slot) for slot in fact.tokens],
            }
            for caption, fact in evidence
        ],
    }
    if graph.spans:
        places = (graph.spans[caption][token] for caption, tokens in part.mentions for token in tokens)
        data["spans"] = [list(span) for span in sorted(set(places)) if span[0] >= 0]
    return data


def _synset_names(concept: Concept) -> list[str]:
    """Return the names of a concept's synsets, the most frequent senses of its first string in front."""
    wordnet = load_wordnet()
    senses = [
        sense for string in concept.strings for sense in wordnet.senses(string) if sense.number in concept.synsets
    ]
    others = sorted(concept.synsets.difference(sense.number for sense in senses))  # of words that are not English
    senses += [sense for number in others for sense in wordnet.readings(number)]
    return [wordnet.name(sense) for sense in dict.fromkeys(senses)]


class _Evidence(msgspec.Struct):
    caption: int
    rule: str
    tokens: tuple[tuple[int, ...], ...]
    words: tuple[str, ...] = msgspec.field(name="tuple")


class _Part(msgspec.Struct):
    """What is read of an object, an attribute or a relation; a label alone is enough."""

    label: str
    strings: list[str] | None = None
    synsets: list[str] | None = None
    evidence: list[_Evidence] = []
    attributes: dict[str, Data] | list[str] = []  # an object's

    def said(self) -> tuple[Concept, tuple[Evidence, ...]]:
        strings = self.strings or [self.label]
        if not all(map(str.strip, strings)):
            raise InputError("label: is empty")
        lexicon, wordnet = load_lexicon(), load_wordnet()
        if self.synsets is None:
            synsets = frozenset[int]().union(*map(lexicon.synsets, strings))
        else:
            synsets = frozenset(wordnet.find(name).number for name in self.synsets)
        facts = [(row.caption, Fact(row.words, row.rule, row.tokens)) for row in self.evidence]
        return Concept.of(strings, synsets), tuple(map(Evidence._make, facts))


def from_networkx(graph: nx.Graph[Any]) -> SceneGraph:
    """See :meth:`spicegraph_parser.spice.graph.SceneGraph.from_networkx`."""
    faults: list[str] = []
    if not graph.is_directed():
        faults.append("is not directed: a relation leads from its subject to its object")

    def read(place: str, data: Mapping[str, Any]) -> tuple[_Part, Concept, tuple[Evidence, ...]]:
        try:
            part = msgspec.convert(data, _Part)
            return (part, *part.said())
        except (msgspec.ValidationError, InputError) as error:
            faults.append(f"{place}: {error}")
            return _Part(""), Concept.of((), frozenset()), ()

    numbers = {node: number for number, node in enumerate(graph)}
    objects: list[SceneObject] = []
    attributes: list[Attribute] = []
    for node, data in graph.nodes(data=True):
        part, concept, evidence = read(f"node {node!r}", data)
        objects.append(SceneObject(concept, evidence))
        own = part.attributes
        for name in own:
            row = {"label": name, **(own[name] if isinstance(own, dict) else {})}
            _, concept, evidence = read(f"node {node!r}, attribute {name!r}", row)
            attributes.append(Attribute(numbers[node], concept, evidence))
    relations = [
        Relation(numbers[subject], numbers[target], *read(f"edge {subject!r} -> {target!r}", data)[1:])
        for subject, target, data in graph.edges(data=True)
    ]
    if faults:
        more = [f"... and {len(faults) - _MOST_SHOWN:,} more"] if len(faults) > _MOST_SHOWN else []
        raise InputError("\n".join([*(f"networkx graph: {fault}" for fault in faults[:_MOST_SHOWN]), *more]))
    return SceneGraph(tuple(objects), tuple(attributes), tuple(relations))
