"""Scene graphs: the facts of one or several captions of an image, merged by meaning.

All references go into one graph (Anderson et al., ECCV 2016, section 3.1), greedily, in the order of the facts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from spicegraph_parser.spice.loose import without_loose
from spicegraph_parser.spice.networkx_graph import from_networkx, to_networkx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import networkx as nx

    from spicegraph_parser.spice.index import Concept, Synonyms
    from spicegraph_parser.spice.networkx_graph import Stated
    from spicegraph_parser.spice.parse import Span
    from spicegraph_parser.spice.rules import Fact


class Evidence(NamedTuple):
    """A fact and its caption, counted from 0 within the graph's captions."""

    caption: int
    fact: Fact


Mention = tuple[int, tuple[int, ...]]  # a caption, and the words of it that name something


class SceneObject(NamedTuple):
    """A node of the graph."""

    concept: Concept
    evidence: tuple[Evidence, ...]

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The words that name it, each mention once."""
        names = self.concept.strings
        return _mentions(
            (caption, tokens)
            for caption, fact in self.evidence
            for name, tokens in zip(fact.words, fact.tokens[: len(fact.words) - len(fact.words) // 2], strict=False)
            if name in names
        )


class Attribute(NamedTuple):
    """A property of the object with the given index."""

    object: int
    concept: Concept
    evidence: tuple[Evidence, ...]

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The words that name it, each mention once."""
        return _mentions((caption, tokens) for caption, fact in self.evidence for tokens in fact.tokens[1:])


class Relation(NamedTuple):
    """A directed relation between two objects, given by their indices."""

    subject: int
    object: int
    concept: Concept
    evidence: tuple[Evidence, ...]

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The words that name it, each mention once."""
        return _mentions((caption, tokens) for caption, fact in self.evidence for tokens in fact.tokens[2:])


def _mentions(found: Iterable[Mention]) -> tuple[Mention, ...]:
    return tuple(dict.fromkeys(mention for mention in found if mention[1]))


class SceneTuple(NamedTuple):
    """An object (1 concept), an attribute (object, attribute) or a relation (subject, relation, object).

    ``evidence`` holds the facts that it was made from.
    """

    concepts: tuple[Concept, ...]
    evidence: tuple[Evidence, ...]

    @property
    def strings(self) -> tuple[str, ...]:
        """The concepts as SPICE prints them: merged ones joined with slashes."""
        return tuple(concept.label for concept in self.concepts)


@dataclass(frozen=True, slots=True)
class SceneGraph:
    """Objects, their attributes and their relations, in the order in which they were first seen."""

    objects: tuple[SceneObject, ...]
    attributes: tuple[Attribute, ...]
    relations: tuple[Relation, ...]
    spans: tuple[tuple[Span, ...], ...] = field(
        default=(), compare=False, repr=False
    )  # of each caption's words, if known

    def tuples(self) -> tuple[SceneTuple, ...]:
        """Return every object, attribute and relation as a tuple, sorted by their strings."""
        nodes = [node.concept for node in self.objects]
        # No string is in two objects, so that their places in the order stand for them: numbers compare fast.
        printed = [concept.printed for concept in nodes]
        rank = {printed: index for index, printed in enumerate(sorted(printed))}
        ranks = [rank[strings] for strings in printed]
        keys: list[tuple[int] | tuple[int, tuple[str, ...]] | tuple[int, tuple[str, ...], int]]
        keys = [(rank_of_node,) for rank_of_node in ranks]
        rows: list[tuple[tuple[Concept, ...], tuple[Evidence, ...]]] = [((node,), seen) for node, seen in self.objects]
        for of, concept, seen in self.attributes:
            keys.append((ranks[of], concept.printed))
            rows.append(((nodes[of], concept), seen))
        for subject, target, concept, seen in self.relations:
            keys.append((ranks[subject], concept.printed, ranks[target]))
            rows.append(((nodes[subject], concept, nodes[target]), seen))
        order = sorted(range(len(rows)), key=keys.__getitem__)
        return tuple([SceneTuple._make(rows[index]) for index in order])

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """Return a directed multigraph of networkx: a node per object (its index), an edge per relation.

        Nodes and edges carry ``label``, ``strings``, ``synsets`` (names such as ``man.n.01``), ``rules``, ``evidence``
        (the facts) and, of one parsed caption, ``spans``: where its words are in the text. A node's ``attributes``
        are a mapping from the label of each to the same data. All of it can be written as JSON.
        """
        attributes = [(part.object, part) for part in self.attributes]
        relations = [(part.subject, part.object, part) for part in self.relations]
        return to_networkx(self.objects, attributes, relations, self.spans)

    @staticmethod
    def from_networkx(graph: nx.Graph[Any]) -> SceneGraph:
        """Return the scene graph that a directed graph of networkx states, such as :meth:`to_networkx` makes.

        A node or an edge of your own needs a ``label``, and ``attributes`` may be a list of names; what has no
        ``synsets`` is looked up in WordNet.

        Raises:
            InputError: a node or an edge has no label, or its data are something else; the message names it.
        """
        objects, attributes, relations = from_networkx(graph)
        return SceneGraph(
            tuple([SceneObject(*_evident(stated)) for stated in objects]),
            tuple([Attribute(of, *_evident(stated)) for of, stated in attributes]),
            tuple([Relation(subject, target, *_evident(stated)) for subject, target, stated in relations]),
        )


def _evident(stated: Stated) -> tuple[Concept, tuple[Evidence, ...]]:
    concept, facts = stated
    return concept, tuple(map(Evidence._make, facts))


class ConceptGraph(NamedTuple):
    """A scene graph without its evidence."""

    objects: list[Concept]
    labels: list[Concept]  # of attributes and relations, in the order in which they were first said
    attributes: dict[int, list[int]]  # the numbers of their labels, by object
    relations: dict[tuple[int, int], list[int]]  # by subject and object


def merge(
    captions: Iterable[Sequence[Fact]], lexicon: Synonyms, *, exact: bool = False, loose: bool = False
) -> SceneGraph:
    """Merge the facts of captions of one image into a scene graph.

    Args:
        captions: the facts of each caption, in order. The order decides between equally similar nodes.
        lexicon: where words get their synsets.
        exact: no synonyms: only equal strings merge (SPICE's ``-noSynsets``).
        loose: with the facts of loose words, which SPICE does not have; they follow a caption's other facts.

    Example:
        >>> from spicegraph_parser import Fact, load_lexicon
        >>> graph = merge([[Fact(("dog", "brown"), "amod", ())]], load_lexicon())
        >>> [t.strings for t in graph.tuples()]
        [('dog',), ('dog', 'brown')]
    """
    graph, known, add = _merger(lexicon.exact_concept if exact else lexicon.concept)
    evidence: defaultdict[_Place, list[Evidence]] = defaultdict(list)
    for caption, facts in enumerate(captions):
        for fact in facts if loose else without_loose(facts):
            seen = Evidence(caption, fact)
            for place in known.get(fact[0]) or add(fact[0]):
                evidence[place].append(seen)
    objects = [SceneObject(concept, tuple(evidence[index])) for index, concept in enumerate(graph.objects)]
    said = [(concept, tuple(evidence[~number])) for number, concept in enumerate(graph.labels)]
    attributes = [Attribute(index, *said[number]) for index, numbers in graph.attributes.items() for number in numbers]
    relations = [Relation(*ends, *said[number]) for ends, numbers in graph.relations.items() for number in numbers]
    return SceneGraph(tuple(objects), tuple(attributes), tuple(relations))


def merge_concepts(captions: Iterable[Sequence[Fact]], lexicon: Synonyms, *, exact: bool = False) -> ConceptGraph:
    """Merge as :func:`merge` does, without loose words, and keep no evidence: for counting, in half the time."""
    graph, known, add = _merger(lexicon.exact_concept if exact else lexicon.concept)
    for facts in captions:
        for words, _, _ in without_loose(facts):
            if words not in known:
                add(words)
    return graph


def merge_counted(captions: Iterable[Sequence[Fact]], lexicon: Synonyms) -> tuple[ConceptGraph, list[int], list[int]]:
    """Merge as :func:`merge` does, loose words included; return also how many captions say each object and label."""
    graph, known, add = _merger(lexicon.concept)
    said: list[_Place] = []
    for facts in captions:
        places: list[_Place] = []
        for words, _, _ in facts:
            places += known.get(words) or add(words)
        said += set(places)
    captions_of = Counter(said)
    objects = [captions_of[index] for index in range(len(graph.objects))]
    return graph, objects, [captions_of[~number] for number in range(len(graph.labels))]


_Place = int  # a concept's: the index of an object, or the number of an attribute or a relation with its bits turned
_Words = tuple[str, ...]
_Places = tuple[_Place, ...]


def _merger(
    concept_of: Callable[[str], Concept],
) -> tuple[ConceptGraph, dict[_Words, _Places], Callable[[_Words], _Places]]:
    """Return an empty graph, its cache of places by words, and its ``add`` function."""
    # ``add`` runs thirty times an item, so that all it needs are local names.
    graph = ConceptGraph([], [], {}, {})
    objects, labels, attributes, relations = graph
    known: dict[_Words, _Places] = {}
    by_string: dict[str, int] = {}

    def object_of(word: str) -> int:
        """Return the index of a new word's object: the most similar one, or a new one."""
        concept = concept_of(word)
        index = _most_similar(objects, concept.synsets)
        if index is None:
            index = len(objects)
            objects.append(concept)
        else:
            objects[index] = objects[index].union(concept)
        by_string[word] = index
        return index

    def joined(numbers: list[int], word: str) -> int:
        """Return the first of the numbers whose concept has a word in common with others, or a new one."""
        concept = concept_of(word)
        if numbers:
            is_apart = concept.keys.isdisjoint
            for number in numbers:
                merged = labels[number]
                if merged is concept:
                    return number
                if not is_apart(merged.keys):
                    united = labels[number] = merged.union(concept)
                    if united is not merged:
                        known.clear()  # it may now be the first one for words that joined a later one
                    return number
        number = len(labels)
        labels.append(concept)
        numbers.append(number)
        return number

    def add(words: _Words) -> _Places:
        subject = by_string.get(words[0])
        if subject is None:
            subject = object_of(words[0])
        places: _Places
        if len(words) == 1:
            places = (subject,)
        elif len(words) == 2:
            numbers = attributes.get(subject)
            if numbers is None:
                numbers = attributes[subject] = []
            places = subject, ~joined(numbers, words[1])
        else:
            target = by_string.get(words[1])
            if target is None:
                target = object_of(words[1])
            numbers = relations.get((subject, target))
            if numbers is None:
                numbers = relations[subject, target] = []
            places = subject, target, ~joined(numbers, words[2].removeprefix("be "))
        known[words] = places
        return places

    return graph, known, add


def _most_similar(objects: Sequence[Concept], synsets: frozenset[int]) -> int | None:
    """Return the first object with the highest share of common synsets, if any has one in common."""
    best, best_similarity = None, 0.0
    if synsets:
        is_apart = synsets.isdisjoint
        for index, concept in enumerate(objects):
            others = concept.synsets
            if not is_apart(others):
                similarity = len(synsets & others) / len(synsets | others)
                if similarity > best_similarity:
                    best, best_similarity = index, similarity
    return best
