"""Passes over what belongs to what in a caption: reciprocals, verbs in names, comparisons, later objects, clauses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.scenes.prepositions import is_preposition_word, last_preposition
from spicegraph_parser.scenes.relations import OFTEN, has_ing_form, own_name
from spicegraph_parser.scenes.sentence import Sentence, lives, moved_ends
from spicegraph_parser.scenes.words import FINITE, NOUNS, PLURAL, PREPOSITIONS, WORDS
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Relation = tuple[int, int, str]

_RECIPROCAL: Final = (["each", "other"], ["one", "another"])
_SIDE_BY_SIDE: Final = ["side", "by", "side"]


def verbs_in_names(sentence: Sentence) -> Sentence:
    """A verb behind a noun is no name: behind a plural of what lives, or in -s behind a singular with its article.

    "two women hug": object hug, name women hug -> object women
    """
    labels, words = sentence.labels, sentence.words
    pairs = (*labels.parts, *labels.attributes)
    moved = {head: part for head, part in pairs if part == head - 1 and _is_verb(sentence, head)}
    if not moved:
        return sentence
    own = moved_ends(sentence, moved)
    verbs = {at: "VBZ" if words[at].endswith("s") else "VBP" for at in moved}
    tags = [verbs.get(at, tag) for at, tag in enumerate(labels.tags)]
    return own.deciding(tags=tags, parts=[pair for pair in own.labels.parts if pair[1] not in moved])


def _is_verb(sentence: Sentence, at: int) -> bool:
    """Say whether the last word of a name is a verb, and the word before it a subject or the end of a phrase."""
    words, tags = sentence.words, sentence.labels.tags
    if not {tags[at - 1], tags[at]} <= NOUNS or not FINITE.isdisjoint(tags) or not _may_be_done(words[at], sentence):
        return False
    if words[at].endswith("s"):
        return tags[at - 1] not in PLURAL and not {"a", "an"}.isdisjoint(words[max(0, at - 3) : at - 1])
    return tags[at - 1] in PLURAL and lives(plural_lemma(words[at - 1]))


def _may_be_done(word: str, sentence: Sentence) -> bool:
    """Say whether a word is the form of a verb of which captions have the "-ing" form."""
    base = verb_lemma(word)
    return has_ing_form(base, sentence.names.known) and bool(load_wordnet().senses(base, "v"))


def reciprocals(sentence: Sentence) -> Sentence:
    """What several do to "each other", "one another" or "side by side" relates them to themselves, with their number.

    "two giraffes stand next to each other": -> relation giraffes - stand next to - giraffes
    """
    words = sentence.words
    for at in range(len(words) - 1):
        if words[at : at + 2] in _RECIPROCAL or words[at : at + 3] == _SIDE_BY_SIDE:
            ends = _several(sentence, at)
            name = _reciprocal_name(sentence, ends[-1], at) if ends else None
            if name is not None and not any({*row[:2]} <= {*ends} for row in sentence.labels.relations):
                numbers = _numbers_of(sentence, ends[0])
                sentence = sentence.adding(relations=[(ends[0], ends[-1], name)], attributes=numbers)
    return sentence


def _several(sentence: Sentence, at: int) -> Sequence[int]:
    """Return the nearest noun before a position that names several, or the two that "and" joins, or none."""
    words, tags = sentence.words, sentence.labels.tags
    before = sorted((noun for noun in sentence.labels.objects if noun < at), reverse=True)
    for second, first in pairwise([*before, -1]):
        if tags[second] in PLURAL or (second and tags[second - 1] == "CD") or words[second] == "people":
            return (second,)
        if first >= 0 and "and" in words[first:second]:
            return first, second
    return ()


def _reciprocal_name(sentence: Sentence, subject: int, at: int) -> str | None:
    """Return what several do to each other: the verb's base and prepositions, or prepositions alone."""
    words, tags = sentence.words, sentence.labels.tags
    verbs = [p for p in range(subject + 1, at) if tags[p].startswith("VB")][-1:]
    verb = own_name([words[p] for p in verbs], [tags[p] for p in verbs], 0, len(verbs)) or ""
    if words[at] == _SIDE_BY_SIDE[0]:
        return f"{verb} side by side with".strip()
    _, stated = last_preposition(tuple([words[p] for p in range(subject + 1, at) if tags[p] != "RB"]))
    return own_name(words, tags, subject + 1, at) if stated is None else f"{verb} {stated.name}".strip()


def _numbers_of(sentence: Sentence, noun: int) -> list[tuple[int, int]]:
    """Return a noun's number in its phrase as an attribute."""
    tags = sentence.labels.tags
    return [(noun, at) for at in range(sentence.starts().get(noun, noun), noun) if tags[at] == "CD"]


def comparisons(sentence: Sentence) -> Sentence:
    """What is bigger than a thing is related to it by this alone.

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
    """What belongs to another thing: what covers the noun before its verb, a clause behind "as", another's attribute.

    "a sign against a fence covered in ivy": relation ivy - cover - sign ->
    """
    labels, tags = sentence.labels, (*sentence.labels.tags, "")
    return sentence.deciding(
        relations=[
            row
            for row in labels.relations
            if not (row[2] == "as" and tags[row[1] + 1].startswith("VB"))
            and not (row[2] in WORDS["covering"] and _is_nearer(sentence, row))
        ],
        attributes=[pair for pair in labels.attributes if not _is_others(sentence, *pair)],
    )


def _is_nearer(sentence: Sentence, row: Relation) -> bool:
    """Say whether a subject does the same to another noun, nearer to it, that is not joined to the first by "and"."""
    subject, target, name = row
    return any(
        (first, same) == (subject, name) and target < other < subject and "and" not in sentence.words[target:other]
        for first, other, same in sentence.labels.relations
    )


def _is_others(sentence: Sentence, noun: int, at: int) -> bool:
    """Say whether an attribute is not its noun's: "two cows have black hooves"; in captions, another's number."""
    words, tags = sentence.words, sentence.labels.tags
    between = {words[p] for p in range(at + 1, noun) if tags[p] in FINITE | PREPOSITIONS}
    if not between:
        return False
    is_part = tags[at] == "CD" or words[at] in WORDS["portions"]
    if not sentence.is_alone:
        return is_part or between != {"of"}
    return is_part and bool(sentence.foreign) and [own for _, own in sentence.labels.attributes].count(at) > 1


def later_objects(sentence: Sentence) -> Sentence:
    """The second thing behind a verb has the preposition before it in its relation.

    "a man pushes a cart through a gate": relation man - push - gate -> relation man - push through - gate
    """
    relations = sentence.labels.relations
    return sentence.deciding(relations=list(_with_prepositions(sentence))) if len(relations) > 1 else sentence


def _with_prepositions(sentence: Sentence) -> Iterator[Relation]:
    words, tags, relations = sentence.words, sentence.labels.tags, sentence.labels.relations
    starts = sentence.starts()
    for subject, target, name in relations:
        at = starts.get(target, target) - 1
        is_plain = not (" " in name or name in OFTEN or is_preposition_word(name))
        is_placed = is_plain and tags[at] in PREPOSITIONS and words[at] != "of"
        is_later = is_placed and any(row[::2] == (subject, name) and subject < row[1] < target for row in relations)
        yield subject, target, f"{name} {words[at]}" if is_later else name


def stills(sentence: Sentence) -> Sentence:
    """A still is what is "of" something, and the noun before it part of its name.

    "a camera still of a man": object camera, relation camera - of - man -> name camera still, relation still - of - man
    """
    words, said = sentence.words, sentence.labels.objects
    moved = {at - 1: at for at in range(1, len(words) - 1) if words[at : at + 2] == ["still", "of"] and at - 1 in said}
    if not moved:
        return sentence
    own = moved_ends(sentence, moved)
    rows = own.labels.relations
    behind = sorted((row[:2] for row in rows if row[0] < row[1]), reverse=True)
    shown = dict(behind)  # of each thing the nearest behind it
    return own.deciding(
        tags=["NN" if at in moved.values() else tag for at, tag in enumerate(own.labels.tags)],
        relations=[
            (*row[:2], "of") if row[0] in moved.values() and shown.get(row[0]) == row[1] else row for row in rows
        ],
    )
