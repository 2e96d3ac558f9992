"""The parts of a scene graph as lists: what the comparison of two graphs needs of each."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.graph import CountedGraph, Evidence, SceneGraph
    from spicegraph_parser.lexicon import Concept

__all__ = ["Nodes", "counted_nodes", "nodes_of"]

_caption_of: Final = itemgetter(0)  # of a piece of evidence


class Nodes(NamedTuple):
    """Objects, then attributes, then relations, as many as ``sizes`` says.

    ``concepts`` are those that they add (the object, the attribute, the relation's label), ``captions`` how many
    captions say each. ``owners`` are the objects that attributes and relations start from, ``targets`` those that
    relations lead to. ``graph`` is where they come from, with its evidence, if that was kept.
    """

    sizes: tuple[int, int, int]
    concepts: Sequence[Concept]
    captions: Sequence[int]
    owners: Sequence[int]
    targets: Sequence[int]
    graph: SceneGraph | None

    @property
    def strings(self) -> list[tuple[str, ...]]:
        """The strings of each concept."""
        return [concept.strings for concept in self.concepts]


def nodes_of(graph: SceneGraph) -> Nodes:
    """Return the parts of a graph that has its evidence."""
    parts = graph.objects, graph.attributes, graph.relations
    return Nodes(
        (len(graph.objects), len(graph.attributes), len(graph.relations)),
        [node.concept for part in parts for node in part],
        [_captions(node.evidence) for part in parts for node in part],
        [*[attribute.object for attribute in graph.attributes], *[relation.subject for relation in graph.relations]],
        [relation.object for relation in graph.relations],
        graph,
    )


def counted_nodes(counted: CountedGraph) -> Nodes:
    """Return the parts of a graph that has no evidence but its counts."""
    (objects, labels, attributes, relations), objects_said, labels_said = counted
    numbers = [number for part in (attributes, relations) for own in part.values() for number in own]
    owners = [owner for owner, own in attributes.items() for _ in own]
    sizes = len(objects), len(owners), len(numbers) - len(owners)
    owners += [subject for (subject, _), own in relations.items() for _ in own]
    return Nodes(
        sizes,
        [*objects, *[labels[number] for number in numbers]],
        [*objects_said, *[labels_said[number] for number in numbers]],
        owners,
        [target for (_, target), own in relations.items() for _ in own],
        None,
    )


def _captions(evidence: Sequence[Evidence]) -> int:
    """Return how many captions say something."""
    return 1 if len(evidence) == 1 else len(set(map(_caption_of, evidence)))
