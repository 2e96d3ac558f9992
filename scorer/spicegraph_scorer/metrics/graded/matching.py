"""How far the tuples of a candidate and of its references support each other, as arrays, and the sums of weights.

Two tuples are alike as far as the words are that they add (the object, the attribute, the label of the relation), and
as far as these stand in the same place: at the same object, between the same two objects in the same direction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spicegraph_parser.graph import SceneTuple
from spicegraph_scorer.core.categories import ALL
from spicegraph_scorer.metrics.graded.facts import deny, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_parser.graph import CountedGraph, Evidence, SceneGraph
    from spicegraph_parser.lexicon import Concept, Lexicon
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


def word_nodes(captions: Iterable[Iterable[str]], lexicon: Lexicon) -> Nodes:
    """Return the words of captions, each caption a set, as objects that nothing is said of, in alphabetical order."""
    said = sorted(Counter(chain.from_iterable(captions)).items())
    concept = lexicon.exact_concept
    return Nodes((len(said), 0, 0), [concept(word) for word, _ in said], [count for _, count in said], (), (), None)


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
    """Both sides of a comparison, and how each side's tuples are supported by the other's.

    ``words`` is the same of the content words alone, each an object that nothing is said of; ``texts`` is what the
    captions say as texts.
    """

    candidate: GraphArrays
    reference: GraphArrays
    precision: Support
    recall: Support
    texts: TextMatch
    words: GradedMatch | None = None


class TextMatch(NamedTuple):
    """What a candidate's text says beside its tuples.

    ``order`` is the share of all support that the order of its words leaves, in (0, 1]; ``aligned`` its alignment with
    the best reference, in [0, 1], or ``None`` where no text was read. ``candidate`` is the text itself.
    """

    order: float = 1.0
    aligned: float | None = None
    candidate: str = ""


def supports(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> tuple[Support, Support]:
    """Return how the tuples of a candidate are supported by those of its references, and the other way round."""
    words, places, forward, backward, excess = _compared(candidate, reference, rows)
    mine = _best(forward, 1, words, places)
    if excess is not None:
        mine = _contradict(mine, excess)
    return mine, _best(backward, 0, words, places)


def degrees(
    candidate: GraphArrays, reference: GraphArrays, rows: Rows
) -> tuple[Floats, Floats, npt.NDArray[np.bool_] | None]:
    """Return how far the tuples of each side are supported: what :func:`supports` finds, without saying by what.

    The third array says which of the candidate's are contradicted; nothing: none.
    """
    _, _, forward, backward, excess = _compared(candidate, reference, rows)
    mine: Floats = forward.max(axis=1, initial=0)
    contradicted = None
    if excess is not None:
        np.maximum(0, mine - excess, out=mine)
        contradicted = excess > 0
    return mine, backward.max(axis=0, initial=0), contradicted


class _Comparison(NamedTuple):
    """Every tuple of a candidate against every one of the references: word, place, support on either side.

    ``excess`` is what the references deny of each tuple of the candidate, if they deny any.
    """

    words: Matrix
    places: Matrix
    forward: Matrix
    backward: Matrix
    excess: Floats | None


def _compared(candidate: GraphArrays, reference: GraphArrays, rows: Rows) -> _Comparison:
    words = _words(candidate, reference, rows)
    excluded = _judged(words, candidate, reference)
    if not candidate.owners.size and not reference.owners.size:  # words alone, or objects: they stand nowhere
        excess = None if excluded is None else _denied_words(candidate.values, reference.values, words)
        return _Comparison(words, words, words, words, excess)
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
    """Return how much more the references deny each tuple of a candidate than they say it; nothing: of none.

    They deny an attribute by another colour or count of an object that is as similar. Colours are compared as sets: a
    grey, black and white cat is not denied by a grey one.
    """
    (objects, attributes, _), (others, their_attributes, _) = candidate.sizes, reference.sizes
    mine, theirs = slice(objects, objects + attributes), slice(others, others + their_attributes)
    denied = excluded[mine, theirs]
    if not denied.any():
        return None
    _keep_disjoint(denied, _values_of_owners(candidate), _values_of_owners(reference))
    owners = words[:objects, :others][candidate.owners[:attributes]][:, reference.owners[:their_attributes]]
    against = (owners * denied).max(axis=1)
    agreed = np.minimum(owners, words[mine, theirs]).max(axis=1)
    excess = np.zeros(len(words), np.float32)
    excess[mine] = np.maximum(0, against - agreed)
    return excess if excess.any() else None


def _values_of_owners(side: GraphArrays) -> list[Values]:
    """Return, for each attribute, the values of all attributes of its object."""
    objects, attributes, _ = side.sizes
    owners = side.owners[:attributes].tolist()
    of_owner: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
    for index, values in side.values:
        if objects <= index < objects + attributes:
            of_owner[owners[index - objects]] |= values
    return [frozenset(of_owner[owner]) for owner in owners]


def _keep_disjoint(denied: npt.NDArray[np.bool_], mine: Sequence[Values], theirs: Sequence[Values]) -> None:
    """Take out of the denials those between objects that have a value of the family in common."""
    for row, column in zip(*np.nonzero(denied), strict=True):
        if not deny(mine[row], theirs[column]):
            denied[row, column] = False


def _denied_words(mine: Sequence[tuple[int, Values]], theirs: Sequence[tuple[int, Values]], words: Matrix) -> Floats:
    """Return 1 for each word of a candidate whose references have others of its family, and none of the candidate's."""
    said, found = (frozenset(chain.from_iterable(values for _, values in side)) for side in (mine, theirs))
    excess = np.zeros(len(words), np.float32)
    for index, values in mine:
        families = {family for family, _ in values}
        own, other = (frozenset(value for value in side if value[0] in families) for side in (said, found))
        if deny(own, other):
            excess[index] = 1
    return excess


def _contradict(found: Support, excess: Floats) -> Support:
    """Take from the support of a candidate's tuples what the references deny."""
    support = np.maximum(0, found.support - excess)
    return Support(support, np.where(support > 0, found.partner, NO_PARTNER), found.word, found.place, excess > 0)


_PRECISION_EXPONENT: Final = 0.75
_CONTRADICTED: Final = 2.0  # the weight of a contradicted tuple, in precision
_WORDS_SHARE: Final = 0.5
_ALIGNED_SHARE: Final = 0.2


class Weighed(NamedTuple):
    """Weights of tuples: of a candidate's in all, their supported part, and the same of the references'.

    ``aligned`` is the alignment of the texts, which has a fifth of F1: of the total alone, and where texts were read.
    """

    supported: float
    candidate: float
    found: float
    reference: float
    aligned: float | None = None

    @property
    def precision(self) -> float:
        """Supported share of the candidate's weight, in [0, 1]; 0 without any."""
        return self.supported / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """Found share of the references' weight, in [0, 1]; 0 without reference tuples."""
        return self.found / self.reference if self.reference else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 where both are 0; four fifths of it and a fifth of ``aligned``."""
        precision, recall = self.precision, self.recall
        found = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return found if self.aligned is None else found + _ALIGNED_SHARE * (self.aligned - found)

    def mixed(self, words: Weighed, aligned: float | None) -> Weighed:
        """Return the total: half of the support is that of the words alone, if there are any, on either side."""
        supported, found = self.supported, self.found
        if words.candidate:
            supported += _WORDS_SHARE * (words.precision * self.candidate - supported)
        if words.reference:
            found += _WORDS_SHARE * (words.recall * self.reference - found)
        return Weighed(supported, self.candidate, found, self.reference, aligned)


def weighed_against(candidate: GraphArrays, contradicted: npt.NDArray[np.bool_] | None) -> GraphArrays:
    """Return a candidate's side with the weights for precision: what the references contradict counts twice."""
    if contradicted is None:
        return candidate
    return replace(candidate, weights=np.where(contradicted, _CONTRADICTED, 1) * candidate.weights)


_Part = tuple["Sequence[Concept]", frozenset[str], list[float], list[float]]


def weigh(
    sides: tuple[GraphArrays, GraphArrays],
    supported: tuple[Floats, Floats],
    categories: Mapping[str, Category],
    *,
    order: float = 1,
) -> dict[str, Weighed]:
    """Add up weights in total (``All``) and by category.

    The supported part of a candidate's weight is the power mean, with exponent 3/4, of its tuples' support: two tuples
    with half of their support cost less than one without any. (Formula 3 had 1/2, which costs longer captions more than
    people think.)

    ``supported`` says how far each tuple of either side is. A category holds its own tuples; what supports them may
    be of another. ``order`` is the share of every support that the order of the candidate's words leaves.
    """
    (candidate, reference), (forward, backward) = sides, supported
    left = np.float64(order)  # so that sums are of doubles
    powers = (forward * left) ** _PRECISION_EXPONENT * candidate.weights
    mine = powers.tolist(), candidate.weights.tolist()
    theirs = (backward * left * reference.weights).tolist(), reference.weights.tolist()
    sums = {ALL: _weighed([*map(sum, mine), *map(sum, theirs)])}
    if categories:
        parts, other_parts = _parts(sides[0], *mine), _parts(sides[1], *theirs)
        for name, category in categories.items():
            kind = category.length - 1
            sums[name] = _weighed([*_sums(category, *parts[kind]), *_sums(category, *other_parts[kind])])
    return sums


def _weighed(sums: Sequence[float]) -> Weighed:
    powers, candidate, found, reference = sums
    supported = candidate * (powers / candidate) ** (1 / _PRECISION_EXPONENT) if candidate else 0.0
    return Weighed(supported, candidate, found, reference)


def _parts(side: GraphArrays, supported: list[float], weights: list[float]) -> list[_Part]:
    """Return objects, attributes and relations of a side: concepts, labels, supported part and whole of weights."""
    objects, attributes, _ = side.sizes
    cuts = slice(objects), slice(objects, objects + attributes), slice(objects + attributes, None)
    return [
        (side.concepts[cut], frozenset([one.label for one in side.concepts[cut]]), supported[cut], weights[cut])
        for cut in cuts
    ]


def _sums(category: Category, concepts: Sequence[Concept], labels: frozenset[str], *values: list[float]) -> list[float]:
    """Return the sums of a category's values."""
    if category.words is None and category.keys is None:  # a whole type: no need to look at its tuples
        return list(map(sum, values))
    if category.keys is None and category.words is not None and category.words.isdisjoint(labels):  # as most are
        return [0.0] * len(values)
    takes = category.takes(concepts) if concepts else []
    return [sum(compress(of_all, takes)) for of_all in values] if any(takes) else [0.0] * len(values)
