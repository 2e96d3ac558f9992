"""The graph of one sentence: named nodes with attributes and relations, each with its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.scenes.network import Labels, Names

Tokens = tuple[int, ...]
"""Positions of words in their sentence, from 0."""


class Node(NamedTuple):
    """An object: its name as people would write it, its last word, and all of its words."""

    name: str
    head: int
    tokens: Tokens


class Property(NamedTuple):
    """An attribute of the node with the given index."""

    node: int
    name: str
    tokens: Tokens


class Link(NamedTuple):
    """A relation between the nodes with the given indices; no words where the caption only implies it."""

    subject: int
    object: int
    name: str
    tokens: Tokens


class SentenceGraph(NamedTuple):
    """What a sentence says of a scene."""

    forms: Sequence[str]
    tags: Sequence[str]
    nodes: tuple[Node, ...]
    properties: tuple[Property, ...]
    links: tuple[Link, ...]


def sentence_graph(
    labels: Labels, forms: Sequence[str], names: Names, stems: Sequence[frozenset[str]]
) -> SentenceGraph:
    """Return the graph that a sentence's labels describe.

    Args:
        labels: what the network says of the sentence.
        forms: its words.
        names: among them the names that people use in place of the caption's.
        stems: for each word, its forms by which relations name it ("sitting": "sitting", "sit").
    """
    parts: dict[int, list[int]] = {}
    for head, part in labels.parts:
        parts.setdefault(head, []).append(part)
    heads = {*labels.objects, *(one for one, _ in labels.attributes)}
    for one, other, _ in labels.relations:
        heads |= {one, other}

    def named(head: int, rewrites: Mapping[str, str]) -> tuple[str, Tokens]:
        tokens = tuple(sorted({head, *parts.get(head, ())}))
        text = " ".join([forms[token].lower() for token in tokens])
        return rewrites.get(text, text), tokens

    place: dict[int, int] = {}
    nodes: list[Node] = []
    for head in sorted(heads):
        name, tokens = named(head, names.objects)
        place[head] = len(nodes)
        nodes.append(Node(name, head, tokens))
    properties = [Property(place[one], *named(other, names.attributes)) for one, other in labels.attributes]
    links = [
        Link(place[one], place[other], name, _relation_tokens(name, nodes[place[one]], nodes[place[other]], stems))
        for one, other, name in labels.relations
    ]
    return SentenceGraph(forms, labels.tags, tuple(nodes), tuple(properties), tuple(links))


def _relation_tokens(name: str, subject: Node, target: Node, stems: Sequence[frozenset[str]]) -> Tokens:
    """Return the words of a sentence that state a relation: for each of its words the one nearest to its object."""
    taken = {*subject.tokens, *target.tokens}
    found = set()
    for word in name.split():
        own = [token for token, stem in enumerate(stems) if word in stem and token not in taken]
        if own:
            found.add(min(own, key=lambda token: abs(token - target.tokens[0])))
    return tuple(sorted(found))
