"""The rules: from a cleaned dependency graph to facts, one function per construction, in order.

``RULES`` holds them in the order in which SPICE 1.0 applies them, which decides how facts merge later. Behaviour: SPICE
(Anderson et al., ECCV 2016, section 3.1) and the scene-graph parser it builds on (Schuster et al., 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.spice.cleanup import RuleGraph, Slot

if TYPE_CHECKING:
    from spicegraph_parser.spice.parse import Arc


class Fact(NamedTuple):
    """What a rule saw: one (object), two (attribute) or three words (subject, object, relation), in SPICE's order.

    Texts for people have the relation in the middle: ``(man, ride, horse)``.
    """

    words: tuple[str, ...]
    rule: str
    tokens: tuple[tuple[int, ...], ...]  # for each of ``words``, the caption's words that it came from, from 0


Slots = tuple[Slot, ...]
Rule = Callable[[RuleGraph], Iterator[Slots]]

_NO_PREPOSITION = frozenset({"nmod:poss", "nmod:agent"})
_DIRECT_OBJECTS = frozenset({"dobj", "iobj"})
_PLURAL_TAGS = frozenset({"NNS", "NNPS"})


def _objects(graph: RuleGraph, position: int) -> list[Arc]:
    """Return the arcs to nouns that a predicate acts on, directly or through a preposition."""
    nouns = graph.nouns
    return [
        arc
        for arc in graph.children.get(position, ())
        if arc[2] in nouns and (arc[0] in _DIRECT_OBJECTS or arc[0].startswith("nmod:"))
    ]


def _joined(graph: RuleGraph, text: str, positions: list[int]) -> Slot:
    """Return a slot with the given text that stands at the given words."""
    return text, tuple([graph.slots[position - 1][1][0] for position in positions])


def _preposition(graph: RuleGraph, label: str, noun: int) -> Slot:
    """Return the words of the preposition in the relation (``nmod:in_front_of``) that leads to a noun."""
    return _joined(graph, label.partition(":")[2].replace("_", " "), _case_words(graph, noun))


def _case_words(graph: RuleGraph, position: int) -> list[int]:
    """Return the positions of a noun's first preposition, with the further words of a multi-word one."""
    cases = graph.dependents(position, "case")[:1]
    return cases + graph.dependents(cases[0], "mwe") if cases else cases


def _verb(graph: RuleGraph, position: int) -> Slot:
    """Return the verb with its particle."""
    text, words = graph.slots[position - 1]
    for particle in graph.dependents(position, "compound:prt"):
        # The reference keeps the particle as written, and drops "be" in front of it.
        text = f"{'' if text in graph.language.copulas else text} {graph.forms[particle - 1]}"
        words += graph.slots[particle - 1][1]
    return text, words


def _acted_on(graph: RuleGraph, position: int) -> list[tuple[Slot, Slot]]:
    """Return the nouns that a predicate acts on, each with the slot of the relation to it."""
    links = _objects(graph, position)
    if not links:
        return []
    verb = _verb(graph, position)
    acted_on = []
    for label, _, noun in links:
        relation = verb
        if label.startswith("nmod:") and label not in _NO_PREPOSITION:  # the preposition belongs to the relation
            preposition, cases = _preposition(graph, label, noun)
            relation = f"{verb[0]} {preposition}", verb[1] + cases
        acted_on.append((graph.nouns[noun], relation))
    return acted_on


def _subjects(graph: RuleGraph) -> Sequence[Arc]:
    """Return the arcs from every predicate to its active subject."""
    return [arc for arc in graph.families.get("nsubj", ()) if arc[1]]


def _has_copula(graph: RuleGraph, position: int) -> bool:
    return "cop" in [label for label, _, _ in graph.children[position]]


def clause(graph: RuleGraph) -> Iterator[Slots]:
    """A verb between its subject and its object, with the preposition or particle that binds them.

    a man rides a horse             -> (man, ride, horse)
    a woman looks up at the sky     -> (woman, look up at, sky)
    """
    last, acted_on = 0, []
    for _, head, subject in _subjects(graph):
        if head != last:
            last = head
            acted_on = [] if _has_copula(graph, head) else _acted_on(graph, head)
        if subject in graph.nouns:
            for target, relation in acted_on:
                yield graph.nouns[subject], target, relation


def participle(graph: RuleGraph) -> Iterator[Slots]:
    """A noun with a participle behind it that has an object.

    a man riding a horse            -> (man, ride, horse)
    a dog sitting on a couch        -> (dog, sit on, couch)
    """
    for label, head, dependent in graph.families.get("acl", ()):
        if label != "acl:relcl" and head and graph.tags[dependent - 1].startswith("V"):
            for target, relation in _acted_on(graph, dependent):
                yield graph.slots[head - 1], target, relation


def predicate(graph: RuleGraph) -> Iterator[Slots]:
    """What a subject is or does without an object; a relation if the predicate has a preposition.

    a dog is sleeping               -> (dog, sleep)
    the man is a surfer             -> (man, surfer)
    a cat is on a mat               -> (cat, on, mat)
    """
    last, is_bare, cases = 0, False, []
    for _, head, subject in _subjects(graph):
        if head != last:
            last = head
            is_bare = not _objects(graph, head) or _has_copula(graph, head)
            cases = _case_words(graph, head)
        if not is_bare or subject not in graph.nouns:
            continue
        noun, value = graph.nouns[subject], graph.slots[head - 1]
        if cases:
            text = " ".join([graph.forms[case - 1] for case in cases])
            yield noun, value, _joined(graph, text, cases)
        elif value[0] not in graph.language.copulas:
            yield noun, value


def amod(graph: RuleGraph) -> Iterator[Slots]:
    """An adjective in front of a noun.

    a brown dog                     -> (dog, brown)
    """
    for _, noun, adjective in graph.families.get("amod", ()):
        yield graph.slots[noun - 1], graph.slots[adjective - 1]


def adjective_predicate(graph: RuleGraph) -> Iterator[Slots]:
    """An adjective with a subject of its own.

    the wall is white               -> (wall, white)
    """
    for _, adjective, subject in _subjects(graph):
        if graph.tags[adjective - 1].startswith("J"):
            yield graph.slots[subject - 1], graph.slots[adjective - 1]


def prepositional(graph: RuleGraph) -> Iterator[Slots]:
    """A noun bound to another word by a preposition.

    a cat on a mat                  -> (cat, on, mat)
    """
    for label, head, dependent in graph.families.get("nmod", ()):
        if head in graph.nouns and ":" in label and label not in _NO_PREPOSITION:
            yield graph.nouns[head], graph.slots[dependent - 1], _preposition(graph, label, dependent)


def possessive(graph: RuleGraph) -> Iterator[Slots]:
    """An owner and what it has.

    a man's hat                     -> (man, have, hat)
    """
    for label, head, dependent in graph.families.get("nmod", ()):
        if label == "nmod:poss" and head in graph.nouns and dependent in graph.nouns:
            yield graph.nouns[dependent], graph.nouns[head], (graph.language.have, ())


def passive_agent(graph: RuleGraph) -> Iterator[Slots]:
    """A passive verb between the one who acts and what it acts on.

    a horse is ridden by a man      -> (man, ride, horse)
    """
    for label, head, agent in graph.families.get("nmod", ()):
        if label != "nmod:agent" or agent not in graph.nouns:
            continue
        for patient in graph.dependents(head, "nsubjpass"):
            if patient in graph.nouns:
                yield graph.nouns[agent], graph.nouns[patient], _verb(graph, head)


def _is_below_plural(graph: RuleGraph, noun: int) -> bool:
    """Return whether a preposition leads to a noun from the predicate of a plural noun."""
    # The reference does not count there: "bikes parked with lots of locks" has no count of locks, "a bike parked with
    # lots of locks" has.
    governors = {head for label, head, below in graph.families.get("nmod", ()) if below == noun and ":" in label}
    return any(head in governors and graph.tags[p - 1] in _PLURAL_TAGS for _, head, p in _subjects(graph))


def count(graph: RuleGraph) -> Iterator[Slots]:
    """How many: the last numeral before a plural noun, else the first word of its quantifying phrase.

    two dogs                        -> (dog, two)
    a bunch of bananas              -> (banana, a)
    """
    quantifiers: dict[int, list[int]] = {}
    for label, noun, first in graph.families.get("det", ()):
        if label == "det:qmod" and not _is_below_plural(graph, noun):
            quantifiers.setdefault(noun, []).append(first)
    for label, noun, numeral in graph.families.get("nummod", ()):
        if label == "nummod" and numeral < noun and graph.tags[numeral - 1] == "CD":
            quantifiers[noun] = [numeral]
    for position in sorted(quantifiers):
        if position in graph.nouns and graph.tags[position - 1] in _PLURAL_TAGS:
            for quantifier in quantifiers[position]:
                yield graph.nouns[position], graph.slots[quantifier - 1]


def _compounds(graph: RuleGraph) -> Iterator[tuple[int, int]]:
    """Return the positions of both nouns of every compound, the head first."""
    for label, head, dependent in graph.families.get("compound", ()):
        if label == "compound" and head in graph.nouns and dependent in graph.nouns:
            yield head, dependent


def compound(graph: RuleGraph) -> Iterator[Slots]:
    """A noun in front of a noun.

    a tennis racket                 -> (racket, tennis)
    """
    for head, dependent in _compounds(graph):
        yield graph.nouns[head], graph.nouns[dependent]


def objects(graph: RuleGraph) -> Iterator[Slots]:
    """Every noun that is not part of a compound.

    a man and a dog                 -> (man) (dog)
    """
    parts = {position for pair in _compounds(graph) for position in pair}
    for position, noun in graph.nouns.items():
        if position not in parts:
            yield (noun,)


RULES: Mapping[str, Rule] = {
    "clause": clause,
    "participle": participle,
    "predicate": predicate,
    "amod": amod,
    "adjective_predicate": adjective_predicate,
    "prepositional": prepositional,
    "possessive": possessive,
    "passive_agent": passive_agent,
    "count": count,
    "compound": compound,
    "objects": objects,
}
"""Every rule in order. To add one: its function, its line here, its cases in tests/cases."""


class FactPool:
    """Makes equal facts one object: every second fact of a large corpus has an equal one."""

    __slots__ = ("_facts",)

    def __init__(self) -> None:
        self._facts: dict[Fact, Fact] = {}

    def share(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """Return the facts, each as the object that was shared first."""
        first = self._facts.setdefault
        return tuple([first(fact, fact) for fact in facts])


def apply_rules(graph: RuleGraph, *, rules: Mapping[str, Rule] = RULES) -> Iterator[Fact]:
    """Apply the rules in order and stamp each fact with its rule and its tokens."""
    make = tuple.__new__  # what a named tuple's own constructor calls
    for name, rule in rules.items():
        for slots in rule(graph):
            words, tokens = zip(*slots)  # noqa: B905 (pairs, all of them)
            yield make(Fact, (words, name, tokens))
