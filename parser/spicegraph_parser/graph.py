"""Scene graphs: the facts of one or several captions of an image, merged by meaning.

All references of an image go into one graph (Anderson et al., ECCV 2016, section 3.1). Merging is greedy in
the order of the facts, as in SPICE 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.loose import without_loose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import networkx as nx

    from spicegraph_parser.lexicon import Concept, Lexicon
    from spicegraph_parser.rules import Fact

__all__ = ["Attribute", "Evidence", "Relation", "SceneGraph", "SceneObject", "SceneTuple", "merge"]

_COPULA = "be "


class Evidence(NamedTuple):
    """A fact and the caption that it stands in, counted from 0 within the graph's captions."""

    caption: int
    fact: Fact


class SceneObject(NamedTuple):
    """A node of the graph."""

    concept: Concept
    evidence: tuple[Evidence, ...]


class Attribute(NamedTuple):
    """A property of the object with the given index."""

    object: int
    concept: Concept
    evidence: tuple[Evidence, ...]


class Relation(NamedTuple):
    """A directed relation between two objects, given by their indices."""

    subject: int
    object: int
    concept: Concept
    evidence: tuple[Evidence, ...]


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

    def tuples(self) -> tuple[SceneTuple, ...]:
        """Return every object, attribute and relation as a tuple, sorted by their strings."""
        nodes = [node.concept for node in self.objects]
        # No string is in two objects, so that their places in the order stand for them: numbers compare fast.
        printed = [concept.printed for concept in nodes]
        place = {printed: index for index, printed in enumerate(sorted(printed))}
        places = [place[strings] for strings in printed]
        keys: list[tuple[int] | tuple[int, tuple[str, ...]] | tuple[int, tuple[str, ...], int]]
        keys = [(own,) for own in places]
        rows: list[tuple[tuple[Concept, ...], tuple[Evidence, ...]]] = [((node,), seen) for node, seen in self.objects]
        for of, concept, seen in self.attributes:
            keys.append((places[of], concept.printed))
            rows.append(((nodes[of], concept), seen))
        for subject, target, concept, seen in self.relations:
            keys.append((places[subject], concept.printed, places[target]))
            rows.append(((nodes[subject], concept, nodes[target]), seen))
        order = sorted(range(len(rows)), key=keys.__getitem__)
        return tuple([SceneTuple._make(rows[index]) for index in order])

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """Return the graph for networkx; see :func:`spicegraph_parser.export.to_networkx`."""
        from spicegraph_parser.export import to_networkx  # noqa: PLC0415 (export knows graphs, not the reverse)

        return to_networkx(self)


def merge(
    captions: Iterable[Sequence[Fact]], lexicon: Lexicon, *, exact: bool = False, loose: bool = False
) -> SceneGraph:
    """Merge the facts of captions of one image into a scene graph.

    Args:
        captions: the facts of each caption, in order. The order decides between equally similar nodes.
        lexicon: where words get their synsets.
        exact: no synonyms: only equal strings merge (SPICE's ``-noSynsets``).
        loose: with the facts of loose words, which SPICE has not; they stand behind a caption's other facts.

    Example:
        >>> from spicegraph_parser import Fact, load_lexicon
        >>> graph = merge([[Fact(("dog", "brown"), "amod", ())]], load_lexicon())
        >>> [t.strings for t in graph.tuples()]
        [('dog',), ('dog', 'brown')]
    """
    builder = _Builder(lexicon.exact_concept if exact else lexicon.concept)
    for caption, facts in enumerate(captions):
        builder.add(caption, facts if loose else without_loose(facts))
    return builder.build()


class _Merged:
    """A concept that is still growing, with its evidence."""

    __slots__ = ("concept", "evidence")

    def __init__(self, concept: Concept) -> None:
        self.concept = concept
        self.evidence: list[Evidence] = []


class _Builder:
    """A graph that grows caption by caption."""

    def __init__(self, concept: Callable[[str], Concept]) -> None:
        self._concept = concept
        self._nodes: list[_Merged] = []
        self._by_string: dict[str, int] = {}
        self._attributes: dict[int, list[_Merged]] = {}
        self._relations: dict[tuple[int, int], list[_Merged]] = {}

    def add(self, caption: int, facts: Iterable[Fact]) -> None:
        nodes, by_string, node = self._nodes, self._by_string, self._node
        for fact in facts:
            words = fact.words
            evidence = Evidence(caption, fact)
            subject = by_string[words[0]] if words[0] in by_string else node(words[0])
            nodes[subject].evidence.append(evidence)
            if len(words) == 2:
                self._join(self._attributes.setdefault(subject, []), words[1], evidence)
            elif len(words) == 3:
                target = by_string[words[1]] if words[1] in by_string else node(words[1])
                nodes[target].evidence.append(evidence)
                known = self._relations.setdefault((subject, target), [])
                self._join(known, words[2].removeprefix(_COPULA), evidence)

    def _node(self, word: str) -> int:
        """Return the index of the node that a new word joins: the most similar one, or one of its own."""
        concept = self._concept(word)
        index = self._most_similar(concept.synsets)
        if index is None:
            index = len(self._nodes)
            self._nodes.append(_Merged(concept))
        else:
            node = self._nodes[index]
            node.concept = node.concept.union(concept)
        self._by_string[word] = index
        return index

    def _most_similar(self, synsets: frozenset[int]) -> int | None:
        """Return the first node with the highest share of common synsets, if any has one in common."""
        best, best_similarity = None, 0.0
        if synsets:
            is_apart = synsets.isdisjoint
            for index, node in enumerate(self._nodes):
                others = node.concept.synsets
                if not is_apart(others):
                    similarity = len(synsets & others) / len(synsets | others)
                    if similarity > best_similarity:
                        best, best_similarity = index, similarity
        return best

    def _join(self, known: list[_Merged], word: str, evidence: Evidence) -> None:
        concept = self._concept(word)
        is_apart = concept.keys.isdisjoint
        for merged in known:
            if not is_apart(merged.concept.keys):
                merged.concept = merged.concept.union(concept)
                merged.evidence.append(evidence)
                return
        new = _Merged(concept)
        new.evidence.append(evidence)
        known.append(new)

    def build(self) -> SceneGraph:
        return SceneGraph(
            tuple([SceneObject(node.concept, tuple(node.evidence)) for node in self._nodes]),
            tuple(
                [
                    Attribute(index, merged.concept, tuple(merged.evidence))
                    for index, attributes in self._attributes.items()
                    for merged in attributes
                ]
            ),
            tuple(
                [
                    Relation(subject, target, merged.concept, tuple(merged.evidence))
                    for (subject, target), relations in self._relations.items()
                    for merged in relations
                ]
            ),
        )
