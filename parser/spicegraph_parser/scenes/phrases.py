"""Noun phrases of which the network says nothing, read from tags: what a caption is about stays in its graph.

The network learned from captions of photographs. Of nouns that these lack ("lesion", "chart", "logo") it often says
nothing; then the phrase is an object with what stands before its noun, related to the phrase before it by the words
between both.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.lemmas import verb_lemma
from spicegraph_parser.scenes.kinds import is_noun
from spicegraph_parser.scenes.prepositions import GENERAL, inner_nouns, is_preposition_word
from spicegraph_parser.scenes.relations import adds_verb, other_verb, preposition_between, stated_between, stems
from spicegraph_parser.scenes.visible import DEPICTIONS, PICTURES
from spicegraph_parser.spice.parse import is_word, tables, word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set

    from spicegraph_parser.scenes.network import Labels, Names

_STARTS: Final = frozenset({"DT", "PDT", "PRP$", "WP$"})
_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_BEFORE_NOUNS: Final = _NOUNS | {"CD", "JJ", "JJR", "JJS"}
_PARTICIPLES: Final = frozenset({"VBN", "VBG"})
_BEHIND_NOUNS: Final = frozenset({"VBZ", "VBP", "VBD", "MD", "IN", "TO"})
_SAID_BEFORE: Final = frozenset({"CD", "JJ", "JJR", "JJS", "VBN", "VBG"})
_QUANTITIES: Final = word_set(tables(__package__)["quantities"])
_GROUPS: Final = _QUANTITIES - word_set(
    "pair pairs lot lots number couple variety dozen plenty kind kinds type types sort part crowd crowds"
)
_HAVE: Final = "have"
_ING: Final = "ing"


class Phrase(NamedTuple):
    """A noun phrase: its first word, its noun, which is its last word."""

    start: int
    head: int


def phrases(tags: Sequence[str], left_out: Collection[int] = (), values: Collection[int] = ()) -> list[Phrase]:
    """Return the noun phrases of a sentence without words that are left out; values may stand before their noun."""
    out: list[Phrase] = []
    at = 0
    while at < len(tags):
        start, head = at, -1
        for at in range(start, len(tags) + 1):
            tag = tags[at] if at < len(tags) and at not in left_out else ""
            if at in values:
                tag, continues = "", start < at and head < 0
            elif tag in _STARTS:
                continues = at == start or (head < 0 and tags[at - 1] in _STARTS)
            elif tag in _PARTICIPLES:
                continues = at > start and head < 0 and at + 1 < len(tags) and tags[at + 1] in _BEFORE_NOUNS
            else:
                continues = tag in _NOUNS or tag == "CD" or (tag in _BEFORE_NOUNS and head < 0)
            if not continues:
                break
            if tag in _NOUNS:
                head = at
        if head < 0 and at > start + 1 and tags[start] in _STARTS and tags[at - 1] == "JJ":
            head = at - 1 if tags[at : at + 1] == [] or tags[at] in _BEHIND_NOUNS else head
        if head >= 0:
            out.append(Phrase(start, head))
            at = head + 1
        elif at == start:
            at += 1
    return out


def with_phrases(
    labels: Labels,
    words: Sequence[str],
    names: Names,
    denied: Collection[int],
    left_out: Collection[int],
    *,
    is_alone: bool,
) -> Labels:
    """Return labels with the caption's own prepositions and, of a caption, with phrases that the network lacks."""
    labels = with_plain_tags(labels, words)
    inner = inner_nouns(words)
    every = phrases(labels.tags, inner, left_out)
    labels = without_inner(labels, words, inner, every)
    has_foreign = False
    if is_alone:
        foreign = [phrase for phrase in every if words[phrase.head] not in names.known and is_noun(words[phrase.head])]
        first = next((phrase for phrase in every if not _is_quantity(words, phrase)), None)
        has_foreign = bool(foreign)
        # the network lacks the noun of the first phrase, or two of the nouns
        is_foreign = has_foreign and (foreign[0] == first or len(foreign) > 1)
        labels = with_silent(labels, words, names, every, denied=denied, left_out=left_out, is_foreign=is_foreign)
        if others := list(between_phrases(labels, words, names.known, every, left_out)):
            labels = labels._replace(relations=[*labels.relations, *others])
        labels = of_pictures(labels, words)
        labels = within_phrases(labels, words, names.known, every)
        labels = with_amounts(labels, words, every, is_foreign=has_foreign)
    return in_own_prepositions(labels, words, every, left_out, is_foreign=has_foreign, is_alone=is_alone)


def with_plain_tags(labels: Labels, words: Sequence[str]) -> Labels:
    """Return labels in which words are no nouns that the network does not draw behind a noun that it does.

    They are verbs ("a surgeon stitching a wound", "a café lists the soups") and adverbs ("a chapel inside").
    """
    objects = set(labels.objects)
    tags: dict[int, str] = {}
    for at, (word, tag) in enumerate(zip(words, labels.tags, strict=True)):
        if tag in _NOUNS:
            own = _NO_NOUNS.get(word)
            if own is None and at - 1 in objects and at not in objects:
                own = "RB" if word in _ADVERBS else _verb_tag(words[at - 1], word)
            if own is not None and at not in said_of(labels):
                tags[at] = own
        elif tag == _EXCLAIMED and (at in objects or word.endswith(_ING)):  # a tag that captions hardly need
            tags[at] = "VBG" if word.endswith(_ING) else "NN"
    return labels._replace(tags=[tags.get(at, tag) for at, tag in enumerate(labels.tags)]) if tags else labels


_NO_NOUNS: Final = {"i": "PRP", "vs": "IN"}
_EXCLAIMED: Final = "UH"
_ADVERBS: Final = word_set("inside outside behind below above underneath beneath nearby")


_CHARTS: Final = word_set("chart charts graph graphs plot plots diagram diagrams")
_SINGULAR: Final = frozenset({"NN", "NNP"})
_TEXTS: Final = word_set("word letter number name text title")  # "the word antiques"


def within_phrases(labels: Labels, words: Sequence[str], known: Set[str], every: Sequence[Phrase]) -> Labels:
    """Return labels in which a phrase is one object: its last noun, with the noun before it in its name."""
    objects = set(labels.objects)
    several = [phrase for phrase in every if phrase.start < phrase.head and phrase.head - 1 in objects]
    if not several:
        return labels
    said = said_of(labels)
    pairs = {frozenset(relation[:2]) for relation in labels.relations}
    linked = {end for row in (*labels.attributes, *labels.relations) for end in row[:2]}
    moved: dict[int, int] = {}
    for phrase in several:
        head, before = phrase.head, phrase.head - 1
        if labels.tags[before] not in _SINGULAR:
            continue
        if labels.tags[head] not in _NOUNS or words[head].endswith(_ING) or _may_be_verb(words[head], known):
            continue
        if head in linked and _related(labels, before) == _related(labels, head) != set():
            moved[before] = head  # "fish farms along the coast"
            continue
        is_name = _is_name(words[before], words[head])
        is_new = is_noun(words[head]) and (not {words[before], words[head]} <= known or words[head] in _CHARTS)
        if words[before] in _TEXTS or _is_quantity(words, phrase) or not (is_name or is_new):
            continue
        if head not in said or (head in objects and head not in linked and frozenset((head, before)) not in pairs):
            moved[before] = head
    return _moved_ends(labels, moved) if moved else labels


def _related(labels: Labels, noun: int) -> set[tuple[str, int, bool]]:
    """Return a noun's relations: name, other end, and whether the noun is the subject."""
    rows = [row for row in labels.relations if noun in row[:2]]
    return {(name, b if a == noun else a, a == noun) for a, b, name in rows}


def with_amounts(labels: Labels, words: Sequence[str], every: Sequence[Phrase], *, is_foreign: bool) -> Labels:
    """Return labels with "cluster of" as an amount in captions of a foreign kind, and numbers apart from materials."""
    if not (is_foreign or "CD" in labels.tags):
        return labels
    head_of = {word: head for head, word in labels.attributes}
    objects, said = set(labels.objects), said_of(labels)
    amounts = [
        (phrase.head, amount.head)
        for amount, phrase in pairwise(every)
        if is_foreign and words[amount.head] in _QUANTITIES and words[amount.head + 1 : phrase.start] == ["of"]
        if head_of.get(amount.head) == phrase.head
        or (words[amount.head] in _GROUPS and phrase.head in objects and amount.head not in said)
    ]
    numbers = [  # of "three cotton shirts", "cotton" is the material
        pair
        for pair in labels.parts
        if pair[0] in head_of and labels.tags[pair[1]] == "CD"
        if labels.tags[pair[0]] in _NOUNS and _is_material(words[pair[0]])
    ]
    if not (amounts or numbers):
        return labels
    parts = [*(pair for pair in labels.parts if pair not in numbers), *((at, at + 1) for _, at in amounts)]
    apart = [*amounts, *((head_of[word], number) for word, number in numbers)]
    return labels._replace(
        parts=list(dict.fromkeys(parts)), attributes=list(dict.fromkeys([*labels.attributes, *apart]))
    )


def _moved_ends(labels: Labels, moved: Mapping[int, int]) -> Labels:
    """Return labels in which nouns are part of the name of others, which have all that was said of them."""
    relations = [(moved.get(a, a), moved.get(b, b), name) for a, b, name in labels.relations]
    parts = [(moved.get(head, head), part) for head, part in labels.parts]
    return labels._replace(
        objects=list(dict.fromkeys(moved.get(at, at) for at in labels.objects)),
        parts=list(
            dict.fromkeys([*(pair for pair in parts if pair[0] != pair[1]), *((b, a) for a, b in moved.items())])
        ),
        attributes=[(moved.get(a, a), b) for a, b in labels.attributes if b not in moved and moved.get(a, a) != b],
        relations=[row for row in dict.fromkeys(relations) if row[0] != row[1]],
    )


def said_of(labels: Labels) -> set[int]:
    """Return the words of which the network says something."""
    out = {*labels.objects, *(end for pair in (*labels.parts, *labels.attributes) for end in pair)}
    return out | {end for relation in labels.relations for end in relation[:2]}


def with_silent(
    labels: Labels,
    words: Sequence[str],
    names: Names,
    every: Sequence[Phrase],
    *,
    denied: Collection[int],
    left_out: Collection[int],
    is_foreign: bool,
) -> Labels:
    """Return a caption's labels with noun phrases of which the network says nothing, at least with one."""
    said = said_of(labels).union(left_out)
    has_objects = any(at not in denied for at in labels.objects)
    silent = [phrase for phrase in every if phrase.head not in said and is_word(words[phrase.head])]
    if has_objects and not is_foreign:
        return labels
    left = names.undrawn | PICTURES if is_foreign else names.known
    drawable = [
        phrase
        for phrase in silent
        if words[phrase.head] not in left
        and not _is_quantity(words, phrase)
        and not (phrase.head - 1 in said and _may_be_verb(words[phrase.head], names.known))
    ]
    if not has_objects and not drawable:
        stated = [phrase for phrase in silent if phrase.head not in denied]
        drawable = [phrase for phrase in stated if not _is_quantity(words, phrase)][:1] or stated[:1]
        drawable = drawable or ([] if labels.objects else list(every[:1]))
    for phrase in drawable:
        if not labels.objects or is_noun(words[phrase.head]):
            labels = _with_phrase(labels, words, names.drawn, phrase, said)
    objects = set(labels.objects)
    linked = {end for row in labels.relations for end in row[:2]}
    # what is said of a whole is said of its part that nothing leads to: "in the vein of the arm"
    part_of = {
        whole.head: part.head
        for part, whole in pairwise(every)
        if words[part.head + 1 : whole.start] == ["of"]
        and part.head in objects - linked
        and words[part.head] not in DEPICTIONS
    }
    if part_of:
        moved = [(a, part_of.get(b, b), name) for a, b, name in labels.relations]
        labels = labels._replace(relations=[row for row in dict.fromkeys(moved) if row[0] != row[1]])
    adjectives = [
        (phrase.head, at)
        for phrase in every
        if phrase.head in objects and phrase.head in said and words[phrase.head] not in names.known
        for at in range(phrase.start, phrase.head)
        if labels.tags[at] in _SAID_BEFORE and at not in said
    ]
    if adjectives:
        labels = labels._replace(attributes=[*labels.attributes, *adjectives])
    return _with_compounds(labels, words, names.known, every)


def _with_compounds(labels: Labels, words: Sequence[str], known: Set[str], every: Sequence[Phrase]) -> Labels:
    """Return labels in which nouns right before an object are part of its name ("pie chart")."""
    objects = set(labels.objects)
    parts, attributes = list(labels.parts), list(labels.attributes)
    linked = {end for row in (*parts, *attributes, *labels.relations) for end in row[:2]}
    for phrase in every:
        head, before = pair = phrase.head, phrase.head - 1
        if head not in objects or head == phrase.start:
            continue
        is_tagged = labels.tags[before] in _NOUNS
        if pair in attributes:
            unknown = {words[at] for at in pair} - known
            may_name = words[before] not in _POSITIONS and not _is_material(words[before])
            has_name = bool(unknown) and may_name and _is_name(words[before], words[head])
            if has_name or (is_tagged and len(unknown) == len(pair)):
                attributes.remove(pair)
                parts.append(pair)
        elif is_tagged and not words[before].endswith(_ING) and before in objects and before not in linked:
            objects.remove(before)
            parts.append(pair)
    return labels._replace(objects=[at for at in labels.objects if at in objects], parts=parts, attributes=attributes)


_MOST_WORDS: Final = 100_000


@lru_cache(maxsize=_MOST_WORDS)
def _is_name(before: str, word: str) -> bool:
    """Say whether WordNet has two words as one noun ("oil painting")."""
    return bool(load_wordnet().senses(f"{before} {word}", "n"))


@lru_cache(maxsize=_MOST_WORDS)
def _is_material(word: str) -> bool:
    """Say whether a word names what things are made of, which people draw as an attribute."""
    wordnet = load_wordnet()
    return wordnet.is_kind_of(word, wordnet.find("matter.n.03"))


@lru_cache(maxsize=_MOST_WORDS)
def _verb_tag(before: str, word: str) -> str | None:
    """Return the tag of a word that is taken for a noun behind a noun, if WordNet has the verb and no name of both."""
    base = verb_lemma(word)
    if base == word or not load_wordnet().senses(base, "v") or _is_name(before, word):
        return None
    return "VBG" if word.endswith(_ING) else "VBZ" if word.endswith("s") else None


def _may_be_verb(word: str, known: Collection[str]) -> bool:
    """Say whether a word that is taken for a noun may be a verb ("wind blows"): the network knows its "-ing" form."""
    return word.endswith("s") and any(
        form in known
        for base in stems(word)
        for form in (f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1]}ing")
        if len(base) > 1 and not word.endswith("ss")
    )


_POSITIONS: Final = word_set("left right front back rear upper lower inner outer")


def of_pictures(labels: Labels, words: Sequence[str]) -> Labels:
    """Return labels of a caption whose pictures are "of" what they show, and not had by it."""
    if DEPICTIONS.isdisjoint(words):
        return labels
    return labels._replace(
        relations=[
            (target, subject, "of")
            if target < subject and name in _OF_PICTURES and words[target] in DEPICTIONS and words[target + 1] == "of"
            else (subject, target, name)
            for subject, target, name in labels.relations
        ]
    )


_OF_PICTURES: Final = frozenset([_HAVE, "in", "on"])


def _is_quantity(words: Sequence[str], phrase: Phrase) -> bool:
    return words[phrase.head] in _QUANTITIES and words[phrase.head + 1 : phrase.head + 2] == ["of"]


def _with_phrase(
    labels: Labels, words: Sequence[str], drawn: Collection[str], phrase: Phrase, said: Collection[int]
) -> Labels:
    """Return labels with an object: nouns before the phrase's last one are part of its name, adjectives attributes."""
    tags, head = labels.tags, phrase.head
    owners = max((at for at in range(phrase.start, head) if tags[at] == "POS"), default=phrase.start - 1)
    inner = range(owners + 1, head)
    taken = {at for at in inner if tags[at] in _NOUNS}
    firm = taken.intersection(said)
    if any(words[at] in drawn for at in firm):
        taken = set()
    parts = [(head, at) for at in sorted(taken)]
    adjectives = [(head, at) for at in inner if tags[at] in _SAID_BEFORE and at not in said]
    if not taken or not firm:
        return labels._replace(
            objects=[*labels.objects, head], parts=[*labels.parts, *parts], attributes=[*labels.attributes, *adjectives]
        )
    labels = _moved_ends(labels, dict.fromkeys(sorted(taken), head))
    objects = labels.objects if head in labels.objects else [*labels.objects, head]
    return labels._replace(objects=objects, attributes=[*labels.attributes, *adjectives])


def between_phrases(
    labels: Labels, words: Sequence[str], known: Collection[str], every: Sequence[Phrase], left_out: Collection[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield relations by the words between of phrases that the network relates to nothing before them."""
    objects = set(labels.objects)
    related = {max(subject, target) for subject, target, _ in labels.relations}
    of = {
        behind.head: before.head
        for before, behind in pairwise(every)
        if words[before.head + 1 : behind.start] == ["of"] and words[before.head] not in _QUANTITIES
    }
    for before, phrase in pairwise(every):
        if phrase.head in related or not {before.head, phrase.head} <= objects:
            continue
        if labels.tags[phrase.head + 1 : phrase.head + 2] == ["POS"]:
            continue
        relation = stated_between(words, labels.tags, before.head, phrase, left_out)
        if relation is None:
            continue
        name = relation[2]
        if (
            words[before.head] in known
            and words[phrase.head] in known
            and not (is_preposition_word(name.split()[0]) and " " in name)
        ):
            continue
        whole = of.get(before.head)  # in "a wing of a fly under ...", the wing is under it
        if whole in objects and "of" not in words[before.head + 1 : phrase.start]:
            subject, target, name = relation
            relation = (whole, target, name) if subject == before.head else (subject, whole, name)
        yield relation


def without_inner(labels: Labels, words: Sequence[str], within: Collection[int], every: Sequence[Phrase]) -> Labels:
    """Return labels without objects inside of prepositions: "at the foot of the stairs" has no foot."""
    inner = set(within).intersection([*labels.objects, *(end for relation in labels.relations for end in relation[:2])])
    if not inner:
        return labels
    relations = [relation for relation in labels.relations if inner.isdisjoint(relation[:2])]
    for noun in sorted(inner):
        target = next((phrase for phrase in every if phrase.start > noun), None)
        ends = [subject for subject, other, _ in labels.relations if other == noun and subject < noun]
        before = [at for at in labels.objects if at < noun and at not in inner]
        subject = next((at for at in (*ends, *reversed(before)) if at not in inner), None)
        if (
            target is None
            or subject is None
            or any({subject, target.head} == {*relation[:2]} for relation in relations)
        ):
            continue
        texts = range(subject + 1, target.start)
        name = preposition_between(words, labels.tags, texts)
        if name is not None:
            relations.append((subject, target.head, name))
    objects = [at for at in labels.objects if at not in inner]
    return labels._replace(
        objects=objects, relations=relations, attributes=[pair for pair in labels.attributes if pair[0] not in inner]
    )


def _between(
    words: Sequence[str], tags: Sequence[str], inner: Sequence[int], name: str, *, is_foreign: bool
) -> str | None:
    """Return what a caption states between two things in place of a relation's name that may mean the same."""
    own = preposition_between(words, tags, inner)
    if not is_foreign:
        return own if adds_verb(own, name) else None
    if own is None:
        return other_verb(words, tags, inner, name)
    return None if own in GENERAL else own


def behind_another(
    words: Sequence[str], tags: Sequence[str], objects: Sequence[int], start: int, name: str
) -> str | None:
    """Return the verb, with its preposition, right before a phrase ("a man with a bag waits by a gate"), if another."""
    if name in GENERAL and tags[start - 1].startswith("VB"):
        return other_verb(words, tags, [start - 1], name)
    inner = list(range(max(at for at in objects if at < start) + 1, start))
    if len(inner) < 2 or not tags[inner[0]].startswith("VB") or name in _OFTEN:
        return None
    said = preposition_between(words, tags, inner) or ""
    is_other = all(name.split(maxsplit=1)[0] not in stems(words[at]) for at in inner)
    return said if " " in said and is_other else None


_OFTEN: Final = frozenset([_HAVE, "wear"])  # what people draw for verbs of many kinds


def in_own_prepositions(
    labels: Labels,
    words: Sequence[str],
    every: Sequence[Phrase],
    left_out: Collection[int],
    *,
    is_foreign: bool,
    is_alone: bool,
) -> Labels:
    """Name relations by the preposition between both ends where they mean something else, in a foreign kind always.

    In a caption, a verb before the preposition is part of the name: "planted beyond".
    """
    starts = {phrase.head: phrase.start for phrase in every}
    objects = sorted(labels.objects)
    relations = []
    for subject, target, name in labels.relations:
        start = starts.get(target, target)
        if subject < start and not any(subject < at < start for at in objects):
            inner = [at for at in range(subject + 1, start) if at not in left_out]
            stated = preposition_between(words, labels.tags, inner, name)
            if is_alone and stated is None:
                stated = _between(words, labels.tags, inner, name, is_foreign=is_foreign)
        else:
            stated = behind_another(words, labels.tags, objects, start, name) if is_alone and subject < start else None
        relations.append((subject, target, stated or name))
    return labels if relations == labels.relations else labels._replace(relations=relations)
