"""The facts of a text from the graphs of its sentences: what pronouns and short names stand for, and what is seen."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spicegraph_parser.spice.extraction import ApartReason, Entity
from spicegraph_parser.spice.loose import SCENE_RULE, VALUE_RULE
from spicegraph_parser.spice.rules import Fact
from spicegraph_scenes.things import PRONOUNS, Entities, Resolved, described, with_short_names
from spicegraph_scenes.words import PICTURES, WORDS, is_place, is_summary, name_noun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_scenes.network import Names
    from spicegraph_scenes.sentence import Link, Node, Property, SentenceGraph, Tokens

_RULES: Final = {standing: standing.value for standing in ApartReason}  # an enum's own lookup of a value is slow
_WORST_FIRST: Final = (ApartReason.DENIED, ApartReason.ABSTRACT, ApartReason.HEDGED)
_LAST_TO_DRAW: Final = (
    ApartReason.FAINT,
    ApartReason.PLACE,
    ApartReason.ABSTRACT,
    ApartReason.SUMMARY,
    ApartReason.HEDGED,
)


class Facts(NamedTuple):
    """Facts that can be seen, and facts kept apart, whose ``rule`` names the :class:`ApartReason`."""

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
    entities = Entities()
    rows: list[_Statement] = []
    offset = 0
    abstract = known.abstract if is_long else known.undrawn & PICTURES  # what the network draws of a caption stays
    for sentence in with_short_names(sentences) if is_long else sentences:
        resolved = Resolved(sentence, abstract, entities).graph()
        rows += _Said(resolved, abstract, offset, is_long=is_long).statements()
        offset += len(sentence.words)
    said = [row for row in rows if row.standing is None]
    relations, attributes, objects = (_each_once(rows, size) for size in (3, 2, 1))
    every = _with_subject([*relations, *attributes, *objects], objects)
    return Facts(*_told_apart(every), _entities(said, entities.groups))


def plain_facts(sentences: Sequence[SentenceGraph]) -> Facts:
    """Return the facts of sentences as their graphs have them, each once, with no things told apart."""
    starts = accumulate((len(sentence.words) for sentence in sentences), initial=0)
    said = (_Said(own, frozenset(), start, is_long=False).statements() for own, start in zip(sentences, starts))  # noqa: B905 (the last start is the end)
    rows = list(chain.from_iterable(said))
    return Facts(*_told_apart([row for size in (3, 2, 1) for row in _each_once(rows, size)]))


def _told_apart(every: Sequence[_Statement]) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return the seen facts, and those kept apart with their reason as rule."""
    seen = [Fact(row.words, row.rule, row.tokens) for row in every if row.standing is None]
    return tuple(seen), tuple([Fact(row.words, _RULES[row.standing], row.tokens) for row in every if row.standing])


def _each_once(rows: Iterable[_Statement], size: int) -> list[_Statement]:
    """Return statements of so many words, each once, those that can be seen before those that are kept apart."""
    by_words: dict[tuple[str, ...], _Statement] = {}
    for row in rows:
        if len(row.words) == size:
            before = by_words.setdefault(row.words, row)
            by_words[row.words] = row if before.standing and not row.standing else before
    return list(by_words.values())


def _with_subject(every: Sequence[_Statement], objects: Sequence[_Statement]) -> Sequence[_Statement]:
    """Return statements, restoring those kept apart for the mildest reason where none is seen."""
    if not all(row.standing for row in every):
        return every
    reasons = {row.standing for row in objects}
    reason = next((standing for standing in _LAST_TO_DRAW if standing in reasons), None)
    return [row._replace(standing=None) if row.standing is reason else row for row in every]


def _entities(rows: Sequence[_Statement], groups: Sequence[int | None]) -> tuple[Entity, ...]:
    """Return the things that rows are about, in the order in which they are named."""
    said: dict[tuple[int, int], list[_Statement]] = {}  # by entity and number of words
    for row in rows:
        said.setdefault((row.ends[0], len(row.words)), []).append(row)
    named = [entity for entity, size in said if size == 1]
    indices: dict[int | None, int] = {entity: index for index, entity in enumerate(named)}
    return tuple(
        [
            Entity(
                said[own, 1][0].words[0],
                _distinct([row.tokens[0] for row in said[own, 1]]),
                _distinct([row.words[1] for row in said.get((own, 2), ())]),
                _distinct(
                    [(row.words[2], indices[row.ends[1]]) for row in said.get((own, 3), ()) if row.ends[1] in indices]
                ),
                indices.get(groups[own]),
            )
            for own in named
        ]
    )


def _distinct(rows: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(rows) if len(rows) > 1 else rows)


class _Said:
    """Statements of a sentence, with the reasons why some are kept apart."""

    def __init__(self, sentence: SentenceGraph, abstract: frozenset[str], offset: int, *, is_long: bool) -> None:
        self._sentence, self._offset, self._is_long = sentence, offset, is_long
        self._otherwise = ApartReason.SUMMARY if is_long and offset and is_summary(sentence.words) else None
        self._standings = [self._standing_of(node, abstract) for node in sentence.nodes]
        self._is_marked = any((*sentence.why, *self._standings))
        self._mentions = [self._moved(node.tokens) for node in sentence.nodes]

    def statements(self) -> Iterator[_Statement]:
        """Yield relations, attributes and objects."""
        yield from map(self._relation, self._sentence.links)
        yield from map(self._attribute, self._sentence.properties)
        for node, mention, own in zip(self._sentence.nodes, self._mentions, self._standings, strict=True):
            standing = own or self._otherwise or (ApartReason.FAINT if node.is_faint else None)
            yield _Statement((node.name,), (mention,), standing, (node.entity,), node.rule)

    def _standing_of(self, node: Node, abstract: frozenset[str]) -> ApartReason | None:
        if name_noun(node.name) in abstract or node.name in PRONOUNS:
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

    def _relation(self, link: Link) -> _Statement:
        """Return a relation by the name that people give it."""
        nodes, name, tokens, ends = self._sentence.nodes, link.name, link.tokens, (link.subject, link.object)
        if self._is_long:
            name, is_turned = described(nodes[link.subject].name, nodes[link.object].name, name)
            tokens = tokens if is_turned or name == link.name else ()  # "have" says nothing of "speckled with"
            ends = ends[::-1] if is_turned else ends
        subject, target = nodes[ends[0]], nodes[ends[1]]
        standing = self._worst(ends, tokens) or self._otherwise or (ApartReason.FAINT if link.is_faint else None)
        words = (subject.name, target.name, name)
        mentioned = (self._mentions[ends[0]], self._mentions[ends[1]], self._moved(tokens))
        return _Statement(words, mentioned, standing, (subject.entity, target.entity), link.rule)

    def _attribute(self, own: Property) -> _Statement:
        node = self._sentence.nodes[own.node]
        tokens = () if own.rule == VALUE_RULE else own.tokens  # "a screen that reads Not found" denies nothing
        standing = self._worst((own.node,), tokens) or self._otherwise or self._faintly(own, node)
        mentioned = (self._mentions[own.node], self._moved(own.tokens))
        return _Statement((node.name, own.name), mentioned, standing, (node.entity,), own.rule)

    def _faintly(self, own: Property, node: Node) -> ApartReason | None:
        """Return whether people would hardly draw an attribute: places, states, manners and impressions."""
        tags = [self._sentence.tags[token] for token in own.tokens]
        if self._is_long and is_place(tags):
            return ApartReason.PLACE
        is_behind = own.tokens[0] > node.head
        is_state = tags[0] == "VBG" or (is_behind and (tags[0] == "VBN" or tags == ["RB"]))
        is_left = self._is_long and (is_state or own.name in WORDS["impressions"])
        return ApartReason.FAINT if own.is_faint or is_left else None
