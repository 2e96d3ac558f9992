"""The facts of a text from the graphs of its sentences: what pronouns and short names stand for, and what is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.scenes.parts import belonging, described, is_comparing, is_of_garments
from spicegraph_parser.scenes.things import PRONOUNS, Entities, Thing, resolve, with_short_names
from spicegraph_parser.scenes.visible import (
    DEPICTIONS,
    IMPRESSIONS,
    PICTURES,
    ApartReason,
    is_place,
    is_summary,
    name_noun,
)
from spicegraph_parser.spice.extraction import Entity
from spicegraph_parser.spice.loose import OWNER_RULE, SCENE_RULE, VALUE_RULE
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_parser.scenes.network import Names
    from spicegraph_parser.scenes.sentences import Link, Node, Property, SentenceGraph, Tokens

_FINITE: Final = frozenset({"VBZ", "VBD", "VBN"})


def _is_no_noun(tags: Sequence[str], at: int) -> bool:
    """Say whether a word is a verb, or an adjective before a noun ("framed art")."""
    return tags[at] in _FINITE or (tags[at] == "JJ" and tags[at + 1 : at + 2] in (["NN"], ["NNS"]))


class Facts(NamedTuple):
    """What can be seen, and what is kept apart; the ``rule`` of the latter says why (:class:`ApartReason`)."""

    seen: tuple[Fact, ...]
    apart: tuple[Fact, ...]
    entities: tuple[Entity, ...] = ()


class _Statement(NamedTuple):
    words: tuple[str, ...]
    tokens: tuple[Tokens, ...]
    standing: ApartReason | None
    ends: tuple[int, ...] = ()
    rule: str = SCENE_RULE


def facts_of(sentences: Sequence[SentenceGraph], known: Names, *, is_long: bool) -> Facts:
    """Return the facts of a description, each once, where it is mentioned first; tokens count all words."""
    things: list[Thing] = []
    entities = Entities()
    rows: list[_Statement] = []
    offset = 0
    abstract = known.abstract if is_long else known.undrawn & PICTURES  # what the network draws of a caption stays
    for sentence in with_short_names(sentences) if is_long else sentences:
        resolved = resolve(sentence, things, abstract, entities)
        rows += _Said(resolved, abstract, offset, is_long=is_long).statements()
        offset += len(sentence.words)
    said = [row for row in rows if row.standing is None]
    relations, attributes, objects = (_each_once(row for row in rows if len(row.words) == size) for size in (3, 2, 1))
    if is_long:
        of_owners = list(_of_owners(sentences, objects, relations, known))
        relations += of_owners
        said += of_owners
    every = _with_subject([*relations, *attributes, *objects], objects)
    return Facts(
        tuple([Fact(row.words, row.rule, row.tokens) for row in every if row.standing is None]),
        tuple([Fact(row.words, _RULES[row.standing], row.tokens) for row in every if row.standing]),
        _entities(said, entities.groups),
    )


def _each_once(rows: Iterable[_Statement]) -> list[_Statement]:
    """Return statements of different words, those that can be seen before those that are kept apart."""
    by_words: dict[tuple[str, ...], _Statement] = {}
    for row in rows:
        before = by_words.get(row.words)
        if before is None or (before.standing and not row.standing):
            by_words[row.words] = row
    return list(by_words.values())


def _of_owners(
    sentences: Sequence[SentenceGraph], objects: Sequence[_Statement], relations: Sequence[_Statement], known: Names
) -> Iterator[_Statement]:
    """Yield which things have the parts and garments that nothing has."""
    drawn = [row for row in objects if row.standing is None]
    related = [row.words for row in relations if row.standing is None]
    numbers = [number for number, sentence in enumerate(sentences) for _ in sentence.words]
    places = [(row.words[0], row.tokens[0][-1]) for row in drawn]
    for whole, part, name in belonging(places, related, numbers, known.parts):
        ends = drawn[whole], drawn[part]
        tokens = (ends[0].tokens[0], ends[1].tokens[0], ())
        words = (ends[0].words[0], ends[1].words[0], name)
        yield _Statement(words, tokens, None, (ends[0].ends[0], ends[1].ends[0]), OWNER_RULE)


def _with_subject(every: Sequence[_Statement], objects: Sequence[_Statement]) -> Sequence[_Statement]:
    """Return statements of which one at least can be seen: where all are kept apart, what would be drawn last."""
    if not all(row.standing for row in every):
        return every
    reasons = {row.standing for row in objects}
    reason = next((standing for standing in _LAST_TO_DRAW if standing in reasons), None)
    return [row._replace(standing=None) if row.standing is reason else row for row in every]


def _entities(rows: Iterable[_Statement], groups: Sequence[int | None]) -> tuple[Entity, ...]:
    """Return the things that rows are about, in the order in which they are named."""
    by_entity: dict[int, tuple[str, dict[Tokens, None], dict[str, None], dict[tuple[str, int], None]]] = {}
    ordered = list(rows)
    for row in ordered:
        if len(row.words) == 1:
            by_entity.setdefault(row.ends[0], (row.words[0], {}, {}, {}))[1][row.tokens[0]] = None
    indices = {entity: index for index, entity in enumerate(by_entity)}
    for row in ordered:
        if len(row.words) == 2 and row.ends[0] in by_entity:
            by_entity[row.ends[0]][2][row.words[1]] = None
        elif len(row.words) == 3 and row.ends[0] in by_entity and row.ends[1] in by_entity:
            by_entity[row.ends[0]][3][row.words[2], indices[row.ends[1]]] = None
    return tuple(
        [
            Entity(
                name,
                tuple(mentions),
                tuple(attributes),
                tuple(relations),
                None if group is None else indices.get(group),
            )
            for entity, (name, mentions, attributes, relations) in by_entity.items()
            for group in [groups[entity]]
        ]
    )


class _Said:
    """What a sentence says, and why it is kept apart, if it is."""

    def __init__(self, sentence: SentenceGraph, abstract: frozenset[str], offset: int, *, is_long: bool) -> None:
        self._sentence, self._offset, self._is_long = sentence, offset, is_long
        self._otherwise = ApartReason.SUMMARY if is_long and offset and is_summary(sentence.words) else None
        self._standings = [self._standing_of(node, abstract) for node in sentence.nodes]
        for link in () if is_long else sentence.links:  # "a timeline of the war": what a picture shows is drawn
            is_shown = link.name == "of" and name_noun(sentence.nodes[link.subject].name) in DEPICTIONS
            if is_shown and self._standings[link.object] is ApartReason.ABSTRACT:
                self._standings[link.object] = None
        self._is_marked = any(sentence.why) or any(self._standings)
        self._mentions = [self._moved(node.tokens) for node in sentence.nodes]

    def statements(self) -> Iterator[_Statement]:
        """Yield relations, attributes and objects."""
        for link in self._sentence.links:
            yield from self._relation(link)
        yield from map(self._attribute, self._sentence.properties)
        for node, mention, own in zip(self._sentence.nodes, self._mentions, self._standings, strict=True):
            standing = own or self._otherwise or (ApartReason.FAINT if node.is_faint else None)
            yield _Statement((node.name,), (mention,), standing, (node.entity,), node.rule)

    def _standing_of(self, node: Node, abstract: frozenset[str]) -> ApartReason | None:
        is_no_noun = self._is_long and _is_no_noun(self._sentence.tags, node.head)
        if is_no_noun or name_noun(node.name) in abstract or node.name in PRONOUNS:
            return ApartReason.ABSTRACT
        return self._sentence.why[node.head]

    def _moved(self, tokens: Tokens) -> Tokens:
        """Return positions in the sentence as positions in its text."""
        return tuple([token + self._offset for token in tokens]) if self._offset else tokens

    def _worst(self, nodes: Sequence[int], tokens: Tokens) -> ApartReason | None:
        """Return the first of denied, abstract, hedged that ends or words of a statement are."""
        if not self._is_marked:
            return None
        present = {*[self._standings[at] for at in nodes], *[self._sentence.why[token] for token in tokens]}
        return next((mark for mark in _WORST_FIRST if mark in present), None)

    def _relation(self, link: Link) -> Iterator[_Statement]:
        """Yield a relation by the name that people give it, unless it relates a thing to itself by a pronoun."""
        nodes, words = self._sentence.nodes, self._sentence.words
        name, tokens, is_turned = link.name, link.tokens, False
        if self._is_long:
            name, is_turned = described(nodes[link.subject].name, nodes[link.object].name, name)
            tokens = tokens if is_turned or name == link.name else ()  # "have" says nothing of "speckled with"
        ends_at = (link.object, link.subject) if is_turned else (link.subject, link.object)
        subject, target = nodes[ends_at[0]], nodes[ends_at[1]]
        is_same = self._is_long and subject.entity == target.entity
        if subject.name == target.name and (is_same or PRONOUNS & {words[subject.head], words[target.head]}):
            return
        is_faint = link.is_faint or (self._is_long and _is_faint(subject.name, target.name, name))
        standing = self._worst(ends_at, tokens) or self._otherwise or (ApartReason.FAINT if is_faint else None)
        mentioned = (self._mentions[ends_at[0]], self._mentions[ends_at[1]], self._moved(tokens))
        ends = (subject.entity, target.entity)
        yield _Statement((subject.name, target.name, name), mentioned, standing, ends, link.rule)

    def _attribute(self, own: Property) -> _Statement:
        node = self._sentence.nodes[own.node]
        tokens = () if own.rule == VALUE_RULE else own.tokens  # "a screen that reads Not found" denies nothing
        standing = self._worst((own.node,), tokens) or self._otherwise or self._faintly(own, node)
        mentioned = (self._mentions[own.node], self._moved(own.tokens))
        return _Statement((node.name, own.name), mentioned, standing, (node.entity,), own.rule)

    def _faintly(self, own: Property, node: Node) -> ApartReason | None:
        """Return whether people would hardly draw an attribute: places, states, manners and impressions."""
        tags = [self._sentence.tags[token] for token in own.tokens]
        if not self._is_long:
            return ApartReason.FAINT if own.is_faint else None
        if is_place(tags):
            return ApartReason.PLACE
        is_behind = own.tokens[0] > node.head
        is_state = tags[0] == "VBG" or (is_behind and (tags[0] == "VBN" or tags == ["RB"]))
        return ApartReason.FAINT if own.is_faint or is_state or own.name in IMPRESSIONS else None


def _is_faint(subject: str, target: str, name: str) -> bool:
    return is_comparing(name) or is_of_garments(subject, target, name)


_LAST_TO_DRAW: Final = (
    ApartReason.FAINT,
    ApartReason.PLACE,
    ApartReason.ABSTRACT,
    ApartReason.SUMMARY,
    ApartReason.HEDGED,
)


_RULES: Final = {standing: standing.value for standing in ApartReason}  # an enum's own lookup of a value is slow
_WORST_FIRST: Final = (ApartReason.DENIED, ApartReason.ABSTRACT, ApartReason.HEDGED)
