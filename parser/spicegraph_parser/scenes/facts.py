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
    from spicegraph_parser.scenes.sentences import SentenceGraph, Tokens

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
    said: list[_Statement] = []
    rows: tuple[dict[tuple[str, ...], _Statement], ...] = ({}, {}, {})
    offset = 0
    abstract = known.abstract if is_long else known.undrawn & PICTURES  # what the network draws of a caption stays
    for sentence in with_short_names(sentences) if is_long else sentences:
        resolved = resolve(sentence, things, abstract, entities)
        for row in _statements(resolved, abstract, offset, is_long=is_long):
            if row.standing is None:
                said.append(row)
            by_words = rows[3 - len(row.words)]
            before = by_words.get(row.words)
            if before is None or (before.standing and not row.standing):
                by_words[row.words] = row
        offset += len(sentence.words)
    relations, attributes, objects = (list(by_words.values()) for by_words in rows)
    if is_long:
        drawn = [row for row in objects if row.standing is None]
        related = [row.words for row in relations if row.standing is None]
        numbers = [number for number, sentence in enumerate(sentences) for _ in sentence.words]
        places = [(row.words[0], row.tokens[0][-1]) for row in drawn]
        for whole, part, name in belonging(places, related, numbers, known.parts):
            ends = drawn[whole], drawn[part]
            tokens = (ends[0].tokens[0], ends[1].tokens[0], ())
            entity_ends = (ends[0].ends[0], ends[1].ends[0])
            words = (ends[0].words[0], ends[1].words[0], name)
            relations.append(_Statement(words, tokens, None, entity_ends, OWNER_RULE))
            said.append(relations[-1])
    every = [*relations, *attributes, *objects]
    if all(row.standing for row in every):  # what a text is about stays: what would be drawn last is drawn
        reasons = {row.standing for row in objects}
        reason = next((standing for standing in _LAST_TO_DRAW if standing in reasons), None)
        every = [row._replace(standing=None) if row.standing is reason else row for row in every]
    return Facts(
        tuple([Fact(row.words, row.rule, row.tokens) for row in every if row.standing is None]),
        tuple([Fact(row.words, _RULES[row.standing], row.tokens) for row in every if row.standing]),
        _entities(said, entities.groups),
    )


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


def _statements(
    sentence: SentenceGraph, abstract: frozenset[str], offset: int, *, is_long: bool
) -> Iterator[_Statement]:
    """Yield what a sentence says, and why it is kept apart, if it is."""
    nodes = sentence.nodes
    why = sentence.why
    otherwise = ApartReason.SUMMARY if is_long and offset and is_summary(sentence.words) else None
    node_standings = [
        ApartReason.ABSTRACT
        if (is_long and _is_no_noun(sentence.tags, node.head))
        or name_noun(node.name) in abstract
        or node.name in PRONOUNS
        else why[node.head]
        for node in nodes
    ]
    for link in () if is_long else sentence.links:  # "a timeline of the war": what a picture shows is drawn
        is_shown = link.name == "of" and name_noun(nodes[link.subject].name) in DEPICTIONS
        if is_shown and node_standings[link.object] is ApartReason.ABSTRACT:
            node_standings[link.object] = None
    is_marked = any(why) or any(node_standings)
    mentions = [_moved(node.tokens, offset) for node in nodes]
    for link in sentence.links:
        name, tokens, is_turned = link.name, link.tokens, False
        if is_long:
            name, is_turned = described(nodes[link.subject].name, nodes[link.object].name, name)
            tokens = tokens if is_turned or name == link.name else ()  # "have" says nothing of "speckled with"
        ends_at = (link.object, link.subject) if is_turned else (link.subject, link.object)
        subject, target = nodes[ends_at[0]], nodes[ends_at[1]]
        if subject.name == target.name and (
            (is_long and subject.entity == target.entity)
            or PRONOUNS & {sentence.words[subject.head], sentence.words[target.head]}
        ):
            continue
        marks = (*[node_standings[at] for at in ends_at], *[why[token] for token in tokens]) if is_marked else ()
        is_faint = link.is_faint or (
            is_long and (is_comparing(name) or is_of_garments(subject.name, target.name, name))
        )
        standing = _worst(marks) or otherwise or (ApartReason.FAINT if is_faint else None)
        words, ends = (subject.name, target.name, name), (subject.entity, target.entity)
        mentioned = (mentions[ends_at[0]], mentions[ends_at[1]], _moved(tokens, offset))
        yield _Statement(words, mentioned, standing, ends, link.rule)
    for index, name, tokens, is_left_out, rule in sentence.properties:
        tags = [sentence.tags[token] for token in tokens]
        is_placed = is_long and is_place(tags)
        is_state = tags[0] == "VBG" or (tags[0] == "VBN" and tokens[0] > nodes[index].head)
        is_manner = tags == ["RB"] and tokens[0] > nodes[index].head
        is_faint = is_left_out or (is_long and (is_state or is_manner or name in IMPRESSIONS))
        own = () if rule == VALUE_RULE else tokens  # "a screen that reads Not found" denies nothing
        marks = (node_standings[index], *[why[token] for token in own]) if is_marked else ()
        faintly = ApartReason.PLACE if is_placed else ApartReason.FAINT if is_faint else None
        standing = _worst(marks) or otherwise or faintly
        node = nodes[index]
        yield _Statement((node.name, name), (mentions[index], _moved(tokens, offset)), standing, (node.entity,), rule)
    for node, mention, node_standing in zip(nodes, mentions, node_standings, strict=True):
        standing = node_standing or otherwise or (ApartReason.FAINT if node.is_faint else None)
        yield _Statement((node.name,), (mention,), standing, (node.entity,), node.rule)


_LAST_TO_DRAW: Final = (
    ApartReason.FAINT,
    ApartReason.PLACE,
    ApartReason.ABSTRACT,
    ApartReason.SUMMARY,
    ApartReason.HEDGED,
)


def _moved(tokens: Tokens, offset: int) -> Tokens:
    """Return positions in a sentence as positions in its text."""
    return tuple([token + offset for token in tokens]) if offset else tokens


_RULES: Final = {standing: standing.value for standing in ApartReason}  # an enum's own lookup of a value is slow
_WORST_FIRST: Final = (ApartReason.DENIED, ApartReason.ABSTRACT, ApartReason.HEDGED)


def _worst(marks: Iterable[ApartReason | None]) -> ApartReason | None:
    """Return the first of denied, abstract, hedged that is among marks."""
    present = {mark for mark in marks if mark} if marks else None
    return next((mark for mark in _WORST_FIRST if mark in present), None) if present else None
