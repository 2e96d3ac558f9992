"""Scene graphs as networkx graphs, and back: a node for every object, an edge for every relation.

All data are lists, mappings, strings and integers: they go through JSON (``networkx.node_link_data``) unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.index import Concept
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.rules import Fact
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import networkx as nx

Data: TypeAlias = dict[str, Any]
Stated: TypeAlias = tuple[Concept, tuple[tuple[int, Fact], ...]]  # a concept, and the facts that state it by caption
_MOST_SHOWN = 5


class Said(Protocol):
    """An object, an attribute or a relation: its concept, the facts that state it, and the words that name it."""

    @property
    def concept(self) -> Concept:
        """The concept of the object, attribute or relation."""
        ...

    @property
    def evidence(self) -> Sequence[tuple[int, Fact]]:
        """Each fact that states it, with the caption that has it."""
        ...

    @property
    def mentions(self) -> Sequence[tuple[int, tuple[int, ...]]]:
        """Each caption with the words of it that name it."""
        ...


Spans: TypeAlias = "Sequence[Sequence[tuple[int, int]]]"  # of each caption's words


def to_networkx(
    objects: Iterable[Said],
    attributes: Iterable[tuple[int, Said]],
    relations: Iterable[tuple[int, int, Said]],
    spans: Spans,
) -> nx.MultiDiGraph[int]:
    """See :meth:`spicegraph_parser.spice.graph.SceneGraph.to_networkx`; objects count from 0."""
    import networkx as nx  # noqa: PLC0415 (0.2 s of import that only this needs)

    result: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for index, node in enumerate(objects):
        result.add_node(index, label=node.concept.label, attributes={}, **_data(spans, node))
    for index, attribute in attributes:
        own: dict[str, Data] = result.nodes[index]["attributes"]
        label = attribute.concept.label
        own[f"{label} ({len(own)})" if label in own else label] = _data(spans, attribute)
    for subject, target, relation in relations:
        result.add_edge(subject, target, label=relation.concept.label, **_data(spans, relation))
    return result


def _data(spans: Spans, part: Said) -> Data:
    concept, evidence = part.concept, part.evidence
    data: Data = {
        "strings": list(concept.strings),
        "synsets": _synset_names(concept),
        "rules": list(dict.fromkeys(fact.rule for _, fact in evidence)),
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
    if spans:
        places = (spans[caption][token] for caption, tokens in part.mentions for token in tokens)
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
    """Input fields of an object, an attribute or a relation; only ``label`` is required."""

    label: str
    strings: list[str] | None = None
    synsets: list[str] | None = None
    evidence: list[_Evidence] = []
    attributes: dict[str, Data] | list[str] = []  # an object's

    def said(self) -> Stated:
        strings = self.strings or [self.label]
        if not all(map(str.strip, strings)):
            raise InputError("label: is empty")
        lexicon, wordnet = load_lexicon(), load_wordnet()
        if self.synsets is None:
            synsets = frozenset[int]().union(*map(lexicon.synsets, strings))
        else:
            synsets = frozenset(wordnet.find(name).number for name in self.synsets)
        facts = [(row.caption, Fact(row.words, row.rule, row.tokens)) for row in self.evidence]
        return Concept.of(strings, synsets), tuple(facts)


def from_networkx(graph: nx.Graph[Any]) -> tuple[list[Stated], list[tuple[int, Stated]], list[tuple[int, int, Stated]]]:
    """Return objects, attributes with their object, and relations with their ends, by the objects' numbers.

    See :meth:`spicegraph_parser.spice.graph.SceneGraph.from_networkx`.
    """
    faults: list[str] = []
    if not graph.is_directed():
        faults.append("is not directed: a relation leads from its subject to its object")

    def read(place: str, data: Mapping[str, Any]) -> tuple[_Part, Stated]:
        try:
            part = msgspec.convert(data, _Part)
            return part, part.said()
        except (msgspec.ValidationError, InputError) as error:
            faults.append(f"{place}: {error}")
            return _Part(""), (Concept.of((), frozenset()), ())

    numbers = {node: number for number, node in enumerate(graph)}
    objects: list[Stated] = []
    attributes: list[tuple[int, Stated]] = []
    for node, data in graph.nodes(data=True):
        part, stated = read(f"node {node!r}", data)
        objects.append(stated)
        own = part.attributes
        for name in own:
            row = {"label": name, **(own[name] if isinstance(own, dict) else {})}
            attributes.append((numbers[node], read(f"node {node!r}, attribute {name!r}", row)[1]))
    relations = [
        (numbers[subject], numbers[target], read(f"edge {subject!r} -> {target!r}", data)[1])
        for subject, target, data in graph.edges(data=True)
    ]
    if faults:
        more = [f"... and {len(faults) - _MOST_SHOWN:,} more"] if len(faults) > _MOST_SHOWN else []
        raise InputError("\n".join([*(f"networkx graph: {fault}" for fault in faults[:_MOST_SHOWN]), *more]))
    return objects, attributes, relations
