"""The things of a description: what pronouns and short names stand for, what belongs to what, and who wears what."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.spice.loose import OWNER_RULE
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scenes.discourse import PERSONAL, PERSONS, SEVERAL, THINGS
from spicegraph_scenes.relations import HAVE, HAVE_NAMES
from spicegraph_scenes.sentence import Link, Node, Property, SentenceGraph
from spicegraph_scenes.words import MOST, NAMES, PLURAL, PREPOSITIONS, WORDS, name_noun, singular

if TYPE_CHECKING:
    from collections.abc import Sequence

PRONOUNS: Final = PERSONAL | THINGS | SEVERAL
_WEAR: Final = "wear"
_PEOPLE: Final = PERSONS | WORDS["women"] | WORDS["men"]
_WEARERS: Final = _PEOPLE | WORDS["wearers"] | WORDS["animals_in_clothes"]
_ANYONE: Final = PERSONS - WORDS["women"] - WORDS["men"]
_DECISIVE: Final = WORDS["new"] | WORDS["ordinals"] | WORDS["definite"]
_BEHIND_PLACES: Final = frozenset({",", "EX", "VBZ", "VBP", "VBD"})
_DETERMINED: Final = 4  # words between a noun and what says whether it is new
_NEAR: Final = 3  # words between an owner's pronoun and the noun
_KINDS: Final = 2  # senses of a noun, of one of which a thing may be a kind


class Thing(NamedTuple):
    """Something named, its head in the singular; ``is_part``: had, worn, or a part of a body."""

    name: str
    head: str
    is_plural: bool
    entity: int = -1
    is_first: bool = False
    is_part: bool = False


class Entities:
    """Things of a description, told apart by their names and attributes so far."""

    def __init__(self) -> None:
        self.things: list[Thing] = []
        self.groups: list[int | None] = []
        self.attributes: list[set[str]] = []

    def new(self, group: int | None = None) -> int:
        """Return the number of a new thing; ``group``: the number of its group."""
        self.groups.append(group)
        self.attributes.append(set())
        return len(self.groups) - 1

    def of_noun(self, name: str, said: set[str], before: str, *, is_plural: bool) -> int:
        """Return the number of a noun's thing: new, or an earlier one of its name."""
        same = [own.entity for own in reversed(self.things) if own.name == name and own.is_plural == is_plural]
        alike = [entity for entity in same if said & self.attributes[entity]]
        is_new = not same or (before in WORDS["ordinals"] and not alike)
        if before in WORDS["new"] or is_new:
            return self.new()
        return [*alike, *same][0]


class Resolved:
    """A sentence whose nodes have the names they stand for; its things are added to those named before."""

    def __init__(self, sentence: SentenceGraph, abstract: frozenset[str], entities: Entities) -> None:
        self._sentence, self._abstract, self._entities = sentence, abstract, entities
        self._earlier = tuple(entities.things)
        self._nodes: list[Node] = []
        self._owners: list[Node] = []
        self._links = list(sentence.links)
        self._kinds: list[Property] = []
        self._has_first = False
        self._has_owners = not WORDS["owners"].isdisjoint(sentence.words)
        self._possessed = {link.object for link in sentence.links if link.name in HAVE_NAMES or link.name == _WEAR}
        self._said: list[set[str]] = [set() for _ in sentence.nodes]
        for own in sentence.properties:
            self._said[own.node] |= set() if own.is_faint else {own.name}
        is_placed = sentence.tags[0] in PREPOSITIONS  # "to the right of the plate, there is a pitcher"
        self._subject = next((at for at, tag in enumerate(sentence.tags) if is_placed and tag in _BEHIND_PLACES), 0)

    def graph(self) -> SentenceGraph:
        """Return the sentence's graph."""
        for index, node in enumerate(self._sentence.nodes):
            self._nodes.append(self._resolved(index, node))
        return self._sentence._replace(
            nodes=(*self._nodes, *self._owners),
            links=tuple(self._links),
            properties=(*self._sentence.properties, *self._kinds),
        )

    def _resolved(self, index: int, node: Node) -> Node:
        """Return a node by the name it stands for."""
        word, tag = self._sentence.words[node.head], self._sentence.tags[node.head]
        if word in PRONOUNS:
            thing = antecedent(word, self._entities.things)
            return self._named(index, node, thing, thing.name if thing else NAMES["nameless"].get(word, node.name))
        thing = _named_before(node, self._sentence, self._earlier, is_plural=tag in PLURAL)
        if thing is not None:
            self._kinds.append(Property(index, node.name, node.tokens, is_faint=True))
            return self._named(index, node, thing, thing.name)
        if word in WORDS["stand_ins"] and (not tag.startswith("NN") or (node.head == 0 and word in WORDS["members"])):
            return self._stand_in(word, node)
        return node if node.is_faint else self._noun(index, node, is_plural=tag in PLURAL)

    def _named(self, index: int, node: Node, thing: Thing | None, name: str) -> Node:
        """Return a node for a thing that was named before, or for one that a pronoun alone names."""
        entity = thing.entity if thing else self._entities.new()
        self._entities.attributes[entity] |= self._said[index]
        return node._replace(name=name, entity=entity)

    def _stand_in(self, word: str, node: Node) -> Node:
        """Return a node for the group that was named before, or for a member of it ("one of them")."""
        group = next((thing for thing in reversed(self._entities.things) if thing.is_plural), None)
        if group is None:
            return node._replace(entity=self._entities.new())
        if word in WORDS["members"]:
            before, space, _ = group.name.rpartition(" ")  # "old men" have an "old man"
            name = f"{before}{space}{singular(group.name)}"
            group = Thing(name, group.head, is_plural=False, entity=self._entities.new(group.entity))
            self._entities.things.append(group)
        return node._replace(name=group.name, entity=group.entity)

    def _noun(self, index: int, node: Node, *, is_plural: bool) -> Node:
        """Return a noun's node with its entity, and record the thing and its owner."""
        entities, said = self._entities, self._said[index]
        entity = entities.of_noun(node.name, said, _decided(self._sentence, node), is_plural=is_plural)
        entities.attributes[entity] |= said
        if name_noun(node.name) not in self._abstract:
            owned = self._has_owners and self._owned(index, node)
            head = singular(node.name)
            is_part = owned or index in self._possessed or head in WORDS["garments"] or head in WORDS["body_parts"]
            is_first = not (owned or self._has_first) and node.head >= self._subject
            entities.things.append(Thing(node.name, head, is_plural, entity, is_first, is_part))
            self._has_first = self._has_first or is_first
        return node._replace(entity=entity)

    def _owned(self, index: int, node: Node) -> bool:
        """Say whether a pronoun owns a node ("its roof"), and add the owner's relation."""
        at, owner = _owner(self._sentence, node, self._entities.things)
        if owner is None:
            return False
        known = next((place for place in range(index - 1, -1, -1) if self._nodes[place].name == owner.name), None)
        if known is None:
            known = len(self._sentence.nodes) + len(self._owners)
            self._owners.append(Node(owner.name, at, (at,), owner.entity))
        drawn = [{link.subject, link.object} for link in self._sentence.links if not link.is_faint]
        if {known, index} not in drawn:
            name = _WEAR if is_worn(owner.name, node.name) else HAVE
            self._links.append(Link(known, index, name, (at,), rule=OWNER_RULE))
        return True


def with_short_names(sentences: Sequence[SentenceGraph]) -> list[SentenceGraph]:
    """Return sentences whose things have the short name by which they are called as often as by the long one."""
    counts = Counter(node.name for sentence in sentences for node in sentence.nodes)
    nouns = {name: name_noun(name) for name in counts if " " in name}
    longer = Counter(nouns.values())
    short = {name: noun for name, noun in nouns.items() if longer[noun] == 1 and counts[name] <= counts[noun]}
    return [_with_short_names(sentence, short) for sentence in sentences] if short else list(sentences)


def _with_short_names(sentence: SentenceGraph, short: dict[str, str]) -> SentenceGraph:
    """Return a sentence with short names of things; the words left out become faint attributes."""
    others = [tuple([at for at in node.tokens if at != node.head]) for node in sentence.nodes]
    lacking = [
        Property(index, " ".join([sentence.words[at] for at in tokens]), tokens, is_faint=True)
        for index, (node, tokens) in enumerate(zip(sentence.nodes, others, strict=True))
        if node.name in short and tokens
    ]
    nodes = [
        own._replace(name=short[own.name], tokens=(own.head,)) if own.name in short else own for own in sentence.nodes
    ]
    return sentence._replace(nodes=tuple(nodes), properties=(*sentence.properties, *lacking))


def _decided(sentence: SentenceGraph, node: Node) -> str:
    """Return the nearest word before a node that says whether it is new; nothing where none does."""
    words = sentence.words[max(0, node.tokens[0] - _DETERMINED) : node.tokens[0]]
    return next((word for word in reversed(words) if word in _DECISIVE), "")


def _owner(sentence: SentenceGraph, node: Node, things: Sequence[Thing]) -> tuple[int, Thing | None]:
    """Return the position of the possessive pronoun before a node, and its antecedent."""
    words, tags, start = sentence.words, sentence.tags, node.tokens[0]
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        if words[at] == "," or tags[at] in {"NN", "NNS"}:
            break
        if words[at] in WORDS["owners"]:
            head = singular(node.name)
            is_object = words[at + 1] == ","  # "behind her, two children"
            thing = None if is_object else antecedent(words[at], things)
            return at, thing if thing and thing.head != head else None
    return -1, None


def _named_before(node: Node, sentence: SentenceGraph, things: Sequence[Thing], *, is_plural: bool) -> Thing | None:
    """Return the earlier thing that a definite noun refers to ("a skyscraper. The building")."""
    if not things:
        return None
    name, start = node.name, node.tokens[0]
    is_the = not WORDS["the"].isdisjoint(sentence.words[max(0, start - 2) : start])
    head = singular(name)
    if not is_the or " " in name or name in WORDS["kindless"] or head in [thing.head for thing in things]:
        return None
    kind = NAMES["kinds"].get(name, head)
    alike = (thing for thing in reversed(things) if thing.is_plural == is_plural and _is_kind(thing.head, kind))
    return next(alike, None)


def _is_kind(noun: str, kind: str) -> bool:
    """Say whether a noun, in its first sense, is a hyponym of another."""
    return not _broader(noun).isdisjoint(_kinds(kind))


# Kept by noun: a description asks of each thing before, and to look a noun up costs more than to compare two.
@lru_cache(maxsize=MOST)
def _kinds(noun: str) -> tuple[Synset, ...]:
    """Return the senses of a noun, of one of which a thing may be a kind."""
    return tuple(load_wordnet().senses(noun, "n")[:_KINDS])


@lru_cache(maxsize=MOST)
def _broader(noun: str) -> frozenset[Synset]:
    """Return the synset of a noun's first sense and its hypernyms."""
    wordnet = load_wordnet()
    senses = wordnet.senses(noun, "n")[: noun not in WORDS["misleading"]]
    return frozenset(above for sense in senses for above in wordnet.ancestors(sense))


def antecedent(word: str, things: Sequence[Thing]) -> Thing | None:
    """Return a pronoun's antecedent: first thing for "it" and "they", else the nearest; parts last."""
    is_of_subject = word in {*THINGS, "they"}
    first = [thing for thing in reversed(things) if thing.is_first and is_of_subject][:1]
    agreeing = (thing for thing in (*first, *reversed(things)) if _agrees(word, thing))
    return min(agreeing, key=lambda thing: thing.is_part, default=None)


def _agrees(word: str, thing: Thing) -> bool:
    """Say whether a pronoun may stand for a thing; "they" may be one person of whom it is not said whether a man."""
    if word in SEVERAL:
        return thing.is_plural or thing.head in _ANYONE
    if word in THINGS:
        return not (thing.is_plural or thing.head in _PEOPLE)
    others = WORDS["men" if word in WORDS["female"] else "women"]
    return (
        not thing.is_plural and thing.head not in others and (thing.head in _PEOPLE or _is_kind(thing.head, "person"))
    )


def plain_start(word: str, behind: str) -> str:
    """Return a noun in place of a pronoun at the start, any other word unchanged."""
    lower = word.lower()
    is_member = lower in WORDS["members"] and behind in WORDS["behind_members"]
    return "person" if is_member else NAMES["plain_starts"].get(lower, word)


def is_worn(owner: str, name: str) -> bool:
    """Say whether the second is a garment, and the first may wear it."""
    garment, wearer = singular(name), singular(owner)
    is_coat = garment == "coat" and wearer in WORDS["animals_in_clothes"]
    return garment in WORDS["garments"] and wearer in _WEARERS and not is_coat


def described(subject: str, target: str, name: str) -> tuple[str, bool]:
    """Return the name that people give to a relation in a description, and whether its ends change places."""
    joined = name.replace(" ", "-")
    if joined in NAMES["turned"]:
        return NAMES["turned"][joined], True
    if name == HAVE or joined in WORDS["full"]:
        return (_WEAR if is_worn(subject, target) else HAVE), False
    return name, False
