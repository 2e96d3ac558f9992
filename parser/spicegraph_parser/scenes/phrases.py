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
from spicegraph_parser.scenes.kinds import is_noun
from spicegraph_parser.scenes.prepositions import GENERAL, inner_nouns, is_preposition_word
from spicegraph_parser.scenes.relations import (
    HAVE,
    OFTEN,
    adds_verb,
    has_ing_form,
    other_verb,
    preposition_between,
    stated_between,
    stems,
)
from spicegraph_parser.scenes.sentence import Phrase, Sentence, lives, moved_ends
from spicegraph_parser.scenes.visible import PICTURES, ApartReason
from spicegraph_parser.scenes.words import NAMES, NOUNS, PLURAL, WORDS
from spicegraph_parser.spice.parse import is_word
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MOST_WORDS: Final = 100_000
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
_INNER: Final = r"(?:[JKCV]|P(?=[NCJK]))*"
_PHRASE: Final = re.compile(rf"(?![VP])D*{_INNER}N(?:[NC]*N)?|D+{_INNER}J(?=$|B)")
"""A noun phrase by the kinds of its words; "V" is a value, which the network does not read."""


def no_nouns(sentence: Sentence) -> Sentence:
    """Words behind a noun that are taken for nouns and are none: verbs, and adverbs like "inside".

    "a café lists the soups": tag lists NNS -> tag lists VBZ
    """
    return sentence.deciding(tags=[_own_tag(sentence, at, tag) for at, tag in enumerate(sentence.labels.tags)])


def _own_tag(sentence: Sentence, at: int, tag: str) -> str:
    """Return the tag of a word that has one: another where it is taken for a noun, or for what is exclaimed."""
    words, labels = sentence.words, sentence.labels
    if tag not in NOUNS or at in labels.objects:
        is_noun_or_verb = tag == "UH" and (words[at].endswith("ing") or at in labels.objects)  # captions hardly need it
        return ("NN", "VBG")[words[at].endswith("ing")] if is_noun_or_verb else tag
    before = max([-1, *(p for p in range(at) if p not in sentence.unread)])
    own = NAMES["no_nouns"].get(words[at])
    if own is None and before in labels.objects:
        own = _verb_tag(words[before], words[at], is_plural=labels.tags[before] in PLURAL)
    return own if own is not None and at not in sentence.said() | sentence.unread else tag


@lru_cache(maxsize=_MOST_WORDS)
def _verb_tag(before: str, word: str, *, is_plural: bool) -> str | None:
    """Return the tag of an adverb or verb: in -s or -ing, or behind the plural of what lives; none of a name's word."""
    if word in WORDS["adverbs_behind"]:
        return "RB"
    wordnet, base = load_wordnet(), verb_lemma(word)
    if not wordnet.senses(base, "v") or wordnet.senses(f"{before} {word}", "n"):  # "oil painting"
        return None
    if base == word:
        return "VBP" if is_plural and lives(plural_lemma(before)) else None
    return "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else None


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
    """Nouns inside of prepositions are no objects; what they join is related by the preposition.

    "a dog at the foot of the stairs": object foot -> relation dog - at foot of - stairs
    """
    labels = sentence.labels
    inner = sentence.inner & {*labels.objects, *sentence.linked()}
    if not inner:
        return sentence
    outside = [relation for relation in labels.relations if inner.isdisjoint(relation[:2])]
    return sentence.deciding(
        objects=[at for at in labels.objects if at not in inner],
        attributes=[pair for pair in labels.attributes if pair[0] not in inner],
        relations=_with_joined(sentence, outside, inner),
    )


def _with_joined(
    sentence: Sentence, relations: list[tuple[int, int, str]], inner: Collection[int]
) -> list[tuple[int, int, str]]:
    """Return relations with those of what nouns of prepositions join, where nothing relates it."""
    for noun in sorted(inner):
        joined = _joined(sentence, noun, inner)
        if joined and not any({*joined[:2]} == {*relation[:2]} for relation in relations):
            relations.append(joined)
    return relations


def _joined(sentence: Sentence, noun: int, inner: Collection[int]) -> tuple[int, int, str] | None:
    """Return how a noun of a preposition relates what is before it, by a relation or else nearest, to what follows."""
    labels, target = sentence.labels, sentence.behind(noun)
    ends = [subject for subject, other, _ in labels.relations if other == noun > subject]
    before = [*ends, *(at for at in reversed(labels.objects) if at < noun)]
    subject = next((at for at in before if at not in inner), None)
    if target.head < 0 or subject is None:
        return None
    name = preposition_between(sentence.words, labels.tags, range(subject + 1, target.start))
    return None if name is None else (subject, target.head, name)


def unknown_phrases(sentence: Sentence) -> Sentence:
    """Noun phrases of which the network says nothing, in captions of a foreign kind; at least one in any caption.

    "a nodule in the lung": object lung -> object nodule
    """
    if not sentence.is_foreign and _has_object(sentence):
        return sentence
    words, said = sentence.words, sentence.said() | sentence.unread
    silent = [phrase for phrase in sentence.phrases if phrase.head not in said and is_word(words[phrase.head])]
    for phrase in _drawable(sentence, silent, said):
        if not sentence.labels.objects or is_noun(words[phrase.head]):
            sentence = _with_phrase(sentence, phrase, said)
    return sentence


def _has_object(sentence: Sentence) -> bool:
    """Say whether a sentence has an object that it does not deny."""
    return any(sentence.why[at] is not ApartReason.DENIED for at in sentence.labels.objects)


def _drawable(sentence: Sentence, silent: Sequence[Phrase], said: Collection[int]) -> Sequence[Phrase]:
    """Return the phrases that are objects, though the network says nothing of them; one at least in any sentence."""
    left = sentence.names.undrawn | PICTURES if sentence.is_foreign else sentence.names.known
    plain = [phrase for phrase in silent if not _is_quantity(sentence.words, phrase)]
    unknown = [phrase for phrase in plain if sentence.words[phrase.head] not in left]
    drawable = [phrase for phrase in unknown if not _may_be_verb(sentence, phrase.head, said)]
    if drawable or _has_object(sentence):
        return drawable
    return _first_stated(sentence, [*plain, *silent])


def _first_stated(sentence: Sentence, silent: Sequence[Phrase]) -> Sequence[Phrase]:
    """Return the first phrase that is not denied; where there is none, and no object, the first of all."""
    stated = [phrase for phrase in silent if sentence.why[phrase.head] is not ApartReason.DENIED]
    return stated[:1] or ([] if sentence.labels.objects else sentence.phrases[:1])


def _may_be_verb(sentence: Sentence, at: int, said: Collection[int]) -> bool:
    """Say whether what is taken for a noun behind a thing may be a verb ("wind blows"): captions have its "-ing"."""
    word, known = sentence.words[at], sentence.names.known
    is_behind = at - 1 in said and word.endswith("s") and not word.endswith("ss")
    return is_behind and any(has_ing_form(base, known) for base in stems(word) if len(base) > 1)


def _with_phrase(sentence: Sentence, phrase: Phrase, said: set[int]) -> Sentence:
    """Return a sentence with an object: nouns before the phrase's last one are in its name, adjectives attributes."""
    words, tags, head = sentence.words, sentence.labels.tags, phrase.head
    inner = range(max([phrase.start, *(at + 1 for at in range(*phrase) if tags[at] == "POS")]), head)
    nouns = [at for at in inner if tags[at] in NOUNS]
    firm = [words[at] for at in said.intersection(nouns)]
    if firm and sentence.names.drawn.isdisjoint(firm):
        sentence = moved_ends(sentence, dict.fromkeys(nouns, head))
    return sentence.adding(
        objects=[head],
        parts=[] if firm else [(head, at) for at in nouns],
        attributes=_adjectives(sentence, inner, said),
    )


def _adjectives(sentence: Sentence, inner: range, said: Collection[int]) -> list[tuple[int, int]]:
    """Return adjectives and numbers before a noun, of which nothing is said, as its attributes."""
    tags = sentence.labels.tags
    return [(inner.stop, at) for at in inner if tags[at] in _SAID_BEFORE and at not in said]


def before_unknown_nouns(sentence: Sentence) -> Sentence:
    """Adjectives and numbers before a noun that photographs lack, where the network says nothing of them.

    "an acute fracture": -> attribute fracture: acute
    """
    if not sentence.is_foreign:
        return sentence
    words, labels, said = sentence.words, sentence.labels, sentence.said() | sentence.unread
    return sentence.adding(
        attributes=[
            pair
            for start, head in sentence.phrases
            if head in labels.objects and words[head] not in sentence.names.known
            for pair in _adjectives(sentence, range(start, head), said)
        ]
    )


def between_phrases(sentence: Sentence) -> Sentence:
    """Phrases that the network relates to nothing before them are so by the words between, nouns of photographs aside.

    "a probe beside the incision": -> relation probe - beside - incision
    """
    return sentence.adding(relations=_relations_between(sentence))


def _relations_between(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    labels, words, wholes = sentence.labels, sentence.words, _wholes(sentence)
    objects = set(labels.objects)
    related = {max(subject, target) for subject, target, _ in labels.relations}
    for before, phrase in pairwise(sentence.phrases):
        is_silent = phrase.head not in related and {before.head, phrase.head} <= objects
        if is_silent and (*labels.tags, "")[phrase.head + 1] != "POS":
            relation = stated_between(words, labels.tags, before.head, phrase, sentence.unread)
            if relation is not None and not _is_networks(sentence, before.head, phrase.head, relation[2]):
                yield _of_part(sentence, relation, before.head, wholes)


def _wholes(sentence: Sentence) -> dict[int, int]:
    """Return nouns behind a noun and "of", each with this noun, which is no amount."""
    words = sentence.words
    return {
        behind.head: before.head
        for before, behind in pairwise(sentence.phrases)
        if words[before.head + 1 : behind.start] == ["of"] and words[before.head] not in WORDS["quantities"]
    }


def _of_part(
    sentence: Sentence, relation: tuple[int, int, str], before: int, wholes: dict[int, int]
) -> tuple[int, int, str]:
    """Return a relation of a whole as one of its part: in "a wing of a fly under ...", the wing is under it."""
    subject, target, name = relation
    part = wholes.get(before)
    if part not in sentence.labels.objects or "of" in sentence.words[before + 1 : max(subject, target)]:
        return relation
    return (part, target, name) if subject == before else (subject, part, name)


def _is_networks(sentence: Sentence, before: int, head: int, name: str) -> bool:
    """Say whether a relation is one of which the network knows both nouns, and no preposition of several words."""
    first, space, _ = name.partition(" ")
    is_known = {sentence.words[before], sentence.words[head]} <= sentence.names.known
    return is_known and not (space and is_preposition_word(first))


def pictures(sentence: Sentence) -> Sentence:
    """Pictures are "of" what they show, and not had by it.

    "a map of the subway": relation subway - have - map -> relation map - of - subway
    """
    words, shows = sentence.words, {HAVE, "in", "on"}
    of = {at for at in range(len(words) - 1) if words[at] in WORDS["depictions"] and words[at + 1] == "of"}
    return sentence.deciding(
        relations=[
            (target, subject, "of") if target in of and target < subject and name in shows else (subject, target, name)
            for subject, target, name in sentence.labels.relations
        ]
    )


def amounts(sentence: Sentence) -> Sentence:
    """Amounts of what a caption of a foreign kind shows are attributes, as people draw them.

    "a cluster of cells": -> attribute cells: cluster
    """
    pairs = [
        (phrase.head, amount.head)
        for amount, phrase in pairwise(sentence.phrases if sentence.foreign else ())
        if _is_quantity(sentence.words, amount) and amount.head + 2 == phrase.start
        if _is_amount(sentence, amount.head, phrase.head)
    ]
    return sentence.adding(parts=[(at, at + 1) for _, at in pairs], attributes=pairs)


def _is_amount(sentence: Sentence, at: int, head: int) -> bool:
    """Say whether people draw an amount of a noun: where the network does, or says nothing of a group."""
    labels = sentence.labels
    is_silent = sentence.words[at] in WORDS["groups"] and at not in sentence.said()
    return (head, at) in labels.attributes or (is_silent and head in labels.objects)


def numbers_of_materials(sentence: Sentence) -> Sentence:
    """A number before a material is the thing's.

    "three cotton shirts": name three cotton -> attribute shirts: three
    """
    tags, labels = sentence.labels.tags, sentence.labels
    if "CD" not in tags:
        return sentence
    things = {word: head for head, word in labels.attributes}
    numbers = [
        (word, at)
        for word, at in labels.parts
        if word in things and tags[at] == "CD" and _is_material(sentence.words[word])
    ]
    apart = sentence.deciding(parts=[pair for pair in labels.parts if pair not in numbers])
    return apart.adding(attributes=[(things[word], number) for word, number in numbers])


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
    """Return what a caption states between two things, the second by its phrase's start, if not a relation's name."""
    subject, start, name = relation
    words, tags = sentence.words, sentence.labels.tags
    nearer = [at for at in objects if subject < at < start]
    if nearer:
        return _behind_another(words, tags, range(nearer[-1] + 1, start), name) if sentence.is_alone else None
    inner = [at for at in range(subject + 1, start) if at not in sentence.unread]
    stated = preposition_between(words, tags, inner, name)
    return _own_verb(sentence, inner, name) if stated is None and sentence.is_alone and inner else stated


def _own_verb(sentence: Sentence, inner: Sequence[int], name: str) -> str | None:
    """Return what a caption states by a verb of its own, before a preposition that the network names alone, or else."""
    own = preposition_between(sentence.words, sentence.labels.tags, inner)
    if not sentence.foreign:
        return own if adds_verb(own, name) else None
    if own is None:
        return other_verb(sentence.words, sentence.labels.tags, inner, name)
    return None if own in GENERAL else own


def _behind_another(words: Sequence[str], tags: Sequence[str], inner: range, name: str) -> str | None:
    """Return the verb, with its preposition, right before a phrase ("a man with a bag waits by a gate"), if another."""
    if name in GENERAL and tags[inner.stop - 1].startswith("VB"):
        return other_verb(words, tags, [inner.stop - 1], name)
    if len(inner) < 2 or not tags[inner[0]].startswith("VB") or name in OFTEN:
        return None
    said = preposition_between(words, tags, inner) or ""
    is_other = all(name.split(maxsplit=1)[0] not in stems(words[at]) for at in inner)
    return said if " " in said and is_other else None


def silent_sounds(sentence: Sentence) -> Sentence:
    """Sounds of which the network says nothing, each with the adjectives before it.

    "a loud bang": -> object bang, attribute bang: loud
    """
    labels, words, sounds = sentence.labels, sentence.words, sentence.names.sounds
    if sounds.isdisjoint(words):
        return sentence
    said = sentence.said() | sentence.inner | _verbs(sentence)
    own = [
        at for at, word in enumerate(words) if word in sounds and labels.tags[at] in {"NN", "NNS"} and at not in said
    ]
    return sentence.adding(objects=own, attributes=[(at, word) for at in own for word in _before(sentence, at, said)])


def _verbs(sentence: Sentence) -> set[int]:
    """Return the words between two things that name their relation: "a cook cuts onions" has no cuts."""
    return {
        at
        for subject, target, name in sentence.labels.relations
        for at in range(subject + 1, target)
        if verb_lemma(sentence.words[at]) == name.partition(" ")[0]
    }


def _before(sentence: Sentence, noun: int, said: Collection[int]) -> range:
    """Return the adjectives right before a noun, of which nothing is said."""
    start = noun
    while start and sentence.labels.tags[start - 1].startswith("JJ") and start - 1 not in said:
        start -= 1
    return range(start, noun)


def _is_quantity(words: Sequence[str], phrase: Phrase) -> bool:
    return words[phrase.head] in WORDS["quantities"] and words[phrase.head + 1 : phrase.head + 2] == ["of"]


@lru_cache(maxsize=_MOST_WORDS)
def _is_material(word: str) -> bool:
    """Say whether a word names what things are made of, which people draw as an attribute."""
    wordnet = load_wordnet()
    return wordnet.is_kind_of(word, wordnet.find("matter.n.03"))
