"""How far the tuples of a candidate and of its references support each other, as arrays, and the sums of weights.

Two tuples are alike as far as the words are that they add (the object, the attribute, the label of the relation), and
as far as these stand in the same place: at the same object, between the same two objects in the same direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_parser.graph import SceneTuple
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.metrics.graded.facts import verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.graph import CountedGraph, Evidence, SceneGraph
    from spicegraph_parser.lexicon import Concept
    from spicegraph_scorer.metrics.graded.facts import Values
    from spicegraph_scorer.metrics.graded.vectors import Rows
    from spicegraph_scorer.metrics.spice.categories import Category

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
class GraphArrays:
    """The tuples of a graph as arrays: its objects, then its attributes, then its relations, as many as ``sizes`` says.

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

    def placed(self, rows: Rows) -> GraphArrays:
        """Return the same side with the places that its concepts have in other rows."""
        return replace(self, heads=np.array([rows.places[concept.strings] for concept in self.concepts], np.intp))


def graph_arrays(graphs: Sequence[Nodes], rows: Rows) -> list[GraphArrays]:
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
            GraphArrays(
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


Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float32]

NO_PARTNER: Final = -1


class Support(NamedTuple):
    """One side's tuples: how well each is supported, by which tuple of the other side, and why so.

    ``support``, ``word`` and ``place`` are in [0, 1]: the whole, the likeness of the words, and how far word and
    place are both alike (the least of the similarities slot by slot). ``contradicted`` says that the other side has
    another colour or count for the same object. ``partner`` is -1 where nothing supports the tuple.
    """

    support: Floats
    partner: npt.NDArray[np.intp]
    word: Floats
    place: Floats
    contradicted: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class GradedMatch:
    """Both sides of a comparison, how each side's tuples are supported by the other's, and the candidate's word order.

    ``order`` is the share of all support that the order of the candidate's words leaves, in (0, 1].
    """

    candidate: GraphArrays
    reference: GraphArrays
    precision: Support
    recall: Support
    order: float = 1.0


def supports(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> tuple[Support, Support]:
    """Return how the tuples of a candidate are supported by those of its references, and the other way round."""
    words, places, forward, backward, excess = _compared(candidate, reference, rows)
    mine = _best(forward, 1, words, places)
    if excess is not None:
        mine = _contradict(mine, candidate, excess)
    return mine, _best(backward, 0, words, places)


def degrees(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> tuple[Floats, Floats]:
    """Return how far the tuples of each side are supported: what :func:`supports` finds, without saying by what."""
    _, _, forward, backward, excess = _compared(candidate, reference, rows)
    mine: Floats = forward.max(axis=1, initial=0)
    if excess is not None:
        objects, attributes, _ = candidate.sizes
        own = mine[objects : objects + attributes]
        np.maximum(0, own - excess, out=own)
    return mine, backward.max(axis=0, initial=0)


class _Comparison(NamedTuple):
    """Every tuple of a candidate against every one of the references: word, place, support on either side.

    ``excess`` is what the references deny of each attribute of the candidate, if they deny any.
    """

    words: Matrix
    places: Matrix
    forward: Matrix
    backward: Matrix
    excess: Floats | None


def _compared(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> _Comparison:
    words = _words(candidate, reference, rows)
    excluded = _judged(words, candidate, reference)
    places = _places(candidate, reference, words)
    apart = places - words
    forward = words + candidate.bound[0][:, None] * apart
    excess = None if excluded is None else _excess(candidate, reference, words, excluded)
    return _Comparison(words, places, forward, words + reference.bound[1] * apart, excess)


def _words(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> Matrix:
    """Return the similarities of the words that tuples add: positive cosines, 1 for equal concepts."""
    words: Matrix = rows.vectors.take(candidate.heads, axis=0) @ rows.vectors.take(reference.heads, axis=0).T
    np.minimum(np.maximum(words, 0, out=words), 1, out=words)
    words[candidate.heads[:, None] == reference.heads] = 1
    return words


def _judged(words: Matrix, candidate: GraphArrays, reference: GraphArrays) -> npt.NDArray[np.bool_] | None:
    """Make words with the same value alike, and those that exclude each other unlike; return the latter, if any."""
    excluded, agreed = verdicts(candidate.values, reference.values)
    if agreed:
        words[tuple(zip(*agreed, strict=True))] = 1
    if not excluded:
        return None
    denied = np.zeros(words.shape, np.bool_)
    denied[tuple(zip(*excluded, strict=True))] = True
    words[denied] = 0
    return denied


def _places(candidate: GraphArrays, reference: GraphArrays, words: Matrix) -> Matrix:
    """Return how far tuples are alike in every slot: the least of the slots' similarities; 0 across types.

    An attribute has a place at a plain object too, as far as the object's own word suggests it ("tall" at "tower").
    """
    (objects, attributes, relations), (others, their_attributes, _) = candidate.sizes, reference.sizes
    nodes = words[:objects, :others]
    places = np.zeros(words.shape, np.float32)
    places[:objects] = words[:objects]
    mine = slice(objects, objects + attributes)
    theirs = slice(others, others + their_attributes)
    owners = nodes.take(candidate.owners, axis=0)
    if attributes:
        of_attributes = owners[:attributes]
        np.minimum(words[mine, :others], of_attributes, out=places[mine, :others])
        at_attributes = of_attributes.take(reference.owners[:their_attributes], axis=1)
        np.minimum(words[mine, theirs], at_attributes, out=places[mine, theirs])
    if relations:
        starts = owners[attributes:].take(reference.owners[their_attributes:], axis=1)
        ends = nodes.take(candidate.targets, axis=0).take(reference.targets, axis=1)
        here = np.minimum(starts, ends, out=starts)
        np.minimum(words[mine.stop :, theirs.stop :], here, out=places[mine.stop :, theirs.stop :])
    return places


def _best(similar: Matrix, axis: int, words: Matrix, places: Matrix) -> Support:
    """Return the best partner of each row (axis 1), or of each column (axis 0)."""
    count, others = similar.shape[1 - axis], similar.shape[axis]
    if not others:
        nothing = np.zeros(count, np.float32)
        return Support(nothing, np.full(count, NO_PARTNER, np.intp), nothing, nothing, np.zeros(count, np.bool_))
    partner = similar.argmax(axis=axis)
    own = np.arange(count)
    at = own * others + partner if axis else partner * count + own  # in the matrix as it lies in memory
    support = similar.take(at)
    partner[support <= 0] = NO_PARTNER
    return Support(support, partner, words.take(at), places.take(at), np.zeros(count, np.bool_))


def _excess(
    candidate: GraphArrays, reference: GraphArrays, words: Matrix, excluded: npt.NDArray[np.bool_]
) -> Floats | None:
    """Return how much more the references deny each attribute of a candidate than they say it; nothing: of none.

    They deny it by another colour or count of an object that is as similar.
    """
    (objects, attributes, _), (others, their_attributes, _) = candidate.sizes, reference.sizes
    mine, theirs = slice(objects, objects + attributes), slice(others, others + their_attributes)
    denied = excluded[mine, theirs]
    if not denied.any():
        return None
    owners = words[:objects, :others][candidate.owners[:attributes]][:, reference.owners[:their_attributes]]
    against = (owners * denied).max(axis=1)
    agreed = np.minimum(owners, words[mine, theirs]).max(axis=1)
    excess: Floats = np.maximum(0, against - agreed)
    return excess


def _contradict(found: Support, candidate: GraphArrays, excess: Floats) -> Support:
    """Take from the support of a candidate's attributes what the references deny."""
    objects, attributes, _ = candidate.sizes
    mine = slice(objects, objects + attributes)
    support, contradicted = found.support.copy(), found.contradicted.copy()
    support[mine] = np.maximum(0, support[mine] - excess)
    contradicted[mine] = excess > 0
    partner = np.where(support > 0, found.partner, NO_PARTNER)
    return Support(support, partner, found.word, found.place, contradicted)


_Part = tuple["Sequence[Concept]", list[float], list[float]]


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'.

    A candidate's tuple has a part of its weight supported that is the square root of its support; :attr:`precision`
    undoes it, so that one tuple without any support costs more than two with half of theirs.
    """

    supported: float
    candidate: float
    found: float
    reference: float

    @property
    def precision(self) -> float:
        """Power mean, with exponent 1/2, of the support of the candidate's tuples, in [0, 1]; 0 without any."""
        share = self.supported / self.candidate if self.candidate else 0.0
        return share * share

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are 0."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def weigh(
    sides: tuple[GraphArrays, GraphArrays],
    supported: tuple[Floats, Floats],
    categories: Mapping[str, Category],
    *,
    order: float = 1,
) -> dict[str, Weighed]:
    """Add up weights in total (``All``) and by category.

    ``supported`` says how far each tuple of either side is. A category holds its own tuples; what supports them may
    be of another. ``order`` is the share of every support that the order of the candidate's words leaves.
    """
    (candidate, reference), (forward, backward) = sides, supported
    left = np.float64(order)  # so that sums are of doubles
    mine = (np.sqrt(forward * left) * candidate.weights).tolist(), candidate.weights.tolist()
    theirs = (backward * left * reference.weights).tolist(), reference.weights.tolist()
    sums = {ALL: Weighed(sum(mine[0]), sum(mine[1]), sum(theirs[0]), sum(theirs[1]))}
    parts, other_parts = _parts(sides[0], *mine), _parts(sides[1], *theirs)
    for name, category in categories.items():
        kind = category.length - 1
        sums[name] = Weighed(*_sums(category, *parts[kind]), *_sums(category, *other_parts[kind]))
    return sums


def _parts(side: GraphArrays, supported: list[float], weights: list[float]) -> list[_Part]:
    """Return objects, attributes and relations of a side, each with the supported part of the weights and the whole."""
    objects, attributes, _ = side.sizes
    cuts = slice(objects), slice(objects, objects + attributes), slice(objects + attributes, None)
    return [(side.concepts[cut], supported[cut], weights[cut]) for cut in cuts]


def _sums(category: Category, concepts: Sequence[Concept], *values: list[float]) -> list[float]:
    """Return the sums of a category's values."""
    if category.words is None and category.keys is None:  # a whole type: no need to look at its tuples
        return list(map(sum, values))
    takes = category.takes(concepts) if concepts else []
    return [sum(compress(of_all, takes)) for of_all in values] if any(takes) else [0.0] * len(values)
