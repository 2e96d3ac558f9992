"""Passes over what belongs to what in a caption: reciprocals, verbs in names, comparisons, later objects, clauses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.scenes.prepositions import is_preposition_word, last_preposition
from spicegraph_parser.scenes.relations import FINITE, OFTEN, own_name
from spicegraph_parser.scenes.sentence import NOUNS, PLURAL, Sentence, lives, moved_ends
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Sequence

Relation = tuple[int, int, str]

_RECIPROCAL: Final = (["each", "other"], ["one", "another"])
_SIDE_BY_SIDE: Final = ["side", "by", "side"]
_STARTS: Final = frozenset({"each", "one", "side"})
_COMPARING: Final = frozenset({"JJR", "RBR"})
_COVERING: Final = word_set("cover surround line fill adorn decorate")
_ARTICLES: Final = frozenset({"a", "an"})


def verbs_in_names(sentence: Sentence) -> Sentence:
    """A verb behind a noun is no name: behind a plural of what lives, or in -s behind a singular with its article.

    "two women hug": object hug, name women hug -> object women
    """
    labels = sentence.labels
    pairs = (*labels.parts, *labels.attributes)
    moved = {head: part for head, part in pairs if part == head - 1 and _is_verb(sentence, head)}
    if not moved:
        return sentence
    own = moved_ends(sentence, moved).labels
    parts = [pair for pair in own.parts if pair[1] not in moved]
    tags = [_finite(sentence.words[at]) if at in moved else tag for at, tag in enumerate(own.tags)]
    return sentence.having(own._replace(tags=tags, parts=parts))


def _finite(verb: str) -> str:
    return "VBZ" if verb.endswith("s") else "VBP"


def _is_verb(sentence: Sentence, at: int) -> bool:
    """Say whether the last word of a name is a verb, and the word before it a subject or the end of a phrase."""
    words, tags = sentence.words, sentence.labels.tags
    if not {tags[at - 1], tags[at]} <= NOUNS or not FINITE.isdisjoint(tags) or not _may_be_done(words[at], sentence):
        return False
    if words[at].endswith("s"):
        return tags[at - 1] not in PLURAL and not _ARTICLES.isdisjoint(words[max(0, at - 3) : at - 1])
    return tags[at - 1] in PLURAL and lives(plural_lemma(words[at - 1]))


def _may_be_done(word: str, sentence: Sentence) -> bool:
    """Say whether a word is the form of a verb of which captions have the "-ing" form."""
    base = verb_lemma(word)
    forms = (f"{base}ing", f"{base[:-1]}ing", f"{base}{base[-1:]}ing")
    return not sentence.names.known.isdisjoint(forms) and bool(load_wordnet().senses(base, "v"))


def reciprocals(sentence: Sentence) -> Sentence:
    """What several do to "each other", "one another" or "side by side" relates them to themselves, with their number.

    "two giraffes stand next to each other": -> relation giraffes - stand next to - giraffes
    """
    words, labels = sentence.words, sentence.labels
    starts = [
        at for at in range(len(words)) if words[at : at + 2] in _RECIPROCAL or words[at : at + 3] == _SIDE_BY_SIDE
    ]
    relations, attributes = list(labels.relations), list(labels.attributes)
    for at in starts:
        ends = _several(sentence, at)
        name = _reciprocal_name(sentence, ends[-1], at) if ends else None
        if name is not None and not any(row[0] in ends and row[1] in ends for row in relations):
            relations.append((ends[0], ends[-1], name))
            attributes += [pair for pair in _number_of(sentence, ends[0]) if pair not in attributes]
    if len(relations) == len(labels.relations):
        return sentence
    return sentence.having(labels._replace(relations=relations, attributes=attributes))


def _is_reciprocal(words: Sequence[str]) -> bool:
    return words[:2] in _RECIPROCAL or words == _SIDE_BY_SIDE


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
    if words[at] == _SIDE_BY_SIDE[0]:
        return " ".join([*_verb_before(sentence, subject, at), *_SIDE_BY_SIDE, "with"])
    inner = [p for p in range(subject + 1, at) if tags[p] != "RB"]
    _, stated = last_preposition(tuple([words[p] for p in inner]))
    if stated is None:
        return own_name(words, tags, subject + 1, at)
    return " ".join([*_verb_before(sentence, subject, at), stated.name])


def _verb_before(sentence: Sentence, subject: int, at: int) -> Sequence[str]:
    """Return the base of the last verb between two positions, if there is one that says more than "be"."""
    words, tags = sentence.words, sentence.labels.tags
    verbs = [p for p in range(subject + 1, at) if tags[p].startswith("VB")]
    name = own_name([words[p] for p in verbs[-1:]], [tags[p] for p in verbs[-1:]], 0, len(verbs[-1:]))
    return [name] if name else []


def _number_of(sentence: Sentence, noun: int) -> Sequence[tuple[int, int]]:
    """Return a noun's number in its phrase as an attribute."""
    start = next((phrase.start for phrase in sentence.phrases if phrase.head == noun), noun)
    return [(noun, at) for at in range(start, noun) if sentence.labels.tags[at] == "CD"]


def comparisons(sentence: Sentence) -> Sentence:
    """What is bigger than a thing is related to it by this alone.

    "a ball bigger than a head": relation ball - have - head -> relation ball - bigger than - head
    """
    words, labels = sentence.words, sentence.labels
    relations = labels.relations
    for at in range(1, len(words)):
        if words[at] == "than" and labels.tags[at - 1] in _COMPARING:
            subject = max((noun for noun in labels.objects if noun < at), default=-1)
            target = next((phrase.head for phrase in sentence.phrases if phrase.start > at), -1)
            if subject >= 0 and target in labels.objects:
                name = f"{words[at - 1]} than"
                relations = [row for row in relations if {*row[:2]} != {subject, target}]
                relations.append((subject, target, name))
    return sentence if relations is labels.relations else sentence.having(labels._replace(relations=relations))


def nearest_covered(sentence: Sentence) -> Sentence:
    """What covers or surrounds something does so to the noun before its verb, and to no noun before that.

    "a sign against a fence covered in ivy": relation ivy - cover - sign ->
    """
    labels, words = sentence.labels, sentence.words
    kept = []
    for row in labels.relations:
        subject, target, name = row
        nearer = [
            other
            for first, other, same in labels.relations
            if (first, same) == (subject, name) and target < other < subject and "and" not in words[target:other]
        ]
        if name not in _COVERING or not nearer:
            kept.append(row)
    return sentence if len(kept) == len(labels.relations) else sentence.having(labels._replace(relations=kept))


def later_objects(sentence: Sentence) -> Sentence:
    """The second thing behind a verb has the preposition before it in its relation.

    "a man pushes a cart through a gate": relation man - push - gate -> relation man - push through - gate
    """
    words, labels = sentence.words, sentence.labels
    starts = {phrase.head: phrase.start for phrase in sentence.phrases}
    relations: list[Relation] = []
    for subject, target, name in labels.relations:
        at = starts.get(target, target) - 1
        is_plain = not (" " in name or name in OFTEN or is_preposition_word(name)) and labels.tags[at] in {"IN", "TO"}
        has_first = is_plain and any(
            (first, same) == (subject, name) and subject < other < target for first, other, same in labels.relations
        )
        relations.append((subject, target, f"{name} {words[at]}" if has_first and words[at] != "of" else name))
    return sentence if relations == labels.relations else sentence.having(labels._replace(relations=relations))


def two_clauses(sentence: Sentence) -> Sentence:
    """Joining a clause, "as" relates nothing.

    "crowds fill a stadium as fireworks explode": relation stadium - as - fireworks ->
    """
    labels = sentence.labels
    clauses = {at - 1 for at, tag in enumerate(labels.tags) if tag.startswith("VB")}
    kept = [row for row in labels.relations if row[2] != "as" or row[1] not in clauses]
    return sentence if len(kept) == len(labels.relations) else sentence.having(labels._replace(relations=kept))


def stills(sentence: Sentence) -> Sentence:
    """A still is what is "of" something, and the noun before it part of its name.

    "a camera still of a man": object camera, relation camera - of - man -> name camera still, relation still - of - man
    """
    words, labels = sentence.words, sentence.labels
    moved = {at - 1: at for at in range(1, len(words) - 1) if words[at : at + 2] == ["still", "of"]}
    moved = {before: at for before, at in moved.items() if before in labels.objects and at not in sentence.said()}
    if not moved:
        return sentence
    own = moved_ends(sentence, moved).labels
    shown = {at: min((row[1] for row in own.relations if row[0] == at < row[1]), default=-1) for at in moved.values()}
    relations = [(*row[:2], "of") if shown.get(row[0]) == row[1] else row for row in own.relations]
    tags = ["NN" if at in shown else tag for at, tag in enumerate(own.tags)]
    return sentence.having(own._replace(tags=tags, relations=relations))


def numbers_of_others(sentence: Sentence) -> Sentence:
    """The number of one phrase is not that of another, in captions of a foreign kind.

    "two workers in orange vests": attribute vests: two ->
    """
    labels = sentence.labels
    if not sentence.foreign or "CD" not in labels.tags:
        return sentence
    starts = {phrase.head: phrase.start for phrase in sentence.phrases}
    kept = [
        (head, at)
        for head, at in labels.attributes
        if labels.tags[at] != "CD" or starts.get(head, at) <= at or [own for _, own in labels.attributes].count(at) == 1
    ]
    return sentence if len(kept) == len(labels.attributes) else sentence.having(labels._replace(attributes=kept))
