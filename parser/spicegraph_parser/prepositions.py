"""Multi-word prepositions: ``next to``, ``out of``, ``in front of`` become one relation.

The lists are those of the Stanford typed dependencies manual (de Marneffe and Manning, 2008) in their
Universal Dependencies v1 form (Schuster and Manning, LREC 2016), as far as captions show that the reference
joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.parse import Edge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.parse import Word

__all__ = ["join_prepositions"]

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


def join_prepositions(edges: Sequence[Edge], words: Sequence[Word], *, cases: Iterable[Edge]) -> Sequence[Edge]:
    """Return basic dependencies in which the phrases of a multi-word preposition have its name.

    ``cases`` are those of the edges that lead to a preposition. The edges come back as they are without any.

    Example:
        ``a cat on top of a car``: nmod(cat, top), nmod(top, car) -> nmod:on_top_of(cat, car)
        ``a dog next to a cat``: advmod(dog, next), nmod(next, cat) -> nmod:next_to(dog, cat)
    """
    around: list[tuple[int, tuple[str, ...]]] = []
    pairs: list[tuple[int, tuple[str, ...]]] = []
    for _, _, last in cases:
        if last < 2 or words[last - 2].form.lower() not in _BEFORE_LAST:
            continue
        names = tuple([word.form.lower() for word in words[max(last - 3, 0) : last]])
        if names in _AROUND_NOUN:
            around.append((last, names))
        if names[-2:] in _SISTER:
            pairs.append((last, names[-2:]))
    if not around and not pairs:
        return edges
    arcs = _Arcs(edges)
    for last, names in sorted(around):
        _join_around_noun(arcs, last, names)
    for last, names in sorted(pairs):
        _join_pair(arcs, last, names)
    return arcs.edges()


class _Arc:
    """An edge that can still be moved."""

    __slots__ = ("dependent", "head", "label", "removed")

    def __init__(self, label: str, head: int, dependent: int) -> None:
        self.label = label
        self.head = head
        self.dependent = dependent
        self.removed = False


class _Arcs:
    """The edges of a sentence while they change, findable from either end."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._all: list[_Arc] = []
        self._above: dict[int, list[_Arc]] = {}
        self._below: dict[int, list[_Arc]] = {}
        for edge in edges:
            self.add(*edge)

    def edges(self) -> list[Edge]:
        return [Edge(arc.label, arc.head, arc.dependent) for arc in self._all if not arc.removed]

    def add(self, label: str, head: int, dependent: int) -> None:
        arc = _Arc(label, head, dependent)
        self._all.append(arc)
        self._above.setdefault(dependent, []).append(arc)
        self._below.setdefault(head, []).append(arc)

    def remove(self, arc: _Arc) -> None:
        arc.removed = True
        self._above[arc.dependent].remove(arc)
        self._below[arc.head].remove(arc)

    def incoming(self, dependent: int) -> _Arc | None:
        return next(iter(self._above.get(dependent, ())), None)

    def case(self, preposition: int) -> _Arc | None:
        return next((arc for arc in self._above.get(preposition, ()) if arc.label == "case"), None)

    def find(self, label: str, head: int, dependent: int) -> _Arc | None:
        return next((arc for arc in self._above.get(dependent, ()) if arc.head == head and arc.label == label), None)

    def has_child(self, head: int, label: str) -> bool:
        return any(arc.label == label for arc in self._below.get(head, ()))

    def lead_to(self, arc: _Arc, dependent: int) -> None:
        self._above[arc.dependent].remove(arc)
        self._above.setdefault(dependent, []).append(arc)
        arc.dependent = dependent

    def move_children(self, old: int, new: int) -> None:
        moved = self._below.pop(old, [])
        for arc in moved:
            arc.head = new
        self._below.setdefault(new, []).extend(moved)


def _join_around_noun(arcs: _Arcs, last: int, names: tuple[str, ...]) -> None:
    """``X on top of Y``: nmod(X, top), nmod(top, Y) -> nmod:on_top_of(X, Y)."""
    noun, first = last - 1, last - 2
    second = arcs.case(last)
    if second is None or arcs.find("case", noun, first) is None:
        return
    governed = arcs.find("nmod", noun, second.head)
    incoming = arcs.incoming(noun)
    if governed is None or incoming is None:
        return
    arcs.remove(governed)
    arcs.remove(second)
    arcs.move_children(noun, governed.dependent)
    arcs.lead_to(incoming, governed.dependent)
    if incoming.label in _OBLIQUE:
        incoming.label = "nmod"
    if incoming.label == "nmod" or incoming.label in _CLAUSAL:
        incoming.label += f":{'_'.join(names)}"
    arcs.add("mwe", first, noun)
    arcs.add("mwe", first, last)


def _join_pair(arcs: _Arcs, last: int, names: tuple[str, ...]) -> None:
    """``X next to Y``, in either of the two shapes a parser gives it."""
    first = last - 1
    case = arcs.case(last)
    incoming = arcs.incoming(case.head) if case else None
    if case is None or incoming is None:
        return
    noun, name = case.head, "_".join(names)
    sister = arcs.find("advmod", noun, first) or arcs.find("case", noun, first)
    if sister is not None:
        sister.label = "case"
        if incoming.label == "nmod":
            incoming.label = f"nmod:{name}"
        arcs.remove(case)
        arcs.add("mwe", first, last)
    elif incoming.label == "nmod" and incoming.head == first and names in _GOVERNING:
        upper = arcs.incoming(first)
        if upper is None:
            return
        arcs.remove(incoming)
        arcs.remove(case)
        is_predicate = arcs.has_child(first, "cop")
        arcs.move_children(first, noun)
        arcs.lead_to(upper, noun)
        if upper.label in _OBLIQUE and not is_predicate:
            upper.label = f"nmod:{name}"
        arcs.add("case", noun, first)
        arcs.add("mwe", first, last)
