"""Passes over what a sentence denies or hedges: by the scopes of its triggers and hedges (:mod:`.denial`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.scenes.visible import ApartReason
from spicegraph_parser.scenes.words import NOUNS
from spicegraph_parser.spice.denial import Standing, hedged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from spicegraph_parser.scenes.sentence import Sentence
    from spicegraph_parser.spice.denial import Scope

_WITH: Final = "with"
_REASONS: Final = {Standing.DENIED: ApartReason.DENIED, Standing.HEDGED: ApartReason.HEDGED}


def not_seen(sentence: Sentence) -> Sentence:
    """What is denied or hedged.

    "neither of the dogs wears a collar": -> denied wears, denied collar
    """
    why = dict.fromkeys(hedged(sentence.words, sentence.labels.tags), ApartReason.HEDGED)
    for scope in sentence.scopes:
        if scope.standing in _REASONS:
            why |= dict.fromkeys([word - 1 for word in scope.words], _REASONS[scope.standing])
    return sentence._replace(why=[why.get(at) for at in range(len(sentence.words))]) if why else sentence


def denied_modifiers(sentence: Sentence) -> Sentence:
    """Modifiers that deny and say nothing else, which the network does not read: what is denied is an object.

    "a man without a red hat": -> object hat, attribute hat: red, relation man - with - hat
    """
    for scope in sentence.scopes:
        if scope.modifier:
            sentence = _with_modifier(sentence, scope)
    return sentence


def _with_modifier(sentence: Sentence, scope: Scope) -> Sentence:
    """Return a sentence with the objects of a modifier, and what lacks them."""
    tags, objects = sentence.labels.tags, sentence.labels.objects
    own = list(_nouns(sentence, scope))
    before = [(head, at) for start, head in own for at in range(start, head)]
    is_lacked = scope.standing is Standing.DENIED and scope.owner - 1 in objects
    return sentence.adding(
        objects=dict(own).values(),
        parts=[pair for pair in before if tags[pair[1]] in NOUNS],
        attributes=[pair for pair in before if tags[pair[1]].startswith(("JJ", "CD"))],
        relations=[(scope.owner - 1, head, scope.name) for _, head in own if is_lacked],
    )


def _nouns(sentence: Sentence, scope: Scope) -> Iterator[tuple[int, int]]:
    """Yield the nouns that a scope covers and that are no objects, each with where its phrase starts."""
    tags, covered = sentence.labels.tags, {word - 1 for word in scope.words}
    start = -1
    for at in sorted(covered):
        is_joined = at - 1 in covered and tags[at - 1] not in {"CC", "DT", ","}
        start = start if is_joined and start >= 0 else at
        if tags[at] in NOUNS and not (at + 1 in covered and tags[at + 1] in NOUNS):
            yield from () if at in sentence.labels.objects else ((start, at),)
            start = -1


def denied_objects(sentence: Sentence) -> Sentence:
    """What a clause denies is an object of its own, related to what lacks it, so that it can be told apart.

    "there is no fire hydrant": -> object hydrant, name fire hydrant
    """
    tags = sentence.labels.tags
    denied = {at for at, why in enumerate(sentence.why) if why is ApartReason.DENIED and tags[at] in NOUNS}
    if not denied:
        return sentence
    sentence = _told_apart(sentence, denied)
    lacked = list(_lacked(sentence))
    return sentence.adding(relations=lacked, objects=[row[0] for row in lacked])


def _told_apart(sentence: Sentence, denied: Collection[int]) -> Sentence:
    """Return a sentence in which what is denied is no attribute, has no part that is not, and is an object."""
    labels = sentence.labels
    of_others = [pair for pair in labels.attributes if pair[1] in denied]
    own = sentence.deciding(
        parts=[pair for pair in labels.parts if pair[0] not in denied or pair[1] in denied],
        attributes=[pair for pair in labels.attributes if pair not in of_others],
        relations=[*labels.relations, *((*pair, _WITH) for pair in of_others)],
    )
    return _as_objects(own, denied)


def _as_objects(sentence: Sentence, denied: Collection[int]) -> Sentence:
    """Return a sentence with objects for denied nouns of which nothing is said."""
    silent = [at for at in sorted(denied) if at not in sentence.said()]
    ends = {at: next(end for end in range(at, len(sentence.words)) if end + 1 not in denied) for at in silent}
    return sentence.adding(
        objects=[end for at, end in ends.items() if at == end],
        parts=[(end, at) for at, end in ends.items() if at < end],  # "no fire hydrant"
    )


def _lacked(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    """Yield what subjects lack by a clause of which the network says nothing ("he has no hat")."""
    related, objects = sentence.linked(), sentence.labels.objects
    for scope in sentence.scopes:
        thing = next((word - 1 for word in scope.words if word - 1 in objects), None)
        is_lacked = scope.owner and not scope.modifier and thing not in related
        if thing is not None and is_lacked:
            yield scope.owner - 1, thing, scope.name
