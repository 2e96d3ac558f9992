"""Passes over what a sentence denies or hedges, by the scopes of its triggers (:mod:`.denial`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.scenes.sentence import NOUNS, Sentence
from spicegraph_parser.scenes.visible import ApartReason, hedged
from spicegraph_parser.spice.denial import Standing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_WITH: Final = "with"
_REASONS: Final = {Standing.DENIED: ApartReason.DENIED, Standing.HEDGED: ApartReason.HEDGED}


def not_seen(sentence: Sentence) -> Sentence:
    """What is denied or hedged.

    "neither of the dogs wears a collar": -> denied wears, denied collar
    """
    why = list(hedged(sentence.words, sentence.labels.tags))
    for scope in sentence.scopes:
        for word in scope.words if scope.standing in _REASONS else ():
            why[word - 1] = _REASONS[scope.standing]
    return sentence._replace(why=why) if any(why) else sentence


def denied_modifiers(sentence: Sentence) -> Sentence:
    """Modifiers that deny and say nothing else, which the network does not read: what is denied is an object.

    "a man without a red hat": -> object hat, attribute hat: red, relation man - with - hat
    """
    labels = sentence.labels
    objects, attributes, relations = list(labels.objects), list(labels.attributes), list(labels.relations)
    parts = list(labels.parts)
    for scope in sentence.scopes:
        for start, head in _nouns(sentence, [word - 1 for word in scope.words] if scope.modifier else []):
            if head in objects:
                continue
            objects.append(head)
            parts += [(head, at) for at in range(start, head) if labels.tags[at] in NOUNS]
            attributes += [(head, at) for at in range(start, head) if labels.tags[at].startswith(("JJ", "CD"))]
            if scope.owner - 1 in objects and scope.standing is Standing.DENIED:
                relations.append((scope.owner - 1, head, scope.name))
    if objects == labels.objects:
        return sentence
    return sentence.having(labels._replace(objects=objects, parts=parts, attributes=attributes, relations=relations))


def _nouns(sentence: Sentence, covered: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the nouns among words, each with where its phrase starts."""
    tags = sentence.labels.tags
    start = -1
    for at in sorted(set(covered)):
        is_joined = at - 1 in covered and start >= 0
        start = start if is_joined and tags[at - 1] not in {"CC", "DT", ","} else at
        if tags[at] in NOUNS and not (at + 1 in covered and tags[at + 1] in NOUNS):
            yield start, at
            start = -1


def denied_objects(sentence: Sentence) -> Sentence:
    """What a clause denies is an object of its own, related to what lacks it, so that it can be told apart.

    "there is no fire hydrant": -> object hydrant, name fire hydrant
    """
    labels = sentence.labels
    denied = {at for at, why in enumerate(sentence.why) if why is ApartReason.DENIED and labels.tags[at] in NOUNS}
    if not denied:
        return sentence
    attributes = [pair for pair in labels.attributes if pair[1] not in denied]
    relations = [*labels.relations, *((*pair, _WITH) for pair in labels.attributes if pair[1] in denied)]
    parts = [pair for pair in labels.parts if pair[0] not in denied or pair[1] in denied]
    heads = {*labels.objects, *(head for head, _ in attributes)}.union(*(pair[:2] for pair in relations))
    ends = {at: _last_of(at, denied) for at in sorted(denied - heads - {part for _, part in parts})}
    objects = [*labels.objects, *(at for at, end in ends.items() if end == at)]
    parts += [(end, at) for at, end in ends.items() if end > at]  # "no fire hydrant"
    for owner, thing, name in _lacked(sentence, objects, relations):
        relations.append((owner, thing, name))
        objects += [] if owner in objects else [owner]
    return sentence.having(labels._replace(objects=objects, parts=parts, attributes=attributes, relations=relations))


def _last_of(at: int, denied: Collection[int]) -> int:
    """Return the last of the denied nouns that stand side by side from one on."""
    while at + 1 in denied:
        at += 1
    return at


def _lacked(
    sentence: Sentence, objects: Sequence[int], relations: Sequence[tuple[int, int, str]]
) -> list[tuple[int, int, str]]:
    """Return what subjects lack by a clause of which the network says nothing ("he has no hat")."""
    related = {end for row in relations for end in row[:2]}
    clauses = [scope for scope in sentence.scopes if scope.owner and not scope.modifier]
    things = [next((word - 1 for word in scope.words if word - 1 in objects), -1) for scope in clauses]
    return [
        (scope.owner - 1, thing, scope.name)
        for scope, thing in zip(clauses, things, strict=True)
        if thing >= 0 and thing not in related
    ]
