"""A sentence: as the passes see it, with what was decided so far, and the graph that is made of it in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spicegraph_parser.spice.extraction import ApartReason
from spicegraph_parser.spice.loose import SCENE_RULE, VALUE_RULE
from spicegraph_parser.spice.parse import is_word
from spicegraph_scenes.relations import forms_of, relation_tokens
from spicegraph_scenes.values import Value, owner
from spicegraph_scenes.words import NOUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scenes.denial import Scope
    from spicegraph_scenes.network import Labels, Names

Relation = tuple[int, int, str]
Tokens = tuple[int, ...]  # Positions of words in their sentence, from 0.
Rules = dict[object, str]
"""Of each word, pair or relation of which something is said, the rule of what said so first."""


class Phrase(NamedTuple):
    """A noun phrase: its first word, its noun, which is its last word."""

    start: int
    head: int


class Sentence(NamedTuple):
    """A sentence: its words in lower case, and all that was decided so far.

    Attributes:
        words: in lower case.
        labels: tags, objects, parts of names, attributes and relations; what margins leave out is faint.
        names: what is known of words.
        is_alone: whether it is of a caption, and not of a description.
        unread: the words that the network does not read: of texts, measures, and modifiers that only deny.
        scopes: what its denials and hedges cover.
        why: of each word, why it does not say what can be seen; ``None`` where it does.
        phrases: its noun phrases.
        inner: the nouns that are part of a preposition.
        foreign: how many of its phrases have a noun that photographs lack.
        is_foreign: whether the first phrase has such a noun, or several have.
    """

    words: Sequence[str]
    labels: Labels
    names: Names
    is_alone: bool = True
    unread: frozenset[int] = frozenset()
    scopes: Sequence[Scope] = ()
    why: Sequence[ApartReason | None] = ()
    phrases: Sequence[Phrase] = ()
    inner: frozenset[int] = frozenset()
    foreign: int = 0
    is_foreign: bool = False

    def said(self) -> set[int]:
        """Return the words of which something is said."""
        return said_of(self.labels)

    def linked(self) -> set[int]:
        """Return both ends of all relations."""
        return {end for relation in self.labels.relations for end in relation[:2]}

    def starts(self) -> dict[int, int]:
        """Return where the phrases of nouns start."""
        return {phrase.head: phrase.start for phrase in self.phrases}

    def behind(self, at: int) -> Phrase:
        """Return the first phrase behind a word, or one of -1."""
        return next((phrase for phrase in self.phrases if phrase.start > at), Phrase(-1, -1))

    def deciding(self, **rows: Any) -> Sentence:
        """Return this sentence with other labels, by their fields; itself where they are the same."""
        is_same = all(getattr(self.labels, name) == own for name, own in rows.items())
        return self if is_same else self._replace(labels=self.labels._replace(**rows))

    def adding(self, **rows: Iterable[Any]) -> Sentence:
        """Return this sentence with more labels, each once; itself where it has them all."""
        labels = self.labels
        for name, own in rows.items():
            given: list[Any] = getattr(labels, name)
            if new := [row for row in dict.fromkeys(own) if row not in given]:
                more: dict[str, Any] = {name: [*given, *new]}
                labels = labels._replace(**more)
        return self if labels is self.labels else self._replace(labels=labels)


def said_of(labels: Labels) -> set[int]:
    """Return the words of which labels say something."""
    out = {*labels.objects, *(end for pair in (*labels.parts, *labels.attributes) for end in pair)}
    return out | {end for relation in labels.relations for end in relation[:2]}


def moved_ends(sentence: Sentence, moved: Mapping[int, int]) -> Sentence:
    """Return a sentence in which nouns are part of the name of others, which have all that was said of them."""
    labels = sentence.labels

    def new(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
        """Return pairs and relations with their new ends, each once, without those of a word with itself."""
        own = dict.fromkeys((moved.get(row[0], row[0]), moved.get(row[1], row[1]), *row[2:]) for row in rows)
        return [row for row in own if row[0] != row[1]]

    parts = dict.fromkeys((moved.get(head, head), part) for head, part in labels.parts)
    return sentence.deciding(
        objects=list(dict.fromkeys(moved.get(at, at) for at in labels.objects)),
        parts=list(
            dict.fromkeys([*(pair for pair in parts if pair[0] != pair[1]), *((b, a) for a, b in moved.items())])
        ),
        attributes=new(pair for pair in labels.attributes if pair[1] not in moved),
        relations=new(labels.relations),
    )


def shown(sentence: Sentence) -> Iterator[str]:
    """Yield lines with a sentence's tags, objects, names, attributes, relations and phrases."""
    words, labels = sentence.words, sentence.labels
    for form, tag, why in zip(words, labels.tags, sentence.why or [None] * len(words), strict=True):
        yield f"tag {form} {tag}"
        if why is not None:
            yield f"{why.value} {form}"
    yield from (f"object {words[at]}" for at in labels.objects)
    yield from (f"name {words[part]} {words[head]}" for head, part in labels.parts)
    yield from (f"attribute {words[head]}: {words[word]}" for head, word in labels.attributes)
    yield from (f"relation {words[subject]} - {name} - {words[target]}" for subject, target, name in labels.relations)
    yield from (f"phrase {' '.join(words[phrase.start : phrase.head + 1])}" for phrase in sentence.phrases)


class Node(NamedTuple):
    """An object; ``entity``: -1 until things are told apart; ``is_faint``: the margins leave it out."""

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
    """Scene graph of a sentence: lower-case words, their standings, and nodes, faint ones last."""

    words: Sequence[str]
    tags: Sequence[str]
    why: Sequence[ApartReason | None]
    nodes: tuple[Node, ...]
    properties: tuple[Property, ...]
    links: tuple[Link, ...]


class _Graph:
    """The graph of a sentence while it is made."""

    def __init__(self, sentence: Sentence, rules: Rules) -> None:
        self._sentence, self._rules = sentence, rules
        self._parts: dict[int, list[int]] = {}
        for head, part in sentence.labels.parts:
            self._parts.setdefault(head, []).append(part)
        self._forms = list(map(forms_of, sentence.words, sentence.labels.tags))
        self.node_at: dict[int, int] = {}
        self.nodes: list[Node] = []
        self.properties: list[Property] = []
        self.links: list[Link] = []

    def _rule(self, row: object) -> str:
        return self._rules.get(row, SCENE_RULE)

    def _named(self, head: int, rewrites: Mapping[str, str]) -> tuple[str, Tokens]:
        """Return the name that ends with a word, as people write it, and its words."""
        words = self._sentence.words
        tokens = _run_of(head, self._parts[head]) if head in self._parts else (head,)
        text = " ".join([words[token] for token in tokens])
        return rewrites.get(text, text), tokens

    def add(self, labels: Labels, relations: Sequence[Relation], heads: Iterable[int], *, is_faint: bool) -> None:
        """Add objects, their attributes and relations, as far as both ends are nodes; signs are none."""
        words, names = self._sentence.words, self._sentence.names
        for head in sorted(heads):
            name, tokens = self._named(head, names.objects)
            if is_word(name):
                self.node_at[head] = len(self.nodes)
                self.nodes.append(Node(name, head, tokens, is_faint=is_faint, rule=self._rule(head)))
        for head, word in labels.attributes:
            if head in self.node_at and is_word(words[word]):
                named = self._named(word, names.attributes)
                self.properties.append(Property(self.node_at[head], *named, is_faint, self._rule((head, word))))
        for row in relations:
            self._relate(row, is_faint=is_faint)

    def _relate(self, row: Relation, *, is_faint: bool) -> None:
        subject, target = self.node_at.get(row[0]), self.node_at.get(row[1])
        if subject is not None and target is not None and is_word(row[2]):
            tokens = relation_tokens(row[2], self.nodes[subject].tokens, self.nodes[target].tokens, self._forms)
            self.links.append(Link(subject, target, row[2], tokens, is_faint, self._rule(row)))

    def add_values(self, values: Sequence[Value]) -> None:
        """Add texts and measures as attributes of their nouns, or as objects without one."""
        heads = sorted(self.node_at)
        for value in values:
            noun = owner(value, heads, self._sentence.words)
            if noun is None:
                self.nodes.append(Node(value.name, value.tokens[0], value.tokens, rule=VALUE_RULE))
            else:
                self.properties.append(Property(self.node_at[noun], value.name, value.tokens, rule=VALUE_RULE))


def sentence_graph(sentence: Sentence, rules: Rules | None = None, values: Sequence[Value] = ()) -> SentenceGraph:
    """Return the graph of a sentence, denied objects included; ``rules`` give each element's origin."""
    labels, faint = sentence.labels, sentence.labels.faint
    graph = _Graph(sentence, rules or {})
    graph.add(labels, labels.relations, _heads(labels, labels.relations), is_faint=False)
    graph.add_values(values)
    if faint is not None:
        known = {relation[:2] for relation in labels.relations}
        others = [relation for relation in faint.relations if relation[:2] not in known]
        denied = {at for at, why in enumerate(sentence.why) if why is ApartReason.DENIED and labels.tags[at] in NOUNS}
        heads = _heads(faint, others) - graph.node_at.keys() - {part for _, part in labels.parts} - denied
        graph.add(faint, others, heads, is_faint=True)
    parts = tuple(graph.nodes), tuple(graph.properties), tuple(graph.links)
    return SentenceGraph(sentence.words, labels.tags, sentence.why, *parts)


def _heads(labels: Labels, relations: Iterable[Relation]) -> set[int]:
    """Return the words that are objects, or of which an attribute or a relation is said."""
    return {*labels.objects, *(head for head, _ in labels.attributes), *(end for row in relations for end in row[:2])}


def _run_of(head: int, parts: Sequence[int]) -> Tokens:
    """Return the words of a name: of "a street corner and street sign", the second "street" alone."""
    inside = {head, *parts}
    start = next(at for at in range(head, -1, -1) if at - 1 not in inside)
    return tuple(sorted(at for at in inside if at >= start))
