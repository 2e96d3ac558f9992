"""How far the tuples of candidates and of their references support each other, as flat arrays over many comparisons."""
# Every pair of tuples of a comparison is a cell. The cells of all comparisons lie one behind the other, those of a
# candidate's tuple side by side, so that each step is a few numpy calls for a whole batch of items.

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spicegraph_graded.spice_g.facts import Values, deny, verdicts
from spicegraph_parser.caption_pipeline.layout import ranges
from spicegraph_parser.spice.graph import ConceptGraph, SceneGraph, SceneTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_graded.spice_g.vectors import Rows, Strings
    from spicegraph_parser.spice.index import Concept

Integers = npt.NDArray[np.intp]
Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NO_PARTNER: Final = -1
PRECISION_EXPONENT: Final = 0.75
WORDS_SHARE: Final = 0.5  # of support
ALIGNED_SHARE: Final = 0.2  # of F1
MEANING_SHARE: Final = 0.4  # of the score
OBJECT, ATTRIBUTE, RELATION = range(3)  # kinds of tuples

_caption_of: Final = itemgetter(0)  # of a piece of evidence
_strings_of: Final = attrgetter("strings")

_TYPE_WEIGHTS: Final = np.array([1.0, 0.7, 0.7])  # objects, attributes, relations
_OWNER_SHARE: Final = 0.5
_ENDS_SHARE: Final = 0.7
_FOUND_OWNER_SHARE: Final = 0.4
_CONTRADICTED: Final = 2.0  # times the weight of a contradicted tuple, in precision
_BOUND: Final = np.array([[0, _OWNER_SHARE, _ENDS_SHARE], [0, _FOUND_OWNER_SHARE, _ENDS_SHARE]], np.float32)
"""How much of likeness is a place's: of an object, attribute, relation; at a candidate's objects, at references'."""


class Nodes(NamedTuple):
    """Objects, then attributes, then relations, as many as ``sizes`` says."""

    sizes: tuple[int, int, int]
    concepts: Sequence[Concept]
    strings: Sequence[Strings]  # of the concepts that they add: the object, the attribute, the relation's label
    captions: Sequence[int]  # how many captions say each
    owners: Sequence[int]  # the objects that attributes, then relations, start from
    targets: Sequence[int]  # the objects that relations lead to
    graph: SceneGraph | None = None  # where they come from, if its evidence was kept


def nodes_of(graph: SceneGraph) -> Nodes:
    """Return the parts of a graph that has its evidence."""
    parts = graph.objects, graph.attributes, graph.relations
    concepts = [node.concept for part in parts for node in part]
    return Nodes(
        (len(graph.objects), len(graph.attributes), len(graph.relations)),
        concepts,
        list(map(_strings_of, concepts)),
        # how many captions say each
        [
            1 if len(node.evidence) == 1 else len(set(map(_caption_of, node.evidence)))
            for part in parts
            for node in part
        ],
        [*[attribute.object for attribute in graph.attributes], *[relation.subject for relation in graph.relations]],
        [relation.object for relation in graph.relations],
        graph,
    )


def counted_nodes(graph: ConceptGraph, objects_said: Sequence[int], labels_said: Sequence[int]) -> Nodes:
    """Return the parts of a graph that has no evidence but its counts."""
    objects, labels, attributes, relations = graph
    numbers = list(chain.from_iterable(chain(attributes.values(), relations.values())))
    owners = [owner for owner, label_numbers in attributes.items() for _ in label_numbers]
    sizes = len(objects), len(owners), len(numbers) - len(owners)
    owners += [subject for (subject, _), label_numbers in relations.items() for _ in label_numbers]
    concepts = [*objects, *[labels[number] for number in numbers]]
    return Nodes(
        sizes,
        concepts,
        list(map(_strings_of, concepts)),
        [*objects_said, *[labels_said[number] for number in numbers]],
        owners,
        [target for (_, target), label_numbers in relations.items() for _ in label_numbers],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The tuples of many graphs, one graph behind the other, as arrays; words alone have no ``nodes``."""

    nodes: Sequence[Nodes]
    sizes: Integers  # (graphs, 3): objects, attributes, relations
    starts: Integers  # of each graph's tuples, and the end of the last
    kinds: Integers
    heads: Integers  # the row of the concept that each tuple adds
    owners: Integers  # places within the graph of what attributes and relations start from; an object is its own
    targets: Integers  # places within the graph of what relations lead to
    weights: Weights  # how much each tuple counts


def sides_of(nodes: Sequence[Nodes], rows: Rows) -> Sides:
    """Return the tuples of graphs as arrays; a weight is idf ** .75, times .7 but for objects, times the captions."""
    sizes = np.array([graph.sizes for graph in nodes], np.intp).reshape(-1, 3)
    kinds = np.repeat(np.tile(np.arange(3), len(nodes)), sizes.ravel())
    heads = _integers(map(rows.places.__getitem__, chain.from_iterable(graph.strings for graph in nodes)))
    captions = _integers(chain.from_iterable(graph.captions for graph in nodes))
    sides = _objects(sizes, heads, captions, rows)
    targets = sides.owners.copy()
    sides.owners[kinds > OBJECT] = _integers(chain.from_iterable(graph.owners for graph in nodes))
    targets[kinds > OBJECT] = sides.owners[kinds > OBJECT]
    targets[kinds == RELATION] = _integers(chain.from_iterable(graph.targets for graph in nodes))
    return replace(sides, nodes=nodes, kinds=kinds, targets=targets, weights=sides.weights * _TYPE_WEIGHTS[kinds])


def word_sides(readings: Sequence[Sequence[frozenset[str]]], words: Sequence[str], rows: Rows) -> Sides:
    """Return the words of captions as arrays: of objects that nothing is said of, in the order of ``words``."""
    number_of = {word: number for number, word in enumerate(words)}
    captions = list(chain.from_iterable(readings))
    said = _integers(map(number_of.__getitem__, chain.from_iterable(captions)))
    lengths = np.repeat(np.arange(len(readings)), list(map(len, readings)))
    reading = np.repeat(lengths, list(map(len, captions)))
    keys, times = np.unique(reading * len(words) + said, return_counts=True)
    heads = np.array([rows.places[word,] for word in words], np.intp)
    sizes = np.zeros((len(readings), 3), np.intp)
    sizes[:, OBJECT] = np.bincount(keys // max(len(words), 1), minlength=len(readings))
    return _objects(sizes, heads[keys % max(len(words), 1)], times, rows)


def _objects(sizes: Integers, heads: Integers, captions: Integers, rows: Rows) -> Sides:
    """Return tuples as if all of them were objects."""
    counts = sizes.sum(axis=1)
    starts = np.concatenate([[0], counts.cumsum()])
    positions = np.arange(len(heads)) - np.repeat(starts[:-1], counts)
    return Sides(
        (), sizes, starts, np.zeros_like(heads), heads, positions, positions, rows.weights.take(heads) * captions
    )


def _integers(values: Iterable[int]) -> Integers:
    return np.fromiter(values, np.intp)


class Supports(NamedTuple):
    """How well the tuples of one side of each comparison are supported, the comparisons one behind the other."""

    tuples: Integers  # their places in Sides
    counts: Integers  # how many tuples each comparison has
    support: Floats  # in [0, 1]
    partner: Integers  # the tuple of the other side, NO_PARTNER if none supports it; empty unless it was asked for
    contradicted: Flags  # the other side has another colour or count for the same object


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its tuples, their weights and their support."""

    nodes: Nodes
    weights: Weights
    support: Floats
    partner: Integers
    contradicted: Flags

    @cached_property
    def tuples(self) -> tuple[SceneTuple, ...]:
        """The tuples in the graph's order: objects, attributes, relations; scores do without them."""
        nodes = [node.concept for node in self.graph.objects]
        return (
            *[SceneTuple((concept,), seen) for concept, seen in self.graph.objects],
            *[SceneTuple((nodes[of], concept), seen) for of, concept, seen in self.graph.attributes],
            *[SceneTuple((nodes[a], concept, nodes[b]), seen) for a, b, concept, seen in self.graph.relations],
        )

    @property
    def graph(self) -> SceneGraph:
        """Where the tuples come from; a ValueError if it was merged without its evidence."""
        if self.nodes.graph is None:
            raise ValueError("the graph was merged without its evidence")
        return self.nodes.graph


class TextMatch(NamedTuple):
    """How a candidate's text matches the references' texts; ``None``: not measured."""

    order: float = 1.0  # the share of all support that the order of its words leaves, in (0, 1]
    aligned: float | None = None  # with the best reference, in [0, 1]
    meaning: float | None = None  # likeness to the references as a whole, in [0, 1]
    candidate: str = ""
    references: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class GradedMatch:
    """A match: both sides of a comparison, and the match of their texts."""

    candidate: Side
    reference: Side
    texts: TextMatch


class _Lines(NamedTuple):
    """The cells of each tuple of one side: its comparison's tuples of the other side, as many as ``lengths`` says."""

    tuples: Integers  # places in Sides
    counts: Integers  # how many tuples each comparison has
    lengths: Integers
    cells: Integers | None  # of all lines, one line behind the other; None: the cells in their own order


class Cells(NamedTuple):
    """How alike the tuples of candidates and of their references are: every pair a cell, row by row."""

    forward: Matrix  # how far a reference tuple supports a candidate's
    backward: Matrix  # how far a candidate's supports a reference tuple
    plain: Matrix  # likeness of the words whatever they are said of: "blue" is as good as "red", "no hat" as a hat
    excess: Floats  # how much more the references deny each candidate's tuple than they say it
    across: _Lines
    upright: _Lines
    bases: Integers  # the cells of comparison k are those from bases[k] to bases[k + 1]

    def supports(self, *, partners: bool) -> tuple[Supports, Supports]:
        """Return the support of candidates' tuples, less contradictions, and that of the references' tuples."""
        precision = _best(self.forward, self.across, partners=partners)
        support, partner = np.maximum(0, precision.support - self.excess), precision.partner
        if partner.size:
            partner = np.where(support > 0, partner, NO_PARTNER)
        precision = precision._replace(support=support, partner=partner, contradicted=self.excess > 0)
        return precision, _best(self.backward, self.upright, partners=partners)

    def plain_supports(self) -> tuple[Supports, Supports]:
        """Return the best of each line where neither places nor contradictions and denials count."""
        return _best(self.plain, self.across, partners=False), _best(self.plain, self.upright, partners=False)


def cells_of(sides: Sides, candidates: Sequence[int], references: Sequence[int], rows: Rows) -> Cells:
    """Return how alike the tuples of candidates and of their references are: for each comparison the two graphs."""
    first, second = np.array(candidates, np.intp), np.array(references, np.intp)
    counts = np.diff(sides.starts)
    heights, widths = counts[first], counts[second]
    bases = np.concatenate([[0], (heights * widths).cumsum()])
    along = np.repeat(widths, heights)
    down = np.repeat(heights, widths)
    by_column = np.repeat(ranges(bases[:-1], widths), down)
    by_column += np.repeat(np.repeat(widths, widths), down) * ranges(np.zeros_like(down), down)
    across = _Lines(ranges(sides.starts[first], heights), heights, along, None)
    upright = _Lines(ranges(sides.starts[second], widths), widths, down, by_column)
    columns = ranges(np.repeat(sides.starts[second], heights), along)  # the reference tuple of each cell

    words = np.empty(int(bases[-1]), np.float32)  # likeness of the words that tuples add: positive cosines
    pairs, starts = list(zip(candidates, references, bases.tolist(), strict=False)), sides.starts.tolist()
    is_denied = np.isin(sides.heads, rows.denied)
    denying = set((np.searchsorted(sides.starts, np.flatnonzero(is_denied), side="right") - 1).tolist())
    opposed: list[tuple[Matrix, Matrix]] = []
    plain = np.empty_like(words)
    for candidate, reference, base in pairs:
        rows_of, columns_of = (slice(starts[graph], starts[graph + 1]) for graph in (candidate, reference))
        shape = rows_of.stop - rows_of.start, columns_of.stop - columns_of.start
        cells = slice(base, base + shape[0] * shape[1])
        vectors, others = (rows.vectors.take(sides.heads[part], axis=0) for part in (rows_of, columns_of))
        cosines = np.matmul(vectors, others.T, out=words[cells].reshape(shape))
        if candidate in denying or reference in denying:
            apart = is_denied[rows_of, None] ^ is_denied[columns_of]
            opposed.append((plain[cells].reshape(shape), cosines * apart))
    np.minimum(np.maximum(words, 0, out=words), 1, out=words)
    words[np.repeat(sides.heads[across.tuples], along) == sides.heads.take(columns)] = 1
    plain[:] = words
    for part, away in opposed:  # what is denied is as alike as what is not: their vectors point away from each other
        np.clip(np.maximum(part, -away), 0, 1, out=part)
    excess = _judge_values(sides, pairs, words, plain, rows)
    forward = backward = words
    if sides.kinds.any():  # objects alone stand nowhere
        moved = _places(sides, first, second, bases, words) - words
        forward = words + np.repeat(_BOUND[0][sides.kinds[across.tuples]], along) * moved
        backward = words + _BOUND[1][sides.kinds].take(columns) * moved
    return Cells(forward, backward, plain, excess, across, upright, bases)


def _judge_values(
    sides: Sides, pairs: Iterable[tuple[int, int, int]], words: Matrix, plain: Matrix, rows: Rows
) -> Floats:
    """Make words of one value alike, and those that exclude each other unlike (``plain``: alike); return the excess."""
    valued: defaultdict[int, list[tuple[int, Values]]] = defaultdict(list)
    is_valued = np.zeros(len(rows.vectors), np.bool_)
    is_valued[list(rows.values)] = True
    at = np.flatnonzero(is_valued.take(sides.heads))
    graphs = np.searchsorted(sides.starts, at, side="right") - 1
    for index, graph, head in zip(at.tolist(), graphs.tolist(), sides.heads[at].tolist(), strict=True):
        valued[graph].append((index - int(sides.starts[graph]), rows.values[head]))
    counts = np.diff(sides.starts).tolist()
    first, parts = 0, []
    for candidate, reference, base in pairs:
        if candidate in valued and reference in valued:
            shape = counts[candidate], counts[reference]
            matrix = words[base : base + shape[0] * shape[1]].reshape(shape)
            excluded, agreed = verdicts(valued[candidate], valued[reference])
            if excluded or agreed:
                plain[base : base + matrix.size].reshape(shape)[tuple(zip(*excluded, *agreed, strict=True))] = 1
            if agreed:
                matrix[tuple(zip(*agreed, strict=True))] = 1
            if excluded:
                matrix[tuple(zip(*excluded, strict=True))] = 0
                parts.append((first, _excess(sides, (candidate, reference), valued, matrix, excluded)))
        first += counts[candidate]
    excess = np.zeros(first, np.float32)
    for start, part in parts:
        excess[start : start + len(part)] = part
    return excess


_Valued: TypeAlias = "Sequence[tuple[int, Values]]"  # the numbers of concepts that are colours or counts, with these


def _denied_words(candidate: _Valued, reference: _Valued) -> Iterator[tuple[int, bool]]:
    """Yield for each word of a candidate whether the references deny its family of values."""
    said, referred = (frozenset(chain.from_iterable(values for _, values in side)) for side in (candidate, reference))
    for index, word_values in candidate:
        families = {family for family, _ in word_values}
        yield index, deny(frozenset(value for value in said if value[0] in families), referred)


def _excess(
    sides: Sides,
    graphs: tuple[int, int],
    valued: Mapping[int, Sequence[tuple[int, Values]]],
    words: Matrix,
    excluded: Iterable[tuple[int, int]],
) -> Floats:
    """Return how much more the references deny each tuple of a candidate than they say it."""
    # They deny an attribute by another colour or count of an object that is as similar. Colours are compared as sets: a
    # grey, black and white cat is not denied by a grey one. Words alone are denied where the references have others of
    # their family, and none of the candidate's.
    excess = np.zeros(len(words), np.float32)
    if not sides.sizes[list(graphs), ATTRIBUTE:].any():  # words alone
        for index, is_denied in _denied_words(*(valued[graph] for graph in graphs)):
            excess[index] = is_denied
        return excess
    slots, owners, values_of_owners = [], [], []
    for graph in graphs:
        start, (objects, count, _) = sides.starts[graph], sides.sizes[graph].tolist()
        owners.append(sides.owners[start + objects : start + objects + count])
        of_owner: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
        for index, attribute_values in valued[graph]:
            if objects <= index < objects + count:
                of_owner[int(owners[-1][index - objects])] |= attribute_values
        slots.append(slice(objects, objects + count))
        values_of_owners.append([frozenset(of_owner[owner]) for owner in owners[-1].tolist()])
    (attributes, reference_attributes), (values, others) = slots, values_of_owners
    denied = np.zeros((len(values), len(others)), np.float32)
    for row, column in excluded:
        attribute, reference_attribute = row - attributes.start, column - reference_attributes.start
        if 0 <= attribute < len(values) and 0 <= reference_attribute < len(others):
            denied[attribute, reference_attribute] = deny(values[attribute], others[reference_attribute])
    if denied.any():
        alike = words[owners[0]][:, owners[1]]
        agreed = np.minimum(alike, words[attributes, reference_attributes]).max(axis=1)
        excess[attributes] = np.maximum(0, (alike * denied).max(axis=1) - agreed)
    return excess


def _places(sides: Sides, candidates: Integers, references: Integers, bases: Integers, words: Matrix) -> Matrix:
    """Return how far tuples are alike in every slot: the least of the slots' similarities; 0 across types."""
    # An attribute has a place at a plain object too, as far as the object's own word suggests it ("tall" at "tower").
    counts = np.diff(sides.starts)
    heights, widths = counts[candidates], counts[references]
    tuples = ranges(sides.starts[candidates], heights)
    kinds = sides.kinds[tuples]
    along = np.repeat(widths, heights)
    first = along.cumsum() - along
    places: Matrix = words * np.repeat(kinds == OBJECT, along)
    placed = sides.sizes[references, :RELATION].sum(axis=1)  # objects and attributes of the references
    for kind, begins, lengths in ((ATTRIBUTE, np.zeros_like(placed), placed), (RELATION, placed, widths - placed)):
        of = np.flatnonzero(kinds == kind)
        comparison = np.repeat(np.arange(len(candidates)), heights)[of]
        begin, length = begins[comparison], lengths[comparison]
        cells = ranges(first[of] + begin, length)
        columns = ranges(sides.starts[references][comparison] + begin, length)
        here = words.take(cells)
        for slot in (sides.owners,) if kind == ATTRIBUTE else (sides.owners, sides.targets):
            row = bases[comparison] + slot[tuples[of]] * widths[comparison]
            here = np.minimum(here, words.take(np.repeat(row, length) + slot.take(columns)))
        places[cells] = here
    return places


def _best(similar: Matrix, lines: _Lines, *, partners: bool) -> Supports:
    """Return the best partner of each line's tuple: of several, the first."""
    in_lines = similar if lines.cells is None else similar.take(lines.cells)
    starts = lines.lengths.cumsum() - lines.lengths
    filled = np.flatnonzero(lines.lengths)
    support = np.zeros(len(starts), np.float32)
    if filled.size:
        support[filled] = np.maximum.reduceat(in_lines, starts[filled])
    partner = np.zeros(0, np.intp)
    if partners:
        partner = np.full(len(starts), NO_PARTNER)
        highest = np.flatnonzero(in_lines == np.repeat(support, lines.lengths))
        first = highest[np.searchsorted(highest, starts[filled])] - starts[filled]
        partner[filled] = np.where(support[filled] > 0, first, NO_PARTNER)
    return Supports(lines.tuples, lines.counts, support, partner, np.zeros(len(starts), np.bool_))


def precision_weights(sides: Sides, precision: Supports) -> Weights:
    """Return the weights of candidates' tuples in precision; contradicted tuples count twice."""
    weights: Weights = np.where(precision.contradicted, _CONTRADICTED, 1) * sides.weights[precision.tuples]
    return weights


def matches_of(
    sides: Sides,
    candidates: Sequence[int],
    references: Sequence[int],
    supports: tuple[Supports, Supports],
    texts: Sequence[TextMatch],
) -> list[GradedMatch]:
    """Return the match of each comparison; ``supports``: from :meth:`Cells.supports`, with partners."""
    precision, recall = supports

    def side_of(side: Supports, graph: int, cut: slice, weights: Weights) -> Side:
        return Side(sides.nodes[graph], weights[cut], side.support[cut], side.partner[cut], side.contradicted[cut])

    halves = [
        [
            side_of(side, graph, slice(end - count, end), weights)
            for graph, count, end in zip(graphs, side.counts.tolist(), side.counts.cumsum().tolist(), strict=True)
        ]
        for side, graphs, weights in (
            (precision, candidates, precision_weights(sides, precision)),
            (recall, references, sides.weights[recall.tuples]),
        )
    ]
    return list(map(GradedMatch, *halves, texts))
