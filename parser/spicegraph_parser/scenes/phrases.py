"""Passes over noun phrases, read from tags: what a caption is about stays in its graph.

The network learned from captions of photographs. Of nouns that these lack ("lesion", "chart", "logo") it often says
nothing; then the phrase is an object with what stands before its noun, related to the phrase before it by the words
between both.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.scenes.kinds import is_noun
from spicegraph_parser.scenes.prepositions import GENERAL, inner_nouns, is_preposition_word
from spicegraph_parser.scenes.relations import OFTEN, adds_verb, other_verb, preposition_between, stated_between, stems
from spicegraph_parser.scenes.sentence import NOUNS, PLURAL, Phrase, Sentence, lives, moved_ends
from spicegraph_parser.scenes.visible import DEPICTIONS, PICTURES, ApartReason
from spicegraph_parser.spice.parse import is_word, tables, word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_STARTS: Final = frozenset({"DT", "PDT", "PRP$", "WP$"})
_BEFORE_NOUNS: Final = NOUNS | {"CD", "JJ", "JJR", "JJS"}
_PARTICIPLES: Final = frozenset({"VBN", "VBG"})
_BEHIND_NOUNS: Final = frozenset({"VBZ", "VBP", "VBD", "MD", "IN", "TO"})
_SAID_BEFORE: Final = frozenset({"CD", "JJ", "JJR", "JJS", "VBN", "VBG"})
_QUANTITIES: Final = word_set(tables(__package__)["quantities"])
_GROUPS: Final = _QUANTITIES - word_set(
    "pair pairs lot lots number couple variety dozen plenty kind kinds type types sort part crowd crowds"
)
_ADVERBS: Final = word_set("inside outside behind below above underneath beneath nearby")
_HAVE: Final = "have"
_ING: Final = "ing"
_MOST_WORDS: Final = 100_000
_SHOWN: Final = frozenset([_HAVE, "in", "on"])
_NO_NOUNS: Final = {"i": "PRP", "vs": "IN"}
_EXCLAIMED: Final = "UH"


def no_nouns(sentence: Sentence) -> Sentence:
    """Words behind a noun that are taken for nouns and are none: verbs, and adverbs like "inside".

    "a café lists the soups": tag lists NNS -> tag lists VBZ
    """
    labels, words = sentence.labels, sentence.words
    objects = set(labels.objects)
    tags: dict[int, str] = {}
    for at, (word, tag) in enumerate(zip(words, labels.tags, strict=True)):
        if tag == _EXCLAIMED and (at in objects or word.endswith(_ING)):  # a tag that captions hardly need
            tags[at] = "VBG" if word.endswith(_ING) else "NN"
        elif tag in NOUNS:
            before = next((p for p in range(at - 1, -1, -1) if p not in sentence.unread), -1)
            is_behind = before in objects and at not in objects
            own = _NO_NOUNS.get(word) or (_tag_behind(words[before], labels.tags[before], word) if is_behind else None)
            if own is not None and at not in sentence.said() | sentence.unread:
                tags[at] = own
    if not tags:
        return sentence
    return sentence.having(sentence.labels._replace(tags=[tags.get(at, tag) for at, tag in enumerate(labels.tags)]))


def _tag_behind(before: str, tag: str, word: str) -> str | None:
    """Return the tag of a word that is taken for a noun behind a noun with a tag, if it is an adverb or a verb."""
    if word in _ADVERBS:
        return "RB"
    return _verb_tag(before, word, is_plural=tag in PLURAL)


@lru_cache(maxsize=_MOST_WORDS)
def _verb_tag(before: str, word: str, *, is_plural: bool) -> str | None:
    """Return the tag of a verb: in -s or -ing, or behind the plural of what lives; none where both words are a name."""
    base = verb_lemma(word)
    if not load_wordnet().senses(base, "v") or _is_name(before, word):
        return None
    if base == word:
        return "VBP" if is_plural and lives(plural_lemma(before)) else None
    return "VBG" if word.endswith(_ING) else "VBZ" if word.endswith("s") else None


def noun_phrases(sentence: Sentence) -> Sentence:
    """Noun phrases, by tags, and which of them have a noun that photographs lack.

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
    out: list[Phrase] = []
    at = 0
    while at < len(tags):
        start, head = at, -1
        while at < len(tags) and at not in left_out and _continues(tags, start, head, at, is_value=at in values):
            head = at if tags[at] in NOUNS and at not in values else head
            at += 1
        if head < 0 and at > start + 1 and tags[start] in _STARTS and tags[at - 1] == "JJ":
            head = at - 1 if tags[at : at + 1] == [] or tags[at] in _BEHIND_NOUNS else head
        if head >= 0:
            out.append(Phrase(start, head))
            at = head + 1
        elif at == start:
            at += 1
    return out


def _continues(tags: Sequence[str], start: int, head: int, at: int, *, is_value: bool) -> bool:
    """Say whether a word continues a noun phrase that has a start, and a head so far or -1."""
    tag = tags[at]
    if is_value:
        return start < at and head < 0
    if tag in _STARTS:
        return at == start or (head < 0 and tags[at - 1] in _STARTS)
    if tag in _PARTICIPLES:
        return at > start and head < 0 and at + 1 < len(tags) and tags[at + 1] in _BEFORE_NOUNS
    return tag in NOUNS or tag == "CD" or (tag in _BEFORE_NOUNS and head < 0)


def inside_of_prepositions(sentence: Sentence) -> Sentence:
    """Nouns inside of prepositions are no objects; what they join is related by the preposition.

    "a dog at the foot of the stairs": object foot -> relation dog - at foot of - stairs
    """
    labels = sentence.labels
    inner = sentence.inner & {*labels.objects, *sentence.linked()}
    if not inner:
        return sentence
    relations = [relation for relation in labels.relations if inner.isdisjoint(relation[:2])]
    for noun in sorted(inner):
        target = next((phrase for phrase in sentence.phrases if phrase.start > noun), None)
        subject = _subject_of(sentence, noun, inner)
        if target is not None and subject is not None:
            name = preposition_between(sentence.words, labels.tags, range(subject + 1, target.start))
            if name is not None and not any({subject, target.head} == {*relation[:2]} for relation in relations):
                relations.append((subject, target.head, name))
    objects = [at for at in labels.objects if at not in inner]
    attributes = [pair for pair in labels.attributes if pair[0] not in inner]
    return sentence.having(labels._replace(objects=objects, relations=relations, attributes=attributes))


def _subject_of(sentence: Sentence, noun: int, inner: Collection[int]) -> int | None:
    """Return what is before a noun of a preposition: by a relation, or else the nearest object."""
    ends = [subject for subject, other, _ in sentence.labels.relations if other == noun and subject < noun]
    before = [at for at in sentence.labels.objects if at < noun]
    return next((at for at in (*ends, *reversed(before)) if at not in inner), None)


def unknown_phrases(sentence: Sentence) -> Sentence:
    """Noun phrases of which the network says nothing, in captions of a foreign kind; at least one in any caption.

    "a nodule in the lung": object lung -> object nodule
    """
    labels, words = sentence.labels, sentence.words
    if not sentence.is_foreign and any(sentence.why[at] is not ApartReason.DENIED for at in labels.objects):
        return sentence
    said = sentence.said() | sentence.unread
    silent = [phrase for phrase in sentence.phrases if phrase.head not in said and is_word(words[phrase.head])]
    for phrase in _drawable(sentence, silent, said):
        if not sentence.labels.objects or is_noun(words[phrase.head]):
            sentence = _with_phrase(sentence, phrase, said)
    return sentence


def _drawable(sentence: Sentence, silent: Sequence[Phrase], said: Collection[int]) -> Sequence[Phrase]:
    """Return the phrases that are objects, though the network says nothing of them."""
    words, names, why = sentence.words, sentence.names, sentence.why
    left = names.undrawn | PICTURES if sentence.is_foreign else names.known
    drawable = [
        phrase
        for phrase in silent
        if words[phrase.head] not in left
        and not _is_quantity(words, phrase)
        and not (phrase.head - 1 in said and _may_be_verb(words[phrase.head], names.known))
    ]
    if drawable or any(why[at] is not ApartReason.DENIED for at in sentence.labels.objects):
        return drawable
    stated = [phrase for phrase in silent if why[phrase.head] is not ApartReason.DENIED]
    drawable = [phrase for phrase in stated if not _is_quantity(words, phrase)][:1] or stated[:1]
    return drawable or ([] if sentence.labels.objects else sentence.phrases[:1])


def _with_phrase(sentence: Sentence, phrase: Phrase, said: Collection[int]) -> Sentence:
    """Return a sentence with an object: nouns before the phrase's last one are in its name, adjectives attributes."""
    labels, head = sentence.labels, phrase.head
    tags = labels.tags
    owners = max((at for at in range(phrase.start, head) if tags[at] == "POS"), default=phrase.start - 1)
    inner = range(owners + 1, head)
    taken = {at for at in inner if tags[at] in NOUNS}
    firm = taken.intersection(said)
    if any(sentence.words[at] in sentence.names.drawn for at in firm):
        taken = set()
    adjectives = [(head, at) for at in inner if tags[at] in _SAID_BEFORE and at not in said]
    if taken and firm:
        sentence = moved_ends(sentence, dict.fromkeys(sorted(taken), head))
        taken = set()
    labels = sentence.labels
    return sentence.having(
        sentence.labels._replace(
            objects=labels.objects if head in labels.objects else [*labels.objects, head],
            parts=[*labels.parts, *((head, at) for at in sorted(taken))],
            attributes=[*labels.attributes, *adjectives],
        )
    )


def parts_of_wholes(sentence: Sentence) -> Sentence:
    """What is said of a whole, in captions of a foreign kind, is said of its part that nothing leads to.

    "a needle in the vein of the arm": relation needle - in - arm -> relation needle - in - vein
    """
    words = sentence.words
    if not sentence.is_foreign:
        return sentence
    silent = set(sentence.labels.objects) - sentence.linked()
    part_of = {
        whole.head: part.head
        for part, whole in pairwise(sentence.phrases)
        if words[part.head + 1 : whole.start] == ["of"] and part.head in silent and words[part.head] not in DEPICTIONS
    }
    if not part_of:
        return sentence
    moved = [(a, part_of.get(b, b), name) for a, b, name in sentence.labels.relations]
    return sentence.having(
        sentence.labels._replace(relations=[row for row in dict.fromkeys(moved) if row[0] != row[1]])
    )


def before_unknown_nouns(sentence: Sentence) -> Sentence:
    """Adjectives and numbers before a noun that photographs lack, where the network says nothing of them.

    "an acute fracture": -> attribute fracture: acute
    """
    labels, words = sentence.labels, sentence.words
    if not sentence.is_foreign:
        return sentence
    objects, said = set(labels.objects), sentence.said() | sentence.unread
    adjectives = [
        (phrase.head, at)
        for phrase in sentence.phrases
        if phrase.head in objects and words[phrase.head] not in sentence.names.known
        for at in range(phrase.start, phrase.head)
        if labels.tags[at] in _SAID_BEFORE and at not in said
    ]
    return (
        sentence.having(sentence.labels._replace(attributes=[*labels.attributes, *adjectives]))
        if adjectives
        else sentence
    )


def between_phrases(sentence: Sentence) -> Sentence:
    """Phrases that the network relates to nothing before them are so by the words between, nouns of photographs aside.

    "a probe beside the incision": -> relation probe - beside - incision
    """
    others = list(_relations_between(sentence))
    return (
        sentence.having(sentence.labels._replace(relations=[*sentence.labels.relations, *others]))
        if others
        else sentence
    )


def _relations_between(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    labels, words = sentence.labels, sentence.words
    objects = set(labels.objects)
    related = {max(subject, target) for subject, target, _ in labels.relations}
    of = {
        behind.head: before.head
        for before, behind in pairwise(sentence.phrases)
        if words[before.head + 1 : behind.start] == ["of"] and words[before.head] not in _QUANTITIES
    }
    for before, phrase in pairwise(sentence.phrases):
        if phrase.head in related or not {before.head, phrase.head} <= objects:
            continue
        if labels.tags[phrase.head + 1 : phrase.head + 2] == ["POS"]:
            continue
        relation = stated_between(words, labels.tags, before.head, phrase, sentence.unread)
        if relation is None or _is_networks(sentence, before.head, phrase.head, relation[2]):
            continue
        whole = of.get(before.head)  # in "a wing of a fly under ...", the wing is under it
        if whole in objects and "of" not in words[before.head + 1 : phrase.start]:
            subject, target, name = relation
            relation = (whole, target, name) if subject == before.head else (subject, whole, name)
        yield relation


def _is_networks(sentence: Sentence, before: int, head: int, name: str) -> bool:
    """Say whether a relation is one of which the network knows both nouns, and no preposition of several words."""
    first, space, _ = name.partition(" ")
    is_known = {sentence.words[before], sentence.words[head]} <= sentence.names.known
    return is_known and not (space and is_preposition_word(first))


def pictures(sentence: Sentence) -> Sentence:
    """Pictures are "of" what they show, and not had by it.

    "a map of the subway": relation subway - have - map -> relation map - of - subway
    """
    labels, words = sentence.labels, sentence.words
    if DEPICTIONS.isdisjoint(words):
        return sentence
    relations = [
        (target, subject, "of")
        if target < subject and name in _SHOWN and words[target] in DEPICTIONS and words[target + 1] == "of"
        else (subject, target, name)
        for subject, target, name in labels.relations
    ]
    return sentence.having(labels._replace(relations=relations)) if relations != labels.relations else sentence


def amounts(sentence: Sentence) -> Sentence:
    """Amounts of what a caption of a foreign kind shows are attributes, as people draw them.

    "a cluster of cells": -> attribute cells: cluster
    """
    if not sentence.foreign:
        return sentence
    labels, words = sentence.labels, sentence.words
    head_of = {word: head for head, word in labels.attributes}
    objects, said = set(labels.objects), sentence.said()
    pairs = [
        (phrase.head, amount.head)
        for amount, phrase in pairwise(sentence.phrases)
        if words[amount.head] in _QUANTITIES and words[amount.head + 1 : phrase.start] == ["of"]
        if head_of.get(amount.head) == phrase.head
        or (words[amount.head] in _GROUPS and phrase.head in objects and amount.head not in said)
    ]
    if not pairs:
        return sentence
    parts = dict.fromkeys([*labels.parts, *((at, at + 1) for _, at in pairs)])
    return sentence.having(
        sentence.labels._replace(parts=list(parts), attributes=list(dict.fromkeys([*labels.attributes, *pairs])))
    )


def numbers_of_materials(sentence: Sentence) -> Sentence:
    """A number before a material is the thing's.

    "three cotton shirts": name three cotton -> attribute shirts: three
    """
    labels = sentence.labels
    if "CD" not in labels.tags:
        return sentence
    head_of = {word: head for head, word in labels.attributes}
    numbers = [
        pair
        for pair in labels.parts
        if pair[0] in head_of and labels.tags[pair[1]] == "CD"
        if labels.tags[pair[0]] in NOUNS and _is_material(sentence.words[pair[0]])
    ]
    if not numbers:
        return sentence
    apart = [(head_of[word], number) for word, number in numbers]
    return sentence.having(
        sentence.labels._replace(
            parts=[pair for pair in labels.parts if pair not in numbers],
            attributes=list(dict.fromkeys([*labels.attributes, *apart])),
        )
    )


def own_prepositions(sentence: Sentence) -> Sentence:
    """Relations are named by the preposition between both ends where it means something else than their name.

    In a caption, a verb before the preposition is part of the name ("planted beyond").

    "a lamp beneath the shelf": relation lamp - on - shelf -> relation lamp - beneath - shelf
    """
    starts = {phrase.head: phrase.start for phrase in sentence.phrases}
    objects = sorted(sentence.labels.objects)
    relations = [
        (subject, target, _stated(sentence, objects, (subject, starts.get(target, target), name)) or name)
        for subject, target, name in sentence.labels.relations
    ]
    return (
        sentence
        if relations == sentence.labels.relations
        else sentence.having(sentence.labels._replace(relations=relations))
    )


def _stated(sentence: Sentence, objects: Sequence[int], relation: tuple[int, int, str]) -> str | None:
    """Return what a caption states between two things, the second by its phrase's start, if not a relation's name."""
    subject, start, name = relation
    words, tags, is_alone = sentence.words, sentence.labels.tags, sentence.is_alone
    if subject >= start:
        return None
    if any(subject < at < start for at in objects):
        return _behind_another(words, tags, objects, start, name) if is_alone else None
    inner = [at for at in range(subject + 1, start) if at not in sentence.unread]
    stated = preposition_between(words, tags, inner, name)
    if stated is not None or not is_alone:
        return stated
    own = preposition_between(words, tags, inner)
    if not sentence.foreign:
        return own if adds_verb(own, name) else None
    if own is None:
        return other_verb(words, tags, inner, name)
    return None if own in GENERAL else own


def _behind_another(
    words: Sequence[str], tags: Sequence[str], objects: Sequence[int], start: int, name: str
) -> str | None:
    """Return the verb, with its preposition, right before a phrase ("a man with a bag waits by a gate"), if another."""
    if name in GENERAL and tags[start - 1].startswith("VB"):
        return other_verb(words, tags, [start - 1], name)
    inner = list(range(max(at for at in objects if at < start) + 1, start))
    if len(inner) < 2 or not tags[inner[0]].startswith("VB") or name in OFTEN:
        return None
    said = preposition_between(words, tags, inner) or ""
    is_other = all(name.split(maxsplit=1)[0] not in stems(words[at]) for at in inner)
    return said if " " in said and is_other else None


def silent_sounds(sentence: Sentence) -> Sentence:
    """Sounds of which the network says nothing, each with the adjectives before it.

    "a loud bang": -> object bang, attribute bang: loud
    """
    labels, words = sentence.labels, sentence.words
    if sentence.names.sounds.isdisjoint(words):
        return sentence
    said = sentence.said() | sentence.inner
    for subject, target, name in labels.relations:  # "a cook cuts onions" has no cuts
        said |= {at for at in range(subject + 1, target) if verb_lemma(words[at]) == name.partition(" ")[0]}
    objects, attributes = list(labels.objects), list(labels.attributes)
    for at, (word, tag) in enumerate(zip(words, labels.tags, strict=True)):
        if word in sentence.names.sounds and tag in {"NN", "NNS"} and at not in said:
            start = at
            while start and labels.tags[start - 1].startswith("JJ") and start - 1 not in said:
                start -= 1
            objects.append(at)
            attributes += [(at, adjective) for adjective in range(start, at)]
    return sentence.having(sentence.labels._replace(objects=objects, attributes=attributes))


def _is_quantity(words: Sequence[str], phrase: Phrase) -> bool:
    return words[phrase.head] in _QUANTITIES and words[phrase.head + 1 : phrase.head + 2] == ["of"]


@lru_cache(maxsize=_MOST_WORDS)
def _is_name(before: str, word: str) -> bool:
    """Say whether WordNet has two words as one noun ("oil painting")."""
    return bool(load_wordnet().senses(f"{before} {word}", "n"))


@lru_cache(maxsize=_MOST_WORDS)
def _is_material(word: str) -> bool:
    """Say whether a word names what things are made of, which people draw as an attribute."""
    wordnet = load_wordnet()
    return wordnet.is_kind_of(word, wordnet.find("matter.n.03"))


def _may_be_verb(word: str, known: Collection[str]) -> bool:
    """Say whether a word that is taken for a noun may be a verb ("wind blows"): the network knows its "-ing" form."""
    return (
        word.endswith("s")
        and not word.endswith("ss")
        and any(
            form in known
            for base in stems(word)
            if len(base) > 1
            for form in (f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1]}ing")
        )
    )
