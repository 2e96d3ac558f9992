"""Passes over what clauses say: what they deny or hedge, what several do to each other, what is compared and used.

Denials go by the scopes of their triggers, and hedges (:mod:`.denial`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.spice.extraction import ApartReason
from spicegraph_scenes.denial import Standing, hedged
from spicegraph_scenes.relations import OFTEN, RECIPROCAL, is_preposition_word, last_preposition, own_name, stems
from spicegraph_scenes.words import FINITE, NOUNS, PLURAL, PREPOSITIONS, WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from spicegraph_scenes.denial import Scope
    from spicegraph_scenes.sentence import Relation, Sentence

_WITH: Final = "with"
_REASONS: Final = {Standing.DENIED: ApartReason.DENIED, Standing.HEDGED: ApartReason.HEDGED}
_BETWEEN_CLAUSES: Final = frozenset({"and", "while", "as", "when", "but"})
_RELATIVE: Final = frozenset({"WDT", "WP"})
_CLAUSE_ENDS: Final = frozenset({"CC", ",", ":", "WDT", "WP", "PRP"})
_SIDE_BY_SIDE: Final = ["side", "by", "side"]


def not_seen(sentence: Sentence) -> Sentence:
    """Mark the words that are denied or hedged.

    "neither of the dogs wears a collar": -> denied wears, denied collar
    """
    why = dict.fromkeys(hedged(sentence.words, sentence.labels.tags), ApartReason.HEDGED)
    for scope in sentence.scopes:
        if scope.standing in _REASONS:
            why |= dict.fromkeys([word - 1 for word in scope.words], _REASONS[scope.standing])
    return sentence._replace(why=[why.get(at) for at in range(len(sentence.words))]) if why else sentence


def denied_modifiers(sentence: Sentence) -> Sentence:
    """Add the objects, attributes and relations of negating modifiers, which the network does not read.

    "a man without a red hat": -> object hat, attribute hat: red, relation man - with - hat
    """
    for scope in sentence.scopes:
        if scope.modifier:
            sentence = _with_modifier(sentence, scope)
    return sentence


def _with_modifier(sentence: Sentence, scope: Scope) -> Sentence:
    """Return a sentence with a modifier's objects and attributes, and relations from its owner."""
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
    last = max(covered) if scope.name == _WITH else -1  # which may be tagged as an adjective: "without a helmet rides"
    nouns = {at for at in covered if tags[at] in NOUNS or (at == last and tags[at].startswith("JJ"))}
    start = -1
    for at in sorted(covered):
        is_joined = at - 1 in covered and tags[at - 1] not in {"CC", "DT", ","}
        start = start if is_joined and start >= 0 else at
        if at in nouns and at + 1 not in nouns:
            yield from () if at in sentence.labels.objects else ((start, at),)
            start = -1


def denied_objects(sentence: Sentence) -> Sentence:
    """Make denied nouns objects of their own, and no attributes of other nouns.

    "there is no fire hydrant": -> object hydrant, name fire hydrant
    """
    tags = sentence.labels.tags
    denied = {at for at, why in enumerate(sentence.why) if why is ApartReason.DENIED and tags[at] in NOUNS}
    if not denied:
        return sentence
    return _told_apart(sentence, denied)


def _told_apart(sentence: Sentence, denied: Collection[int]) -> Sentence:
    """Return a sentence whose denied nouns are objects, not attributes, with denied name parts only."""
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


def reciprocals(sentence: Sentence) -> Sentence:
    """Add relations, and numbers as attributes, for "each other", "one another" and "side by side".

    "two giraffes stand next to each other": -> relation giraffes - stand next to - giraffes
    """
    words, tags = sentence.words, sentence.labels.tags
    for at in range(len(words) - 1):
        if words[at : at + 2] in RECIPROCAL or words[at : at + 3] == _SIDE_BY_SIDE:
            ends = _several(sentence, at)
            name = _reciprocal_name(sentence, ends[-1], at) if ends else None
            if name is not None and not any({*row[:2]} <= {*ends} for row in sentence.labels.relations):
                numbers = [p for p in range(sentence.starts().get(ends[0], ends[0]), ends[0]) if tags[p] == "CD"]
                sentence = sentence.adding(
                    relations=[(ends[0], ends[-1], name)], attributes=[(ends[0], number) for number in numbers]
                )
    return sentence


def _several(sentence: Sentence, at: int) -> Sequence[int]:
    """Return the nearest noun before a position that names several, or the two that "and" joins, or none."""
    words, tags = sentence.words, sentence.labels.tags
    before, starts = sorted((noun for noun in sentence.labels.objects if noun < at), reverse=True), sentence.starts()
    for second, first in pairwise([*before, -1]):
        if words[at - 1] == "with" and tags[starts.get(second, second) - 1].startswith("VB"):
            continue  # "shake hands with each other"
        inner = slice(max(0, second - 1), second + 1)
        if tags[second] in PLURAL or tags[inner][0] == "CD" or not WORDS["several"].isdisjoint(words[inner]):
            return (second,)
        if first >= 0 and "and" in words[first:second]:
            return first, second
    return ()


def _reciprocal_name(sentence: Sentence, subject: int, at: int) -> str | None:
    """Return the name of a reciprocal relation: verb base and prepositions, prepositions alone, or None."""
    words = sentence.words
    name = own_name(words, sentence.labels.tags, subject + 1, at)
    if words[at] == _SIDE_BY_SIDE[0]:
        return f"{name or ''} side by side with".strip()
    _, stated = last_preposition(tuple(words[subject + 1 : at]))
    return stated.name if name is None and stated else name


def comparisons(sentence: Sentence) -> Sentence:
    """Replace relations between two compared things by the comparison ("bigger than") alone.

    "a ball bigger than a head": relation ball - have - head -> relation ball - bigger than - head
    """
    words, labels = sentence.words, sentence.labels
    for at in [at for at, word in enumerate(words) if word == "than" and labels.tags[at - 1] in {"JJR", "RBR"}]:
        ends = max((noun for noun in labels.objects if noun < at), default=-1), sentence.behind(at).head
        if {*ends} <= {*labels.objects}:
            others = [row for row in sentence.labels.relations if {*row[:2]} != {*ends}]
            sentence = sentence.deciding(relations=[*others, (*ends, f"{words[at - 1]} than")])
    return sentence


def of_others(sentence: Sentence) -> Sentence:
    """Drop "as" relations to a clause's subject, and attributes that belong to other nouns.

    "two cows have hooves": attribute hooves: two ->
    """
    labels, tags = sentence.labels, (*sentence.labels.tags, "")
    return sentence.deciding(
        relations=[row for row in labels.relations if row[2] != "as" or not tags[row[1] + 1].startswith("VB")],
        attributes=[pair for pair in labels.attributes if not _is_others(sentence, *pair)],
    )


def _is_others(sentence: Sentence, noun: int, at: int) -> bool:
    """Say whether an attribute is not its noun's: "two cows have black hooves"; in captions, another's number."""
    words, tags = sentence.words, sentence.labels.tags
    between = {words[p] for p in range(at + 1, noun) if tags[p] in FINITE | PREPOSITIONS}
    if not between:  # "four students and two teachers"
        return (noun < at, tags[at - 1], tags[at]) == (True, "CC", "CD")
    is_part = tags[at] == "CD" or words[at] in WORDS["portions"]
    if not sentence.is_alone:
        return is_part or between != {"of"}
    return is_part and at < min(own for own, word in sentence.labels.attributes if word == at) < noun


def apart_clauses(sentence: Sentence) -> Sentence:
    """Drop relations across clauses, except those of possession ("its") and comparison ("than").

    "water runs and dishes clank": relation dishes - talk to - water ->
    """
    starts = _clause_starts(sentence)
    if not starts:
        return sentence
    words, tags = sentence.words, sentence.labels.tags
    return sentence.deciding(
        relations=[
            row
            for row in sentence.labels.relations
            if not any(min(row[:2]) < start <= max(row[:2]) for start in starts)
            or "PRP$" in tags[sentence.starts().get(max(row[:2]), max(row[:2])) : max(row[:2])]
            or "than" in words[min(row[:2]) : max(row[:2])]
        ]
    )


def _clause_starts(sentence: Sentence) -> list[int]:
    """Return where clauses start behind "and" or "while": with a subject and its verb, where one with a verb ends."""
    words, tags = sentence.words, (*sentence.labels.tags, "")
    heads = {phrase.start: phrase.head for phrase in sentence.phrases}
    starts = []
    for at in [at for at in heads if words[at - 1] in _BETWEEN_CLAUSES]:
        verb = next(own for own in range(heads[at] + 1, len(tags)) if tags[own] != "RB")
        has_verb = any(tags[own] in FINITE and tags[own - 1] not in _RELATIVE for own in range(1, at))
        if tags[verb] in FINITE and has_verb:
            starts.append(at)
    return starts


def main_verbs(sentence: Sentence) -> Sentence:
    """Correct subjects of verbs behind relative clauses; relate passive verbs to their own subject only.

    "a dog that is held by a woman bites a bird": relation woman - bite - bird -> relation dog - bite - bird
    """
    rows = sentence.labels.relations
    for head, pronoun, verb in _behind_relatives(sentence):
        rows = [_of_head(sentence, row, head, pronoun, verb) for row in rows]
    inner = {row[:2] for row in rows}
    return sentence.deciding(
        relations=[
            row
            for row in dict.fromkeys(rows)
            if not any(
                (other, row[1]) in inner and other < row[1] < subject
                for subject, other, name in rows
                if (subject, name) == (row[0], row[2])
            )
        ]
    )


def _behind_relatives(sentence: Sentence) -> Iterator[tuple[int, int, int]]:
    """Yield the nouns with a relative clause, its pronoun, and the verb behind it, if it has one verb of its own."""
    words, tags = sentence.words, sentence.labels.tags
    for _, head in sentence.phrases:
        if tags[head + 1 : head + 2] in (["WDT"], ["WP"]):
            end = next((at for at in range(head + 2, len(words)) if tags[at] in _CLAUSE_ENDS), len(words))
            finite = [at for at in range(head + 2, end) if tags[at] in FINITE]
            if len(finite) == 2 and tags[finite[1] - 1] in NOUNS:
                yield head, head + 1, finite[1]


def _of_head(sentence: Sentence, row: Relation, head: int, pronoun: int, verb: int) -> Relation:
    """Return a relation that a verb states, as one of a head; any other as it is."""
    subject, target, name = row
    said = {stem for word in sentence.words[verb:target] for stem in stems(word)}
    is_of_verb = pronoun < subject < verb < target and not said.isdisjoint(name.split())
    return (head, target, name) if is_of_verb else row


def instruments(sentence: Sentence) -> Sentence:
    """A tool behind "with" is of who does something with it, and not of the things before it.

    "a man drives nails into wood with a hammer": relation wood - have - hammer -> relation man - use - hammer
    """
    words, rows = sentence.words, sentence.labels.relations
    behind_with = [head for start, head in sentence.phrases if words[start - 1] == _WITH]
    tools = {head for head in behind_with if plural_lemma(words[head]) in WORDS["tools"]}
    return sentence.deciding(relations=[_used(row, rows) if row[1] in tools else row for row in rows])


def _used(row: Relation, rows: Sequence[Relation]) -> Relation:
    """Return a tool's relation from the subject of the last action before it, if any."""
    before = [own for own in rows if own[1] < row[1] and own[2] not in OFTEN]
    done = [own for own in before if not is_preposition_word(own[2].partition(" ")[0])]
    subject, _, name = max(done, key=lambda own: own[1], default=row)
    verb, space, _ = name.partition(" ")
    return (subject, row[1], f"{verb} with" if space else "use") if done else row
