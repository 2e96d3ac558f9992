"""The scene parser: from texts over the graphs of sentences to the facts of a description.

Over the sentences, rules say what pronouns and short names stand for, and what is seen.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.encoder import MakeProduct, float_product
from spicegraph_parser.caption_pipeline.lemmas import bundled_lemmas
from spicegraph_parser.scenes.kinds import Kind, kind_of
from spicegraph_parser.scenes.network import Names, SceneNetwork, load_network
from spicegraph_parser.scenes.parts import belonging, described, is_comparing, is_of_garments
from spicegraph_parser.scenes.passages import read_text
from spicegraph_parser.scenes.sentences import SentenceGraph, Tokens, sentence_graph
from spicegraph_parser.scenes.things import PRONOUNS, Entities, Thing, plain_start, resolve, with_short_names
from spicegraph_parser.scenes.values import placed, without_values
from spicegraph_parser.scenes.visible import (
    DEPICTIONS,
    IMPRESSIONS,
    PICTURES,
    ApartReason,
    is_place,
    is_summary,
    name_noun,
)
from spicegraph_parser.spice.extraction import Entity, ParsedCaption
from spicegraph_parser.spice.loose import OWNER_RULE, SCENE_RULE, VALUE_RULE
from spicegraph_parser.spice.parse import Caption, Parse
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from spicegraph_parser.caption_pipeline.analyser import ReadTokens


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


_LONG: Final = 100  # words of a description of which people draw no more than the margins leave
_MOST_LEMMAS: Final = 100_000
_BATCH: Final = 1024  # captions that are labelled together


@dataclass(frozen=True, slots=True)
class SceneParser:
    """Parses captions to scene graphs as people draw them; reads its network with the first caption."""

    folder: Path
    product: MakeProduct = float_product

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Return the words and tags of captions; there are no edges."""
        return (Caption(caption.text, caption.sentences) for caption in self.captions(texts, batch_size=batch_size))

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions or descriptions, in order and in batches.

        Raises:
            LimitError: a text is longer than ``MAX_CAPTION_LENGTH``.
            DataError: the network can't be read.
        """
        network = load_network(self.folder, self.product)
        stream = iter(texts)
        done = 0
        while batch := list(islice(stream, batch_size or _BATCH)):
            read = [read_text(text, index) for index, text in enumerate(batch, done)]
            yield from _parsed(network, batch, read)
            done += len(batch)


def _parsed(network: SceneNetwork, texts: Sequence[str], read: Sequence[ReadTokens]) -> Iterator[ParsedCaption]:
    lengths = [length for tokens in read for length in tokens.lengths]
    forms = [form for tokens in read for form in tokens.ptb]
    for start in itertools.accumulate(lengths[:-1], initial=0) if lengths else ():
        behind = forms[start + 1].lower() if start + 1 < len(forms) else ""
        forms[start] = plain_start(forms[start], behind)
    kinds = [kind_of(own.forms, own.lengths, network.names) for own in read]
    are_long = [kind == Kind.DESCRIPTION for kind in kinds]
    shares = [min(1.0, len(own.forms) / _LONG) if is_long else 0.0 for own, is_long in zip(read, are_long, strict=True)]
    strictness = [share for own, share in zip(read, shares, strict=True) for _ in own.lengths]
    forms, lengths = _without_stops(forms, lengths, strictness)
    read_forms, read_lengths, values = without_values(forms, lengths)
    styles = [kind for own, kind in zip(read, kinds, strict=True) for _ in own.lengths]
    labels = network.label(read_forms, read_lengths, strictness, styles)
    rows = iter(zip(labels, values, lengths, strict=True))
    for text, tokens, is_long in zip(texts, read, are_long, strict=True):
        graphs = []
        parses = []
        start = 0
        for length in tokens.lengths:
            sentence_labels, sentence_values, read_length = next(rows)
            inner = slice(start, start + length)
            start += length
            words = tokens.forms[inner]
            if sentence_values:
                sentence_labels = placed(sentence_labels, sentence_values, read_length)
            if read_length < length:
                sentence_labels = sentence_labels._replace(tags=[*sentence_labels.tags, _STOP])
            graphs.append(sentence_graph(sentence_labels, words, network.names, sentence_values, is_alone=not is_long))
            spans = tokens.spans if isinstance(tokens.spans, str) else tokens.spans[inner]
            tags = graphs[-1].tags
            lemmas = list(map(_lemma, words, tags))
            parses.append(Parse.from_columns(words, tags, lemmas, (), spans))
        facts = facts_of(graphs, network.names, is_long=is_long)
        yield ParsedCaption(text, tuple(parses), facts.seen, facts.apart, facts.entities, is_scene=True)


_STOP: Final = "."


def _without_stops(
    forms: Sequence[str], lengths: Sequence[int], strictness: Sequence[float]
) -> tuple[list[str], list[int]]:
    """Return words without the full stop at the end of captions, most of which people wrote without one."""
    kept: list[str] = []
    sizes: list[int] = []
    start = 0
    for length, share in zip(lengths, strictness, strict=True):  # captions are read without strictness
        end = start + length
        size = length - 1 if not share and length > 1 and forms[end - 1] == _STOP else length
        kept += forms[start : start + size]
        sizes.append(size)
        start = end
    return kept, sizes


@lru_cache(maxsize=_MOST_LEMMAS)
def _lemma(form: str, tag: str) -> str:
    return bundled_lemmas().lemma(form, tag)
