"""Basic dependencies to collapsed, CC-processed ones, as the SPICE reference sees them.

Prepositions move into the relation (``nmod:on``), multi-word prepositions become one (``nmod:in_front_of``),
conjuncts take over the relation of the first one, and later verbs its subject.
The naming follows the Stanford typed dependencies manual (de Marneffe and Manning, 2008) and its Universal
Dependencies v1 form (Schuster and Manning, LREC 2016); the lists of multi-word prepositions are theirs as far as
captions show that the reference joins them.
"""

from __future__ import annotations

from bisect import insort
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from spicegraph_parser.spice.parse import Arc, Parse

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
_NO_ARC = ("", 0, 0)
_CASE = frozenset({"case"})
_AFTER_PREPOSITION = frozenset({"nmod", "acl", "advcl"})
_MARKERS = _CASE | {"mark"}
TABLE_SIZE = 16  # places in the reference's hash tables of a word's dependents


def collapse(parse: Parse, *, sentence: int = 0) -> Parse:
    """Return the parse with collapsed, CC-processed dependencies; one that has them already comes back unchanged.

    ``a cat on a mat``: nmod(cat, mat), case(mat, on) -> nmod:on(cat, mat), case(mat, on)
    ``a cat and a dog sleep``: nsubj(sleep, cat), conj(cat, dog) -> also nsubj(sleep, dog)
    ``a cat is on top of a car``: root(top), nmod(top, car) -> root(car), case(car, on)

    A word that governs two prepositional phrases has a copy for the second one: with n words, the copies of word p have
    the positions n + p, 2n + p and so on. ``sentence``, its number in the caption, decides the order in which the
    reference sees a word's dependents, and so which of several prepositions names a relation.
    """
    names = parse.names
    arcs: Sequence[Arc] = parse.arcs
    labels = set(map(itemgetter(0), arcs))
    if any(":" in label and (_is_prepositional(label) or label.startswith("conj:")) for label in labels):
        return parse
    if "case" in labels:
        markers = [arc for arc in arcs if arc[0] in _MARKERS]
        arcs = join_prepositions(arcs, names, cases=markers)
        prepositions = _prepositions(arcs if "mwe" in labels or arcs is not parse.arcs else markers, names, sentence)
        named = _named(arcs, prepositions, parse.language.agents)
        arcs = _split_conjuncts(named, names, prepositions, sentence) if "conj" in labels else named
    if "conj" in labels:
        arcs = _spread_conjunctions(arcs, names, parse.tags, sentence)
    return parse if arcs is parse.arcs else parse.with_arcs(arcs)


def _named(arcs: Sequence[Arc], prepositions: Mapping[int, str], agents: Collection[str]) -> list[Arc]:
    """Return arcs in which relations to prepositional phrases are named after their prepositions."""
    passives = {head for label, head, _ in arcs if label == "auxpass"}
    named = list(arcs)
    for index, (label, head, dependent) in enumerate(arcs):
        if dependent in prepositions and label in _AFTER_PREPOSITION:
            preposition = prepositions[dependent]
            if label == "nmod" and head in passives and preposition in agents:
                preposition = "agent"
            named[index] = f"{label}:{preposition}", head, dependent
    return named


def original(position: int, size: int) -> int:
    """Return the position of the word of a collapsed parse of ``size`` words that a word or a copy stands for."""
    return position and (position - 1) % size + 1


def table_place(position: int, sentence: int) -> int:
    """Return a word's place in the reference's hash tables: up to word 15 of the first sentence the order of words."""
    return (position + 13 * sentence) % TABLE_SIZE  # they shift by 13 from one sentence to the next


def _name(forms: Sequence[str], position: int) -> str:
    return forms[position - 1].lower()


def _prepositions(arcs: Sequence[Arc], forms: Sequence[str], sentence: int) -> dict[int, str]:
    """Return the preposition of every word that has one, in lower case: ``on``, ``in_front_of``."""
    # Of several, the reference takes the last in the order of its hash table: most often the last one of the sentence
    # ("from inside a box"), but of the words 15 and 16 the first one.
    chosen: dict[int, int] = {}
    further: dict[int, list[int]] = {}
    for label, head, dependent in arcs:
        if label == "case":
            if head in chosen:
                dependent = max(chosen[head], dependent, key=lambda word: (table_place(word, sentence), word))  # noqa: PLW2901
            chosen[head] = dependent
        elif label == "mwe":
            insort(further.setdefault(head, []), dependent)
    names = {head: forms[case - 1].lower() for head, case in chosen.items()}
    if further:
        for head, case in chosen.items():
            names[head] = "_".join([names[head], *[_name(forms, position) for position in further.get(case, ())]])
    return names


def _split_conjuncts(
    arcs: Sequence[Arc], forms: Sequence[str], prepositions: Mapping[int, str], sentence: int
) -> Sequence[Arc]:
    """Give the word that governs two prepositional phrases a copy for the second phrase."""
    # ``sits in the sun and on a mat``: conj(sun, mat) -> conj(sits, sits'), nmod:on(sits', mat)
    # ``their hands in or near a fountain``: conj(in, near) -> conj:or(hands, hands'), nmod:near(hands', fountain)
    governors: dict[int, Arc] = {}
    coordinators: dict[int, list[int]] = {}
    for index, arc in enumerate(arcs):
        label, head, dependent = arc
        governors.setdefault(dependent, arc)
        if label == "cc":
            coordinators.setdefault(head, []).append(index)
    changed = list(arcs)
    copies: dict[int, int] = {}

    def copy_of(position: int) -> int:
        copies[position] = copies.get(position, 0) + 1
        return position + copies[position] * len(forms)

    for index, (label, first, later) in enumerate(arcs):
        if label != "conj" or first not in coordinators:
            continue
        relation, governor, _ = governors.get(first, _NO_ARC)
        if not governor:
            continue
        if later in prepositions and _is_prepositional(relation):
            for rank, coordinator in enumerate(coordinators.pop(first)):
                copy, position = copy_of(governor), arcs[coordinator][2]
                if rank == 0:
                    changed[index] = f"nmod:{prepositions[later]}", copy, later
                changed[coordinator] = "cc", governor, position
                changed.append((_conjunction(forms, position), governor, copy))
        elif relation == "case":
            noun = governor
            upper, governor, _ = governors.get(noun, _NO_ARC)
            if governor and _is_prepositional(upper):
                copy = copy_of(governor)
                candidates = [arcs[coordinator][2] for coordinator in coordinators[first]]
                changed.append((_conjunction(forms, _coordinator(candidates, later, sentence)), governor, copy))
                changed.append((f"nmod:{_name(forms, later)}", copy, noun))
    return changed


def _is_prepositional(label: str) -> bool:
    return label.startswith("nmod:") and label not in {"nmod:poss", "nmod:tmod", "nmod:npmod"}


def _spread_conjunctions(arcs: Sequence[Arc], forms: Sequence[str], tags: Sequence[str], sentence: int) -> list[Arc]:
    """Name the conjunctions, and let later conjuncts share the first one's governor and subject."""
    named = _named_conjuncts(arcs, forms, sentence)
    above: dict[int, list[Arc]] = {}
    subjects: dict[int, list[Arc]] = {}
    passives: set[int] = set()
    for arc in named:
        label, head, dependent = arc
        above.setdefault(dependent, []).append(arc)
        if label in _SUBJECTS:
            subjects.setdefault(head, []).append(arc)
        elif label == "auxpass":
            passives.add(head)
    shared: list[Arc] = []
    for label, first, later in named:
        if first == later or not label.startswith("conj:"):
            continue
        shared += [
            (label_above, head, later)
            for label_above, head, _ in above.get(first, ())
            if head not in (0, first) and label_above != "case"
        ]
        tag = tags[original(later, len(forms)) - 1]
        if later not in subjects and tag.startswith(("V", "J")):
            shared += _shared_subjects(subjects.get(first, ()), later, tag, is_passive=later in passives)
    return list(dict.fromkeys(named + shared)) if shared else named


def _named_conjuncts(arcs: Sequence[Arc], forms: Sequence[str], sentence: int) -> list[Arc]:
    """Return the arcs, with relations to conjuncts named after their conjunctions."""
    coordinators: dict[int, list[int]] = {}
    for label, head, dependent in arcs:
        if label == "cc":
            coordinators.setdefault(head, []).append(dependent)
    return [
        (_conjunction(forms, _coordinator(coordinators[head], dependent, sentence)), head, dependent)
        if label == "conj" and head in coordinators
        else (label, head, dependent)
        for label, head, dependent in arcs
    ]


def _shared_subjects(subjects: Iterable[Arc], later: int, tag: str, *, is_passive: bool) -> list[Arc]:
    """Return the relations of a later verb to the subjects of the first one."""
    # "is flushed and continues", "moves and is followed": the voice is the later verb's.
    voice = "pass" if is_passive else "" if tag.startswith(("VBP", "VBZ", "J")) else None
    return [
        (label if voice is None else label.removesuffix("pass") + voice, later, dependent)
        for label, _, dependent in subjects
    ]


def _conjunction(forms: Sequence[str], coordinator: int) -> str:
    """Return the name of the relation to a conjunct; "as well as" means "and"."""
    name = _name(forms, coordinator)
    return f"conj:{'and' if name == 'as' else name}"


def _coordinator(candidates: Sequence[int], conjunct: int, sentence: int) -> int:
    """Return the last coordinator before the conjunct, else the first, in the order of the reference's hash table."""
    ordered = sorted((table_place(position, sentence), position) for position in candidates)
    return next((position for _, position in reversed(ordered) if position < conjunct), ordered[0][1])


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    """Return the words of phrases that are written as text."""
    return frozenset(tuple(phrase.split()) for phrase in text.split(","))


# The first word of these governs the noun (next -nmod-> horse -case-> to) or is a sister of its preposition.
_EITHER = _phrases(
    """according to, ahead of, as to, because of, close to, contrary to, due to, far from, instead of, near to,
    next to, out of, outside of, prior to, regardless of, such as, thanks to"""
)
# The first word of these governs the noun: away -nmod-> horse -case-> from.
_GOVERNING = _EITHER | _phrases("away from")
# The first word of these is a sister of the preposition: noun -advmod-> along, noun -case-> with.
_SISTER = _EITHER | _phrases(
    """across from, along with, alongside of, apart from, as for, as from, as of, as per, aside from, based on,
    close by, compared to, compared with, depending on, except for, followed by, inside of, off of,
    together with"""
)
# The middle word is a noun with the first as its preposition: top -case-> on, top -nmod-> car -case-> of.
_AROUND_NOUN = _phrases(
    """by means of, in accordance with, in addition to, in case of, in front of, in lieu of, in place of,
    in spite of, on account of, on behalf of, on top of, with regard to, with respect to"""
)
_PAIRS = _GOVERNING | _SISTER
_BEFORE_LAST = frozenset(names[-2] for names in _PAIRS | _AROUND_NOUN)
# Relations that a prepositional phrase may stand in; under others (root, acl:relcl, ccomp) it is a predicate.
_OBLIQUE = frozenset({"advmod", "amod", "dobj", "nmod", "nsubj", "xcomp"})


def join_prepositions(arcs: Sequence[Arc], forms: Sequence[str], *, cases: Iterable[Arc]) -> Sequence[Arc]:
    """Return dependencies in which phrases of a multi-word preposition have its name; ``cases`` lead to one."""
    # ``a cat on top of a car``: nmod(cat, top), nmod(top, car) -> nmod:on_top_of(cat, car)
    # ``a dog next to a cat``: advmod(dog, next), nmod(next, cat) -> nmod:next_to(dog, cat)
    around: list[tuple[int, tuple[str, ...]]] = []
    pairs: list[tuple[int, tuple[str, ...]]] = []
    for _, _, last in cases:
        if last < 2 or forms[last - 2].lower() not in _BEFORE_LAST:
            continue
        names = tuple([form.lower() for form in forms[max(last - 3, 0) : last]])
        if names in _AROUND_NOUN:
            around.append((last, names))
        if names[-2:] in _PAIRS:
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

    def marker(self, word: int, labels: frozenset[str] = _MARKERS) -> _Link | None:
        return next((link for link in self._above.get(word, ()) if link.label in labels), None)

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
    opening, second = links.find("case", noun, first), links.marker(last)
    if opening is None or second is None:
        return
    governed = links.find("nmod", noun, second.head) or links.find("acl", noun, second.head)
    incoming = links.incoming(noun)
    if governed is None or incoming is None:
        return
    links.remove(governed)
    links.remove(second)
    links.move_children(noun, governed.dependent)
    links.lead_to(incoming, governed.dependent)
    if governed.label == "acl":
        opening.label = "mark"
        if incoming.label == "nmod":
            incoming.label = "acl"
    else:
        if incoming.label in _OBLIQUE:
            incoming.label = "nmod"
        if incoming.label == "nmod" or incoming.label in {"acl", "advcl"}:
            incoming.label += f":{'_'.join(names)}"
    links.add("mwe", first, noun)
    links.add("mwe", first, last)


def _join_pair(links: _Links, last: int, names: tuple[str, ...]) -> None:
    """``X next to Y``, in either of the two shapes a parser gives it."""
    first = last - 1
    case = links.marker(last, _CASE)
    incoming = links.incoming(case.head) if case else None
    if case is None or incoming is None:
        return
    sister = links.find("advmod", case.head, first) or links.find("case", case.head, first)
    if sister is None:
        if incoming.label == "nmod" and incoming.head == first and names in _GOVERNING:
            _join_governing(links, case, incoming, names)
    elif names in _SISTER:
        sister.label = "case"
        if incoming.label == "nmod":
            incoming.label = f"nmod:{'_'.join(names)}"
        links.remove(case)
        links.add("mwe", first, last)


def _join_governing(links: _Links, case: _Link, incoming: _Link, names: tuple[str, ...]) -> None:
    """``X next to Y``: nmod(next, Y), case(Y, to) -> nmod:next_to(X, Y)."""
    first, noun = incoming.head, case.head
    upper = links.incoming(first)
    if upper is None:
        return
    links.remove(incoming)
    links.remove(case)
    is_clause = upper.label == "conj" and links.has_child(first, "cop")
    links.move_children(first, noun)
    links.lead_to(upper, noun)
    if upper.label in _OBLIQUE or (upper.label in {"conj", "dep"} and not is_clause):
        upper.label = f"nmod:{'_'.join(names)}"
    links.add("case", noun, first)
    links.add("mwe", first, case.dependent)
