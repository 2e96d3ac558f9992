"""Basic dependencies to collapsed, CC-processed ones, as the SPICE reference sees them.

Prepositions move into the relation (``nmod:on``), multi-word prepositions become one (``nmod:in_front_of``),
conjuncts take over the relation of the first one, and later verbs its subject.
The naming follows the Stanford typed dependencies manual (de Marneffe and Manning, 2008) and its Universal
Dependencies v1 form (Schuster and Manning, LREC 2016).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from spicegraph_parser.parse import Edge, Parse
from spicegraph_parser.prepositions import join_prepositions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.parse import Word

__all__ = ["collapse"]

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
# Relations that are named after the preposition or marker of their dependent.
_MARKED = ("nmod", "acl", "advcl")
_BASIC_SUBTYPES = frozenset({"nmod:poss", "nmod:tmod", "nmod:npmod"})
_PREDICATE_TAGS = ("V", "J")


def collapse(parse: Parse) -> Parse:
    """Return the parse with collapsed, CC-processed dependencies.

    A parse that holds collapsed labels already (``nmod:on``) comes back unchanged.

    Example:
        ``a cat on a mat``: nmod(cat, mat), case(mat, on) -> nmod:on(cat, mat), case(mat, on)
        ``a cat and a dog sleep``: nsubj(sleep, cat), conj(cat, dog) -> also nsubj(sleep, dog)
        ``a cat is on top of a car``: root(top), nmod(top, car) -> root(car), case(car, on)
    """
    words = parse.words
    edges: Sequence[Edge] = parse.edges
    found = _by_label(edges)
    if any(":" in label and _is_collapsed(label) for label in found):
        return parse
    if "case" in found:
        joined = join_prepositions(edges, words, cases=[edges[index] for index in found["case"]])
        if joined is not edges:
            edges, found = joined, _by_label(joined)
        edges = _name_prepositions(edges, words, found)
    if "conj" in found:
        edges = _spread_conjunctions(_split_prepositional_conjuncts(edges, words), words)
    return parse if edges is parse.edges else Parse(words, tuple(edges))


def _by_label(edges: Sequence[Edge]) -> dict[str, list[int]]:
    """Return the indices of the edges of every label."""
    found: dict[str, list[int]] = {}
    for index, (label, _, _) in enumerate(edges):
        if label in found:
            found[label].append(index)
        else:
            found[label] = [index]
    return found


def _is_collapsed(label: str) -> bool:
    return label.startswith(("nmod:", "conj:")) and label not in _BASIC_SUBTYPES


def _name(words: Sequence[Word], position: int) -> str:
    return words[position - 1].form.lower()


def _name_prepositions(edges: Sequence[Edge], words: Sequence[Word], found: Mapping[str, Sequence[int]]) -> list[Edge]:
    """Put the preposition into the relation, the last one of several (``from inside a box``)."""
    cases: dict[int, int] = {}
    for index in found.get("case", ()):
        _, head, dependent = edges[index]
        cases[head] = max(dependent, cases.get(head, 0))
    passives = {edges[index].head for index in found.get("auxpass", ())}
    named = list(edges)
    for relation in _MARKED:
        for index in found.get(relation, ()):
            _, head, dependent = edges[index]
            if dependent in cases:
                preposition = _name(words, cases[dependent])
                is_agent = preposition == "by" and relation == "nmod" and head in passives
                named[index] = Edge(f"{relation}:{'agent' if is_agent else preposition}", head, dependent)
    return named


def _split_prepositional_conjuncts(edges: Sequence[Edge], words: Sequence[Word]) -> Sequence[Edge]:
    """``sits in the sun and on a mat``: the second phrase hangs on the verb, not on ``sun``.

    The relation between the phrases becomes one between the verb and itself (a copy of it in the manual).
    """
    cases: dict[int, int] = {}
    governors: dict[int, Edge] = {}
    coordinators: dict[int, list[int]] = {}
    for index, edge in enumerate(edges):
        governors.setdefault(edge.dependent, edge)
        if edge.label == "case":
            cases[edge.head] = max(edge.dependent, cases.get(edge.head, 0))
        elif edge.label == "cc":
            coordinators.setdefault(edge.head, []).append(index)
    changed = list(edges)
    for index, (label, first, later) in enumerate(edges):
        governor = governors.get(first)
        if label != "conj" or later not in cases or governor is None or not _is_prepositional(governor.label):
            continue
        for coordinator in coordinators.get(first, ()):
            changed[coordinator] = Edge("cc", governor.head, edges[coordinator].dependent)
        if first in coordinators:
            coordinators.setdefault(governor.head, []).extend(coordinators.pop(first))
            changed[index] = Edge(label, governor.head, governor.head)
            changed.append(Edge(f"nmod:{_name(words, cases[later])}", governor.head, later))
    return changed


def _is_prepositional(label: str) -> bool:
    return label.startswith("nmod:") and label not in _BASIC_SUBTYPES


def _spread_conjunctions(edges: Sequence[Edge], words: Sequence[Word]) -> list[Edge]:
    """Name the conjunctions, and let later conjuncts share the first one's governor and subject."""
    coordinators: dict[int, list[int]] = {}
    for edge in edges:
        if edge.label == "cc":
            insort(coordinators.setdefault(edge.head, []), edge.dependent)
    named, conjuncts = [], []
    above: dict[int, list[Edge]] = {}
    subjects: dict[int, list[Edge]] = {}
    for found in edges:
        edge = found
        if edge.label == "conj" and edge.head in coordinators:
            name = _name(words, _coordinator(coordinators[edge.head], edge.dependent))
            # "as well as" means "and"
            edge = Edge(f"conj:{'and' if name == 'as' else name}", edge.head, edge.dependent)
            conjuncts.append(edge)
        elif edge.label in _SUBJECTS:
            subjects.setdefault(edge.head, []).append(edge)
        named.append(edge)
        above.setdefault(edge.dependent, []).append(edge)
    shared = []
    for _, first, later in conjuncts:
        if first == later:
            continue
        shared += [Edge(e.label, e.head, later) for e in above.get(first, ()) if e.head not in (0, first)]
        if later not in subjects and words[later - 1].tag.startswith(_PREDICATE_TAGS):
            shared += [Edge(e.label, later, e.dependent) for e in subjects.get(first, ())]
    return list(dict.fromkeys(named + shared)) if shared else named


def _coordinator(candidates: Sequence[int], conjunct: int) -> int:
    """Return the nearest coordinator before the conjunct, else the first; ``candidates`` are sorted."""
    return candidates[max(bisect_left(candidates, conjunct) - 1, 0)]
