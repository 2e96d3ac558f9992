"""What a sentence says of a scene: named nodes with attributes and relations, each with its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.scenes.phrases import (
    between_phrases,
    in_own_prepositions,
    of_pictures,
    phrases,
    said_of,
    with_silent,
    without_inner,
)
from spicegraph_parser.scenes.prepositions import inner_nouns
from spicegraph_parser.scenes.relations import forms_of, relation_tokens
from spicegraph_parser.scenes.values import owner, unread
from spicegraph_parser.scenes.visible import ApartReason, standings
from spicegraph_parser.scenes.wording import put_plainly
from spicegraph_parser.spice.loose import (
    PHRASE_RULE,
    PREPOSITION_RULE,
    SCENE_RULE,
    SOUND_RULE,
    VALUE_RULE,
    WORDING_RULE,
)
from spicegraph_parser.spice.parse import is_word

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from spicegraph_parser.scenes.network import Labels, Names
    from spicegraph_parser.scenes.values import Value

_WITH: Final = "with"
Pairs = Sequence[tuple[int, int]]
Relations = Sequence[tuple[int, int, str]]
Tokens = tuple[int, ...]
"""Positions of words in their sentence, from 0."""


class Node(NamedTuple):
    """An object: its name as people would write it, its last word, all of its words, and the thing that it is.

    ``entity`` is -1 until the things of a description are told apart; ``is_faint``: the margins leave it out.
    """

    name: str
    head: int
    tokens: Tokens
    entity: int = -1
    is_faint: bool = False
    rule: str = SCENE_RULE


class Property(NamedTuple):
    """An attribute of the node with the given index."""

    node: int
    name: str
    tokens: Tokens
    is_faint: bool = False
    rule: str = SCENE_RULE


class Link(NamedTuple):
    """A relation between the nodes with the given indices; no words where the caption only implies it."""

    subject: int
    object: int
    name: str
    tokens: Tokens
    is_faint: bool = False
    rule: str = SCENE_RULE


class SentenceGraph(NamedTuple):
    """What a sentence says of a scene; ``words`` are its forms in lower case, ``why`` their standings.

    Nodes that are faint stand behind the others.
    """

    words: Sequence[str]
    tags: Sequence[str]
    why: Sequence[ApartReason | None]
    nodes: tuple[Node, ...]
    properties: tuple[Property, ...]
    links: tuple[Link, ...]


def sentence_graph(
    labels: Labels, forms: Sequence[str], names: Names, values: Sequence[Value] = (), *, is_alone: bool = False
) -> SentenceGraph:
    """Return the graph that a sentence's labels describe, without what has no letter and no digit in its name ("!!!").

    A noun that the sentence denies is an object whether people draw it or not, and "a man is without hat" a relation:
    so what is denied can be told apart.

    Args:
        labels: what the network says of the sentence.
        forms: its words.
        names: among them the names that people use in place of the caption's.
        values: texts and measures, which the network did not read.
        is_alone: it is all of its caption. Then sounds are things, too ("loud thunder and speech"): the people whose
            graphs the network learned from drew pictures. A "right hand" has a name of two words then; in a
            description people draw a hand that is "right".
    """
    words = [form.lower() for form in forms]
    why = standings(words, labels.tags)
    denied = {
        at for at, standing in enumerate(why) if standing is ApartReason.DENIED and labels.tags[at].startswith("NN")
    }
    completed = _completed(labels, words, names, values, denied, is_alone=is_alone)
    rules = _FactRules.of(labels, completed)
    labels = completed if is_alone else put_plainly(completed, words)
    parts: dict[int, list[int]] = {}
    for head, part in labels.parts:
        if head not in denied or part in denied:
            parts.setdefault(head, []).append(part)
    sounds = _sounds(labels, words, names) if is_alone else {}
    attributes = [pair for pair in labels.attributes if pair[1] not in denied]
    attributes += [(sound, adjective) for sound, adjectives in sounds.items() for adjective in adjectives]
    relations = [*labels.relations, *((*pair, _WITH) for pair in labels.attributes if pair[1] in denied)]
    heads = {*labels.objects, *sounds, *(head for head, _ in attributes)}.union(*(pair[:2] for pair in relations))
    within = {part for joined in parts.values() for part in joined}
    for at in sorted(denied - heads - within, reverse=True):
        # a denied noun that the network says nothing of is an object, or part of one ("no fire hydrant")
        behind = next((end for end in range(at + 1, len(words)) if end not in denied), len(words)) - 1
        if behind > at:
            parts.setdefault(behind, []).append(at)
        else:
            heads.add(at)

    def named(head: int, rewrites: Mapping[str, str]) -> tuple[str, Tokens]:
        if head not in parts:
            return rewrites.get(words[head], words[head]), (head,)
        tokens = tuple(sorted({head, *parts[head]}))
        text = " ".join([words[token] for token in tokens])
        return rewrites.get(text, text), tokens

    word_forms = list(map(forms_of, words, labels.tags))
    node_at: dict[int, int] = {}
    nodes: list[Node] = []
    properties: list[Property] = []
    links: list[Link] = []

    def add(heads: set[int], attributes: Pairs, relations: Relations, *, is_faint: bool = False) -> None:
        for head in sorted(heads):
            name, tokens = named(head, names.objects)
            if is_word(name):
                node_at[head] = len(nodes)
                nodes.append(Node(name, head, tokens, is_faint=is_faint, rule=rules.of_object(head)))
        properties.extend(
            Property(node_at[head], *named(word, names.attributes), is_faint, rules.of_attribute((head, word)))
            for head, word in attributes
            if head in node_at and is_word(words[word])
        )
        for subject, target, name in relations:
            if subject in node_at and target in node_at and is_word(name):
                ends = nodes[node_at[subject]].tokens, nodes[node_at[target]].tokens
                tokens = relation_tokens(name, *ends, word_forms)
                links.append(
                    Link(
                        node_at[subject],
                        node_at[target],
                        name,
                        tokens,
                        is_faint,
                        rules.of_relation((subject, target, name)),
                    )
                )

    add(heads, attributes, relations)
    _add_values(values, node_at, nodes, properties)
    if labels.faint is not None:
        faint = labels.faint
        known = {relation[:2] for relation in relations}
        others = [relation for relation in faint.relations if relation[:2] not in known]
        ends = {*faint.objects, *(head for head, _ in faint.attributes)}
        ends |= {end for relation in others for end in relation[:2]}
        add(ends - node_at.keys() - within - denied, faint.attributes, others, is_faint=True)
    return SentenceGraph(words, labels.tags, why, tuple(nodes), tuple(properties), tuple(links))


class _FactRules(NamedTuple):
    """What the network says of a sentence, and what is said of it with its noun phrases: which rule a fact is of."""

    given: frozenset[object]
    completed: frozenset[object]

    @classmethod
    def of(cls, given: Labels, completed: Labels) -> _FactRules:
        """Return the rules of labels before and after they are completed."""
        every = [given, *([given.faint] if given.faint else [])]
        known = {
            row for labels in every for rows in (said_of(labels), labels.attributes, labels.relations) for row in rows
        }
        known |= {pair[:2] for labels in every for pair in labels.relations}
        later = {*said_of(completed), *completed.attributes, *completed.relations}
        return cls(frozenset(known), frozenset(later))

    def of_object(self, head: int) -> str:
        return SCENE_RULE if head in self.given else PHRASE_RULE if head in self.completed else SOUND_RULE

    def of_attribute(self, pair: tuple[int, int]) -> str:
        return SCENE_RULE if pair in self.given else PHRASE_RULE if pair in self.completed else WORDING_RULE

    def of_relation(self, relation: tuple[int, int, str]) -> str:
        if relation in self.given:
            return SCENE_RULE
        if relation not in self.completed:
            return WORDING_RULE
        return PREPOSITION_RULE if relation[:2] in self.given else PHRASE_RULE


def _add_values(
    values: Sequence[Value], node_at: Mapping[int, int], nodes: list[Node], properties: list[Property]
) -> None:
    """Add the values of a sentence to the objects that have them; ``node_at``: the indices of nodes by position."""
    heads = sorted(node_at)
    for value in values:
        head = owner(value, heads)
        if head is None:
            nodes.append(Node(value.name, value.tokens[0], value.tokens, rule=VALUE_RULE))
        else:
            properties.append(Property(node_at[head], value.name, value.tokens, rule=VALUE_RULE))


def _completed(
    labels: Labels,
    words: Sequence[str],
    names: Names,
    values: Sequence[Value],
    denied: Collection[int],
    *,
    is_alone: bool,
) -> Labels:
    """Return labels with the caption's own prepositions and, of a caption, with phrases that the network lacks."""
    left_out = set(unread(values))
    inner = inner_nouns(words)
    every = phrases(labels.tags, left_out | inner)
    labels = without_inner(labels, words, inner, every)
    if is_alone:
        labels = with_silent(labels, words, names, every, denied)
        others = between_phrases(labels, words, names.known, every, left_out)
        labels = labels._replace(relations=[*labels.relations, *others])
        labels = of_pictures(labels, words)
    return in_own_prepositions(labels, words, every, left_out)


_NOUNS: Final = frozenset({"NN", "NNS"})


def _sounds(labels: Labels, words: Sequence[str], names: Names) -> dict[int, list[int]]:
    """Return the nouns of sounds of which the network says nothing, each with the adjectives before it."""
    if names.sounds.isdisjoint(words):
        return {}
    said = {*labels.objects, *(end for pair in (*labels.parts, *labels.attributes) for end in pair)}
    said |= {end for subject, target, _ in labels.relations for end in (subject, target)} | inner_nouns(words)
    sounds: dict[int, list[int]] = {}
    for at, (word, tag) in enumerate(zip(words, labels.tags, strict=True)):
        if word in names.sounds and tag in _NOUNS and at not in said:
            start = at
            while start and labels.tags[start - 1].startswith("JJ") and start - 1 not in said:
                start -= 1
            sounds[at] = list(range(start, at))
    return sounds
