"""The things of a description: what pronouns and short names stand for, and what belongs to what."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.scenes.network import HAVE_NAMES
from spicegraph_parser.scenes.parts import (
    BODY_PARTS,
    GARMENTS,
    HAVE,
    MEN,
    OF_THE_LIVING,
    WEAR,
    WOMEN,
    is_worn,
    singular,
)
from spicegraph_parser.scenes.sentences import Link, Node, Property, SentenceGraph
from spicegraph_parser.scenes.visible import name_noun
from spicegraph_parser.spice.discourse import PERSONAL, PERSONS, SEVERAL, THINGS
from spicegraph_parser.spice.loose import OWNER_RULE
from spicegraph_parser.spice.parse import tables, word_set
from spicegraph_parser.spice.wordnet import Synset, load_wordnet

if TYPE_CHECKING:
    from collections.abc import Sequence


_FEMALE: Final = word_set("she her hers herself")
_MALE: Final = word_set("he him his himself")
_MEMBERS: Final = word_set("one another other each")
_MEMBER_OF: Final = word_set("of is has wears holds stands sits lies walks runs appears looks carries rides")
_NEW: Final = word_set("a an another other")
_ORDINALS: Final = word_set("first second third fourth fifth")
_DETERMINED: Final = 4  # words between a noun and what says whether it is new
_STAND_INS: Final = word_set("one ones other others another each both some all few several two three four")
PRONOUNS: Final = PERSONAL | THINGS | SEVERAL
_OWNERS: Final = word_set("his her its their")
_DEFINITE: Final = _OWNERS | word_set("the this that these those said")
_DECISIVE: Final = _NEW | _ORDINALS | _DEFINITE
_INCLUDING: Final = "including"
_SUCH: Final = "such"
_OF_LISTS: Final = frozenset({_INCLUDING, _SUCH})
_IN_LISTS: Final = frozenset({"DT", "JJ", "NN", "NNS", "NNP", "NNPS", "CD", "CC", ",", "PRP$"})
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_NAMELESS: Final = ((_MALE, "man"), (_FEMALE, "woman"), (SEVERAL, "people"))
_UNRESOLVED: Final = {word: name for words, name in _NAMELESS for word in words - {"their"}}
_NEAR: Final = 3  # words between an owner's pronoun and the noun


class Thing(NamedTuple):
    """Something named, its head in the singular; ``is_part``: had, worn, or a part of a body."""

    name: str
    head: str
    is_plural: bool
    entity: int = -1
    is_first: bool = False
    is_part: bool = False


class Entities:
    """The things of a description, told apart: what was said of each so far."""

    def __init__(self) -> None:
        self.groups: list[int | None] = []
        self.attributes: list[set[str]] = []

    def new(self, group: int | None = None) -> int:
        """Return the number of a new thing; ``group``: the number of its group."""
        self.groups.append(group)
        self.attributes.append(set())
        return len(self.groups) - 1

    def of_noun(self, name: str, said: set[str], before: str, things: Sequence[Thing], *, is_plural: bool) -> int:
        """Return the number of what a noun names: a new thing, or the last of its name of which the same was said."""
        if before in _NEW:
            return self.new()
        same = [thing.entity for thing in reversed(things) if thing.name == name and thing.is_plural == is_plural]
        alike = next((entity for entity in same if said & self.attributes[entity]), None) if said else None
        if not same or (before in _ORDINALS and alike is None):
            return self.new()
        return same[0] if alike is None else alike


def resolve(
    sentence: SentenceGraph, things: list[Thing], abstract: frozenset[str], entities: Entities
) -> SentenceGraph:
    """Return a sentence whose nodes have the names they stand for, and add its things to those named before."""
    nodes: list[Node] = []
    others: list[Node] = []
    links = list(sentence.links)
    said: list[set[str]] = [set() for _ in sentence.nodes]
    for attribute in sentence.properties:
        if not attribute.is_faint:
            said[attribute.node].add(attribute.name)
    has_first = False
    kinds: list[Property] = []
    earlier = tuple(things)
    possessed = {link.object for link in sentence.links if link.name in HAVE_NAMES or link.name == WEAR}
    is_placed = sentence.tags[0] in {"IN", "TO"}  # "to the right of the plate, there is a pitcher"
    subject = next((at for at, tag in enumerate(sentence.tags) if is_placed and tag in _BEHIND_PLACES), 0)
    has_owners = not _OWNERS.isdisjoint(sentence.words)
    has_lists = not _OF_LISTS.isdisjoint(sentence.words)
    for index, node in enumerate(sentence.nodes):
        word, tag = sentence.words[node.head], sentence.tags[node.head]
        is_plural = tag in _PLURAL
        is_pronoun = word in PRONOUNS
        thing = _antecedent(word, things) if is_pronoun else _named_before(node, sentence, earlier, is_plural=is_plural)
        if is_pronoun or thing is not None:
            entity = thing.entity if thing else entities.new()
            entities.attributes[entity] |= said[index]
            name = thing.name if thing else _UNRESOLVED.get(word, node.name)
            nodes.append(Node(name, node.head, node.tokens, entity, node.is_faint, node.rule))
            kinds += [] if is_pronoun else [Property(index, node.name, node.tokens, is_faint=True)]
            continue
        if word in _STAND_INS and (not tag.startswith("NN") or (node.head == 0 and word in _MEMBERS)):
            nodes.append(_stand_in(word, node, things, entities))
            continue
        name = _full_name(node, sentence, things, is_plural=is_plural)
        if node.is_faint:
            nodes.append(Node(name, node.head, node.tokens, is_faint=True, rule=node.rule))
            continue
        entity = entities.of_noun(name, said[index], _decided(sentence, node), things, is_plural=is_plural)
        entities.attributes[entity] |= said[index]
        if has_lists and entities.groups[entity] is None:
            entities.groups[entity] = _listed_in(sentence, node, nodes)
        nodes.append(Node(name, node.head, node.tokens, entity, rule=node.rule))
        if name_noun(name) in abstract:
            continue
        owned = _owner(sentence, node, things) if has_owners else None
        if owned is not None:
            link = _owning(owned, index, sentence, nodes, others)
            links += [link] if link else []
        is_first = owned is None and not has_first and node.head >= subject
        head = singular(name)
        is_part = owned is not None or index in possessed or head in GARMENTS or head in BODY_PARTS
        things.append(Thing(name, head, is_plural, entity, is_first, is_part))
        has_first = has_first or is_first
    return sentence._replace(nodes=(*nodes, *others), links=tuple(links), properties=(*sentence.properties, *kinds))


def _stand_in(word: str, node: Node, things: list[Thing], entities: Entities) -> Node:
    """Return a node for the group that was named before, or for a member of it ("one of them"), a thing of its own."""
    group = next((thing for thing in reversed(things) if thing.is_plural), None)
    if group is None:
        return node._replace(entity=entities.new())
    if word in _MEMBERS:
        before, space, _ = group.name.rpartition(" ")  # "old men" have an "old man"
        name = f"{before}{space}{singular(group.name)}"
        group = Thing(name, group.head, is_plural=False, entity=entities.new(group.entity))
        things.append(group)
    return node._replace(name=group.name, entity=group.entity)


def _owning(
    owned: tuple[int, Thing], index: int, sentence: SentenceGraph, nodes: Sequence[Node], others: list[Node]
) -> Link | None:
    """Return that a thing has the node of an index, unless the sentence relates both; adds the thing where it must."""
    pronoun, owner = owned
    known = next((at for at in range(index - 1, -1, -1) if nodes[at].name == owner.name), None)
    if known is None:
        known = len(sentence.nodes) + len(others)
        others.append(Node(owner.name, pronoun, (pronoun,), owner.entity))
    elif any({link.subject, link.object} == {known, index} and not link.is_faint for link in sentence.links):
        return None
    name = WEAR if is_worn(owner.name, nodes[index].name) else HAVE
    return Link(known, index, name, (pronoun,), rule=OWNER_RULE)


def with_short_names(sentences: Sequence[SentenceGraph]) -> list[SentenceGraph]:
    """Return sentences whose things have the short name by which they are called as often as by the long one."""
    counts = Counter(node.name for sentence in sentences for node in sentence.nodes)
    longer = Counter(name_noun(name) for name in counts if " " in name)
    short = {
        name: noun
        for name in counts
        for noun in (name_noun(name),)
        if noun != name and longer[noun] == 1 and counts[name] <= counts[noun]
    }
    out = []
    for sentence in sentences:
        nodes, attributes = list(sentence.nodes), list(sentence.properties)
        for index, node in enumerate(nodes):
            if node.name in short:
                nodes[index] = node._replace(name=short[node.name], tokens=(node.head,))
                tokens = tuple([at for at in node.tokens if at != node.head])
                if tokens:  # what the short name lacks
                    name = " ".join([sentence.words[at] for at in tokens])
                    attributes.append(Property(index, name, tokens, is_faint=True))
        out.append(sentence._replace(nodes=tuple(nodes), properties=tuple(attributes)))
    return out


_BEHIND_PLACES: Final = frozenset({",", "EX", "VBZ", "VBP", "VBD"})


def _decided(sentence: SentenceGraph, node: Node) -> str:
    """Return the nearest word before a node that says whether it is new; nothing where none does."""
    start = node.tokens[0]
    words = sentence.words[max(0, start - _DETERMINED) : start]
    return "" if _DECISIVE.isdisjoint(words) else next(word for word in reversed(words) if word in _DECISIVE)


def _listed_in(sentence: SentenceGraph, node: Node, before: Sequence[Node]) -> int | None:
    """Return the group whose members a sentence lists ("animals such as a cow and a horse"), if the node is one."""
    for at in range(node.tokens[0] - 1, 0, -1):
        two = sentence.words[at - 1], sentence.words[at]
        if two[1] == _INCLUDING or two == (_SUCH, "as"):
            several = (
                earlier for earlier in reversed(before) if earlier.head < at and sentence.tags[earlier.head] in _PLURAL
            )
            return next((earlier.entity for earlier in several), None)
        if sentence.tags[at] not in _IN_LISTS:
            return None
    return None


def _owner(sentence: SentenceGraph, node: Node, things: Sequence[Thing]) -> tuple[int, Thing] | None:
    """Return the pronoun in front of a node ("its roof") and what it stands for."""
    start = node.tokens[0]
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        word = sentence.words[at]
        if word == "," or sentence.tags[at] in {"NN", "NNS"}:
            return None
        if word in _OWNERS:
            is_object = sentence.words[at + 1] == ","  # "behind her, two children"
            head = singular(node.name)
            thing = None if is_object else _antecedent(word, things, lives=head in OF_THE_LIVING)
            return (at, thing) if thing and thing.head != head else None
    return None


def _full_name(node: Node, sentence: SentenceGraph, things: Sequence[Thing], *, is_plural: bool) -> str:
    """Return the longer name that a definite noun of one word has had before, or its own."""
    start = node.tokens[0]
    if " " not in node.name and not _DEFINITE.isdisjoint(sentence.words[max(0, start - 2) : start]):
        for thing in reversed(things):
            if thing.name == node.name:
                break
            if thing.is_plural == is_plural and thing.name.endswith(f" {node.name}"):
                return thing.name
    return node.name


_THE: Final = word_set("the this that these those")
_KINDLESS: Final = _STAND_INS | word_set(tables(__package__)["kindless"])
"""Nouns of too many things to stand for one that was named before."""
_MISLEADING: Final = word_set(
    "toilet crane controller printer scanner toaster washer slider speaker monitor router planter shaver stroller "
    "carrier cutter hanger loader digger trawler trailer jumper calculator"
)
"""Things that WordNet knows as something else first: a room, Stephen Crane, people who control or print."""
_COMPANIONS: Final = word_set("pet companion")
_MOST_NOUNS: Final = 100_000
_KINDS: Final = 2  # senses of a noun, of one of which a thing may be a kind


def _named_before(node: Node, sentence: SentenceGraph, things: Sequence[Thing], *, is_plural: bool) -> Thing | None:
    """Return what a definite noun names by its kind, of earlier sentences ("a skyscraper. The building")."""
    name, start = node.name, node.tokens[0]
    if not things or _THE.isdisjoint(sentence.words[max(0, start - 2) : start]) or " " in name or name in _KINDLESS:
        return None
    head = singular(name)
    if head in [thing.head for thing in things]:
        return None
    kind = "animal" if name in _COMPANIONS else head
    inward = (thing for thing in reversed(things) if thing.is_plural == is_plural)
    return next((thing for thing in inward if _is_kind(thing.head, kind)), None)


def _is_kind(noun: str, kind: str) -> bool:
    """Say whether a noun, in its first sense, names a kind of what another names."""
    return not _broader(noun).isdisjoint(_kinds(kind))


# Kept by noun: a description asks of each thing before, and to look a noun up costs more than to compare two.
@lru_cache(maxsize=_MOST_NOUNS)
def _kinds(noun: str) -> tuple[Synset, ...]:
    """Return the senses of a noun, of one of which a thing may be a kind."""
    return tuple(load_wordnet().senses(noun, "n")[:_KINDS])


@lru_cache(maxsize=_MOST_NOUNS)
def _broader(noun: str) -> frozenset[Synset]:
    """Return what a noun names in its first sense, and everything broader."""
    wordnet = load_wordnet()
    senses = () if noun in _MISLEADING else wordnet.senses(noun, "n")[:1]
    return frozenset(above for sense in senses for above in wordnet.ancestors(sense))


_OF_SUBJECTS: Final = THINGS | {"they"}
_PEOPLE: Final = PERSONS | WOMEN | MEN
_ANYONE: Final = PERSONS - WOMEN - MEN


def _lives(noun: str) -> bool:
    return noun in _PEOPLE or _is_kind(noun, "person") or _is_kind(noun, "animal")


def _antecedent(word: str, things: Sequence[Thing], *, lives: bool = False) -> Thing | None:
    """Return what a pronoun stands for: the first thing for "it" and "they", else the nearest; parts last.

    ``lives``: it has a part of a body, so what lives is meant, if anything named does and the first thing is not meant.
    """
    first = next((thing for thing in reversed(things) if thing.is_first), None) if word in _OF_SUBJECTS else None
    inward = (*([] if first is None else [first]), *reversed(things))
    if word in SEVERAL:  # "they" may be one person of whom it is not said whether a man
        agreeing = [thing for thing in inward if thing.is_plural or thing.head in _ANYONE]
    elif word in THINGS:
        agreeing = [thing for thing in inward if not (thing.is_plural or thing.head in _PEOPLE)]
    else:
        others = MEN if word in _FEMALE else WOMEN
        people = (thing for thing in inward if thing.head in _PEOPLE or _is_kind(thing.head, "person"))
        agreeing = [thing for thing in people if not thing.is_plural and thing.head not in others]
    if lives and (first is None or first not in agreeing or first.is_part):  # "spots beside its head" after a dog
        living = [thing for thing in inward if _lives(thing.head) and not thing.is_part]
        agreeing = [thing for thing in living if word in SEVERAL or thing in agreeing] or agreeing
    return next((thing for thing in agreeing if not thing.is_part), agreeing[0] if agreeing else None)


_PLAIN: Final = {"he": "man", "him": "man", "she": "woman", "they": "people", "them": "people", "it": "object"}


def plain_start(word: str, behind: str) -> str:
    """Return what the network reads for the first word of a sentence: for a pronoun a noun, as captions start."""
    lower = word.lower()
    return "person" if lower in _MEMBERS and behind in _MEMBER_OF else _PLAIN.get(lower, word)
