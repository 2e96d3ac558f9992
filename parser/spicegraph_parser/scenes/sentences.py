"""What a sentence says of a scene: named nodes with attributes and relations, each with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.lemmas import verb_lemma
from spicegraph_parser.scenes.phrases import said_of, with_phrases
from spicegraph_parser.scenes.prepositions import inner_nouns
from spicegraph_parser.scenes.relations import forms_of, relation_tokens
from spicegraph_parser.scenes.values import Value, owner, unread
from spicegraph_parser.scenes.visible import ApartReason, standings
from spicegraph_parser.scenes.wording import put_plainly
from spicegraph_parser.spice import loose
from spicegraph_parser.spice.parse import is_word

if TYPE_CHECKING:
    from spicegraph_parser.scenes.network import Labels, Names

_WITH: Final = "with"
Pairs = Sequence[tuple[int, int]]
Relations = Sequence[tuple[int, int, str]]
Tokens = tuple[int, ...]  # Positions of words in their sentence, from 0.


class Node(NamedTuple):
    """An object; ``entity``: -1 until things are told apart; ``is_faint``: the margins leave it out."""

    name: str
    head: int
    tokens: Tokens
    entity: int = -1
    is_faint: bool = False
    rule: str = loose.SCENE_RULE


class Property(NamedTuple):
    """An attribute of the node with the given index."""

    node: int
    name: str
    tokens: Tokens
    is_faint: bool = False
    rule: str = loose.SCENE_RULE


class Link(NamedTuple):
    """A relation between the nodes with the given indices; no words where the caption only implies it."""

    subject: int
    object: int
    name: str
    tokens: Tokens
    is_faint: bool = False
    rule: str = loose.SCENE_RULE


class SentenceGraph(NamedTuple):
    """What a sentence says of a scene: forms in lower case, their standings, nodes with the faint ones last."""

    words: Sequence[str]
    tags: Sequence[str]
    why: Sequence[ApartReason | None]
    nodes: tuple[Node, ...]
    properties: tuple[Property, ...]
    links: tuple[Link, ...]


def sentence_graph(
    labels: Labels, forms: Sequence[str], names: Names, values: Sequence[Value] = (), *, is_alone: bool = False
) -> SentenceGraph:
    """Return the graph of a sentence's labels; what it denies is an object, so that it can be told apart."""
    words = [form.lower() for form in forms]
    why = standings(words, labels.tags)
    denied = {
        at for at, standing in enumerate(why) if standing is ApartReason.DENIED and labels.tags[at].startswith("NN")
    }
    completed = with_phrases(labels, words, names, denied, set(unread(values)), is_alone=is_alone)
    given = _rows(labels)
    later = given if completed == labels else _rows(completed)
    labels = completed if is_alone else put_plainly(completed, words)
    sounds = _sounds(labels, words, names) if is_alone else {}
    attributes = [pair for pair in labels.attributes if pair[1] not in denied]
    attributes += [(sound, adjective) for sound, adjectives in sounds.items() for adjective in adjectives]
    relations = [*labels.relations, *((*pair, _WITH) for pair in labels.attributes if pair[1] in denied)]
    heads = {*labels.objects, *sounds, *(head for head, _ in attributes)}.union(*(pair[:2] for pair in relations))
    pairs = [pair for pair in labels.parts if pair[0] not in denied or pair[1] in denied]
    within = {part for _, part in pairs}
    # a denied noun that the network says nothing of is an object, or part of one ("no fire hydrant")
    silent = denied - heads - within
    ends = {at: next(end for end in range(at + 1, len(words) + 1) if end not in denied) - 1 for at in silent}
    heads |= {at for at, end in ends.items() if end == at}
    parts: dict[int, list[int]] = {}
    for head, part in (*pairs, *((end, at) for at, end in ends.items() if end > at)):
        parts.setdefault(head, []).append(part)

    def named(head: int, rewrites: Mapping[str, str]) -> tuple[str, Tokens]:
        if head not in parts:
            return rewrites.get(words[head], words[head]), (head,)
        tokens = _run_of(head, parts[head])
        text = " ".join([words[token] for token in tokens])
        return rewrites.get(text, text), tokens

    def rule_of(row: object, otherwise: str, completing: str = loose.PHRASE_RULE) -> str:
        return loose.SCENE_RULE if row in given else completing if row in later else otherwise

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
                nodes.append(Node(name, head, tokens, is_faint=is_faint, rule=rule_of(head, loose.SOUND_RULE)))
        properties.extend(
            Property(node_at[head], *named(word, names.attributes), is_faint, rule_of((head, word), loose.WORDING_RULE))
            for head, word in attributes
            if head in node_at and is_word(words[word])
        )
        for subject, target, name in relations:
            if subject in node_at and target in node_at and is_word(name):
                tokens = relation_tokens(
                    name, nodes[node_at[subject]].tokens, nodes[node_at[target]].tokens, word_forms
                )
                completing = loose.PREPOSITION_RULE if (subject, target) in given else loose.PHRASE_RULE
                rule = rule_of((subject, target, name), loose.WORDING_RULE, completing)
                links.append(Link(node_at[subject], node_at[target], name, tokens, is_faint, rule))

    add(heads, attributes, relations)
    owners = [(value, owner(value, sorted(node_at), words)) for value in values]
    nodes += [Node(v.name, v.tokens[0], v.tokens, rule=loose.VALUE_RULE) for v, noun in owners if noun is None]
    properties += [
        Property(node_at[noun], v.name, v.tokens, rule=loose.VALUE_RULE) for v, noun in owners if noun is not None
    ]
    if (faint := labels.faint) is not None:
        known = {relation[:2] for relation in relations}
        others = [relation for relation in faint.relations if relation[:2] not in known]
        faint_heads = {*faint.objects, *(head for head, _ in faint.attributes)}.union(*(pair[:2] for pair in others))
        add(faint_heads - node_at.keys() - within - denied, faint.attributes, others, is_faint=True)
    return SentenceGraph(words, labels.tags, why, tuple(nodes), tuple(properties), tuple(links))


def _run_of(head: int, parts: Sequence[int]) -> Tokens:
    """Return the words of a name: of "a street corner and street sign", the second "street" alone."""
    inside = {head, *parts}
    start = next(at for at in range(head, -1, -1) if at - 1 not in inside)
    return tuple(sorted(at for at in inside if at >= start))


def _rows(labels: Labels) -> set[object]:
    """Return the words, pairs and relations of which labels say something, faintly or not."""
    own = {*said_of(labels), *labels.attributes, *labels.relations, *(row[:2] for row in labels.relations)}
    return own | _rows(labels.faint) if labels.faint else own


_NOUNS: Final = frozenset({"NN", "NNS"})


def _sounds(labels: Labels, words: Sequence[str], names: Names) -> dict[int, list[int]]:
    """Return the nouns of sounds of which the network says nothing, each with the adjectives before it."""
    if names.sounds.isdisjoint(words):
        return {}
    said = said_of(labels) | inner_nouns(words)
    for subject, target, name in labels.relations:  # "a cook cuts onions" has no cuts
        said |= {at for at in range(subject + 1, target) if verb_lemma(words[at]) == name.partition(" ")[0]}
    sounds: dict[int, list[int]] = {}
    for at, (word, tag) in enumerate(zip(words, labels.tags, strict=True)):
        if word in names.sounds and tag in _NOUNS and at not in said:
            start = at
            while start and labels.tags[start - 1].startswith("JJ") and start - 1 not in said:
                start -= 1
            sounds[at] = list(range(start, at))
    return sounds
