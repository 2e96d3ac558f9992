"""Basic dependencies to collapsed, CC-processed ones, as the SPICE reference sees them.

Prepositions move into the relation (``nmod:on``), multi-word prepositions become one (``nmod:in_front_of``),
conjuncts take over the relation of the first one, and later verbs its subject.
The naming follows the Stanford typed dependencies manual (de Marneffe and Manning, 2008) and its Universal
Dependencies v1 form (Schuster and Manning, LREC 2016); the lists of multi-word prepositions are theirs as far as
captions show that the reference joins them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.parse import Arc, Parse

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


# The first word of these governs the noun: next -nmod-> horse -case-> to.
_GOVERNING = frozenset(
    {
        ("according", "to"),
        ("ahead", "of"),
        ("as", "to"),
        ("because", "of"),
        ("close", "to"),
        ("contrary", "to"),
        ("due", "to"),
        ("far", "from"),
        ("instead", "of"),
        ("near", "to"),
        ("next", "to"),
        ("outside", "of"),
        ("prior", "to"),
        ("regardless", "of"),
        ("such", "as"),
        ("thanks", "to"),
    }
)
# The first word of these is a sister: noun -advmod-> out, noun -case-> of.
_SISTER = _GOVERNING | {
    ("across", "from"),
    ("along", "with"),
    ("alongside", "of"),
    ("apart", "from"),
    ("as", "for"),
    ("as", "from"),
    ("as", "of"),
    ("as", "per"),
    ("aside", "from"),
    ("based", "on"),
    ("close", "by"),
    ("compared", "to"),
    ("compared", "with"),
    ("depending", "on"),
    ("except", "for"),
    ("off", "of"),
    ("out", "of"),
    ("together", "with"),
}
# The middle word is a noun with the first as its preposition: top -case-> on, top -nmod-> car -case-> of.
_AROUND_NOUN = frozenset(
    {
        ("by", "means", "of"),
        ("in", "accordance", "with"),
        ("in", "addition", "to"),
        ("in", "case", "of"),
        ("in", "front", "of"),
        ("in", "lieu", "of"),
        ("in", "place", "of"),
        ("in", "spite", "of"),
        ("on", "account", "of"),
        ("on", "behalf", "of"),
        ("on", "top", "of"),
        ("with", "regard", "to"),
        ("with", "respect", "to"),
    }
)
_BEFORE_LAST = frozenset(names[-2] for names in _SISTER | _AROUND_NOUN)
# Relations that a prepositional phrase may stand in; under others (root, acl:relcl, ccomp) it is a predicate.
_OBLIQUE = frozenset({"advmod", "amod", "conj", "dep", "dobj", "nmod", "nsubj", "xcomp"})
_CLAUSAL = frozenset({"acl", "advcl"})


def join_prepositions(arcs: Sequence[Arc], forms: Sequence[str], *, cases: Iterable[Arc]) -> Sequence[Arc]:
    """Return basic dependencies in which the phrases of a multi-word preposition have its name.

    ``cases`` are those of the arcs that lead to a preposition. The arcs come back as they are without any such phrase.

    Example:
        ``a cat on top of a car``: nmod(cat, top), nmod(top, car) -> nmod:on_top_of(cat, car)
        ``a dog next to a cat``: advmod(dog, next), nmod(next, cat) -> nmod:next_to(dog, cat)
    """
    around: list[tuple[int, tuple[str, ...]]] = []
    pairs: list[tuple[int, tuple[str, ...]]] = []
    for _, _, last in cases:
        if last < 2 or forms[last - 2].lower() not in _BEFORE_LAST:
            continue
        names = tuple([form.lower() for form in forms[max(last - 3, 0) : last]])
        if names in _AROUND_NOUN:
            around.append((last, names))
        if names[-2:] in _SISTER:
            pairs.append((last, names[-2:]))
    if not around and not pairs:
        return arcs
    movable = _Links(arcs)
    for last, names in sorted(around):
        _join_around_noun(movable, last, names)
    for last, names in sorted(pairs):
        _join_pair(movable, last, names)
    return movable.arcs()


class _Link:
    """An arc that can still be moved."""

    __slots__ = ("dependent", "head", "label", "removed")

    def __init__(self, label: str, head: int, dependent: int) -> None:
        self.label = label
        self.head = head
        self.dependent = dependent
        self.removed = False


class _Links:
    """The arcs of a sentence while they change, findable from either end."""

    def __init__(self, arcs: Iterable[Arc]) -> None:
        self._all: list[_Link] = []
        self._above: dict[int, list[_Link]] = {}
        self._below: dict[int, list[_Link]] = {}
        for arc in arcs:
            self.add(*arc)

    def arcs(self) -> list[Arc]:
        return [(link.label, link.head, link.dependent) for link in self._all if not link.removed]

    def add(self, label: str, head: int, dependent: int) -> None:
        link = _Link(label, head, dependent)
        self._all.append(link)
        self._above.setdefault(dependent, []).append(link)
        self._below.setdefault(head, []).append(link)

    def remove(self, link: _Link) -> None:
        link.removed = True
        self._above[link.dependent].remove(link)
        self._below[link.head].remove(link)

    def incoming(self, dependent: int) -> _Link | None:
        return next(iter(self._above.get(dependent, ())), None)

    def case(self, preposition: int) -> _Link | None:
        return next((link for link in self._above.get(preposition, ()) if link.label == "case"), None)

    def find(self, label: str, head: int, dependent: int) -> _Link | None:
        above = self._above.get(dependent, ())
        return next((link for link in above if link.head == head and link.label == label), None)

    def has_child(self, head: int, label: str) -> bool:
        return any(link.label == label for link in self._below.get(head, ()))

    def lead_to(self, link: _Link, dependent: int) -> None:
        self._above[link.dependent].remove(link)
        self._above.setdefault(dependent, []).append(link)
        link.dependent = dependent

    def move_children(self, old: int, new: int) -> None:
        moved = self._below.pop(old, [])
        for link in moved:
            link.head = new
        self._below.setdefault(new, []).extend(moved)


def _join_around_noun(links: _Links, last: int, names: tuple[str, ...]) -> None:
    """``X on top of Y``: nmod(X, top), nmod(top, Y) -> nmod:on_top_of(X, Y)."""
    noun, first = last - 1, last - 2
    second = links.case(last)
    if second is None or links.find("case", noun, first) is None:
        return
    governed = links.find("nmod", noun, second.head)
    incoming = links.incoming(noun)
    if governed is None or incoming is None:
        return
    links.remove(governed)
    links.remove(second)
    links.move_children(noun, governed.dependent)
    links.lead_to(incoming, governed.dependent)
    if incoming.label in _OBLIQUE:
        incoming.label = "nmod"
    if incoming.label == "nmod" or incoming.label in _CLAUSAL:
        incoming.label += f":{'_'.join(names)}"
    links.add("mwe", first, noun)
    links.add("mwe", first, last)


def _join_pair(links: _Links, last: int, names: tuple[str, ...]) -> None:
    """``X next to Y``, in either of the two shapes a parser gives it."""
    first = last - 1
    case = links.case(last)
    incoming = links.incoming(case.head) if case else None
    if case is None or incoming is None:
        return
    noun, name = case.head, "_".join(names)
    sister = links.find("advmod", noun, first) or links.find("case", noun, first)
    if sister is not None:
        sister.label = "case"
        if incoming.label == "nmod":
            incoming.label = f"nmod:{name}"
        links.remove(case)
        links.add("mwe", first, last)
    elif incoming.label == "nmod" and incoming.head == first and names in _GOVERNING:
        upper = links.incoming(first)
        if upper is None:
            return
        links.remove(incoming)
        links.remove(case)
        is_predicate = links.has_child(first, "cop")
        links.move_children(first, noun)
        links.lead_to(upper, noun)
        if upper.label in _OBLIQUE and not is_predicate:
            upper.label = f"nmod:{name}"
        links.add("case", noun, first)
        links.add("mwe", first, last)
