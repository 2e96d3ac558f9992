"""The rules: from a cleaned dependency graph to facts, one function per construction, in order.

Each rule is a generator over a :class:`~spicegraph_parser.spice.cleanup.RuleGraph`. ``RULES`` holds them in the
order in which SPICE 1.0 applies them; the order decides how facts merge later. Rules do not refer to each other.
Behaviour: SPICE (Anderson et al., ECCV 2016, section 3.1) and the scene-graph parser it builds on (Schuster
et al., 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.spice.cleanup import RuleGraph, Slot

if TYPE_CHECKING:
    from spicegraph_parser.spice.parse import Arc


class Fact(NamedTuple):
    """What a rule saw: one (object), two (attribute) or three words (subject, object, relation).

    ``tokens`` gives, for each of ``words``, the positions in the caption of the words it came from, from 0.
    """

    words: tuple[str, ...]
    rule: str
    tokens: tuple[tuple[int, ...], ...]


Slots = tuple[Slot, ...]
Rule = Callable[[RuleGraph], Iterator[Slots]]

_NO_PREPOSITION = frozenset({"nmod:poss", "nmod:agent"})
_DIRECT_OBJECTS = frozenset({"dobj", "iobj"})
_PLURAL_TAGS = frozenset({"NNS", "NNPS"})


def _is_object(graph: RuleGraph, arc: Arc) -> bool:
    """Say whether the arc leads to a noun that a predicate acts on, directly or through a preposition."""
    label, _, dependent = arc
    return dependent in graph.nouns and (label in _DIRECT_OBJECTS or label.startswith("nmod:"))


def _joined(graph: RuleGraph, text: str, positions: list[int]) -> Slot:
    """Return a slot with the given text that stands at the given words."""
    return text, tuple([graph.slots[position - 1][1][0] for position in positions])


def _preposition(graph: RuleGraph, label: str, noun: int) -> Slot:
    """Return the words of the preposition in the relation (``nmod:in_front_of``) that leads to a noun."""
    text = label.partition(":")[2].replace("_", " ")
    return _joined(graph, text, _case_words(graph, noun))


def _case_words(graph: RuleGraph, position: int) -> list[int]:
    """Return the positions of a noun's first preposition, with the further words of a multi-word one."""
    cases = graph.dependents(position, "case")[:1]
    return cases + [word for case in cases for word in graph.dependents(case, "mwe")]


def _verb(graph: RuleGraph, position: int) -> Slot:
    """Return the verb with its particle."""
    text, words = graph.slot(position)
    for particle in graph.dependents(position, "compound:prt"):
        # The reference keeps the particle as written, and drops "be" in front of it.
        text = f"{'' if text == 'be' else text} {graph.forms[particle - 1]}"
        words += graph.slot(particle)[1]
    return text, words


def _objects(graph: RuleGraph, position: int) -> list[tuple[Slot, Slot]]:
    """Return the nouns that a predicate acts on, each with the slot of the relation to it."""
    links = [link for link in graph.children.get(position, ()) if _is_object(graph, link)]
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


def _subjects(graph: RuleGraph) -> list[tuple[int, int]]:
    """Return the positions of every predicate and its active subject."""
    return [(head, subject) for _, head, subject in graph.families.get("nsubj", ()) if head]


def _has_copula(graph: RuleGraph, position: int) -> bool:
    return any(label == "cop" for label, _, _ in graph.children[position])


def clause(graph: RuleGraph) -> Iterator[Slots]:
    """A verb between its subject and its object, with the preposition or particle that binds them.

    a man rides a horse             -> (man, horse, ride)
    a woman looks up at the sky     -> (woman, sky, look up at)
    """
    last, objects_of_head = 0, []
    for head, subject in _subjects(graph):
        if head != last:
            last = head
            objects_of_head = [] if _has_copula(graph, head) else _objects(graph, head)
        if subject in graph.nouns:
            for target, relation in objects_of_head:
                yield graph.nouns[subject], target, relation


def participle(graph: RuleGraph) -> Iterator[Slots]:
    """A noun with a participle behind it that has an object.

    a man riding a horse            -> (man, horse, ride)
    a dog sitting on a couch        -> (dog, couch, sit on)
    """
    for label, head, dependent in graph.families.get("acl", ()):
        if label != "acl:relcl" and head and graph.tag(dependent).startswith("V"):
            for target, relation in _objects(graph, dependent):
                yield graph.slot(head), target, relation


def predicate(graph: RuleGraph) -> Iterator[Slots]:
    """What a subject is or does without an object; a relation if the predicate has a preposition.

    a dog is sleeping               -> (dog, sleep)
    the man is a surfer             -> (man, surfer)
    a cat is on a mat               -> (cat, mat, on)
    """
    last, is_bare, cases = 0, False, []
    for head, subject in _subjects(graph):
        if head != last:
            last = head
            acts = any(_is_object(graph, link) for link in graph.children[head])
            is_bare = not acts or _has_copula(graph, head)
            cases = _case_words(graph, head)
        if not is_bare or subject not in graph.nouns:
            continue
        noun, value = graph.nouns[subject], graph.slot(head)
        if cases:
            text = " ".join([graph.forms[case - 1] for case in cases])
            yield noun, value, _joined(graph, text, cases)
        elif value[0] != "be":
            yield noun, value


def amod(graph: RuleGraph) -> Iterator[Slots]:
    """An adjective in front of a noun.

    a brown dog                     -> (dog, brown)
    """
    for _, noun, adjective in graph.families.get("amod", ()):
        yield graph.slot(noun), graph.slot(adjective)


def adjective_predicate(graph: RuleGraph) -> Iterator[Slots]:
    """An adjective with a subject of its own.

    the wall is white               -> (wall, white)
    """
    for adjective, subject in _subjects(graph):
        if graph.tag(adjective).startswith("J"):
            yield graph.slot(subject), graph.slot(adjective)


def prepositional(graph: RuleGraph) -> Iterator[Slots]:
    """A noun bound to another word by a preposition.

    a cat on a mat                  -> (cat, mat, on)
    """
    for label, head, dependent in graph.families.get("nmod", ()):
        if head in graph.nouns and ":" in label and label not in _NO_PREPOSITION:
            yield graph.nouns[head], graph.slot(dependent), _preposition(graph, label, dependent)


def possessive(graph: RuleGraph) -> Iterator[Slots]:
    """An owner and what it has.

    a man's hat                     -> (man, hat, have)
    """
    for label, head, dependent in graph.families.get("nmod", ()):
        if label == "nmod:poss" and head in graph.nouns and dependent in graph.nouns:
            yield graph.nouns[dependent], graph.nouns[head], ("have", ())


def passive_agent(graph: RuleGraph) -> Iterator[Slots]:
    """A passive verb between the one who acts and what it acts on.

    a horse is ridden by a man      -> (man, horse, ride)
    """
    for label, head, agent in graph.families.get("nmod", ()):
        if label != "nmod:agent" or agent not in graph.nouns:
            continue
        patients = [p for p in graph.dependents(head, "nsubjpass") if p in graph.nouns]
        verb = _verb(graph, head)
        for patient in patients:
            yield graph.nouns[agent], graph.nouns[patient], verb


def count(graph: RuleGraph) -> Iterator[Slots]:
    """How many: the last numeral before a plural noun, else the first word of its quantifying phrase.

    two dogs                        -> (dog, two)
    a bunch of bananas              -> (banana, a)
    """
    quantifiers: dict[int, list[int]] = {}
    for label, head, first in graph.families.get("det", ()):
        if label == "det:qmod" and not _of_several(graph, head):
            quantifiers.setdefault(head, []).append(first)
    for label, head, numeral in graph.families.get("nummod", ()):
        if label == "nummod" and numeral < head and graph.tag(numeral) == "CD":
            quantifiers[head] = [numeral]
    for position in sorted(quantifiers):
        if position in graph.nouns and graph.tag(position) in _PLURAL_TAGS:
            for quantifier in quantifiers[position]:
                yield graph.nouns[position], graph.slot(quantifier)


def _of_several(graph: RuleGraph, noun: int) -> bool:
    """Say whether a preposition leads to the noun from the predicate of a plural noun.

    The reference does not count there: "bikes parked with lots of locks" has no count of locks, "a bike parked
    with lots of locks" has.
    """
    governors = {
        head for label, head, dependent in graph.families.get("nmod", ()) if ":" in label and dependent == noun
    }
    return any(head in governors and graph.tag(subject) in _PLURAL_TAGS for head, subject in _subjects(graph))


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
    """Makes equal facts one object: every second fact of a large corpus has an equal one.

    >>> pool = FactPool()
    >>> one, other = (pool.share([Fact(("dog",), "objects", ((at,),))]) for at in (1, 1))
    >>> one[0] is other[0]
    True
    """

    __slots__ = ("_facts",)

    def __init__(self) -> None:
        self._facts: dict[Fact, Fact] = {}

    def share(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """Return the facts, each as the object that was shared first."""
        first = self._facts.setdefault
        return tuple([first(fact, fact) for fact in facts])


def apply_rules(graph: RuleGraph, *, rules: Mapping[str, Rule] = RULES) -> Iterator[Fact]:
    """Apply the rules in order and stamp each fact with its rule and its tokens."""
    for name, rule in rules.items():
        for slots in rule(graph):
            words, tokens = zip(*slots, strict=True)
            yield Fact(words, name, tokens)
