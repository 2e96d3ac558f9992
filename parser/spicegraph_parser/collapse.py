"""Basic dependencies to collapsed, CC-processed ones, as the SPICE reference sees them.

Prepositions move into the relation (``nmod:on``), multi-word prepositions become one (``nmod:in_front_of``),
conjuncts take over the relation of the first one, and later verbs its subject.
The naming follows the Stanford typed dependencies manual (de Marneffe and Manning, 2008) and its Universal
Dependencies v1 form (Schuster and Manning, LREC 2016).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from spicegraph_parser.prepositions import join_prepositions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.parse import Arc, Parse

__all__ = ["collapse"]

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
# Relations that are named after the preposition or marker of their dependent.
_MARKED = frozenset({"nmod", "acl", "advcl"})
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
    forms = parse.forms
    arcs: Sequence[Arc] = parse.arcs
    labels = {label for label, _, _ in arcs}
    if any(":" in label and _is_collapsed(label) for label in labels):
        return parse
    if "case" in labels:
        arcs = join_prepositions(arcs, forms, cases=[arc for arc in arcs if arc[0] == "case"])
        arcs = _name_prepositions(arcs, forms)
    if "conj" in labels:
        arcs = _spread_conjunctions(_split_prepositional_conjuncts(arcs, forms), forms, parse.tags)
    return parse if arcs is parse.arcs else parse.with_arcs(arcs)


def _is_collapsed(label: str) -> bool:
    return label.startswith(("nmod:", "conj:")) and label not in _BASIC_SUBTYPES


def _name(forms: Sequence[str], position: int) -> str:
    return forms[position - 1].lower()


def _name_prepositions(arcs: Sequence[Arc], forms: Sequence[str]) -> list[Arc]:
    """Put the preposition into the relation, the last one of several (``from inside a box``)."""
    cases: dict[int, int] = {}
    passives = set()
    marked = []
    for index, (label, head, dependent) in enumerate(arcs):
        if label == "case":
            cases[head] = max(dependent, cases.get(head, 0))
        elif label in _MARKED:
            marked.append(index)
        elif label == "auxpass":
            passives.add(head)
    named = list(arcs)
    for index in marked:
        relation, head, dependent = arcs[index]
        if dependent in cases:
            preposition = _name(forms, cases[dependent])
            is_agent = preposition == "by" and relation == "nmod" and head in passives
            named[index] = f"{relation}:{'agent' if is_agent else preposition}", head, dependent
    return named


def _split_prepositional_conjuncts(arcs: Sequence[Arc], forms: Sequence[str]) -> Sequence[Arc]:
    """``sits in the sun and on a mat``: the second phrase hangs on the verb, not on ``sun``.

    The relation between the phrases becomes one between the verb and itself (a copy of it in the manual).
    """
    cases: dict[int, int] = {}
    governors: dict[int, Arc] = {}
    coordinators: dict[int, list[int]] = {}
    for index, arc in enumerate(arcs):
        label, head, dependent = arc
        governors.setdefault(dependent, arc)
        if label == "case":
            cases[head] = max(dependent, cases.get(head, 0))
        elif label == "cc":
            coordinators.setdefault(head, []).append(index)
    changed = list(arcs)
    for index, (label, first, later) in enumerate(arcs):
        if label != "conj" or later not in cases or first not in governors:
            continue
        relation, governor, _ = governors[first]
        if not _is_prepositional(relation):
            continue
        for coordinator in coordinators.get(first, ()):
            changed[coordinator] = "cc", governor, arcs[coordinator][2]
        if first in coordinators:
            coordinators.setdefault(governor, []).extend(coordinators.pop(first))
            changed[index] = label, governor, governor
            changed.append((f"nmod:{_name(forms, cases[later])}", governor, later))
    return changed


def _is_prepositional(label: str) -> bool:
    return label.startswith("nmod:") and label not in _BASIC_SUBTYPES


def _spread_conjunctions(arcs: Sequence[Arc], forms: Sequence[str], tags: Sequence[str]) -> list[Arc]:
    """Name the conjunctions, and let later conjuncts share the first one's governor and subject."""
    coordinators: dict[int, list[int]] = {}
    for label, head, dependent in arcs:
        if label == "cc":
            insort(coordinators.setdefault(head, []), dependent)
    named: list[Arc] = []
    conjuncts: list[tuple[int, int]] = []
    above: dict[int, list[Arc]] = {}
    subjects: dict[int, list[Arc]] = {}
    for found in arcs:
        arc = found
        label, head, dependent = arc
        if label == "conj" and head in coordinators:
            name = _name(forms, _coordinator(coordinators[head], dependent))
            # "as well as" means "and"
            arc = f"conj:{'and' if name == 'as' else name}", head, dependent
            conjuncts.append((head, dependent))
        elif label in _SUBJECTS:
            subjects.setdefault(head, []).append(arc)
        named.append(arc)
        above.setdefault(dependent, []).append(arc)
    shared: list[Arc] = []
    for first, later in conjuncts:
        if first == later:
            continue
        shared += [(label, head, later) for label, head, _ in above.get(first, ()) if head not in (0, first)]
        if later not in subjects and tags[later - 1].startswith(_PREDICATE_TAGS):
            shared += [(label, later, dependent) for label, _, dependent in subjects.get(first, ())]
    return list(dict.fromkeys(named + shared)) if shared else named


def _coordinator(candidates: Sequence[int], conjunct: int) -> int:
    """Return the nearest coordinator before the conjunct, else the first; ``candidates`` are sorted."""
    return candidates[max(bisect_left(candidates, conjunct) - 1, 0)]
