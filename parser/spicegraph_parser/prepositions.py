"""Multi-word prepositions: ``next to``, ``out of``, ``in front of`` become one relation.

The lists are those of the Stanford typed dependencies manual (de Marneffe and Manning, 2008) in their
Universal Dependencies v1 form (Schuster and Manning, LREC 2016), as far as captions show that the reference
joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spicegraph_parser.parse import Arc

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
