"""One side of a comparison: a scene graph's tuples with what the similarity of tuples needs, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_parser.graph import SceneTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.graph import Attribute, Evidence, Relation, SceneGraph, SceneObject
    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.graded.contradiction import Values
    from spicegraph_scorer.graded.vectors import Rows

__all__ = ["Side", "concepts_of", "telling", "tuples_of"]

Integers = npt.NDArray[np.intp]

_IDF_EXPONENT: Final = 0.75
_TYPE_WEIGHTS: Final = (1.0, 0.7, 0.7)  # objects, attributes, relations
_HEAD: Final = {1: 0, 2: 1, 3: 1}  # the slot of the word that a tuple adds, by its length
_EMPTY_WORDS: Final = frozenset({"a", "be", "do", "have"})


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The tuples of a graph: its objects, then its attributes, then its relations, as many as ``sizes`` says.

    ``heads`` are the rows of the concepts that the tuples add: the object, the attribute, the relation's label.
    ``owners`` are the objects that attributes and relations start from, ``targets`` those that relations lead to.
    ``weights`` say how much each tuple counts.
    """

    tuples: tuple[SceneTuple, ...]
    sizes: tuple[int, int, int]
    heads: Integers
    owners: Integers
    targets: Integers
    weights: npt.NDArray[np.float64]
    values: tuple[Mapping[str, Values], ...]

    @classmethod
    def of(cls, graph: SceneGraph, rows: Rows) -> Side:
        """Return the tuples of a graph.

        A tuple's weight is its word's idf to the power of 0.75, times 0.7 if it is an attribute or a relation,
        times the number of captions that say it.
        """
        nodes: list[SceneObject | Attribute | Relation] = [*graph.objects, *graph.attributes, *graph.relations]
        heads = [rows.places[node.concept.strings] for node in nodes]
        sizes = (len(graph.objects), len(graph.attributes), len(graph.relations))
        idf = np.array([rows.idf[head] for head in heads], np.float64)
        said = np.array([_captions(node.evidence) for node in nodes], np.float64)
        return cls(
            tuples_of(graph),
            sizes,
            np.array(heads, np.intp),
            np.array([a.object for a in graph.attributes] + [r.subject for r in graph.relations], np.intp),
            np.array([r.object for r in graph.relations], np.intp),
            np.repeat(_TYPE_WEIGHTS, sizes) * idf**_IDF_EXPONENT * said,
            tuple([rows.values[head] for head in heads]),
        )

    def placed(self, rows: Rows) -> Side:
        """Return the same side with the places that its concepts have in other rows."""
        heads = [rows.places[found.concepts[_HEAD[len(found.concepts)]].strings] for found in self.tuples]
        return replace(self, heads=np.array(heads, np.intp))


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
    return 1 if len(evidence) == 1 else len({caption for caption, _ in evidence})


def concepts_of(graph: SceneGraph) -> Iterable[tuple[str, ...]]:
    """Yield the strings of every concept that a graph's tuples add."""
    for part in (graph.objects, graph.attributes, graph.relations):
        for node in part:
            yield node.concept.strings
