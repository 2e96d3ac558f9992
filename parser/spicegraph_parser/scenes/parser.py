"""The scene parser: from texts over the graphs of sentences to the facts of a description.

A sentence has named nodes with attributes and relations, each with its words. Over the sentences, rules say what
pronouns and short names stand for, and what is seen.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.analyser import read_tokens
from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas, plural_lemma
from spicegraph_parser.discourse import PERSONAL, PERSONS, SEVERAL, THINGS
from spicegraph_parser.extract import Entity, ParsedCaption
from spicegraph_parser.loose import SCENE_RULE
from spicegraph_parser.parse import Caption, Parse, is_word, normalise
from spicegraph_parser.rules import Fact
from spicegraph_parser.scenes.network import SceneNetwork, load_network
from spicegraph_parser.scenes.relations import relation_tokens
from spicegraph_parser.scenes.visible import Standing, name_noun, standings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from spicegraph_parser.caption_pipeline.analyser import ReadTokens
    from spicegraph_parser.scenes.network import Labels, Names

Tokens = tuple[int, ...]
"""Positions of words in their sentence, from 0."""


class Node(NamedTuple):
    """An object: its name as people would write it, its last word, all of its words, and the thing that it is.

    ``entity`` is -1 until the things of a description are told apart.
    """

    name: str
    head: int
    tokens: Tokens
    entity: int = -1


class Property(NamedTuple):
    """An attribute of the node with the given index."""

    node: int
    name: str
    tokens: Tokens


class Link(NamedTuple):
    """A relation between the nodes with the given indices; no words where the caption only implies it."""

    subject: int
    object: int
    name: str
    tokens: Tokens


class SentenceGraph(NamedTuple):
    """What a sentence says of a scene; ``words`` are its forms in lower case, ``why`` their standings."""

    words: Sequence[str]
    tags: Sequence[str]
    why: Sequence[Standing | None]
    nodes: tuple[Node, ...]
    properties: tuple[Property, ...]
    links: tuple[Link, ...]


def sentence_graph(labels: Labels, forms: Sequence[str], names: Names) -> SentenceGraph:
    """Return the graph that a sentence's labels describe, without what has no letter and no digit in its name ("!!!").

    A noun that the sentence denies is an object whether people draw it or not, and "a man is without hat" a relation:
    so what is denied can be told apart.

    Args:
        labels: what the network says of the sentence.
        forms: its words.
        names: among them the names that people use in place of the caption's.
    """
    words = [form.lower() for form in forms]
    why = standings(words, labels.tags)
    denied = {at for at, own in enumerate(why) if own is Standing.DENIED and labels.tags[at].startswith("NN")}
    parts: dict[int, list[int]] = {}
    for head, part in labels.parts:
        if head not in denied or part in denied:
            parts.setdefault(head, []).append(part)
    attributes = [pair for pair in labels.attributes if pair[1] not in denied]
    relations = [*labels.relations, *((*pair, _WITH) for pair in labels.attributes if pair[1] in denied)]
    heads = {*labels.objects, *(one for one, _ in attributes)}
    for one, other, _ in relations:
        heads |= {one, other}
    within = {part for own in parts.values() for part in own}
    for at in sorted(denied - heads - within, reverse=True):
        behind = next((end for end in range(at + 1, len(words)) if end not in denied), len(words)) - 1
        if behind > at:  # "no fire hydrant"
            parts.setdefault(behind, []).append(at)
        else:
            heads.add(at)

    def named(head: int, rewrites: Mapping[str, str]) -> tuple[str, Tokens]:
        if head not in parts:
            return rewrites.get(words[head], words[head]), (head,)
        tokens = tuple(sorted({head, *parts[head]}))
        text = " ".join([words[token] for token in tokens])
        return rewrites.get(text, text), tokens

    place: dict[int, int] = {}
    nodes: list[Node] = []
    for head in sorted(heads):
        name, tokens = named(head, names.objects)
        if not is_word(name):
            continue
        place[head] = len(nodes)
        nodes.append(Node(name, head, tokens))
    properties = [
        Property(place[one], *named(other, names.attributes))
        for one, other in attributes
        if one in place and is_word(words[other])
    ]
    links = []
    for one, other, name in relations:
        if one not in place or other not in place or not is_word(name):
            continue
        ends = nodes[place[one]].tokens, nodes[place[other]].tokens
        links.append(Link(place[one], place[other], name, relation_tokens(name, *ends, words, labels.tags)))
    return SentenceGraph(words, labels.tags, why, tuple(nodes), tuple(properties), tuple(links))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FEMALE: Final = _words("she her hers herself")
_MALE: Final = _words("he him his himself")
_WOMEN: Final = _words("woman girl lady wife mother mom sister daughter bride girlfriend waitress female")
_MEN: Final = _words("man boy guy gentleman husband father dad brother son groom boyfriend waiter male")
_MEMBERS: Final = _words("one another other each")
_MEMBER_OF: Final = _words("of is has wears holds stands sits lies walks runs appears looks carries rides")
_NEW: Final = _words("a an another other")
_ORDINALS: Final = _words("first second third fourth fifth")
_DETERMINED: Final = 4  # words between a noun and what says whether it is new
_STAND_INS: Final = _words("one ones other others another each both some all few several two three four")
_PRONOUNS: Final = PERSONAL | THINGS | SEVERAL
_OWNERS: Final = _words("his her its their")
_DEFINITE: Final = _OWNERS | _words("the this that these those said")
_DECISIVE: Final = _NEW | _ORDINALS | _DEFINITE
_INCLUDING: Final = "including"
_SUCH: Final = "such"
_OF_LISTS: Final = frozenset({_INCLUDING, _SUCH})
_FINITE: Final = frozenset({"VBZ", "VBD", "VBN"})
_IN_LISTS: Final = frozenset({"DT", "JJ", "NN", "NNS", "NNP", "NNPS", "CD", "CC", ",", "PRP$"})
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_NAMELESS: Final = ((_MALE, "man"), (_FEMALE, "woman"), (SEVERAL, "people"))
_UNRESOLVED: Final = {word: name for words, name in _NAMELESS for word in words}
_HAVE: Final = "have"
_WITH: Final = "with"
_WEAR: Final = "wear"
_GARMENTS: Final = _words(
    """shirt t-shirt jacket coat hat cap dress skirt pants trousers jeans shorts suit uniform sweater hoodie vest glove
    shoe boot sock scarf tie helmet glasses sunglasses goggles gown robe outfit blouse jersey swimsuit wetsuit bikini
    belt watch necklace ring earring bracelet apron mask sandal sneaker"""
)
_NEAR: Final = 3  # words between an owner's pronoun and the noun


class _Thing(NamedTuple):
    """Something that a description has named: its name, its head's singular, whether it is several, and its number."""

    name: str
    head: str
    is_plural: bool
    entity: int = -1


class _Entities:
    """The things of a description, told apart: what was said of each so far."""

    def __init__(self) -> None:
        self.groups: list[int | None] = []
        self.attributes: list[set[str]] = []

    def new(self, group: int | None = None) -> int:
        """Return the number of a new thing; ``group``: the number of its group."""
        self.groups.append(group)
        self.attributes.append(set())
        return len(self.groups) - 1

    def of_noun(self, name: str, said: set[str], before: str, things: Sequence[_Thing], *, is_plural: bool) -> int:
        """Return the number of what a noun names: a new thing, or the last of its name of which the same was said.

        Args:
            name: of its object.
            said: its attributes.
            before: what decides of the words before it ("a", "the", "second"), if anything does.
            things: those named before.
            is_plural: it is several.
        """
        same = [thing.entity for thing in reversed(things) if (thing.name, thing.is_plural) == (name, is_plural)]
        alike = next((entity for entity in same if said & self.attributes[entity]), None)
        if before in _NEW or not same or (before in _ORDINALS and alike is None):
            return self.new()
        return same[0] if alike is None else alike


class Facts(NamedTuple):
    """What can be seen, and what is kept apart; the ``rule`` of the latter says why (:class:`Standing`)."""

    seen: tuple[Fact, ...]
    apart: tuple[Fact, ...]
    entities: tuple[Entity, ...] = ()


class _Row(NamedTuple):
    words: tuple[str, ...]
    tokens: tuple[Tokens, ...]
    standing: Standing | None
    ends: tuple[int, ...] = ()


def facts_of(sentences: Sequence[SentenceGraph], known: Names) -> Facts:
    """Return the facts of a description: relations, attributes, objects; each once, where it is mentioned first.

    A pronoun takes the name of the nearest thing before it that agrees with it in number and kind; "the wheel" after "a
    Ferris wheel" takes that name; "its roof" is a roof that this thing has. Things with one name are one object, as
    everywhere in SPICE. An object of which a description of several sentences says nothing is kept apart, unless people
    draw such objects as a rule.

    Args:
        sentences: their graphs, in order; tokens of facts count the words of all of them.
        known: what is known of nouns.
    """
    things: list[_Thing] = []
    entities = _Entities()
    said: list[_Row] = []
    rows: tuple[dict[tuple[str, ...], _Row], ...] = ({}, {}, {})
    offset = 0
    is_long = len(sentences) > 1
    abstract = known.abstract if is_long else known.unseen
    for sentence in sentences:
        resolved = _resolved(sentence, things, abstract, entities)
        for row in _rows(resolved, abstract, offset, is_long=is_long):
            if row.standing is None:
                said.append(row)
            own = rows[3 - len(row.words)]
            before = own.get(row.words)
            if before is None or (before.standing and not row.standing):
                own[row.words] = row
        offset += len(sentence.words)
    relations, attributes, objects = (list(own.values()) for own in rows)
    if is_long:
        objects = _with_unrelated(objects, [*relations, *attributes], known.drawn)
    every = [*relations, *attributes, *objects]
    return Facts(
        tuple([Fact(row.words, SCENE_RULE, row.tokens) for row in every if row.standing is None]),
        tuple([Fact(row.words, row.standing.value, row.tokens) for row in every if row.standing]),
        _entities(said, entities.groups),
    )


def _entities(rows: Iterable[_Row], groups: Sequence[int | None]) -> tuple[Entity, ...]:
    """Return the things that rows are about, in the order in which they are named."""
    own: dict[int, tuple[str, dict[Tokens, None], dict[str, None], dict[tuple[str, int], None]]] = {}
    ordered = list(rows)
    for row in ordered:
        if len(row.words) == 1:
            own.setdefault(row.ends[0], (row.words[0], {}, {}, {}))[1][row.tokens[0]] = None
    place = {entity: index for index, entity in enumerate(own)}
    for row in ordered:
        if len(row.words) == 2 and row.ends[0] in own:
            own[row.ends[0]][2][row.words[1]] = None
        elif len(row.words) == 3 and row.ends[0] in own and row.ends[1] in own:
            own[row.ends[0]][3][row.words[2], place[row.ends[1]]] = None
    return tuple(
        [
            Entity(
                name, tuple(mentions), tuple(attributes), tuple(relations), None if group is None else place.get(group)
            )
            for entity, (name, mentions, attributes, relations) in own.items()
            for group in [groups[entity]]
        ]
    )


def _with_unrelated(objects: Iterable[_Row], others: Iterable[_Row], drawn: frozenset[str]) -> list[_Row]:
    """Mark the objects that stand in no visible relation or attribute, unless people draw them as a rule."""
    related = {word for row in others if row.standing is None for word in row.words[: max(1, len(row.words) - 1)]}
    return [
        row._replace(standing=Standing.UNRELATED)
        if row.standing is None and row.words[0] not in related and _singular(row.words[0]) not in drawn
        else row
        for row in objects
    ]


def _singular(name: str) -> str:
    return plural_lemma(name_noun(name))


def _rows(sentence: SentenceGraph, abstract: frozenset[str], offset: int, *, is_long: bool) -> Iterator[_Row]:
    """Yield what a sentence says, and whether it can be seen.

    In descriptions of several sentences people write "have" where they write "with" in captions.
    """
    nodes = sentence.nodes
    why = sentence.why
    own = [
        Standing.ABSTRACT
        if (is_long and sentence.tags[node.head] in _FINITE) or name_noun(node.name) in abstract
        else why[node.head]
        for node in nodes
    ]
    places = [_moved(node.tokens, offset) for node in nodes]
    for one, other, relation, tokens in sentence.links:
        subject, target = nodes[one], nodes[other]
        if subject.name == target.name and _PRONOUNS & {sentence.words[subject.head], sentence.words[target.head]}:
            continue
        name = _HAVE if is_long and relation == _WITH else relation
        standing = _worst([own[one], own[other], *[why[token] for token in tokens]])
        words, ends = (subject.name, target.name, name), (subject.entity, target.entity)
        yield _Row(words, (places[one], places[other], _moved(tokens, offset)), standing, ends)
    for index, name, tokens in sentence.properties:
        standing = _worst([own[index], *[why[token] for token in tokens]])
        node = nodes[index]
        yield _Row((node.name, name), (places[index], _moved(tokens, offset)), standing, (node.entity,))
    for node, place, own_standing in zip(nodes, places, own, strict=True):
        yield _Row((node.name,), (place,), own_standing, (node.entity,))


def _moved(tokens: Tokens, offset: int) -> Tokens:
    """Return positions in a sentence as positions in its text."""
    return tuple([token + offset for token in tokens]) if offset else tokens


_WORST_FIRST: Final = (Standing.DENIED, Standing.ABSTRACT, Standing.HEDGED)


def _worst(marks: Iterable[Standing | None]) -> Standing | None:
    """Return the first of denied, abstract, hedged that is among marks."""
    found = {mark for mark in marks if mark}
    return next((mark for mark in _WORST_FIRST if mark in found), None) if found else None


def _resolved(
    sentence: SentenceGraph, things: list[_Thing], abstract: frozenset[str], entities: _Entities
) -> SentenceGraph:
    """Return a sentence whose nodes have the names they stand for, and add its things to those named before."""
    nodes: list[Node] = []
    others: list[Node] = []
    links = list(sentence.links)
    said: list[set[str]] = [set() for _ in sentence.nodes]
    for owner_node, attribute, _ in sentence.properties:
        said[owner_node].add(attribute)
    has_owners = not _OWNERS.isdisjoint(sentence.words)
    has_lists = not _OF_LISTS.isdisjoint(sentence.words)
    for index, node in enumerate(sentence.nodes):
        word, tag = sentence.words[node.head], sentence.tags[node.head]
        is_plural = tag in _PLURAL
        if word in _PRONOUNS:
            thing = _antecedent(word, things)
            entity = thing.entity if thing else entities.new()
            entities.attributes[entity] |= said[index]
            nodes.append(node._replace(name=thing.name if thing else _UNRESOLVED.get(word, node.name), entity=entity))
            continue
        if word in _STAND_INS and (not tag.startswith("NN") or (node.head == 0 and word in _MEMBERS)):
            group = next((thing for thing in reversed(things) if thing.is_plural), None)
            if group is None:
                nodes.append(node._replace(entity=entities.new()))
            elif word in _MEMBERS:
                member = _Thing(_as_one(group.name), group.head, is_plural=False, entity=entities.new(group.entity))
                nodes.append(node._replace(name=member.name, entity=member.entity))
                things.append(member)
            else:
                nodes.append(node._replace(name=group.name, entity=group.entity))
            continue
        name = _full_name(node, sentence, things, is_plural=is_plural)
        entity = entities.of_noun(name, said[index], _decided(sentence, node), things, is_plural=is_plural)
        entities.attributes[entity] |= said[index]
        if has_lists and entities.groups[entity] is None:
            entities.groups[entity] = _listed_in(sentence, node, nodes)
        nodes.append(Node(name, node.head, node.tokens, entity))
        if name_noun(name) in abstract:
            continue
        owned = _owner(sentence, node, things) if has_owners else None
        head = _singular(name)
        if owned is not None:
            pronoun, owner = owned
            known = next((at for at in range(index - 1, -1, -1) if nodes[at].name == owner.name), None)
            if known is None or not any({link.subject, link.object} == {known, index} for link in sentence.links):
                if known is None:
                    known = len(sentence.nodes) + len(others)
                    others.append(Node(owner.name, pronoun, (pronoun,), owner.entity))
                wears = head in _GARMENTS and _is_person(owner)
                links.append(Link(known, index, _WEAR if wears else _HAVE, (pronoun,)))
        things.append(_Thing(name, head, is_plural, entity))
    return sentence._replace(nodes=(*nodes, *others), links=tuple(links))


def _as_one(group: str) -> str:
    """Return the name of a member of a group: "old men" has an "old man"."""
    before, space, last = group.rpartition(" ")
    return f"{before}{space}{plural_lemma(last)}"


def _decided(sentence: SentenceGraph, node: Node) -> str:
    """Return the nearest word before a node that says whether it is new; nothing where none does."""
    start = node.tokens[0]
    words = reversed(sentence.words[max(0, start - _DETERMINED) : start])
    return next((word for word in words if word in _DECISIVE), "")


def _listed_in(sentence: SentenceGraph, node: Node, before: Sequence[Node]) -> int | None:
    """Return the group whose members a sentence lists ("animals such as a cow and a horse"), if the node is one."""
    for at in range(node.tokens[0] - 1, 0, -1):
        two = sentence.words[at - 1], sentence.words[at]
        if two[1] == _INCLUDING or two == (_SUCH, "as"):
            several = (one for one in reversed(before) if one.head < at and sentence.tags[one.head] in _PLURAL)
            return next((one.entity for one in several), None)
        if sentence.tags[at] not in _IN_LISTS:
            return None
    return None


def _owner(sentence: SentenceGraph, node: Node, things: Sequence[_Thing]) -> tuple[int, _Thing] | None:
    """Return the pronoun in front of a node ("its roof") and what it stands for."""
    start = node.tokens[0]
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        word = sentence.words[at]
        if word in _OWNERS:
            thing = _antecedent(word, things)
            return (at, thing) if thing else None
    return None


def _is_person(thing: _Thing) -> bool:
    return thing.head in PERSONS or thing.head in _WOMEN or thing.head in _MEN


def _full_name(node: Node, sentence: SentenceGraph, things: Sequence[_Thing], *, is_plural: bool) -> str:
    """Return the longer name that a definite noun of one word has had before, or its own."""
    start = node.tokens[0]
    if " " not in node.name and not _DEFINITE.isdisjoint(sentence.words[max(0, start - 2) : start]):
        for thing in reversed(things):
            if thing.name == node.name:
                break
            if thing.is_plural == is_plural and thing.name.endswith(f" {node.name}"):
                return thing.name
    return node.name


def _antecedent(word: str, things: Sequence[_Thing]) -> _Thing | None:
    """Return the nearest thing that a pronoun can stand for."""
    if word in SEVERAL:
        return next((thing for thing in reversed(things) if thing.is_plural), None)
    for thing in reversed(things):
        if thing.is_plural or _is_person(thing) == (word in THINGS):
            continue
        if word in THINGS or thing.head not in (_MEN if word in _FEMALE else _WOMEN):
            return thing
    return None


_PLAIN: Final = {"he": "man", "him": "man", "she": "woman", "they": "people", "them": "people", "it": "object"}
"""What the network reads for a pronoun that a sentence starts with, which short captions seldom do."""

_MOST_LEMMAS: Final = 100_000
_BATCH: Final = 1024  # captions that are labelled together


@dataclass(frozen=True, slots=True)
class SceneParser:
    """Parses captions to scene graphs as people draw them.

    The network of ``folder`` is read when the first caption comes.
    """

    folder: Path

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Return the words and tags of captions; there are no edges."""
        return (Caption(found.text, found.sentences) for found in self.captions(texts, batch_size=batch_size))

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions or descriptions, in order and in batches.

        Raises:
            LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
            DataError: the network can't be read.
        """
        network = load_network(self.folder)
        stream = iter(texts)
        done = 0
        while batch := list(islice(stream, batch_size or _BATCH)):
            normal = [normalise(text, index) for index, text in enumerate(batch, done)]
            yield from _parsed(network, batch, normal)
            done += len(batch)


def _parsed(network: SceneNetwork, texts: Sequence[str], normal: Sequence[str]) -> Iterator[ParsedCaption]:
    read = list(map(read_tokens, texts, normal))
    lengths = [length for tokens in read for length in tokens.lengths]
    forms = [form for tokens in read for form in tokens.ptb]
    for start in itertools.accumulate(lengths[:-1], initial=0) if lengths else ():
        first, behind = forms[start].lower(), forms[start + 1].lower() if start + 1 < len(forms) else ""
        is_member = first in _MEMBERS and behind in _MEMBER_OF
        forms[start] = "person" if is_member else _PLAIN.get(first, forms[start])
    of_description = [len(tokens.lengths) > 1 for tokens in read for _ in tokens.lengths]
    labels = iter(network.label(forms, lengths, of_description))
    for text, tokens in zip(texts, read, strict=True):
        yield _caption(network, text, tokens, [next(labels) for _ in tokens.lengths])


def _caption(network: SceneNetwork, text: str, tokens: ReadTokens, labels: Sequence[Labels]) -> ParsedCaption:
    graphs = []
    parses = []
    start = 0
    for own, length in zip(labels, tokens.lengths, strict=True):
        inner = slice(start, start + length)
        start += length
        forms = tokens.forms[inner]
        graphs.append(sentence_graph(own, forms, network.names))
        spans = tokens.spans if isinstance(tokens.spans, str) else tokens.spans[inner]
        lemmas = list(map(_lemma, forms, own.tags))
        parses.append(Parse.from_columns(forms, own.tags, lemmas, (), spans))
    found = facts_of(graphs, network.names)
    return ParsedCaption(text, tuple(parses), found.seen, found.apart, found.entities)


@lru_cache(maxsize=_MOST_LEMMAS)
def _lemma(form: str, tag: str) -> str:
    return bundled_lemmas().lemma(form, tag)
