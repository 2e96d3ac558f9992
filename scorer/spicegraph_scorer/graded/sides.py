"""One side of a comparison: a scene graph's tuples with what the similarity of tuples needs, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_parser.graph import SceneTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.graph import Evidence, SceneGraph
    from spicegraph_parser.lexicon import Concept
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.graded.contradiction import Values
    from spicegraph_scorer.graded.vectors import Rows

__all__ = ["Side", "concepts_of", "sides_of", "telling", "tuples_of"]

Integers = npt.NDArray[np.intp]

_TYPE_WEIGHTS: Final = (1.0, 0.7, 0.7)  # objects, attributes, relations
_OWNER_SHARE: Final = 0.5
_ENDS_SHARE: Final = 0.7
_BOUND: Final = np.array([[0, _OWNER_SHARE, _ENDS_SHARE], [0, 0, _ENDS_SHARE]], np.float32)
"""How much of the similarity of an object, an attribute, a relation depends on its place: at a candidate's objects, at
the references'. What references say is found wherever the candidate says it: a wrong owner is one fault, not two.
"""
_caption_of: Final = itemgetter(0)  # of a piece of evidence
_EMPTY_WORDS: Final = frozenset({"a", "be", "do", "have"})


@dataclass(frozen=True, eq=False)
class Side:
    """The tuples of a graph: its objects, then its attributes, then its relations, as many as ``sizes`` says.

    ``concepts`` are those that the tuples add (the object, the attribute, the relation's label), ``heads`` their rows.
    ``owners`` are the objects that attributes and relations start from, ``targets`` those that relations lead to.
    ``weights`` say how much each tuple counts, ``bound`` how much of its similarity depends on its place (as a
    candidate's, as a reference's), ``values`` which tuples, by index, have values that exclude others.
    """

    graph: SceneGraph
    sizes: tuple[int, int, int]
    concepts: Sequence[Concept]
    heads: Integers
    owners: Integers
    targets: Integers
    weights: npt.NDArray[np.float64]
    bound: npt.NDArray[np.float32]
    values: Sequence[tuple[int, Values]]

    @classmethod
    def of(cls, graph: SceneGraph, rows: Rows) -> Side:
        """Return the tuples of a graph; see :func:`sides_of`."""
        return sides_of([graph], rows)[0]

    @cached_property
    def tuples(self) -> tuple[SceneTuple, ...]:
        """The tuples themselves; scores do without them."""
        return tuples_of(self.graph)

    def placed(self, rows: Rows) -> Side:
        """Return the same side with the places that its concepts have in other rows."""
        return replace(self, heads=np.array([rows.places[concept.strings] for concept in self.concepts], np.intp))


def sides_of(graphs: Sequence[SceneGraph], rows: Rows) -> list[Side]:
    """Return the tuples of each graph; arrays are made once for all of them, which is twice as fast.

    A tuple's weight is its word's idf to the power of 0.75, times 0.7 if it is an attribute or a relation, times the
    number of captions that say it.
    """
    sizes = [(len(graph.objects), len(graph.attributes), len(graph.relations)) for graph in graphs]
    nodes = [node for graph in graphs for part in (graph.objects, graph.attributes, graph.relations) for node in part]
    concepts = [node.concept for node in nodes]
    places, values = rows.places, rows.values
    head_list = [places[concept.strings] for concept in concepts]
    heads = np.array(head_list, np.intp)
    repeats = list(chain.from_iterable(sizes))
    bound = np.repeat(np.tile(_BOUND, len(graphs)), repeats, axis=1)
    weights = (
        np.repeat(np.tile(_TYPE_WEIGHTS, len(graphs)), repeats)
        * rows.weights.take(heads)
        * np.array([_captions(node.evidence) for node in nodes], np.float64)
    )
    owners = np.array(
        [node[0] for graph in graphs for part in (graph.attributes, graph.relations) for node in part], np.intp
    )
    targets = np.array([relation.object for graph in graphs for relation in graph.relations], np.intp)
    sides = []
    first = owner = target = 0
    for graph, (objects, attributes, relations) in zip(graphs, sizes, strict=True):
        last = first + objects + attributes + relations
        next_owner, next_target = owner + attributes + relations, target + relations
        valued = [(index, values[head]) for index, head in enumerate(head_list[first:last]) if head in values]
        sides.append(
            Side(
                graph,
                (objects, attributes, relations),
                concepts[first:last],
                heads[first:last],
                owners[owner:next_owner],
                targets[target:next_target],
                weights[first:last],
                bound[:, first:last],
                valued,
            )
        )
        first, owner, target = last, next_owner, next_target
    return sides


def telling(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts without attributes that say nothing: SPICE makes ("banana", "a") of "a bunch of bananas"."""
    return [fact for fact in facts if len(fact.words) != 2 or fact.words[1] not in _EMPTY_WORDS]


def tuples_of(graph: SceneGraph) -> tuple[SceneTuple, ...]:
    """Return objects, attributes and relations of a graph in its own order."""
    nodes = [node.concept for node in graph.objects]
    return (
        *[SceneTuple((concept,), seen) for concept, seen in graph.objects],
        *[SceneTuple((nodes[of], concept), seen) for of, concept, seen in graph.attributes],
        *[SceneTuple((nodes[a], concept, nodes[b]), seen) for a, b, concept, seen in graph.relations],
    )


def _captions(evidence: Sequence[Evidence]) -> int:
    """Return how many captions say something."""
    return 1 if len(evidence) == 1 else len(set(map(_caption_of, evidence)))


def concepts_of(graph: SceneGraph) -> list[tuple[str, ...]]:
    """Return the strings of every concept that a graph's tuples add."""
    return [node.concept.strings for part in (graph.objects, graph.attributes, graph.relations) for node in part]
