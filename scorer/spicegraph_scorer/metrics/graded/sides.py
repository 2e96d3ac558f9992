"""One side of a comparison: a scene graph's tuples with what the similarity of tuples needs, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_parser.graph import SceneTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.graph import SceneGraph
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.graded.contradiction import Values
    from spicegraph_scorer.metrics.graded.nodes import Nodes
    from spicegraph_scorer.metrics.graded.vectors import Rows

__all__ = ["Side", "sides_of", "tuples_of"]

Integers = npt.NDArray[np.intp]

_TYPE_WEIGHTS: Final = (1.0, 0.7, 0.7)  # objects, attributes, relations
_OWNER_SHARE: Final = 0.5
_ENDS_SHARE: Final = 0.7
_FOUND_OWNER_SHARE: Final = 0.4
_BOUND: Final = np.array([[0, _OWNER_SHARE, _ENDS_SHARE], [0, _FOUND_OWNER_SHARE, _ENDS_SHARE]], np.float32)
"""How much of the similarity of an object, an attribute, a relation depends on its place: at a candidate's objects, at
the references'.
"""


@dataclass(frozen=True, eq=False)
class Side:
    """The tuples of a graph: its objects, then its attributes, then its relations, as many as ``sizes`` says.

    ``concepts`` are those that the tuples add (the object, the attribute, the relation's label), ``heads`` their rows.
    ``owners`` are the objects that attributes and relations start from, ``targets`` those that relations lead to.
    ``weights`` say how much each tuple counts, ``bound`` how much of its similarity depends on its place (as a
    candidate's, as a reference's), ``values`` which tuples, by index, have values that exclude others. ``graph`` is the
    graph itself, if its evidence was kept.
    """

    graph: SceneGraph | None
    sizes: tuple[int, int, int]
    concepts: Sequence[Concept]
    heads: Integers
    owners: Integers
    targets: Integers
    weights: npt.NDArray[np.float64]
    bound: npt.NDArray[np.float32]
    values: Sequence[tuple[int, Values]]

    @cached_property
    def tuples(self) -> tuple[SceneTuple, ...]:
        """The tuples themselves; scores do without them.

        Raises:
            ValueError: the graph was merged without its evidence.
        """
        if self.graph is None:
            raise ValueError("the graph was merged without its evidence")
        return tuples_of(self.graph)

    def placed(self, rows: Rows) -> Side:
        """Return the same side with the places that its concepts have in other rows."""
        return replace(self, heads=np.array([rows.places[concept.strings] for concept in self.concepts], np.intp))


def sides_of(graphs: Sequence[Nodes], rows: Rows) -> list[Side]:
    """Return the tuples of each graph; arrays are made once for all of them, which is twice as fast.

    A tuple's weight is its word's idf to the power of 0.75, times 0.7 if it is an attribute or a relation, times the
    number of captions that say it.
    """
    places, values = rows.places, rows.values
    head_list = [places[concept.strings] for graph in graphs for concept in graph.concepts]
    heads = np.array(head_list, np.intp)
    repeats = list(chain.from_iterable(graph.sizes for graph in graphs))
    bound = np.repeat(np.tile(_BOUND, len(graphs)), repeats, axis=1)
    weights = (
        np.repeat(np.tile(_TYPE_WEIGHTS, len(graphs)), repeats)
        * rows.weights.take(heads)
        * np.array(list(chain.from_iterable(graph.captions for graph in graphs)), np.float64)
    )
    owners = np.array(list(chain.from_iterable(graph.owners for graph in graphs)), np.intp)
    targets = np.array(list(chain.from_iterable(graph.targets for graph in graphs)), np.intp)
    sides = []
    first = owner = target = 0
    for sizes, concepts, _, own, ends, graph in graphs:
        last, next_owner, next_target = first + len(concepts), owner + len(own), target + len(ends)
        sides.append(
            Side(
                graph,
                sizes,
                concepts,
                heads[first:last],
                owners[owner:next_owner],
                targets[target:next_target],
                weights[first:last],
                bound[:, first:last],
                [(index, values[head]) for index, head in enumerate(head_list[first:last]) if head in values],
            )
        )
        first, owner, target = last, next_owner, next_target
    return sides


def tuples_of(graph: SceneGraph) -> tuple[SceneTuple, ...]:
    """Return objects, attributes and relations of a graph in its own order."""
    nodes = [node.concept for node in graph.objects]
    return (
        *[SceneTuple((concept,), seen) for concept, seen in graph.objects],
        *[SceneTuple((nodes[of], concept), seen) for of, concept, seen in graph.attributes],
        *[SceneTuple((nodes[a], concept, nodes[b]), seen) for a, b, concept, seen in graph.relations],
    )
