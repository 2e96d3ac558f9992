"""Passes over noun phrases, read from tags: what a caption is about stays in its graph.

The network learned from captions of photographs. Of nouns that these lack ("lesion", "chart", "logo") it often says
nothing; then the phrase is an object with what stands before its noun, related to the phrase before it by the words
between both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.spice.extraction import ApartReason
from spicegraph_parser.spice.parse import is_word
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scenes.relations import (
    GENERAL,
    HAVE,
    OFTEN,
    adds_verb,
    inner_nouns,
    is_preposition_word,
    other_verb,
    preposition_between,
    stated_between,
    stems,
)
from spicegraph_scenes.sentence import Phrase, Sentence, moved_ends
from spicegraph_scenes.words import FINITE, MOST, NOUNS, PICTURES, PLURAL, WORDS, is_a, is_noun, lives

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_SAID_BEFORE: Final = frozenset({"CD", "JJ", "JJR", "JJS", "VBN", "VBG"})
_CODES: Final = {
    tag: code
    for code, tags in {
        "D": "DT PDT PRP$ WP$",
        "N": "NN NNS NNP NNPS",
        "C": "CD",
        "J": "JJ",
        "K": "JJR JJS",
        "P": "VBN VBG",
        "B": "VBZ VBP VBD MD IN TO",
    }.items()
    for tag in tags.split()
}
"""Kinds of words in noun phrases, and what stands behind one that ends with an adjective."""
_JOINTS: Final = frozenset({"and", "while", "as", "when", "but", ","})
_BEFORE_SUBJECTS: Final = frozenset({"a", "an", "while", "as", "when"})
"""What a subject in the singular stands behind, within two words of its noun."""
_INNER: Final = r"(?:[JKCV]|P(?=[NCJK]))*"
_PHRASE: Final = re.compile(rf"(?![VP])D*{_INNER}N(?:[NC]*N)?|D+{_INNER}J(?=$|B)")
"""A noun phrase by the kinds of its words; "V" is a value, which the network does not read."""


def verbs_behind_nouns(sentence: Sentence) -> Sentence:
    """Words behind a noun that are taken for nouns and are verbs, of its name or not.

    "a man in a helmet skis": tag skis NNS, object skis, attribute skis: helmet -> tag skis VBZ, object helmet
    """
    labels = sentence.labels
    said, before = sentence.said(), ("", "", *sentence.words)  # by the second word before each
    silent = [(at, at - 1) for at in labels.objects if at - 1 not in said and before[at] in _BEFORE_SUBJECTS]
    pairs = (*labels.parts, *labels.attributes, *silent)
    moved = {head: part for head, part in pairs if part == head - 1 and _ends_with_verb(sentence, head)}
    own = moved_ends(sentence, moved) if moved else sentence
    own = own.deciding(parts=[pair for pair in own.labels.parts if pair[1] not in moved])
    taken = own.said() | own.unread
    tags = [_own_tag(own, at, tag) if at not in taken and tag in NOUNS else tag for at, tag in enumerate(labels.tags)]
    return own.deciding(tags=tags)


def _ends_with_verb(sentence: Sentence, at: int) -> bool:
    """Say whether a name's last word is a verb agreeing with the noun before it."""
    words, tags = sentence.words, sentence.labels.tags
    if not (FINITE.isdisjoint(_clause_of(words, tags, at)) and {tags[at - 1], tags[at]} <= NOUNS):
        return False
    tag = _verb_tag(words[at - 1], words[at], is_plural=tags[at - 1] in PLURAL)
    base = verb_lemma(words[at])
    if tag == "VBP":
        return not sentence.names.known.isdisjoint((f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1:]}ing"))
    is_subject = not _BEFORE_SUBJECTS.isdisjoint(words[max(0, at - 3) : at - 1])
    return tag == "VBZ" and is_subject and tags[at - 1] not in PLURAL


def _clause_of(words: Sequence[str], tags: Sequence[str], at: int) -> Sequence[str]:
    """Return the tags of the clause around a word."""
    start = next((before + 1 for before in range(at, -1, -1) if words[before] in _JOINTS), 0)
    end = next((behind for behind in range(at, len(words)) if words[behind] in _JOINTS), len(words))
    return tags[start:end]


def _own_tag(sentence: Sentence, at: int, tag: str) -> str:
    """Return the tag of a noun of which nothing is said: a verb's where it stands behind an object."""
    words, labels = sentence.words, sentence.labels
    before = next((p for p in range(at - 1, -1, -1) if p not in sentence.unread), -1)
    if before not in labels.objects:
        return tag
    return _verb_tag(words[before], words[at], is_plural=labels.tags[before] in PLURAL) or tag


@lru_cache(maxsize=MOST)
def _verb_tag(before: str, word: str, *, is_plural: bool) -> str | None:
    """Return a word's verb tag (-s, -ing, or base behind an animate plural), or None."""
    base = verb_lemma(word)
    tag = "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else None
    if base == word:
        tag = "VBP" if is_plural and lives(plural_lemma(before)) else None
    wordnet = load_wordnet()
    is_verb = tag and wordnet.senses(base, "v") and not wordnet.senses(f"{before} {word}", "n")  # "oil painting"
    return tag if is_verb else None


def noun_phrases(sentence: Sentence) -> Sentence:
    """Noun phrases, and whether a caption is of a foreign kind: photographs lack its first noun, or several.

    "a lesion of the left lung": -> phrase a lesion, phrase the left lung
    """
    words, known = sentence.words, sentence.names.known
    inner = frozenset(inner_nouns(words))
    every = phrases(sentence.labels.tags, inner, sentence.unread)
    if not sentence.is_alone:
        return sentence._replace(phrases=every, inner=inner)
    foreign = [phrase for phrase in every if words[phrase.head] not in known and is_noun(words[phrase.head])]
    first = next((phrase for phrase in every if not _is_quantity(words, phrase)), None)
    is_foreign = bool(foreign) and (foreign[0] == first or len(foreign) > 1)
    return sentence._replace(phrases=every, inner=inner, foreign=len(foreign), is_foreign=is_foreign)


def phrases(tags: Sequence[str], left_out: Collection[int] = (), values: Collection[int] = ()) -> list[Phrase]:
    """Return the noun phrases of a sentence without words that are left out; values may stand before their noun."""
    kinds = ("." if at in left_out else "V" if at in values else _CODES.get(tag, ".") for at, tag in enumerate(tags))
    return [Phrase(found.start(), found.end() - 1) for found in _PHRASE.finditer("".join(kinds))]


def inside_of_prepositions(sentence: Sentence) -> Sentence:
    """Drop nouns inside prepositions as objects, and relate both sides by the whole preposition.

    "a dog at the foot of the stairs": object foot -> relation dog - at foot of - stairs
    """
    labels = sentence.labels
    inner = sentence.inner and sentence.inner & {*labels.objects, *sentence.linked()}
    if not inner:
        return sentence
    outside = sentence.deciding(
        objects=[at for at in labels.objects if at not in inner],
        attributes=[pair for pair in labels.attributes if pair[0] not in inner],
        relations=[relation for relation in labels.relations if inner.isdisjoint(relation[:2])],
    )
    related = [{*row[:2]} for row in outside.labels.relations]
    return outside.adding(
        relations=[row for noun in sorted(inner) for row in _joined(sentence, noun) if {*row[:2]} not in related]
    )


def _joined(sentence: Sentence, noun: int) -> Iterator[tuple[int, int, str]]:
    """Yield the relation that a preposition's inner noun states between the nouns around it."""
    labels, target = sentence.labels, sentence.behind(noun)
    ends = [subject for subject, other, _ in labels.relations if other == noun > subject]
    before = [*ends, *(at for at in reversed(labels.objects) if at < noun)]
    subject = next((at for at in before if at not in sentence.inner), None)
    if target.head >= 0 and subject is not None:
        name = preposition_between(sentence.words, labels.tags, range(subject + 1, target.start))
        yield from () if name is None else ((subject, target.head, name),)


def unknown_phrases(sentence: Sentence) -> Sentence:
    """Noun phrases of which the network says nothing, in captions of a foreign kind; at least one in any caption.

    "a nodule in the lung": object lung -> object nodule
    """
    if not sentence.is_foreign and _has_object(sentence):
        return sentence
    words, said = sentence.words, sentence.said() | sentence.unread
    silent = [phrase for phrase in sentence.phrases if phrase.head not in said and is_word(words[phrase.head])]
    for phrase in _drawable(sentence, silent):
        if not sentence.labels.objects or is_noun(words[phrase.head]):
            sentence = _with_phrase(sentence, phrase, said)
    return sentence


def _has_object(sentence: Sentence) -> bool:
    """Say whether a sentence has an object that it does not deny."""
    return any(sentence.why[at] is not ApartReason.DENIED for at in sentence.labels.objects)


def _drawable(sentence: Sentence, silent: Sequence[Phrase]) -> Sequence[Phrase]:
    """Return the phrases that are objects, though the network says nothing of them; one at least in any sentence."""
    left = sentence.names.undrawn | PICTURES
    plain = [phrase for phrase in silent if not _is_quantity(sentence.words, phrase)]
    unknown = [phrase for phrase in plain if sentence.words[phrase.head] not in left]
    if unknown or _has_object(sentence):
        return unknown
    return _first_stated(sentence, [*plain, *silent])


def _first_stated(sentence: Sentence, silent: Sequence[Phrase]) -> Sequence[Phrase]:
    """Return the first phrase that is not denied; where there is none, and no object, the first of all."""
    stated = [phrase for phrase in silent if sentence.why[phrase.head] is not ApartReason.DENIED]
    return stated[:1] or ([] if sentence.labels.objects else sentence.phrases[:1])


def _with_phrase(sentence: Sentence, phrase: Phrase, said: set[int]) -> Sentence:
    """Return a sentence with an object: nouns before the phrase's last one are in its name, adjectives attributes."""
    inner = range(phrase.start, phrase.head)
    nouns = [at for at in inner if sentence.labels.tags[at] in NOUNS]
    return sentence.adding(
        objects=[phrase.head], parts=[(phrase.head, at) for at in nouns], attributes=_adjectives(sentence, inner, said)
    )


def _adjectives(sentence: Sentence, inner: range, said: Collection[int]) -> list[tuple[int, int]]:
    """Return adjectives and numbers before a noun, of which nothing is said, as its attributes."""
    tags = sentence.labels.tags
    return [(inner.stop, at) for at in inner if tags[at] in _SAID_BEFORE and at not in said]


def between_phrases(sentence: Sentence) -> Sentence:
    """Phrases that the network relates to nothing before them are so by the words between, nouns of photographs aside.

    "a probe beside the incision": -> relation probe - beside - incision
    """
    return sentence.adding(relations=_relations_between(sentence))


def _relations_between(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    labels, words, known = sentence.labels, sentence.words, sentence.names.known
    objects = set(labels.objects)
    related = {max(subject, target) for subject, target, _ in labels.relations}
    for before, phrase in pairwise(sentence.phrases):
        is_silent = phrase.head not in related and {before.head, phrase.head} <= objects
        is_known = {words[before.head], words[phrase.head]} <= known
        if is_silent and (*labels.tags, "")[phrase.head + 1] != "POS":
            stated = stated_between(words, before.head, phrase, sentence.unread)
            yield from (row for row in stated if not is_known or " " in row[2])


def pictures(sentence: Sentence) -> Sentence:
    """Relate pictures to their contents by "of" instead of "have", and captions to their pictures.

    "a map of the subway": relation subway - have - map -> relation map - of - subway
    """
    words = sentence.words
    of = [at for at, (word, behind) in enumerate(pairwise(words)) if behind == "of" and word in WORDS["depictions"]]
    shown = (
        (row[1], row[0], "of")
        if row[1] in of and row[1] < row[0] and row[2] in {HAVE, "in", "on"}
        else (of[0], *row[1:])
        if of[0] < row[0] and words[row[1]] in WORDS["captions"]
        else row
        for row in sentence.labels.relations
    )
    return sentence.deciding(relations=list(dict.fromkeys(shown))) if of else sentence


def amounts(sentence: Sentence) -> Sentence:
    """Make amounts before "of" attributes of the noun behind, in captions of a foreign kind.

    "a cluster of cells": -> attribute cells: cluster
    """
    pairs = [
        (phrase.head, amount.head)
        for amount, phrase in pairwise(sentence.phrases if sentence.foreign else ())
        if _is_quantity(sentence.words, amount) and amount.head + 2 == phrase.start
        if phrase.head in sentence.labels.objects
    ]
    return sentence.adding(parts=[(at, at + 1) for _, at in pairs], attributes=pairs)


def own_prepositions(sentence: Sentence) -> Sentence:
    """Relations are named by the preposition between both ends where it means something else than their name.

    In a caption, a verb before the preposition is part of the name ("planted beyond").

    "a lamp beneath the shelf": relation lamp - on - shelf -> relation lamp - beneath - shelf
    """
    starts = sentence.starts()
    objects = sorted(sentence.labels.objects)
    return sentence.deciding(
        relations=[
            (subject, target, _stated(sentence, objects, (subject, starts.get(target, target), name)) or name)
            for subject, target, name in sentence.labels.relations
        ]
    )


def _stated(sentence: Sentence, objects: Sequence[int], relation: tuple[int, int, str]) -> str | None:
    """Return the relation name stated between a noun and a phrase start, if it differs."""
    subject, start, name = relation
    words, tags = sentence.words, sentence.labels.tags
    nearer = [at for at in objects if subject < at < start]
    if nearer:
        return _behind_another(sentence, range(nearer[-1] + 1, start), name) if sentence.is_alone else None
    inner = [at for at in range(subject + 1, start) if at not in sentence.unread]
    stated = preposition_between(words, tags, inner, name)
    return _own_verb(sentence, inner, name) if stated is None and sentence.is_alone and inner else stated


def _own_verb(sentence: Sentence, inner: Sequence[int], name: str) -> str | None:
    """Return the caption's own verb and preposition, or verb alone, if the name lacks it."""
    own = preposition_between(sentence.words, sentence.labels.tags, inner)
    if own is None:
        return _verb_before(sentence, inner, name)
    if sentence.foreign:
        return None if own in GENERAL else own
    return own if adds_verb(own, name) else None


def _behind_another(sentence: Sentence, inner: range, name: str) -> str | None:
    """Return the verb, with its preposition, right before a phrase ("a man with a bag waits by a gate"), if another.

    None where it is the nearer thing's: "a child sits on a blanket spread over the grass".
    """
    words, tags = sentence.words, sentence.labels.tags
    nearer = inner.start - 1
    if (nearer, sentence.behind(nearer).head) in [row[:2] for row in sentence.labels.relations]:
        return None
    if tags[inner.stop - 1].startswith("VB"):
        return _verb_before(sentence, [inner.stop - 1], name)
    if len(inner) < 2 or not tags[inner[0]].startswith("VB") or name in OFTEN:
        return None
    said = preposition_between(words, tags, inner) or ""
    is_other = all(name.split(maxsplit=1)[0] not in stems(words[at]) for at in inner)
    return said if " " in said and is_other else None


def _verb_before(sentence: Sentence, inner: Sequence[int], name: str) -> str | None:
    """Return the one verb before a phrase where a relation's name has another ("saves a kick": read).

    "Have", "wear" and prepositions stand for many verbs: there it counts if the closed list lacks it ("threads").
    """
    verb = other_verb(sentence.words, sentence.labels.tags, inner, name)
    is_plain = name in OFTEN or (is_preposition_word(name.partition(" ")[0]) and name not in GENERAL)
    return None if is_plain and not sentence.foreign and verb in sentence.names.verbs else verb


def _is_quantity(words: Sequence[str], phrase: Phrase) -> bool:
    return words[phrase.head] in WORDS["quantities"] and words[phrase.head + 1 : phrase.head + 2] == ["of"]


def apart_from_names(sentence: Sentence) -> Sentence:
    """Numbers before a material, and positions and shades in descriptions, are attributes and no part of a name.

    "three cotton shirts": name three cotton, attribute shirts: cotton -> attribute shirts: three
    """
    parts = sentence.labels.parts
    things = {word: head for head, word in sentence.labels.attributes}
    apart = [pair for pair in parts if _is_apart(sentence, *pair, things)]
    if not apart:
        return sentence
    own = sentence.deciding(parts=[pair for pair in parts if pair not in apart])
    return own.adding(attributes=[(things.get(head, head), at) for head, at in apart])


def _is_apart(sentence: Sentence, head: int, at: int, things: Collection[int]) -> bool:
    """Say whether a part of a name (number, position, shade) is rather an attribute."""
    word = sentence.words[at]
    if sentence.is_alone:
        return sentence.labels.tags[at] == "CD" and head in things and is_a(sentence.words[head], "matter.n.03")
    return word in WORDS["positions"] or (word in WORDS["shines"] and head in things)


def shared_adjectives(sentence: Sentence) -> Sentence:
    """The second of two things that "and" joins has the adjectives of the first.

    "white walls and ceilings": -> attribute ceilings: white
    """
    labels = sentence.labels
    plain = set(labels.objects).difference(dict(labels.attributes))
    seconds = [at for at in sorted(plain) if at - 2 in labels.objects and sentence.words[at - 1] == "and"]
    adjectives = [pair for pair in labels.attributes if pair[1] < pair[0] and labels.tags[pair[1]].startswith("JJ")]
    return sentence.adding(attributes=[(noun, at) for noun in seconds for head, at in adjectives if head == noun - 2])
